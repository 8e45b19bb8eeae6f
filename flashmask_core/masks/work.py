"""A budget for turning one text into runs, so that a short text cannot ask for minutes.

Work is counted in nanoseconds of an ordinary processor, by what every step is known to cost for a column, a run or an
evaluated pair. It is spent before a step is taken, so the same text is refused on every machine.
"""

from __future__ import annotations

from collections import Counter
from typing import Callable

from .errors import MaskSyntaxError
from .runs import MaskedRuns

MAX_WORK = 6_000_000_000

LEAF = 60  # a column of a pattern or of an inequality solved for q
COMBINED = 150  # a column of a pattern that is made of several masks
SLOW_PATTERNS = {"hash_sparse": 500, "random_eviction": 200}  # a column of a pattern that sorts
INTERVAL = 10  # a column of a mask that shows one interval and is joined with its like, or turned around
RUN = 100  # a run that is joined with others or turned around
OPERATION = 5  # an arithmetic operation on every key
CELL, CELL_OPERATION = 4, 2  # an evaluated pair, and every operation on it
DISTINCT = 200  # a row or column that is searched for equal ones


class Work:
    """What the evaluation of one expression has used up, and what it keeps: parts that occur more than once."""

    def __init__(self, progress: Callable[[float], None] | None = None):
        self.progress = progress or (lambda share: None)
        self.spent = 0
        self.repeated: set = set()
        self.made: dict = {}

    def plan(self, parts: Counter, leaves: int, seqlen_k: int) -> None:
        """Remember which parts occur more than once, and refuse at once what has far too many leaves."""
        self.repeated = {part for part, count in parts.items() if count > 1}
        _check(leaves * LEAF * seqlen_k)

    def spend(self, work: int) -> None:
        self.spent += int(work)
        _check(self.spent)

    def union(self, masks: list[MaskedRuns]) -> MaskedRuns:
        """What all of the masks show."""
        self._spend_on(masks)
        return masks[0].hidden_union(*masks[1:])

    def intersection(self, masks: list[MaskedRuns]) -> MaskedRuns:
        """What any of the masks shows."""
        self._spend_on(masks)
        return masks[0].hidden_intersection(*masks[1:])

    def complement(self, mask: MaskedRuns) -> MaskedRuns:
        """What the mask hides."""
        if mask.shown is None:
            self.spend(RUN * mask.seqlen_k)
        self._spend_on([mask])
        return ~mask

    def _spend_on(self, masks: list[MaskedRuns]) -> None:
        self.spend(INTERVAL * len(masks) * masks[0].seqlen_k)
        if any(mask.shown is None for mask in masks):
            self.spend(RUN * sum(len(mask.starts) for mask in masks))


def _check(work: int) -> None:
    if work > MAX_WORK:
        raise MaskSyntaxError(
            f"this text asks for more work than the {MAX_WORK // 10**9} seconds of an ordinary processor that one mask "
            f"may take; use a shorter sequence or fewer terms"
        )
