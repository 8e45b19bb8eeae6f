"""load_mask: a ColumnMask from what people have in hand, of which the kind is told or asked for, never guessed.

load_mask("mask.npy")                                      # a dense matrix of 0 and 1, or of 0 and -inf
load_mask(tensor, kind="startend_row_indices", causal=True)
load_mask([0, 4, 4, 8], kind="cu_seqlens")                 # two documents of 4 tokens, causal
load_mask("mask.json")                                     # what export_mask(mask, "json") wrote
"""

from __future__ import annotations

import os

import numpy as np
import torch

from ..arrays import numpy_of
from ..column_mask import PACKINGS, ColumnMask
from ..errors import NotRepresentableError
from ..expr import MAX_SEQLEN
from ..mask_json import mask_of_record
from .dense import dense_mask
from .files import check_elements, read_file
from .packed import PACKED_KINDS, packed_mask

KINDS = ("auto", "dense", "startend_row_indices", *PACKED_KINDS, "block_mask", "json")
ACCEPTED = """accepted are
  dense: [Sq, Sk], [B, Sq, Sk] or [B, Hm, Sq, Sk]; 0/1 of any dtype (1 visible), additive (0 visible, -1e4 or less \
hidden), or bool with polarity="visible" or "masked"
  startend_row_indices: int [B, Hm, Sk, C] with causal=True (C = 1, 2) or causal=False (C = 2, 4)
  cu_seqlens, lengths: 1-D; position_ids, attention_mask: 1-D or [B, S]; say which with kind=
  block_mask: a FlexAttention BlockMask; json: what export_mask(mask, "json") wrote"""


