"""Exercises in which numbers are set: the library builds the mask of the answer and compares it with the goal."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import torch

import flashmask_core as fm
from flashmask_core.masks.column_mask import PACKINGS

from .answers import Verdict, integers, lines_of, rows_text


@dataclass(frozen=True)
class Number:
    """A number of the answer: one vector over the columns [first, end)."""

    vector: str
    first: int
    end: int
    about: str = ""


@dataclass(frozen=True)
class Vectors:
    """Set numbers so that the mask is `goal`, a text. pictured: the goal is shown as a picture, not in words alone."""

    goal: str
    n: int
    causal: bool
    bounds: int
    numbers: tuple[Number, ...]
    given: dict[str, list[int]] = field(default_factory=dict)
    pictured: bool = True

    @cached_property
    def target(self) -> "fm.ColumnMask":
        return fm.mask(self.goal, self.n)

    @property
    def names(self) -> tuple[str, ...]:
        return PACKINGS[self.causal, self.bounds]

    def nothing_hidden(self, name: str) -> int:
        return self.n if name[0] == "l" else 0

    def task(self) -> dict:
        given = {name: self.given.get(name, [self.nothing_hidden(name)] * self.n) for name in self.names}
        return {
            "kind": "vectors",
            "n": self.n,
            "causal": self.causal,
            "names": self.names,
            "numbers": [[x.vector, x.first, x.end, x.about] for x in self.numbers],
            "given": given,
            "target": lines_of(self.target.to_dense()[0, 0]) if self.pictured else None,
        }

    def start(self) -> list[int]:
        return [self.nothing_hidden(x.vector) for x in self.numbers]

    def solution(self) -> list[int]:
        """The numbers as the library packs the goal; given ones are the same in the goal."""
        indices = self.target.to_startend_row_indices()[0][0, 0]
        columns = dict(zip(self.names, indices.T.tolist()))
        return [columns[x.vector][x.first] for x in self.numbers]

    def mask_of(self, answer: list[int]) -> "fm.ColumnMask":
        columns = {name: list(values) for name, values in self.task()["given"].items()}
        for x, value in zip(self.numbers, answer):
            columns[x.vector][x.first : x.end] = [value] * (x.end - x.first)
        indices = torch.tensor([columns[name] for name in self.names]).T[None, None]
        return fm.ColumnMask.from_startend_row_indices(indices, causal=self.causal)

    def check(self, answer) -> Verdict:
        numbers = integers(answer, len(self.numbers), 0, self.n)
        if numbers is None:
            return Verdict(False, f"Every number is a row from 0 to {self.n}.")
        return _compared(self.mask_of(numbers), self.target)


@dataclass(frozen=True)
class Free:
    """Any goal: choose how it is packed and set every number, or say that it does not fit.

    An answer is a place in OPTIONS, then n numbers of lts, lte, uts and ute each; those that are not packed count not.
    """

    goal: str
    n: int

    OPTIONS = (*PACKINGS, None)  # (causal, bounds), or "it does not fit"
    NAMES = ("lts", "lte", "uts", "ute")

    @cached_property
    def fit(self) -> "fm.Fit":
        return fm.fit(fm.parse(self.goal).runs(self.n))

    def task(self) -> dict:
        return {
            "kind": "free",
            "n": self.n,
            "options": [option and [option[0], PACKINGS[option]] for option in self.OPTIONS],
            "names": self.NAMES,
        }

    def start(self) -> list[int]:
        return [0, *[self.n] * (2 * self.n), *[0] * (2 * self.n)]

    def solution(self) -> list[int]:
        answer = self.start()
        if self.fit.mask is None:
            answer[0] = len(self.OPTIONS) - 1
            return answer
        mask = self.fit.mask.canonical()
        answer[0] = self.OPTIONS.index((mask.causal, mask.bounds))
        for name in PACKINGS[mask.causal, mask.bounds]:
            at = 1 + self.n * self.NAMES.index(name)
            answer[at : at + self.n] = getattr(mask, name)[0, 0].tolist()
        return answer

    def mask_of(self, answer: list[int]) -> "fm.ColumnMask":
        """The mask of an answer that is not "it does not fit"."""
        causal, bounds = self.OPTIONS[answer[0]]
        numbers = torch.tensor(answer[1:]).view(len(self.NAMES), self.n)
        packed = [numbers[self.NAMES.index(name)] for name in PACKINGS[causal, bounds]]
        return fm.ColumnMask.from_startend_row_indices(torch.stack(packed, -1)[None, None], causal=causal)

    def check(self, answer) -> Verdict:
        numbers = integers(answer, len(self.start()), 0, self.n)
        if numbers is None or numbers[0] >= len(self.OPTIONS):
            return Verdict(False, f"Every number is a row from 0 to {self.n}; {self.n} is behind the last one.")
        if self.OPTIONS[numbers[0]] is None:
            if self.fit.mask is None:
                k = self.fit.columns[0]
                return Verdict(True, f"Right: it does not fit. Key {k} has {self.fit.runs.counts[k]} hidden runs.")
            most = self.fit.max_runs
            return Verdict(False, f"Not yet: it fits, no column has more than {most} hidden run{'s' * (most != 1)}.")
        if self.fit.mask is None:
            return Verdict(False, "Not yet: count the hidden runs of every column. Can these numbers hold them?")
        return _compared(self.mask_of(numbers), self.fit.mask)


def _compared(mine: "fm.ColumnMask", goal: "fm.ColumnMask") -> Verdict:
    """Right if both show the same pairs; else the first key that differs, and every cell that does."""
    if mine.equals(goal):
        return Verdict(True, "Right: the library builds the same mask from your numbers.")
    mine, goal = mine.to_dense()[0, 0], goal.to_dense()[0, 0]
    differs = mine != goal
    k = int(differs.any(0).nonzero()[0])
    shown = bool(mine[differs[:, k], k][0])
    rows = (differs[:, k] & (mine[:, k] == shown)).nonzero().flatten().tolist()
    one = len(rows) == 1
    if shown:
        does = "sees it and should not" if one else "see it and should not"
    else:
        does = "should see it and does not" if one else "should see it and do not"
    return Verdict(
        False, f"Not yet: look at key {k}: {rows_text(rows)} {does}.", tuple(map(tuple, differs.nonzero().tolist()))
    )
