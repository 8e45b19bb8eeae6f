"""An array of a .safetensors file, through the format's own package, which this library does without otherwise."""

from __future__ import annotations

import numpy as np

_DTYPES = {"BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4", "U64": "<u8",
           "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8"}  # fmt: skip


def is_safetensors(data: memoryview) -> bool:
    """True if the first bytes are those of such a file: the length of a JSON header that fits, and its brace."""
    return len(data) > 9 and data[8:9] == b"{" and int.from_bytes(data[:8], "little") <= len(data) - 8


def read_safetensors(data: memoryview, name: str, array: str | None, check_elements) -> np.ndarray:
    """The array of that name, or the only one. `check_elements(shape, name)` judges its shape before it is used."""
    try:
        from safetensors import SafetensorError, deserialize
    except ImportError:
        raise ValueError(
            f"{name}: reading .safetensors takes the package safetensors (pip install safetensors)"
        ) from None
    try:
        tensors = dict(deserialize(bytes(data)))
    except (SafetensorError, ValueError, OverflowError) as error:
        raise ValueError(f"{name}: no readable .safetensors ({str(error)[:200]})") from None
    names = ", ".join(sorted(tensors)[:20]) or "none"
    if array is None and len(tensors) != 1:
        raise ValueError(f"{name}: say which array with array=; it has {names}")
    chosen = next(iter(tensors)) if array is None else array
    if chosen not in tensors:
        raise ValueError(f"array: {name} has no {chosen!r}; it has {names}")
    found = tensors[chosen]
    if found["dtype"] not in _DTYPES:
        raise ValueError(
            f"{chosen} in {name}: wanted bool, integers or floats of at most 64 bits, got {found['dtype']}"
        )
    check_elements(found["shape"], f"{chosen} in {name}")
    return np.frombuffer(found["data"], _DTYPES[found["dtype"]]).reshape(found["shape"])
