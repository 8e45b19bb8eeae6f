"""A mask small enough to walk through by hand."""

from __future__ import annotations

import torch

import flashmask_core as fm

from .place import MAX_TOKENS

USUAL_TOKENS = 64


def usual_tokens(seqlen_q: int, seqlen_k: int) -> int:
    """How many tokens a mask is shown with: its own length, or fewer if that is too long to walk."""
    longest = max(seqlen_q, seqlen_k)
    return longest if longest <= MAX_TOKENS else USUAL_TOKENS


def shrunk(mask: "fm.ColumnMask", tokens: int) -> "fm.ColumnMask":
    """A mask (B = Hm = 1) whose longer side is at most `tokens`: every cell is the middle one of those it stands for.

    A mask that is short enough comes back as it is.
    """
    longest = max(mask.seqlen_q, mask.seqlen_k)
    if longest <= tokens:
        return mask
    seqlen_q, seqlen_k = (max(1, round(length * tokens / longest)) for length in (mask.seqlen_q, mask.seqlen_k))
    rows, columns = middles(mask.seqlen_q, seqlen_q), middles(mask.seqlen_k, seqlen_k)
    # A run [start, end) hides the small rows whose middle lies in it.
    vectors = [torch.searchsorted(rows, v[:, :, columns].long().cpu()).int() for v in mask.vectors]
    indices = torch.stack(vectors, -1)
    return fm.ColumnMask.from_startend_row_indices(indices, causal=False, seqlen_q=seqlen_q).canonical()


def middles(length: int, parts: int) -> torch.Tensor:
    """The middle token of each of `parts` equal parts of a sequence, int64 [parts]."""
    return (2 * torch.arange(parts) + 1) * length // (2 * parts)
