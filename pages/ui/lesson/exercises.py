"""Exercises: what the board shows, and how the library judges an answer.

An answer comes from the browser and may be anything; `check` says what is wrong with it in words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import torch

import flashmask_core as fm
from flashmask_core.masks.column_mask import PACKINGS
from flashmask_core.tiles.classify import TileKind
from flashmask_core.tiles.decide import TilePlan

KINDS = ("skipped", "partial", "full")


@dataclass(frozen=True)
class Verdict:
    """right, what to say about it, and the cells (query, key) that are wrong."""

    right: bool
    says: str
    wrong: tuple[tuple[int, int], ...] = ()


def _lines(dense: torch.Tensor) -> list[str]:
    """A picture as text, a row a query: "1" visible, "0" hidden."""
    return ["".join("01"[int(x)] for x in row) for row in dense]


def _integers(answer, length: int, low: int, high: int) -> list[int] | None:
    fits = isinstance(answer, list) and len(answer) == length
    if fits and all(type(x) is int and low <= x <= high for x in answer):
        return answer
    return None


def _rows(rows: list[int], what: str = "row") -> str:
    """ "rows 3 … 5", "row 3", "rows 3 and 7"."""
    if len(rows) == 1:
        return f"{what} {rows[0]}"
    if rows[-1] - rows[0] + 1 == len(rows):
        return f"{what}s {rows[0]} … {rows[-1]}"
    return f"{what}s {', '.join(map(str, rows[:-1]))} and {rows[-1]}"


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
        False, f"Not yet: look at key {k}: {_rows(rows)} {does}.", tuple(map(tuple, differs.nonzero().tolist()))
    )


@dataclass(frozen=True)
class Row:
    """Mark what one query sees."""

    mask: str
    n: int
    query: int

    @cached_property
    def visible(self) -> torch.Tensor:
        return fm.mask(self.mask, self.n).to_dense()[0, 0]

    def task(self) -> dict:
        return {"kind": "row", "n": self.n, "row": self.query, "target": _lines(self.visible)}

    def start(self) -> list[int]:
        return [0] * self.n

    def solution(self) -> list[int]:
        return self.visible[self.query].int().tolist()

    def check(self, answer) -> Verdict:
        marks = _integers(answer, self.n, 0, 1)
        if marks is None:
            return Verdict(False, "Mark the cells of the row first.")
        wrong = [k for k, (a, b) in enumerate(zip(marks, self.solution())) if a != b]
        if not wrong:
            return Verdict(
                True, f"Right: query {self.query} sees {_rows([k for k in range(self.n) if marks[k]], 'key')}."
            )
        k = wrong[0]
        does = "does not see" if marks[k] else "sees"
        why = "it comes after the query" if k > self.query else "its own key" if k == self.query else "it comes before"
        return Verdict(False, f"Not yet: query {self.query} {does} key {k}, {why}.", ((self.query, k),))


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
            "target": _lines(self.target.to_dense()[0, 0]) if self.pictured else None,
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
        numbers = _integers(answer, len(self.numbers), 0, self.n)
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
        numbers = _integers(answer, len(self.start()), 0, self.n)
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


@dataclass(frozen=True)
class Tiles:
    """Predict the tiles of one row tile from the smallest and the largest number of every block of keys."""

    mask: str
    n: int
    block: int
    row_tile: int

    @cached_property
    def built(self) -> "fm.ColumnMask":
        return fm.mask(self.mask, self.n)

    @cached_property
    def kinds(self) -> list[int]:
        return fm.classify_tiles(self.built, self.block, self.block).kinds[0, 0, self.row_tile].tolist()

    def task(self) -> dict:
        lts = self.built.lts[0, 0]
        blocks = [lts[c : c + self.block] for c in range(0, self.n, self.block)]
        return {
            "kind": "tiles",
            "n": self.n,
            "block": self.block,
            "row_tile": self.row_tile,
            "bounds": [[int(x.min()), int(x.max())] for x in blocks],
            "target": _lines(self.built.to_dense()[0, 0]),
        }

    def start(self) -> list[int]:
        return [-1] * len(self.kinds)

    def solution(self) -> list[int]:
        return self.kinds

    def check(self, answer) -> Verdict:
        guesses = _integers(answer, len(self.kinds), 0, 2)
        if guesses is None:
            return Verdict(False, "Choose one for every tile.")
        plan = TilePlan(self.built, self.block, self.block)
        for tile, (guess, kind) in enumerate(zip(guesses, self.kinds)):
            if guess != kind:
                if kind == TileKind.PARTIAL:
                    hint = "some of its cells are visible and some are not"
                else:
                    hint = str(plan.decision(self.row_tile, tile))
                return Verdict(False, f"Not yet: tile {tile} is not {KINDS[guess]}. Compare: {hint}.")
        return Verdict(True, "Right, all of them: that is what the library's tile counts say.")


@dataclass(frozen=True)
class Misfit:
    """Find the mask that four vectors cannot hold, and say how many hidden runs its key `column` has."""

    masks: tuple[tuple[str, str], ...]  # text, caption
    n: int
    column: int

    @cached_property
    def fits(self) -> list["fm.Fit"]:
        return [fm.fit(fm.parse(text).runs(self.n)) for text, _ in self.masks]

    @cached_property
    def odd_one(self) -> int:
        (which,) = [i for i, fit in enumerate(self.fits) if fit.mask is None]
        return which

    @cached_property
    def runs(self) -> int:
        return int(self.fits[self.odd_one].runs.counts[self.column])

    def task(self) -> dict:
        pictures = [_lines(torch.from_numpy(fit.runs.to_dense())) for fit in self.fits]
        return {
            "kind": "misfit",
            "n": self.n,
            "column": self.column,
            "choices": [[caption, picture] for (_, caption), picture in zip(self.masks, pictures)],
        }

    def start(self) -> list[int]:
        return [-1, 0]

    def solution(self) -> list[int]:
        return [self.odd_one, self.runs]

    def check(self, answer) -> Verdict:
        found = _integers(answer, 2, 0, 99)
        if found is None or found[0] >= len(self.masks):
            return Verdict(False, "Choose a picture, then count.")
        if found[0] != self.odd_one:
            most = self.fits[found[0]].max_runs
            return Verdict(
                False, f"Not yet: this one fits. No column of it has more than {most} hidden run{'s' * (most != 1)}."
            )
        if found[1] != self.runs:
            return Verdict(
                False,
                f"That is the one. Now count again: go down column {self.column} and count the runs of hidden rows.",
            )
        return Verdict(True, f"Right: {self.runs} hidden runs in one column, and four vectors hold two.")
