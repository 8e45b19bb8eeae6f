"""Files of masks as arrays: .npy, .npz, .safetensors, .csv, .png and our own .json, from a path, bytes or an open file.

What a file declares about its size is judged before anything of that size is read or allocated, and nothing in a file
is ever executed: no pickles, so no .pt either.
"""

from __future__ import annotations

import csv
import io
import json
import lzma
import os
import re
import tokenize
import zipfile
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..mask_json import MAX_TEXT_BYTES
from .png import carried_mask, read_png
from .safetensors_file import is_safetensors, read_safetensors

MAX_ELEMENTS = 1 << 28  # of an array: a dense mask of 16,384 x 16,384
MAX_BYTES = 8 * MAX_ELEMENTS + (1 << 16)  # of a file, and of what an .npz unpacks to
FORMATS = ".npy, .npz, .safetensors, .csv, .png (ours, or grey, palette or RGB, not interlaced) or export_mask's .json"

_UNREADABLE_ZIP = (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError, OSError, RuntimeError,
                   zlib.error, lzma.LZMAError)  # fmt: skip
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
NOTE = "flashmask startend_row_indices: causal={causal}, seqlen_q={seqlen_q}"  # a comment in the header of our .npy
_NOTE = re.compile(rb"# flashmask startend_row_indices: causal=(True|False), seqlen_q=(\d{1,9})\s")


@dataclass(frozen=True)
class FileContent:
    """What a file holds: `array`, or `record` for JSON.

    pixels: the array is a picture, True where a pixel is the brighter of two tones.
    note: (causal, seqlen_q) if the .npy says so itself.
    """

    array: np.ndarray | None = None
    record: Any = None
    pixels: bool = False
    note: tuple[bool, int] | None = None


def read_file(
    source, *, array: str | None = None, column: str | int | None = None, tones: bool = False
) -> FileContent:
    """Read a path (str or os.PathLike), bytes, or an open binary file (from its start).

    array: which array of an .npz or a .safetensors that has several. column: which column of a .csv, by the name in
    its first line or by number from 0. tones: read the tones of a picture though it carries its mask.

    Raises ValueError for a format that is none of ours, a file that is cut short, and one above the limits; OSError
    as `open` does.
    """
    data, name = _bytes_of(source)
    found = _read_known(data, name, array, tones)
    if found is None:
        return FileContent(array=_read_csv(data, name, column))
    if column is not None:
        raise ValueError(f"column: only a .csv has columns to choose from, and {name} is none")
    return found


def _read_known(data: memoryview, name: str, array: str | None, tones: bool) -> FileContent | None:
    """The content of any format that shows by its first bytes; None leaves a .csv."""
    start = bytes(data[:16])
    if start.startswith(b"\x93NUMPY"):
        return _read_npy(data, name)
    if start.startswith(b"PK\x03\x04"):
        return _read_npz(data, name, array)
    if start.startswith(b"\x89PNG"):
        carried = None if tones else carried_mask(data, name, MAX_TEXT_BYTES)
        if carried is not None:
            return FileContent(record=_read_json(memoryview(carried), name))
        return FileContent(array=read_png(data, name), pixels=True)
    if is_safetensors(data) or name.endswith(".safetensors"):
        return FileContent(array=read_safetensors(data, name, array, check_elements))
    if start.startswith(b"\x80") or name.endswith((".pt", ".pth", ".pkl", ".pickle")):
        raise _pickled(name)
    if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return FileContent(record=_read_json(data, name))
    if name.endswith((".npy", ".npz", ".png", ".json")):
        raise ValueError(f"{name}: its first bytes are not those of such a file; accepted are {FORMATS}")
    return None


