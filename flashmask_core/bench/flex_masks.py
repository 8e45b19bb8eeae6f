"""Mask functions for FlexAttention, as fair to it as we can write them.

A mask that is one named pattern over the whole sequence gets the predicate a careful Flex user would write by hand, with
as few numbers to look up for a pair as it takes: where a key stops being seen, not which document and which part either of
the two lies in (with three such tables compiled FlexAttention reaches 19 TFLOP/s on an H200, prefix_lm_document at 8K,
D 64). Anything else is answered from the vectors of the canonical packing, of which only those that carry information
are read: two comparisons for a causal mask with one bound.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..masks.column_mask import ColumnMask

MaskMod = Callable  # (b, h, q_idx, k_idx), index tensors -> bool tensor, True where the query may attend to the key


def flex_mask_mod(mask: ColumnMask, text: str | None = None, heads: int | None = None) -> tuple[MaskMod, str]:
    """(mask_mod, how it was written) for a mask.

    Args:
        mask: the ColumnMask; tensors that the function captures lie on its device.
        text: the mask's text, if it has one: the natural predicate is used where there is one.
        heads: query heads H, to tell which mask head a query head uses; needed when Hm > 1.
    """
    if text is not None and mask.seqlen_q == mask.seqlen_k:
        natural = _natural(text, mask.seqlen_k, mask.device)
        if natural is not None:
            return natural
    return _from_vectors(mask, heads), "from the vectors"


def _from_vectors(mask: ColumnMask, heads: int | None) -> MaskMod:
    packed = mask.canonical()
    shift = packed.seqlen_k - packed.seqlen_q
    if packed.batch == packed.heads == 1:
        lts, lte, uts, ute = (v[0, 0].contiguous() for v in packed.vectors)

        def at(vector, b, h, k):
            return vector[k]
    else:
        lts, lte, uts, ute = packed.vectors
        group = (heads or packed.heads) // packed.heads
        one_batch = packed.batch == 1

        def at(vector, b, h, k):
            return vector[0 if one_batch else b, h // group, k]

    if packed.causal and packed.bounds == 1:
        return lambda b, h, q, k: (q + shift >= k) & (q < at(lts, b, h, k))
    if packed.causal:
        return lambda b, h, q, k: (q + shift >= k) & ((q < at(lts, b, h, k)) | (q >= at(lte, b, h, k)))
    if packed.bounds == 2:
        return lambda b, h, q, k: (q < at(lts, b, h, k)) & (q >= at(ute, b, h, k))
    return lambda b, h, q, k: (
        ((q < at(lts, b, h, k)) | (q >= at(lte, b, h, k))) & ((q < at(uts, b, h, k)) | (q >= at(ute, b, h, k)))
    )


def _natural(text: str, seqlen: int, device) -> tuple[MaskMod, str] | None:
    """The hand-written predicate of a text that is one pattern and leaves no padding."""
    from ..masks.expr import PatternExpr
    from ..masks.language import parse

    expr = parse(text)
    if not isinstance(expr, PatternExpr) or expr.name not in NATURAL or expr.padding(seqlen):
        return None
    return NATURAL[expr.name](seqlen, device, *expr.values()), f"hand-written {expr.name}"


def _bounds(lengths, device) -> tuple[torch.Tensor, torch.Tensor]:
    """int32 [N] each: where the piece that every token lies in begins, and where it ends."""
    lengths = torch.tensor(lengths, dtype=torch.int64, device=device)
    ends = lengths.cumsum(0)
    return tuple(torch.repeat_interleave(x.to(torch.int32), lengths) for x in (ends - lengths, ends))


def _document(seqlen, device, *lengths):
    start, _ = _bounds(lengths, device)
    return lambda b, h, q, k: start[q] == start[k]


def _causal_document(seqlen, device, *lengths):
    _, end = _bounds(lengths, device)
    return lambda b, h, q, k: (q >= k) & (q < end[k])


def _share_question(seqlen, device, *examples):
    _, end = _bounds([sum(lengths) for lengths in examples], device)  # a question is seen to the end of its example
    _, own_end = _bounds([length for lengths in examples for length in lengths], device)
    question = torch.cat([torch.arange(sum(lengths), device=device) < lengths[0] for lengths in examples])
    end = torch.where(question, end, own_end)
    return lambda b, h, q, k: (q >= k) & (q < end[k])


def _causal_blockwise(seqlen, device, *lengths):
    _, end = _bounds(lengths, device)
    last = seqlen - lengths[-1]
    return lambda b, h, q, k: (q >= k) & ((q < end[k]) | (q >= last))


def _prefix_lm_document(seqlen, device, *documents):
    start, end = _bounds([length for _, length in documents], device)
    in_prefix = torch.cat([torch.arange(length, device=device) < prefix for prefix, length in documents])
    start = torch.where(in_prefix, start, torch.arange(seqlen, dtype=torch.int32, device=device))
    return lambda b, h, q, k: (q >= start[k]) & (q < end[k])


def _qk_sparse(seqlen, device, *runs):
    sees_from = torch.zeros(seqlen, dtype=torch.int32, device=device)  # the first query after the run that k lies in
    for offset, length in runs:
        sees_from[offset : offset + length].clamp_(min=offset + length)
    return lambda b, h, q, k: (q >= k) & (q >= sees_from[k])


NATURAL: dict[str, Callable] = {
    "full": lambda seqlen, device: lambda b, h, q, k: q >= 0,
    "causal": lambda seqlen, device: lambda b, h, q, k: q >= k,
    "sliding_window": lambda seqlen, device, w: lambda b, h, q, k: (q >= k) & (q - k < w),
    "document": _document,
    "causal_document": _causal_document,
    "share_question": _share_question,
    "global_sliding_window": lambda seqlen, device, n, left, right: lambda b, h, q, k: (
        (q < n) | (k < n) | ((q - k <= left) & (k - q <= right))
    ),
    "causal_blockwise": _causal_blockwise,
    "prefix_lm_document": _prefix_lm_document,
    "prefix_lm": lambda seqlen, device, p: lambda b, h, q, k: (q >= k) | (k < p),
    "qk_sparse": _qk_sparse,
}
"""Pattern name -> (seqlen, device, *arguments) -> mask_mod. random_eviction is a causal mask with one bound: its
vector is its natural form already."""