def load_mask(
    source,
    *,
    kind: str = "auto",
    causal: bool | None = None,
    polarity: str | None = None,
    seqlen_q: int | None = None,
    array: str | None = None,
    column: str | int | None = None,
    rows: str | None = None,
    plane: tuple[int, int] | None = None,
) -> ColumnMask:
    """The mask that a file, array or object describes.

    Args:
        source: a path or an open binary file or bytes (.npy, .npz, .safetensors, .csv, .png, .json), JSON text, a
            numpy array, a torch tensor (the mask comes out on its device), a list or tuple of numbers, or a
            FlexAttention BlockMask.
        kind: one of
            "dense": [Sq, Sk], [B, Sq, Sk] or [B, Hm, Sq, Sk]; rows are queries. 0 and 1 of any dtype, 1 is visible;
                additive, 0 visible and -1e4 or less hidden; or bool or a PNG of two tones, which need `polarity`
                (of our own pictures too, which otherwise give the mask that they carry).
            "startend_row_indices": int [B, Hm, Sk, C] of masked rows; needs `causal`.
            "cu_seqlens", "lengths": 1-D; documents one behind the other.
            "position_ids": 1-D or [B, S]; a step other than +1 starts a document.
            "attention_mask": 1-D or [B, S]; 0 is padding, and tokens of the same number see each other.
            "block_mask": a BlockMask; its mask_mod is called in strips, its blocks count as the kernel reads them.
            "json": the file of `export_mask(mask, "json")`.
            "auto": what can be told for sure: a BlockMask, our own JSON and .npy, a matrix that is square, additive or
                comes with a polarity, and 4-D integers that can only be rows. A list of numbers never can.
        causal: belongs to startend_row_indices; for the packing kinds None means True.
        polarity: "visible" if True, 1 or the brighter tone means that the query may attend, "masked" if hidden.
        seqlen_q: Sq of startend_row_indices where Sq != Sk.
        rows: what a row of a dense matrix is, "queries" (None) or "keys", which turns it over.
        plane: the (batch entry, mask head) of a dense array that alone is taken, None for all of them.
        array: which array of an .npz or a .safetensors that has several. column: which column of a .csv (name, or
            number from 0).

    Returns a ColumnMask in the canonical packing ("startend_row_indices": with its vectors as given).

    Raises:
        NotRepresentableError: a column has more than two masked runs.
        ValueError, TypeError: what was given is not of that kind, cannot be told apart, or is above the limits
            (sequences of 2^20 tokens, arrays of 2^28 elements), with the accepted forms. Row numbers outside [0, Sq]
            are refused with their column. Limits are checked before anything is parsed or allocated.
        OSError: the file cannot be opened, as `open` says it.
    """
    if kind not in KINDS:
        raise ValueError(f"kind: wanted one of {', '.join(KINDS)}, got {kind!r}")
    if polarity not in (None, "visible", "masked"):
        raise ValueError(f'polarity: wanted "visible" or "masked", got {polarity!r}')
    if rows not in (None, "queries", "keys"):
        raise ValueError(f'rows: wanted "queries" or "keys", got {rows!r}')
    if _is_block_mask(source):
        _check_options("block_mask", kind, causal=causal, polarity=polarity, seqlen_q=seqlen_q, rows=rows, plane=plane)
        from .block_mask import mask_of_block_mask

        return mask_of_block_mask(source)
    if kind == "block_mask":
        raise TypeError(f"block_mask: wanted a FlexAttention BlockMask object, got {type(source).__name__}")

    if isinstance(source, (torch.Tensor, np.ndarray, list, tuple)):
        for name, value in (("array", array), ("column", column)):
            if value is not None:
                given = type(source).__name__
                raise ValueError(f"{name}: chooses in a file, and the source is a {given}; leave it out")
    tones = kind == "dense" or polarity is not None
    values, pixels, note, device = _values_of(source, array, column, tones)
    if isinstance(values, dict):
        _check_options("json", kind, causal=causal, polarity=polarity, seqlen_q=seqlen_q, rows=rows, plane=plane)
        return mask_of_record(values)
    if kind == "json":
        raise ValueError("json: wanted the JSON object that export_mask(mask, 'json') writes, got an array")
    if note is not None and kind in ("auto", "startend_row_indices"):
        kind = "startend_row_indices"
        if causal not in (None, note[0]) or seqlen_q not in (None, note[1]):
            raise ValueError(f"causal, seqlen_q: the file itself says causal={note[0]}, seqlen_q={note[1]}")
        causal, seqlen_q = note
    if kind == "auto":
        kind = _told_kind(values, pixels, polarity)
    if kind == "dense":
        _check_options(kind, causal=causal, seqlen_q=seqlen_q)
        return _with_advice(dense_mask, values, polarity, pixels, rows, plane).to(device)
    if pixels:
        raise ValueError(f"kind: a picture is a dense mask, not {kind}")
    if kind == "startend_row_indices":
        _check_options(kind, polarity=polarity, rows=rows, plane=plane)
        return _with_advice(_startend_mask, values, causal, seqlen_q).to(device)
    _check_options(kind, polarity=polarity, seqlen_q=seqlen_q, rows=rows, plane=plane)
    if not isinstance(causal, (bool, np.bool_, type(None))):
        raise TypeError(f"causal: wanted True, False or None (True), got {causal!r}")
    return _with_advice(packed_mask, values, kind, True if causal is None else bool(causal)).to(device)


def _is_block_mask(source) -> bool:
    return type(source).__name__ == "BlockMask" and hasattr(source, "mask_mod") and hasattr(source, "kv_indices")


def _values_of(source, array, column, tones):
    """(numpy array or JSON object, is a picture, note of our own .npy, device for the mask)."""
    if isinstance(source, torch.Tensor):
        check_elements(source.shape, "the tensor")
        tensor = source.detach()
        if tensor.is_complex() or "float8" in str(tensor.dtype):
            raise TypeError(f"source: wanted a plain tensor of bool, integers or floats, got {tensor.dtype}")
        tensor = tensor.float() if tensor.dtype == torch.bfloat16 else tensor  # which numpy does not have
        return numpy_of(tensor, "source"), False, None, source.device
    if isinstance(source, (list, tuple)):
        source = _array_of_list(source)
    if isinstance(source, np.ndarray):
        check_elements(source.shape, "the array")
        if source.dtype.kind not in "biuf" or source.dtype.itemsize > 8:
            raise TypeError(f"source: wanted bool, integers or floats of at most 64 bits, got {source.dtype}")
        values, pixels, note = source, False, None
    else:
        if isinstance(source, str) and source.lstrip().startswith("{"):
            source = source.encode()
        if not isinstance(source, (bytes, bytearray, memoryview, str, os.PathLike)) and not hasattr(source, "read"):
            raise TypeError(
                f"source: wanted a path, bytes, an array, a tensor or a list, got {type(source).__name__}; {ACCEPTED}"
            )
        found = read_file(source, array=array, column=column, tones=tones)
        if found.array is None and not isinstance(found.record, dict):
            raise ValueError(f"source: wanted a JSON object, got {type(found.record).__name__}")
        values, pixels, note = (found.record if found.array is None else found.array), found.pixels, found.note
    if isinstance(values, np.ndarray) and not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    return values, pixels, note, torch.device("cpu")