def _bytes_of(source) -> tuple[memoryview, str]:
    """(content, name for messages); a large .npy is mapped into memory rather than read."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = memoryview(source).cast("B")
        _check_bytes(len(data), "the bytes")
        return data, "the bytes"
    if hasattr(source, "read"):
        name = str(getattr(source, "name", "the file"))
        _check_bytes(source.seek(0, os.SEEK_END), name)
        source.seek(0)
        data = source.read()
        source.seek(0)
        if not isinstance(data, bytes):
            raise TypeError(f"{name}: wanted a file opened in binary mode")
        return memoryview(data), name
    name = os.path.basename(os.fspath(source))
    if not os.path.isfile(source) and os.path.exists(source):
        raise ValueError(f"{name}: wanted a file, and this is none")
    size = os.path.getsize(source)
    _check_bytes(size, name)
    return (memoryview(np.memmap(source, np.uint8, "r")) if size else memoryview(b"")), name


def _check_bytes(size: int, name: str) -> None:
    if size > MAX_BYTES:
        raise ValueError(f"{name}: {size:,} bytes are more than the {MAX_BYTES:,} that are read")


def _check_text(data, name: str) -> None:
    if len(data) > MAX_TEXT_BYTES:
        raise ValueError(f"{name}: {len(data):,} bytes of text are more than the {MAX_TEXT_BYTES:,} that are parsed")


def _pickled(name: str) -> ValueError:
    return ValueError(
        f"{name}: a pickle (.pt, .pth, .pkl) can run code when it is loaded, so none is; save the tensor with "
        f"numpy.save(..., tensor.numpy()). Accepted are {FORMATS}"
    )


def _read_npy(data: memoryview, name: str) -> FileContent:
    file = io.BytesIO(bytes(data[: 1 << 16]))
    dtype, shape, fortran = _npy_header(file, name)
    start = file.tell()
    wanted = int(np.prod(shape, dtype=object)) * dtype.itemsize
    there = len(data) - start
    if there < wanted:
        raise ValueError(f"{name}: cut short, its header announces {wanted:,} bytes and {there:,} are there")
    array = np.frombuffer(data, dtype, count=wanted // dtype.itemsize, offset=start)
    array = array.reshape(shape, order="F" if fortran else "C")
    note = _NOTE.search(bytes(data[:start]))
    return FileContent(array=array, note=(note[1] == b"True", int(note[2])) if note else None)


def _npy_header(file, name: str) -> tuple[np.dtype, tuple[int, ...], bool]:
    """(dtype, shape, Fortran order) of an .npy, checked against the limits; the file is left at the data."""
    try:
        version = np.lib.format.read_magic(file)
        if version not in _HEADERS:
            raise ValueError(f"format version {version} is not read")
        shape, fortran, dtype = _HEADERS[version](file)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError, tokenize.TokenError) as error:
        raise ValueError(f"{name}: no readable .npy header ({str(error)[:200]})") from None
    if dtype.hasobject:
        raise _pickled(name)
    check_elements(shape, name)
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise ValueError(f"{name}: wanted bool, integers or floats of at most 64 bits, got {dtype}")
    return dtype, shape, fortran


def check_elements(shape, name: str) -> None:
    """ValueError if an array of this shape is larger than what is taken."""
    elements = int(np.prod(shape, dtype=object))
    if elements > MAX_ELEMENTS or min(shape, default=0) < 0 or len(shape) > 4:
        raise ValueError(
            f"{name}: an array of shape {list(shape)} is not taken; wanted at most 4 dimensions and {MAX_ELEMENTS:,} "
            f"elements"
        )


def _read_npz(data: memoryview, name: str, array: str | None) -> FileContent:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = {entry.filename: entry for entry in archive.infolist()}
            if any(entry.endswith(".pkl") for entry in entries):
                raise _pickled(name)
            names = [entry[: -len(".npy")] for entry in entries if entry.endswith(".npy")]
            if array is None and len(names) != 1:
                raise ValueError(f"{name}: say which array with array=; it has {', '.join(names[:20]) or 'none'}")
            chosen = names[0] if array is None else array
            if chosen not in names:
                raise ValueError(f"array: {name} has no {chosen!r}; it has {', '.join(names[:20]) or 'none'}")
            entry = entries[f"{chosen}.npy"]
            _check_bytes(entry.file_size, f"{chosen} in {name}, unpacked,")
            with archive.open(entry) as packed:
                _npy_header(packed, f"{chosen} in {name}")
            with archive.open(entry) as packed:  # reads no more than the declared size
                return _read_npy(memoryview(packed.read()), f"{chosen} in {name}")
    except _UNREADABLE_ZIP as error:
        raise ValueError(f"{name}: no readable .npz ({error})") from None


def _read_json(data: memoryview, name: str):
    _check_text(data, name)
    try:
        return json.loads(bytes(data).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name}: no readable JSON ({str(error)[:200]})") from None


def _read_csv(data: memoryview, name: str, column: str | int | None) -> np.ndarray:
    """A matrix of numbers or of true and false, or one column; a single row or column comes out 1-D."""
    _check_text(data, name)
    start = bytes(data[:2])
    try:
        text = bytes(data).decode("utf-16" if start in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{name}: none of the accepted formats, which are {FORMATS}") from None
    first = text.strip().partition("\n")[0]
    delimiter = next((mark for mark in ",;\t" if mark in first), None)
    if column is not None:
        return _csv_column(text, name, column, delimiter or ",")
    text = text.strip().lower()
    check_elements((text.count("\n") + 1, first.count(delimiter or " ") + 1), name)
    truths = "true" in text or "false" in text
    lines = text.replace("true", "1").replace("false", "0").splitlines()
    try:
        if not text:
            raise ValueError("it is empty")
        values = np.loadtxt(lines, delimiter=delimiter, comments=None, ndmin=2)
    except ValueError as error:
        raise ValueError(
            f"{name}: wanted one row of numbers a line, as many in each ({str(error)[:200]}); a table with a heading "
            f"needs column=, and the accepted formats are {FORMATS}"
        ) from None
    if truths and np.isin(values, (0, 1)).all():
        values = values.astype(bool)
    return values.reshape(-1) if 1 in values.shape else values


def _csv_column(text: str, name: str, column: str | int, delimiter: str) -> np.ndarray:
    heading = []
    if not isinstance(column, (str, int)) or isinstance(column, bool) or isinstance(column, int) and column < 0:
        raise ValueError(f"column: wanted a name, or a number from 0, got {column!r}")
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
        heading = [cell.strip() for cell in rows[0]] if rows else []
        place = column if isinstance(column, int) else heading.index(column)
        body = rows if isinstance(column, int) and _is_number(rows[0][place]) else rows[1:]
        return np.array([float(row[place]) for row in body])
    except (ValueError, IndexError, csv.Error) as error:
        raise ValueError(
            f"column: wanted a column of numbers in {name}, by its name or its number from 0, got {column!r}; the "
            f"first line is {', '.join(heading[:20])!r} ({str(error)[:100]})"
        ) from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
