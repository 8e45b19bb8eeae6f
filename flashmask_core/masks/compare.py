"""Two masks held against each other, exactly and without an Sq x Sk array: what one shows and the other hides."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from .arrays import check_pairs, numpy_of
from .column_mask import ColumnMask
from .language import parse
from .runs import MaskedRuns


def runs_of(mask, name: str = "mask") -> MaskedRuns:
    """The masked runs of a single plane: MaskedRuns, a ColumnMask with B = Hm = 1, or bool [Sq, Sk] (True: visible).

    TypeError or ValueError naming `name` for anything else.
    """
    if isinstance(mask, MaskedRuns):
        return mask
    if isinstance(mask, ColumnMask):
        if (mask.batch, mask.heads) != (1, 1):
            raise ValueError(f"{name}: wanted one plane, B = Hm = 1, got B = {mask.batch}, Hm = {mask.heads}")
        start1, end1, start2, end2 = (v[0, 0].cpu().numpy() for v in mask.normal_vectors())
        starts, ends = np.stack([start1, start2], axis=1), np.stack([end1, end2], axis=1)
        there = starts < ends
        return MaskedRuns.in_order(mask.seqlen_q, there.sum(1), starts[there], ends[there])
    check_pairs(mask, name)
    if isinstance(mask, torch.Tensor):
        mask = numpy_of(mask, name) if mask.dtype == torch.bool else mask
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.ndim != 2:
        numbers = isinstance(mask, (np.ndarray, torch.Tensor))
        got = f"{mask.dtype} {list(mask.shape)}".removeprefix("torch.") if numbers else type(mask).__name__
        raise TypeError(
            f"{name}: wanted a ColumnMask, MaskedRuns or bool [Sq, Sk], True where the query may attend, got {got}; "
            f"flashmask_core.load_mask reads other arrays"
        )
    return MaskedRuns.from_dense(mask)


@dataclass(frozen=True, eq=False)
class Difference:
    """How a mask differs from the one that was meant; made by `compare`.

    extra: shows exactly the pairs that the mask shows and the meant one hides. missing: the other way round. Both are
    MaskedRuns of any number of runs a column.
    """

    extra: MaskedRuns
    missing: MaskedRuns

    @cached_property
    def extra_pairs(self) -> int:
        return self.extra.visible_pairs()

    @cached_property
    def missing_pairs(self) -> int:
        return self.missing.visible_pairs()

    @property
    def equal(self) -> bool:
        """True if both show the same pairs."""
        return not (self.extra_pairs or self.missing_pairs)

    def first_extra(self, count: int = 3) -> list[tuple[int, int]]:
        """Up to `count` pairs (query row, key) that are shown and should not be, the lowest keys first."""
        return first_pairs(self.extra, count)

    def first_missing(self, count: int = 3) -> list[tuple[int, int]]:
        """Up to `count` pairs (query row, key) that should be shown and are not, the lowest keys first."""
        return first_pairs(self.missing, count)


def compare(mask, meant) -> Difference:
    """What `mask` shows beyond `meant`, and what it lacks; each is what `runs_of` takes, of the same lengths.

    `meant` may be a text of the mask language too.
    """
    mask = runs_of(mask)
    meant = parse(meant).runs(mask.seqlen_q, mask.seqlen_k) if isinstance(meant, str) else runs_of(meant, "meant")
    if (mask.seqlen_q, mask.seqlen_k) != (meant.seqlen_q, meant.seqlen_k):
        raise ValueError(
            f"meant: wanted the mask's lengths (Sq, Sk) = ({mask.seqlen_q}, {mask.seqlen_k}), "
            f"got ({meant.seqlen_q}, {meant.seqlen_k})"
        )
    return Difference(extra=mask & ~meant, missing=meant & ~mask)


def inside(one: MaskedRuns, other: MaskedRuns) -> bool:
    """True if `other` shows everything that `one` shows."""
    pairs = one.visible_pairs()
    return pairs <= other.visible_pairs() and (one & other).visible_pairs() == pairs


def keys_seen(runs: MaskedRuns) -> np.ndarray:
    """int64: the keys that some query sees, rising."""
    hidden = np.bincount(runs.columns, runs.ends - runs.starts, minlength=runs.seqlen_k)
    return np.flatnonzero(hidden < runs.seqlen_q)


def first_pairs(runs: MaskedRuns, count: int) -> list[tuple[int, int]]:
    """Up to `count` visible (query row, key), one a column, the lowest keys first."""
    pairs = []
    for column in keys_seen(runs)[:count].tolist():
        first = runs.offsets[column]
        below = first < runs.offsets[column + 1] and runs.starts[first] == 0
        pairs.append((int(runs.ends[first]) if below else 0, column))
    return pairs
