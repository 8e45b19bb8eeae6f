"""What to do with a mask that four vectors cannot hold: the nearest ones that fit, or the exact answer in passes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .column_mask import ColumnMask
from .compare import runs_of
from .runs import MaskedRuns

# Vector entries that the list of passes may have in all: passes * Sk.
MAX_PASS_COLUMNS = 1 << 26


@dataclass(frozen=True, eq=False)
class Fit:
    """How a mask fits FlashMask, made by `fit`. What is costly is computed when it is asked for, once.

    Only columns with more than two masked runs change; every change is the smallest one for its column.
    """

    runs: MaskedRuns

    @cached_property
    def columns(self) -> list[int]:
        """The columns with more than two masked runs, rising."""
        return np.flatnonzero(self.runs.counts > 2).tolist()

    @property
    def max_runs(self) -> int:
        """The most masked runs of one column."""
        return int(self.runs.counts.max(initial=0))

    @cached_property
    def mask(self) -> ColumnMask | None:
        """The mask itself if it fits, else None."""
        return None if self.columns else ColumnMask.from_runs(self.runs)

    @cached_property
    def wider(self) -> ColumnMask:
        """The nearest mask that shows a little more: a broken column keeps its two longest masked runs."""
        return ColumnMask.from_runs(self._wider_runs)

    @cached_property
    def narrower(self) -> ColumnMask:
        """The nearest mask that hides a little more: between its first and last masked run a broken column keeps only
        the longest visible stretch."""
        return ColumnMask.from_runs(self._narrower_runs)

    @cached_property
    def wider_pairs(self) -> int:
        """Hidden (query, key) pairs that `wider` shows."""
        return self._wider_runs.visible_pairs() - self.runs.visible_pairs()

    @cached_property
    def narrower_pairs(self) -> int:
        """Visible (query, key) pairs that `narrower` hides."""
        return self.runs.visible_pairs() - self._narrower_runs.visible_pairs()

    @property
    def pass_count(self) -> int:
        """P, the fewest passes: a pass can show one visible stretch between masked runs, a column has runs - 1."""
        return max(1, self.max_runs - 1)

    @cached_property
    def passes(self) -> list[ColumnMask]:
        """P masks whose visible pairs are disjoint and together exactly this mask's; merge their results by lse.

        The first is `narrower`, and each of the others shows one more of the stretches that it hides, from the top
        down. ValueError if P * Sk is over the limit.
        """
        if self.pass_count * self.runs.seqlen_k > MAX_PASS_COLUMNS:
            raise ValueError(
                f"{self.pass_count:,} passes over {self.runs.seqlen_k:,} columns are over the limit of "
                f"{MAX_PASS_COLUMNS:,} columns in all: choose wider or narrower, or a shorter sequence"
            )
        lengths = {"seqlen_q": self.runs.seqlen_q, "seqlen_k": self.runs.seqlen_k}
        run = np.flatnonzero(self._hidden_stretches)
        column = self.runs.columns[run]
        of_pass = _number_in_column(column)
        order = np.argsort(of_pass, kind="stable")
        run, column, edges = run[order], column[order], np.cumsum(np.bincount(of_pass))
        passes = [self.narrower]
        for here in map(slice, [0, *edges[:-1]], edges):
            start, end = np.zeros((2, lengths["seqlen_k"]), np.int32)
            start[column[here]], end[column[here]] = self.runs.ends[run[here]], self.runs.starts[run[here] + 1]
            passes.append(ColumnMask.from_runs(MaskedRuns.show(start, end, **lengths)))
        return passes

    @cached_property
    def _wider_runs(self) -> MaskedRuns:
        return self.runs.keep(_rank_in_column(self.runs.columns, self.runs.ends - self.runs.starts) < 2)

    @cached_property
    def _narrower_runs(self) -> MaskedRuns:
        return self.runs.bridge(self._hidden_stretches)

    @cached_property
    def _hidden_stretches(self) -> np.ndarray:
        """bool [R]: behind this run lies a visible stretch, then another run of its column, and `narrower` hides the
        stretch: every such stretch but the longest of its column, which is the first of equal ones."""
        columns = self.runs.columns
        inner = np.flatnonzero(columns[1:] == columns[:-1])
        hidden = np.zeros(len(columns), bool)
        hidden[inner] = _rank_in_column(columns[inner], self.runs.starts[inner + 1] - self.runs.ends[inner]) > 0
        return hidden


def fit(mask) -> Fit:
    """Whether a mask fits FlashMask and what else there is: see `Fit`.

    mask: MaskedRuns, a MaskExpr's `runs(...)`, a ColumnMask with B = Hm = 1, or a bool array or tensor [Sq, Sk], True
    where the query may attend.
    """
    return Fit(runs_of(mask))


def _rank_in_column(columns: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """int64: 0 for the longest entry of every column, 1 for the next; the earlier of equal ones comes first.

    columns [R] are rising, lengths [R] int32.
    """
    order = np.argsort((columns << 32) - lengths, kind="stable")
    rank = np.empty(len(columns), np.int64)
    rank[order] = _number_in_column(columns)
    return rank


def _number_in_column(columns: np.ndarray) -> np.ndarray:
    """int64: 0, 1, ... for the entries of every column; columns [R] are rising."""
    number = np.arange(len(columns))
    first = np.zeros(len(columns), bool)
    first[:1], first[1:] = True, columns[1:] != columns[:-1]
    return number - np.maximum.accumulate(np.where(first, number, 0))
