"""Pictures of a mask as files: PNG by zlib and struct, SVG by hand, from O(R) numbers and never an Sq x Sk array.

A picture is made of blocks of queries by keys. A block is all visible, in part, or not at all, so a thin line never
vanishes however long the sequence is; with blocks the size of a kernel's tile the kinds are those of the exact rule.
"""

from __future__ import annotations

import struct
import zlib
from html import escape

import numpy as np

from .runs import MaskedRuns

NONE, SOME, ALL = 0, 1, 2
THEMES = {  # ground, text, dim text, line, and the three kinds
    "light": ("#FFFFFF", "#1A1D24", "#5B6472", "#E1E4E9", "#EDEDED", "#DDAA33", "#004488"),
    "dark": ("#0E1117", "#E6E8EC", "#9AA3AF", "#2A2F3A", "#262B33", "#B8651B", "#9CD3F5"),
}
MASK_CHUNK = b"flashmask\0\0"  # of a PNG's zTXt chunk: its keyword and method; the mask's JSON, compressed, follows
MAX_PNG_BLOCKS, MAX_SVG_BLOCKS = 1024, 256  # on a side
_PICTURE = 640  # pixels of the longer side of an SVG's picture; a PNG has at least as many if blocks allow


def block_kinds(runs: MaskedRuns, block_m: int, block_n: int) -> np.ndarray:
    """uint8 [row blocks, column blocks]: NONE, SOME or ALL of a block's existing pairs are visible."""
    sq, sk = runs.seqlen_q, runs.seqlen_k
    tiles_m, tiles_n = -(-sq // block_m), -(-sk // block_n)
    edges = np.minimum(np.arange(tiles_m + 1) * block_m, sq)
    column = runs.columns // block_n
    hidden = _rows_below(runs.starts, column, edges, block_m, tiles_n)
    hidden -= _rows_below(runs.ends, column, edges, block_m, tiles_n)
    hidden = np.diff(hidden, axis=0)
    pairs = np.diff(edges)[:, None] * np.diff(np.minimum(np.arange(tiles_n + 1) * block_n, sk))[None]
    return np.where(hidden == pairs, NONE, np.where(hidden == 0, ALL, SOME)).astype(np.uint8)


def _rows_below(rows, column, edges, block_m: int, tiles_n: int) -> np.ndarray:
    """int64 [row blocks + 1, column blocks]: the sum of max(edge - row, 0) over the rows of a column block."""
    place = -(-rows.astype(np.int64) // block_m) * tiles_n + column
    size = len(edges) * tiles_n
    count = np.cumsum(np.bincount(place, minlength=size).reshape(len(edges), tiles_n), axis=0)
    total = np.cumsum(np.bincount(place, rows, minlength=size).astype(np.int64).reshape(len(edges), tiles_n), axis=0)
    return count * edges[:, None] - total


def fitting_block(seqlen: int, block: int, most: int) -> int:
    """The block, doubled until a sequence has at most `most` of them."""
    while -(-seqlen // block) > most:
        block *= 2
    return block


def png(runs: MaskedRuns, block_m: int, block_n: int, theme: str = "light", about: str = "", record: str = "") -> bytes:
    """The mask as a PNG of a few colours, rows are queries; `about` goes into the file as its description, and `record`,
    the mask as our own JSON, as what `load_mask` reads back.

    Blocks grow by doubling until at most 1,024 are on a side.
    """
    block_m, block_n = (fitting_block(n, b, MAX_PNG_BLOCKS) for n, b in zip(_lengths(runs), (block_m, block_n)))
    kinds = block_kinds(runs, block_m, block_n)
    scale = max(1, _PICTURE // max(kinds.shape))
    pixels = np.repeat(np.repeat(kinds, scale, axis=0), scale, axis=1)
    if scale >= 4:
        y, x = np.ogrid[: pixels.shape[0], : pixels.shape[1]]
        pixels = np.where((pixels == SOME) & ((x + y) % 8 < 3), 3, pixels)  # hatched: not told by colour alone
        if scale >= 6:
            pixels = np.where((x % scale == 0) | (y % scale == 0), 4, pixels)
    ground, _, _, line, *kind_colours = THEMES[theme]
    dark = "#" + "".join(f"{int(kind_colours[SOME][i : i + 2], 16) * 2 // 3:02X}" for i in (1, 3, 5))
    return png_of(pixels.astype(np.uint8), [*kind_colours, dark, line], about, record)


def png_of(pixels: np.ndarray, colours: list[str], about: str = "", record: str = "") -> bytes:
    """A palette PNG: pixels uint8 [height, width] are places in `colours`, each "#RRGGBB"; see `png` for the rest."""
    height, width = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels], axis=1)
    palette = bytes(int(colour[i : i + 2], 16) for colour in colours for i in (1, 3, 5))
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)), (b"PLTE", palette)]
    if about:
        chunks.append((b"tEXt", b"Description\0" + about.encode("latin-1", "replace")[:4096]))
    if record:
        chunks.append((b"zTXt", MASK_CHUNK + zlib.compress(record.encode(), 6)))
    chunks += [(b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


def svg(runs: MaskedRuns, block_m: int, block_n: int, theme: str = "light", title: str = "") -> str:
    """The mask as an SVG with its title, axes and legend. Blocks grow by doubling until at most 256 are on a side."""
    sq, sk = runs.seqlen_q, runs.seqlen_k
    tile = (block_m, block_n)
    block_m, block_n = (fitting_block(n, b, MAX_SVG_BLOCKS) for n, b in zip(_lengths(runs), tile))
    kinds = block_kinds(runs, block_m, block_n)
    ground, text, dim, line, *fills = THEMES[theme]
    unit = _PICTURE / max(sq, sk, 1)
    width, height = max(40.0, sk * unit), max(40.0, sq * unit)
    x_of, y_of = (lambda k: min(k * block_n, sk) / sk * width), (lambda q: min(q * block_m, sq) / sq * height)
    shapes = []
    for kind, fill in ((ALL, fills[ALL]), (SOME, "url(#some)")):
        path = []
        for i, row in enumerate(kinds == kind):
            edges = np.flatnonzero(np.diff(row.astype(np.int8), prepend=0, append=0))
            top, bottom = y_of(i), y_of(i + 1)
            path += [f"M{x_of(a):.2f} {top:.2f}H{x_of(b):.2f}V{bottom:.2f}H{x_of(a):.2f}z"
                     for a, b in zip(edges[::2].tolist(), edges[1::2].tolist())]  # fmt: skip
        shapes.append(f'<path fill="{fill}" d="{"".join(path)}"/>')
    grid = ""
    if max(kinds.shape) <= 128 and max(kinds.shape) > 1:
        lines = [f"M{x_of(j):.2f} 0V{height:.2f}" for j in range(1, kinds.shape[1])]
        lines += [f"M0 {y_of(i):.2f}H{width:.2f}" for i in range(1, kinds.shape[0])]
        grid = f'<path fill="none" stroke="{ground}" stroke-opacity=".35" stroke-width=".6" d="{"".join(lines)}"/>'
    grown = "" if (block_m, block_n) == tile else f", drawn in blocks of {block_m:,} × {block_n:,}"
    share = runs.visible_pairs() / max(1, sq * sk)
    about = f"{sq:,} queries × {sk:,} keys · {runs.visible_pairs():,} visible pairs, {100 * share:.1f} % · "
    about += f"tiles {tile[0]:,} × {tile[1]:,}{grown}"
    legend = "".join(
        f'<rect x="{x}" y="{height + 34:.0f}" width="11" height="11" fill="{fill}" stroke="{line}"/>'
        f'<text x="{x + 17}" y="{height + 44:.0f}">{name}</text>'
        for x, fill, name in ((0, fills[NONE], "none visible"), (110, "url(#some)", "some"), (180, fills[ALL], "all"))
    )
    whole_width = max(width, 420) + 66
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole_width:.0f} {height + 142:.0f}" \
font-family="system-ui, sans-serif" font-size="12" role="img" aria-label="{escape(title[:200] or "Attention mask")}">
<defs><pattern id="some" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">\
<rect width="6" height="6" fill="{fills[SOME]}"/>\
<rect width="2" height="6" fill="#000" fill-opacity=".3"/></pattern></defs>
<rect width="100%" height="100%" fill="{ground}"/>
<text x="46" y="26" font-size="15" font-weight="600" fill="{text}">{escape(_shortened(title, whole_width))}</text>
<text x="46" y="46" fill="{dim}">{about}</text>
<g transform="translate(46 66)" fill="{dim}">
<rect width="{width:.2f}" height="{height:.2f}" fill="{fills[NONE]}"/>
{"".join(shapes)}
{grid}<rect width="{width:.2f}" height="{height:.2f}" fill="none" stroke="{line}"/>
<text y="{height + 18:.0f}">key 0</text>\
<text x="{width:.0f}" y="{height + 18:.0f}" text-anchor="end">{sk - 1:,}</text>
<text transform="translate(-10 0) rotate(-90)" text-anchor="end">query 0</text>\
<text transform="translate(-10 {height:.0f}) rotate(-90)">{sq - 1:,}</text>
{legend}
</g>
</svg>
"""


def _lengths(runs: MaskedRuns) -> tuple[int, int]:
    if not runs.seqlen_q or not runs.seqlen_k:
        raise ValueError(f"picture: {runs.seqlen_q} queries and {runs.seqlen_k} keys leave nothing to draw")
    return runs.seqlen_q, runs.seqlen_k


def _shortened(title: str, width: float) -> str:
    most = int(width / 9)
    return title if len(title) <= most else title[: most - 2] + " …"
