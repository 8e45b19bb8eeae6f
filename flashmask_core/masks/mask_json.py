"""Our own mask file: strict JSON with a version, the same bytes for the same mask.

    {"format": "flashmask", "version": 1, "batch": 1, "heads": 1, "seqlen_q": 10, "seqlen_k": 10, "causal": true,
     "vectors": {"lts": [[[4, 0, 4], [7, 0, 3], [10, 0, 3]]]}}

`vectors` has the stored bounds of the canonical packing in their order; each is a list with one vector for every batch
entry and head, head by head, written as (first, step, count) pieces of row numbers.
"""

from __future__ import annotations

import json
from itertools import chain

import numpy as np
import torch

from .column_mask import PACKINGS, ColumnMask
from .expr import MAX_SEQLEN
from .progressions import pieces_of, vector_of

FORMAT, VERSION = "flashmask", 1
MAX_TEXT_BYTES = 1 << 26
MAX_NUMBERS = 1 << 26
_MOST = 1 << 21
_FIELDS = ("format", "version", "batch", "heads", "seqlen_q", "seqlen_k", "causal", "vectors")


def record_text(mask: ColumnMask) -> str:
    """The file's text, one line; equal masks give equal texts (B and Hm included). ValueError above the text limit."""
    mask = mask.canonical()
    vectors = {
        name: [pieces_of(vector) for vector in getattr(mask, name).flatten(0, 1).cpu().numpy()]
        for name in PACKINGS[mask.causal, mask.bounds]
    }
    values = (FORMAT, VERSION, mask.batch, mask.heads, mask.seqlen_q, mask.seqlen_k, mask.causal, vectors)
    text = json.dumps(dict(zip(_FIELDS, values)), separators=(",", ":")) + "\n"
    if len(text) > MAX_TEXT_BYTES:
        raise ValueError(f"json: {len(text):,} bytes are more than the {MAX_TEXT_BYTES:,} that are read back; use npy")
    return text


def mask_of_record(record: dict) -> ColumnMask:
    """The mask of a parsed file. ValueError names the field that is missing, unknown or wrong."""
    if record.get("format") != FORMAT or type(record.get("version")) is not int:
        raise ValueError(f'format, version: wanted "{FORMAT}" and {VERSION}; this JSON is no mask of ours')
    if record["version"] != VERSION:
        raise ValueError(f"version: this program reads version {VERSION}, and the file is {record['version']}")
    if set(record) != set(_FIELDS):
        missing, unknown = sorted(set(_FIELDS) - set(record)), sorted(set(record) - set(_FIELDS))
        names = [", ".join(some)[:200] or "none" for some in (missing, unknown)]
        raise ValueError(f"fields missing: {names[0]}; unknown: {names[1]}")
    for name, least in (("batch", 1), ("heads", 1), ("seqlen_q", 0), ("seqlen_k", 0)):
        if type(record[name]) is not int or not least <= record[name] <= MAX_SEQLEN:
            raise ValueError(f"{name}: wanted {least} to {MAX_SEQLEN:,}, got {str(record[name])[:40]}")
    batch, heads, seqlen_q, seqlen_k = (record[name] for name in _FIELDS[2:6])
    causal, vectors = record["causal"], record["vectors"]
    if type(causal) is not bool or type(vectors) is not dict or tuple(vectors) not in (
        names for (flag, _), names in PACKINGS.items() if flag == causal
    ):  # fmt: skip
        raise ValueError(f"causal, vectors: no FlashMask packing: causal={causal!r} with {str(list(vectors))[:80]}")
    if batch * heads * seqlen_k * len(vectors) > MAX_NUMBERS:
        raise ValueError(f"vectors: {batch * heads * seqlen_k * len(vectors):,} numbers are more than {MAX_NUMBERS:,}")
    rows = [_read_vectors(name, lists, batch * heads, seqlen_q, seqlen_k) for name, lists in vectors.items()]
    indices = torch.from_numpy(np.stack(rows, axis=-1).reshape(batch, heads, seqlen_k, len(rows)))
    return ColumnMask.from_startend_row_indices(indices, causal=causal, seqlen_q=seqlen_q)


def _read_vectors(name: str, lists, number: int, seqlen_q: int, seqlen_k: int) -> np.ndarray:
    """int32 [B x Hm, Sk]"""
    if type(lists) is not list or len(lists) != number:
        raise ValueError(f"{name}: wanted {number} vectors, one for every batch entry and head")
    rows = np.empty((number, seqlen_k), np.int32)
    for nth, pieces in enumerate(lists):
        if not _are_pieces(pieces) or sum(piece[2] for piece in pieces) != seqlen_k:
            raise ValueError(f"{name}, vector {nth}: wanted [first, step, count] with counts that add up to {seqlen_k}")
        vector = vector_of(pieces)
        outside = np.flatnonzero((vector < 0) | (vector > seqlen_q))
        if len(outside):
            column = int(outside[0])
            raise ValueError(f"{name}, vector {nth}: column {column} is {vector[column]}, outside 0 to Sq = {seqlen_q}")
        rows[nth] = vector
    return rows


def _are_pieces(pieces) -> bool:
    """A list of [first, step, count], whole numbers of a size that no arithmetic on them overflows, counts above 0."""
    if type(pieces) is not list or not all(type(piece) is list and len(piece) == 3 for piece in pieces):
        return False
    numbers = list(chain.from_iterable(pieces))
    if not numbers:
        return True
    if set(map(type, numbers)) != {int} or min(numbers[2::3]) < 1:
        return False
    return -_MOST <= min(numbers) and max(numbers) <= _MOST
