"""The other exercises: mark a row, predict tiles, find the mask that does not fit. Each says what the board shows and
has the library judge an answer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch

import flashmask_core as fm
from flashmask_core.tiles.classify import TileKind
from flashmask_core.tiles.decide import TilePlan

from .answers import Verdict, integers, lines_of, rows_text

KINDS = ("skipped", "partial", "full")


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
        return {"kind": "row", "n": self.n, "row": self.query, "target": lines_of(self.visible)}

    def start(self) -> list[int]:
        return [0] * self.n

    def solution(self) -> list[int]:
        return self.visible[self.query].int().tolist()

    def check(self, answer) -> Verdict:
        marks = integers(answer, self.n, 0, 1)
        if marks is None:
            return Verdict(False, "Mark the cells of the row first.")
        wrong = [k for k, (a, b) in enumerate(zip(marks, self.solution())) if a != b]
        if not wrong:
            return Verdict(
                True, f"Right: query {self.query} sees {rows_text([k for k in range(self.n) if marks[k]], 'key')}."
            )
        k = wrong[0]
        does = "does not see" if marks[k] else "sees"
        why = "it comes after the query" if k > self.query else "its own key" if k == self.query else "it comes before"
        return Verdict(False, f"Not yet: query {self.query} {does} key {k}, {why}.", ((self.query, k),))


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
            "target": lines_of(self.built.to_dense()[0, 0]),
        }

    def start(self) -> list[int]:
        return [-1] * len(self.kinds)

    def solution(self) -> list[int]:
        return self.kinds

    def check(self, answer) -> Verdict:
        guesses = integers(answer, len(self.kinds), 0, 2)
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
        pictures = [lines_of(torch.from_numpy(fit.runs.to_dense())) for fit in self.fits]
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
        found = integers(answer, 2, 0, 99)
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
