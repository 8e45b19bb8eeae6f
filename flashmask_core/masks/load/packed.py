"""Packed sequences as masks: cu_seqlens, lengths, position ids and attention masks are all document numbers a token."""

from __future__ import annotations

import numpy as np

from ..column_mask import ColumnMask
from ..expr import MAX_SEQLEN
from ..runs import MAX_RUNS, MaskedRuns

PACKED_KINDS = ("cu_seqlens", "lengths", "position_ids", "attention_mask")


def packed_mask(values: np.ndarray, kind: str, causal: bool) -> ColumnMask:
    """A mask under which tokens of one document see each other (causal: those not behind them), B = 1 or B rows.

    values: whole numbers, 1-D ("cu_seqlens", "lengths") or 1-D or [B, S] ("position_ids", "attention_mask").
    Raises TypeError or ValueError naming the kind, what was wanted and the offending place.
    """
    documents = {
        "cu_seqlens": _from_cu_seqlens, "lengths": _from_lengths,
        "position_ids": _from_position_ids, "attention_mask": _from_attention_mask,
    }[kind](_whole(values, kind))  # fmt: skip
    if documents.size > MAX_RUNS:
        raise ValueError(f"{kind}: {documents.size:,} tokens in all are more than {MAX_RUNS:,}")
    return ColumnMask.stack([ColumnMask.from_runs(_runs(row, causal)) for row in documents], dim="batch")


def _whole(values: np.ndarray, kind: str) -> np.ndarray:
    """int64, and of the right number of dimensions."""
    most = 2 if kind in ("position_ids", "attention_mask") else 1
    if not 1 <= values.ndim <= most or not values.size:
        wanted = "1-D or [B, S]" if most == 2 else "1-D"
        raise ValueError(f"{kind}: wanted numbers in {wanted}, got {list(values.shape)}")
    if values.dtype.kind == "f":
        fractions = ~(np.isfinite(values) & (values == np.trunc(values)) & (abs(values) < 2**53))
        if fractions.any():
            raise ValueError(f"{kind}: wanted whole numbers, got {values[fractions][0]}")
    if values.shape[-1] > MAX_SEQLEN + (kind == "cu_seqlens"):
        raise ValueError(f"{kind}: wanted at most {MAX_SEQLEN:,} numbers, got {values.shape[-1]:,}")
    if values.dtype == np.uint64 and values.max() > 2**62:
        raise ValueError(f"{kind}: {values.max()} is too large")
    return values.astype(np.int64)


def _from_cu_seqlens(ends: np.ndarray) -> np.ndarray:
    if ends[0] != 0:
        raise ValueError(f"cu_seqlens: wanted a first value of 0, got {ends[0]}")
    falling = np.flatnonzero(ends[1:] < ends[:-1])
    if len(falling):
        at = int(falling[0]) + 1
        raise ValueError(f"cu_seqlens: wanted rising values, and number {at} is {ends[at]} after {ends[at - 1]}")
    _check_total(int(ends[-1]), "cu_seqlens")
    return _from_lengths(np.diff(ends))


def _from_lengths(lengths: np.ndarray) -> np.ndarray:
    wrong = np.flatnonzero((lengths < 0) | (lengths > MAX_SEQLEN))
    if len(wrong):
        raise ValueError(f"lengths: number {wrong[0]} is {lengths[wrong[0]]}; wanted 0 to {MAX_SEQLEN:,} tokens")
    _check_total(int(lengths.sum()), "lengths")
    return np.repeat(np.arange(1, len(lengths) + 1), lengths)[None]


def _check_total(total: int, kind: str) -> None:
    if not 1 <= total <= MAX_SEQLEN:
        raise ValueError(f"{kind}: {total:,} tokens in all; wanted 1 to {MAX_SEQLEN:,}")


def _from_position_ids(positions: np.ndarray) -> np.ndarray:
    starts = np.diff(np.atleast_2d(positions), axis=1) != 1
    return np.cumsum(np.pad(starts, ((0, 0), (1, 0)), constant_values=True), axis=1)


def _from_attention_mask(numbers: np.ndarray) -> np.ndarray:
    if numbers.min() < 0:
        raise ValueError(
            f"attention_mask: wanted 0 for padding, and 1 or document numbers, got {numbers.min()}; additive values "
            f"are of kind dense"
        )
    return np.atleast_2d(numbers)


def _runs(documents: np.ndarray, causal: bool) -> MaskedRuns:
    """Masked runs of one row of document numbers, int64 [S]; number 0 sees nothing and is seen by nobody."""
    size = len(documents)
    number, document = np.unique(documents, return_inverse=True)
    start = np.append(0, np.flatnonzero(np.diff(documents)) + 1)  # of every stretch of one number
    end = np.append(start[1:], size)
    real, of = documents[start] > 0, document[start]
    if len(start) == len(number):  # every document in one piece
        first, behind = np.zeros(len(number), np.int64), np.zeros(len(number), np.int64)
        first[of], behind[of] = start, np.where(real, end, 0)
        first = np.maximum(first[document], np.arange(size)) if causal else first[document]
        return MaskedRuns.show(first, behind[document], seqlen_q=size, seqlen_k=size)
    # A mask with one column a document, which shows the tokens that are its own.
    by_document = ~MaskedRuns.from_runs(of[real], start[real], end[real], seqlen_q=size, seqlen_k=len(number))
    total = int(by_document.counts[document].sum())
    if total > MAX_RUNS:
        raise ValueError(f"attention_mask: documents in so many pieces hide {total:,} runs, more than {MAX_RUNS:,}")
    runs = by_document.take(document)
    return runs & MaskedRuns.show(np.arange(size), size, seqlen_q=size, seqlen_k=size) if causal else runs
