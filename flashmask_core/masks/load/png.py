"""A picture of a mask as a bool array: PNG by zlib and struct, so that no package is needed for it.

Source of the format: the PNG specification, third edition (W3C), sections 5 (chunks), 9 (filters) and 11.2 (IHDR).
"""

from __future__ import annotations

import struct
import zlib

import numpy as np

from ..picture import MASK_CHUNK

MAX_PIXELS = 1 << 24  # 4,096 x 4,096
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by colour type: grey, RGB, palette, grey + alpha, RGB + alpha
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_PAETH, _AVERAGE, _UP, _SUB = 4, 3, 2, 1


def read_png(data, name: str) -> np.ndarray:
    """bool [height, width]: True where a pixel is the brighter one of the picture's two tones.

    Rows of pixels are queries, columns are keys. A picture of one tone is True where that is brighter than middle grey.
    Width x height is judged before the pixels are unpacked, and no more is unpacked than they take.

    Raises ValueError for an interlaced or transparent picture, one above the limit, and one of more than two tones.
    """
    chunks = _chunks(bytes(data), name)
    if not chunks or chunks[0][0] != b"IHDR" or len(chunks[0][1]) != 13:
        raise ValueError(f"{name}: a PNG begins with its IHDR, and this one does not")
    width, height, depth, colour, compression, filtering, interlaced = struct.unpack(">IIBBBBB", chunks[0][1])
    if width * height > MAX_PIXELS or not width or not height:
        raise ValueError(f"{name}: {width} x {height} pixels; wanted at least one and at most {MAX_PIXELS:,}")
    if depth not in _DEPTHS.get(colour, ()) or compression or filtering or interlaced:
        raise ValueError(
            f"{name}: wanted a grey, palette or RGB(A) PNG that is not interlaced, got colour type {colour}, "
            f"{depth} bits, interlace {interlaced}"
        )
    channels = _CHANNELS[colour]
    row_bytes = (width * channels * depth + 7) // 8
    rows = _unpacked(b"".join(body for kind, body in chunks if kind == b"IDAT"), height * (row_bytes + 1), name)
    rows = rows.reshape(height, row_bytes + 1)
    samples = _unfiltered(rows[:, 0], rows[:, 1:], max(1, channels * depth // 8), name)
    if depth == 16:
        samples = samples.reshape(height, -1, 2)[..., 0]  # the high byte
    elif depth < 8:
        bits = np.unpackbits(samples, axis=1).reshape(height, -1, depth)
        samples = np.packbits(bits, axis=-1)[..., 0] >> (8 - depth)
    pixels = samples[:, : width * channels].reshape(height, width, channels)
    return _brighter(_tones(pixels, colour, depth, chunks, name), name)


def carried_mask(data, name: str, most: int) -> bytes | None:
    """The JSON of the mask that one of our own pictures carries (`picture.MASK_CHUNK`), at most so many bytes; else None.

    A picture of tiles cannot be read back from its tones: one of a tile's tones is "some".
    """
    if bytes(data[:8]) != b"\x89PNG\r\n\x1a\n":
        return None
    body = next((body for kind, body in _chunks(bytes(data), name) if kind == b"zTXt" and body.startswith(MASK_CHUNK)), None)
    if body is None:
        return None
    try:
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(body[len(MASK_CHUNK) :], most)
    except zlib.error as error:
        raise ValueError(f"{name}: the mask in this PNG does not unpack ({error})") from None
    if not unpacker.eof:
        raise ValueError(f"{name}: the mask in this PNG is cut short, or more than {most:,} bytes")
    return text


def _chunks(data: bytes, name: str) -> list[tuple[bytes, bytes]]:
    """(kind, content) of every chunk up to IEND."""
    found, place = [], 8
    while place + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, place)
        body = data[place + 8 : place + 8 + length]
        check = data[place + 8 + length : place + 12 + length]
        if len(check) < 4 or zlib.crc32(kind + body) != struct.unpack(">I", check)[0]:
            break
        found.append((kind, body))
        if kind == b"IEND":
            return found
        place += 12 + length
    raise ValueError(f"{name}: this PNG is cut short or damaged at byte {place:,}")


def _unpacked(packed: bytes, size: int, name: str) -> np.ndarray:
    """uint8 [size]; never unpacks more."""
    try:
        unpacked = zlib.decompressobj().decompress(packed, size)
    except zlib.error as error:
        raise ValueError(f"{name}: the pixels of this PNG do not unpack ({error})") from None
    if len(unpacked) < size:
        raise ValueError(f"{name}: this PNG has {len(unpacked):,} bytes of pixels, and its size needs {size:,}")
    return np.frombuffer(unpacked, np.uint8)


def _unfiltered(filters: np.ndarray, rows: np.ndarray, step: int, name: str) -> np.ndarray:
    """uint8 [height, row bytes]: every byte gets what its row's filter predicts from left, above and above left.

    All pixels on a line from bottom left to top right have their neighbours done when it is their turn, so the loop is
    over height + width such lines and not over the pixels.
    """
    if (filters > _PAETH).any():
        raise ValueError(f"{name}: this PNG has filter {filters.max()}, and there are only 0 to 4")
    if not filters.any():
        return rows
    height, width = rows.shape[0], rows.shape[1] // step
    done = np.zeros((height + 1, width + 1, step), np.int16)  # a row above and a pixel to the left, all 0
    done[1:, 1:] = rows.reshape(height, width, step)
    kind = filters.astype(np.int16)
    for line in range(height + width - 1):
        row = np.arange(max(0, line - width + 1), min(height, line + 1))
        row = row[kind[row] > 0]
        column = line - row
        left, above, corner = done[row + 1, column], done[row, column + 1], done[row, column]
        guess = left + above - corner
        to_left, to_above, to_corner = abs(guess - left), abs(guess - above), abs(guess - corner)
        paeth = np.where((to_left <= to_above) & (to_left <= to_corner), left,
                         np.where(to_above <= to_corner, above, corner))  # fmt: skip
        which = kind[row][:, None]
        simple = [left, above, (left + above) // 2]
        predicted = np.select([which == _SUB, which == _UP, which == _AVERAGE], simple, paeth)
        done[row + 1, column + 1] = (done[row + 1, column + 1] + predicted) & 255
    return done[1:, 1:].reshape(height, -1).astype(np.uint8)


def _tones(pixels: np.ndarray, colour: int, depth: int, chunks, name: str) -> np.ndarray:
    """int32 [height, width] brightness, 0 to 765: red + green + blue."""
    by_kind = dict(chunks)
    if b"tRNS" in by_kind and set(by_kind[b"tRNS"]) != {255} or colour in (4, 6) and (pixels[..., -1] != 255).any():
        raise ValueError(f"{name}: this PNG is transparent in places, so its tones cannot be told; save it opaque")
    if colour == 3:
        palette = np.frombuffer(by_kind.get(b"PLTE", b""), np.uint8)
        palette = palette[: len(palette) // 3 * 3].reshape(-1, 3).sum(-1, dtype=np.int32)
        if pixels.max() >= len(palette):
            raise ValueError(f"{name}: colour {pixels.max()} is not in this PNG's palette of {len(palette)}")
        return palette[pixels[..., 0]]
    if colour in (0, 4):
        return pixels[..., 0].astype(np.int32) * 3 * 255 // (255 if depth >= 8 else (1 << depth) - 1)
    return pixels[..., :3].sum(-1, dtype=np.int32)


def _brighter(tones: np.ndarray, name: str) -> np.ndarray:
    dark, bright = tones.min(), tones.max()
    if ((tones != dark) & (tones != bright)).any():
        raise ValueError(
            f"{name}: wanted a picture of two tones, one pixel for a query and a key, and this has more (smooth "
            f"edges, axes or labels?)"
        )
    return tones == bright if dark != bright else np.full(tones.shape, bright > 382)