def _array_of_list(source) -> np.ndarray:
    shape, inner = [], source
    while isinstance(inner, (list, tuple)):
        shape.append(len(inner))
        inner = inner[0] if inner else None
        check_elements(shape, "the list")
    try:
        return np.array(source) if 0 not in shape else np.zeros(shape, np.int64)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"source: the lists do not make an array ({error}); {ACCEPTED}") from None


def _check_options(kind: str, asked: str | None = None, **given) -> None:
    """Refuse options that say nothing about this kind, and a kind that the source is not."""
    if asked not in (None, "auto", kind):
        raise ValueError(f"kind: asked for {asked}, and the source is a {kind}")
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name}: has no meaning for a {kind} source, which says it itself; leave it out")


def _told_kind(values: np.ndarray, pixels: bool, polarity: str | None) -> str:
    """The kind that an array can only be; ValueError with the accepted forms otherwise."""
    whole = values.dtype.kind in "iu"
    binary = values.size == 0 or (values.min() >= 0 and values.max() <= 1)
    if pixels or polarity is not None or values.ndim == 3:
        return "dense"
    if values.ndim == 4:
        if not whole or values.shape[-1] not in (1, 2, 4):
            return "dense"
        if not binary:
            return "startend_row_indices" if values.min() >= 0 else "dense"
    if values.ndim == 2 and (values.shape[0] == values.shape[1] or values.size and values.min() <= -1e4):
        return "dense"
    raise ValueError(
        f"source: an array of shape {list(values.shape)} and {values.dtype} can be several things; say which with "
        f"kind=. {ACCEPTED}"
    )


def _with_advice(build, *arguments) -> ColumnMask:
    """`build`, with the accepted forms behind the message of a ValueError that lacks them."""
    try:
        return build(*arguments)
    except NotRepresentableError:
        raise
    except (ValueError, TypeError) as error:
        raise type(error)(f"{error}; {ACCEPTED}") from None


def _startend_mask(values: np.ndarray, causal: bool | None, seqlen_q: int | None) -> ColumnMask:
    if causal is None:
        raise ValueError(
            "causal: startend_row_indices mean another mask under the other flag, so it must be given, True or False"
        )
    if values.dtype.kind == "f" and np.array_equal(values, np.trunc(values)) and (abs(values) < 2**31).all():
        values = values.astype(np.int64)
    if values.dtype.kind not in "iu":
        raise TypeError(f"startend_row_indices: wanted integers, got {values.dtype}")
    if values.ndim != 4 or 0 in values.shape[:2] or values.shape[2] > MAX_SEQLEN:
        raise ValueError(
            f"startend_row_indices: wanted [B, Hm, Sk, C] with Sk up to {MAX_SEQLEN:,}, got {list(values.shape)}"
        )
    no_column = torch.zeros(1, 1, 0, values.shape[3], dtype=torch.int32)
    ColumnMask.from_startend_row_indices(no_column, causal=causal, seqlen_q=seqlen_q)  # judges causal, C and seqlen_q
    rows = values.shape[2] if seqlen_q is None else seqlen_q
    outside = (values < 0) | (values > rows)
    if outside.any():
        b, h, column, place = (int(n) for n in np.argwhere(outside)[0])
        name = PACKINGS[bool(causal), values.shape[3]][place]
        raise ValueError(
            f"startend_row_indices: column {column} (batch {b}, head {h}) has {name} = {values[b, h, column, place]}, "
            f"and rows go from 0 to Sq = {rows}"
        )
    indices = torch.from_numpy(np.array(values, np.int32, order="C"))  # a copy: the caller may go on writing
    return ColumnMask.from_startend_row_indices(indices, causal=causal, seqlen_q=seqlen_q)
