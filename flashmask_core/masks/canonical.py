"""The canonical packing: one choice of (causal, bounds, vectors) for every mask.

The paper's skip rule (equation 4) looks at each interval alone, so what it can skip depends on how a mask is packed.
That is why the packing is fixed:

* A mask inside the causal triangle is the triangle plus at most one interval that starts at or below the diagonal,
  never merged with it: causal, 1 bound if that interval reaches Sq wherever it is there, else 2.
* Otherwise 2 bounds (lts, ute) if in every column one run ends at Sq and the other starts at 0, else 4 bounds: the
  run that starts at or below the diagonal is lts/lte and the other uts/ute.
* An empty interval is lts = lte = Sq or uts = ute = 0. With causal and 2 bounds an empty one between columns that
  have one sits on the diagonal, as in the paper's figure 1, so that the minimum and maximum of a block stay tight.
"""

from __future__ import annotations

import torch


def causal_triangle(seqlen_q: int, seqlen_k: int, device=None) -> tuple[torch.Tensor, torch.Tensor]:
    """(uts, ute), int32 [Sk], of the rows that causal hides above its diagonal k <= q + Sk - Sq."""
    ute = (torch.arange(seqlen_k, device=device) - (seqlen_k - seqlen_q)).clamp(0, seqlen_q).to(torch.int32)
    return torch.zeros_like(ute), ute


def disjoint_runs(lts, lte, uts, ute, *, seqlen_q: int) -> tuple[torch.Tensor, ...]:
    """(start1, end1, start2, end2), int32: the two runs clipped, in rising order and joined where they touch.

    Empty runs are (Sq, Sq) and come last, so two masks show the same pairs exactly when these tensors are equal.
    """
    sq = seqlen_q

    def clipped(start, end):
        start, end = start.clamp(0, sq), end.clamp(0, sq)
        there = start < end
        return torch.where(there, start, sq), torch.where(there, end, sq)

    (a1, b1), (a2, b2) = clipped(lts, lte), clipped(uts, ute)
    swap = a2 < a1
    a1, b1, a2, b2 = (
        torch.where(swap, a2, a1), torch.where(swap, b2, b1), torch.where(swap, a1, a2), torch.where(swap, b1, b2)
    )  # fmt: skip
    joined = (a2 <= b1) & (a2 < sq)
    b1 = torch.where(joined, torch.maximum(b1, b2), b1)
    return a1, b1, torch.where(joined, sq, a2), torch.where(joined, sq, b2)


def canonical_vectors(lts, lte, uts, ute, *, seqlen_q: int):
    """((lts, lte, uts, ute), causal, bounds) of the canonical packing. Reads the values on the host."""
    sq, sk = seqlen_q, lts.shape[-1]
    a1, b1, a2, b2 = disjoint_runs(lts, lte, uts, ute, seqlen_q=sq)
    diagonal = causal_triangle(sq, sk, lts.device)[1].expand_as(a1)  # first row at or below the diagonal

    inside_triangle = (diagonal == 0) | ((a1 == 0) & (b1 >= diagonal))
    below1 = (a1 < sq) & (b1 > diagonal)  # what each run hides beyond the triangle
    below2 = a2 < sq
    if bool(inside_triangle.all()) and not bool((below1 & below2).any()):
        start = torch.where(below2, a2, torch.where(below1, torch.maximum(a1, diagonal), sq))
        end = torch.where(below2, b2, torch.where(below1, b1, sq))
        bounds = 1 if bool((end == sq).all()) else 2
        if bounds == 2:
            there = start < end
            before = there.to(torch.int8).cummax(-1).values.bool()
            after = there.flip(-1).to(torch.int8).cummax(-1).values.bool().flip(-1)
            between = before & after & ~there
            start, end = torch.where(between, diagonal, start), torch.where(between, diagonal, end)
        return (start, end, torch.zeros_like(a1), diagonal.contiguous()), True, bounds

    two, one = a2 < sq, (a1 < sq) & (a2 == sq)
    if bool(torch.where(two, (a1 == 0) & (b2 == sq), ~one | (a1 == 0) | (b1 == sq)).all()):
        one_is_lower = one & (b1 == sq) & ((a1 >= diagonal) | (a1 > 0))
        bounds = 2
    else:
        one_is_lower = one & (a1 >= diagonal)
        bounds = 4
    one_is_upper = one & ~one_is_lower
    lower_start = torch.where(two, a2, torch.where(one_is_lower, a1, sq))
    lower_end = torch.where(two, b2, torch.where(one_is_lower, b1, sq))
    upper_start = torch.where(two | one_is_upper, a1, 0)
    upper_end = torch.where(two | one_is_upper, b1, 0)
    return (lower_start, lower_end, upper_start, upper_end), False, bounds
