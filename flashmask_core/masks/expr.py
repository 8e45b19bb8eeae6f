"""Mask expressions: a parsed text as an immutable tree that knows its canonical text, its runs and its notes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Callable, Iterator

import numpy as np

from .arguments import listed_arguments, written_out
from .errors import MaskSyntaxError, pointed_at
from .patterns import PATTERNS
from .runs import MAX_RUNS, MaskedRuns
from .solve import solve_comparison
from .terms import Term
from .work import COMBINED, LEAF, SLOW_PATTERNS, Work

MAX_SEQLEN = 1 << 20

Progress = Callable[[float], None]
Place = tuple[str, int]  # the text that was parsed, and where in it a part starts


@dataclass(frozen=True)
class MaskExpr:
    """A mask as an expression in the mask language; `str()` is its canonical text, and equal texts are equal masks.

    Made by `parse`. Combine expressions with & | ~, and turn one into intervals with `runs`.
    """

    def runs(self, seqlen_q: int, seqlen_k: int | None = None, *, progress: Progress | None = None) -> MaskedRuns:
        """The masked runs for Sq queries and Sk keys (None: as many as queries), any number a column.

        A query before the first key (Sq > Sk) sees nothing. `progress` is called with a share of the work done
        while something without a closed form is evaluated; an exception that it raises ends the work.

        Raises TypeError or ValueError for a length that is none, MaskSyntaxError where the text does not go with
        the lengths: lists that are too long, a division by zero, a number too large for 64 bits, too many cells or
        runs for something without a closed form, or more work than one mask may take.
        """
        seqlen_q, seqlen_k = checked_lengths(seqlen_q, seqlen_k)
        work, parts = Work(progress), Counter(self._parts())
        work.plan(parts, sum(part._leaves for part in parts), seqlen_k)
        runs = self._made(seqlen_q, seqlen_k, work)
        if seqlen_q > seqlen_k:
            before = seqlen_q - seqlen_k
            runs = runs & MaskedRuns.hide(0, before, seqlen_q=seqlen_q, seqlen_k=seqlen_k)
        return runs

    def visible(self, q, k, seqlen_q: int, seqlen_k: int) -> np.ndarray:
        """Visibility of single pairs: bool for integer arrays of positions q and k that broadcast.

        Slow and simple, by the predicates of the patterns: what `runs` has to agree with.
        """
        return self._visible(np.maximum(q, 0), k, seqlen_q, seqlen_k) & (np.asarray(q) >= 0)

    def notes(self, seqlen_q: int, seqlen_k: int | None = None, runs: MaskedRuns | None = None) -> list[str]:
        """Short remarks that a user should see: padding behind a list, queries that see nothing.

        `runs` saves computing them again.
        """
        seqlen_q, seqlen_k = checked_lengths(seqlen_q, seqlen_k)
        runs = runs if runs is not None else self.runs(seqlen_q, seqlen_k)
        notes = []
        for pattern in self.patterns():
            padding = pattern.padding(seqlen_k)
            if padding:
                notes.append(
                    f"{pattern.name} describes {seqlen_k - padding:,} of {seqlen_k:,} tokens: the last {padding:,} are "
                    f"padding, which sees nothing and is seen by nobody"
                )
        empty = np.flatnonzero(runs.empty_rows())
        if len(empty):
            rows = _listed(empty)
            notes.append(f"row {rows} sees nothing" if len(empty) == 1 else f"rows {rows} see nothing")
        return notes

    def patterns(self) -> "list[PatternExpr]":
        """The named patterns that occur, from left to right."""
        return [part for part in self._parts() if isinstance(part, PatternExpr)]

    @property
    def _leaves(self) -> int:
        """How many patterns or inequalities it takes itself, without its parts."""
        return 0

    def _parts(self) -> "Iterator[MaskExpr]":
        """This expression and all that it is made of, from left to right."""
        yield self

    def _made(self, seqlen_q: int, seqlen_k: int, work: Work) -> MaskedRuns:
        """`_runs`, worked out once for a part that occurs more than once."""
        if self not in work.repeated:
            return self._runs(seqlen_q, seqlen_k, work)
        if self not in work.made:
            work.made[self] = self._runs(seqlen_q, seqlen_k, work)
        return work.made[self]

    def __and__(self, other: "MaskExpr") -> "MaskExpr":
        return Joined.of("&", [self, other])

    def __or__(self, other: "MaskExpr") -> "MaskExpr":
        return Joined.of("|", [self, other])

    def __invert__(self) -> "MaskExpr":
        return Hidden(self)


@dataclass(frozen=True)
class PatternExpr(MaskExpr):
    """A name with its arguments: ints, tuples and `Repeat`s."""

    name: str
    arguments: tuple
    place: Place | None = field(default=None, compare=False, repr=False)

    @property
    def _leaves(self):
        return 1

    def values(self) -> tuple:
        """The arguments with every `repeat` written out."""
        return tuple(value for argument in self.arguments for value in written_out(argument))

    def padding(self, seqlen_k: int) -> int:
        return PATTERNS[self.name].padding(seqlen_k, *self.values())

    def _runs(self, seqlen_q, seqlen_k, work):
        try:
            work.spend(SLOW_PATTERNS.get(self.name, LEAF) * seqlen_k)
            runs = PATTERNS[self.name].build(seqlen_q, seqlen_k, *self.values())
            work.spend(COMBINED * seqlen_k if runs.shown is None else 0)
            return runs
        except MaskSyntaxError as error:
            raise pointed_at(error, self.place) from None

    def _visible(self, q, k, seqlen_q, seqlen_k):
        return PATTERNS[self.name].visible(q, k, seqlen_q, seqlen_k, *self.values())

    def __str__(self):
        if not self.arguments and not PATTERNS[self.name].parameters:
            return self.name
        return f"{self.name}({listed_arguments(self.arguments)})"


@dataclass(frozen=True)
class Comparison(MaskExpr):
    """term op term op term ..., as in Python: every neighbouring pair has to hold."""

    terms: tuple[Term, ...]
    operators: tuple[str, ...]
    place: Place | None = field(default=None, compare=False, repr=False)

    @property
    def _leaves(self):
        return len(self.operators)

    def _runs(self, seqlen_q, seqlen_k, work):
        try:
            pairs = zip(self.terms, self.operators, self.terms[1:])
            return _joined((solve_comparison(a, op, b, seqlen_q, seqlen_k, work) for a, op, b in pairs), work.union)
        except MaskSyntaxError as error:
            raise pointed_at(error, self.place) from None

    def _visible(self, q, k, seqlen_q, seqlen_k):
        values = [term.value(np.asarray(q, np.int64), np.asarray(k, np.int64)) for term in self.terms]
        shown = np.ones(np.broadcast_shapes(np.shape(q), np.shape(k)), bool)
        for a, op, b in zip(values, self.operators, values[1:]):
            shown &= COMPARISONS[op](a, b)
        return shown

    def __str__(self):
        return " ".join([str(self.terms[0]), *(f"{op} {t}" for op, t in zip(self.operators, self.terms[1:]))])


COMPARISONS: dict[str, Callable] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal
}  # fmt: skip


@dataclass(frozen=True)
class Joined(MaskExpr):
    """Two or more masks joined by & (visible in all) or | (visible in any)."""

    operator: str
    masks: tuple[MaskExpr, ...]

    @classmethod
    def of(cls, operator: str, masks) -> "Joined":
        """Joined, with masks that are joined by the same operator taken apart: a & (b & c) is a & b & c."""
        flat = []
        for mask in masks:
            flat.extend(mask.masks if isinstance(mask, cls) and mask.operator == operator else [mask])
        return cls(operator, tuple(flat))

    def _parts(self):
        yield self
        for mask in self.masks:
            yield from mask._parts()

    def _runs(self, seqlen_q, seqlen_k, work):
        masks = (mask._made(seqlen_q, seqlen_k, work) for mask in dict.fromkeys(self.masks))
        return _joined(masks, work.union if self.operator == "&" else work.intersection)

    def _visible(self, q, k, seqlen_q, seqlen_k):
        shown = self.masks[0]._visible(q, k, seqlen_q, seqlen_k)
        for mask in self.masks[1:]:
            other = mask._visible(q, k, seqlen_q, seqlen_k)
            shown = shown & other if self.operator == "&" else shown | other
        return shown

    def __str__(self):
        return f" {self.operator} ".join(_inside(mask, self.operator) for mask in self.masks)


@dataclass(frozen=True)
class Hidden(MaskExpr):
    """~mask: visible where the mask hides."""

    mask: MaskExpr

    def _parts(self):
        yield self
        yield from self.mask._parts()

    def _runs(self, seqlen_q, seqlen_k, work):
        return work.complement(self.mask._made(seqlen_q, seqlen_k, work))

    def _visible(self, q, k, seqlen_q, seqlen_k):
        return ~self.mask._visible(q, k, seqlen_q, seqlen_k)

    def __str__(self):
        return f"~{_inside(self.mask, '~')}"


def checked_lengths(seqlen_q, seqlen_k) -> tuple[int, int]:
    """(Sq, Sk) as ints in 0 ... 2^20; Sk = None is Sq."""
    seqlen_k = seqlen_q if seqlen_k is None else seqlen_k
    for name, length in (("seqlen_q", seqlen_q), ("seqlen_k", seqlen_k)):
        if isinstance(length, bool) or not isinstance(length, (int, np.integer)):
            raise TypeError(f"{name}: wanted an int, got {type(length).__name__}")
        if not 0 <= length <= MAX_SEQLEN:
            raise ValueError(f"{name}: wanted 0 to {MAX_SEQLEN:,} tokens, got {length:,}")
    return int(seqlen_q), int(seqlen_k)


def _joined(masks, join) -> MaskedRuns:
    """Joined in groups of eight, and the groups again, so that a thousand masks are each touched a few times only.

    They are made one by one as they are needed, so that few are in memory at a time.
    """
    levels: list[list[MaskedRuns]] = []
    for mask in masks:
        level = 0
        while True:
            if level == len(levels):
                levels.append([])
            levels[level].append(mask)
            if len(levels[level]) < 8:
                break
            mask, levels[level] = join(levels[level]), []
            level += 1
        if sum(len(m.starts) for waiting in levels for m in waiting) > MAX_RUNS:
            levels = [[join([m for waiting in levels for m in waiting])]]
    waiting = [m for level in levels for m in level]
    return join(waiting) if len(waiting) > 1 else waiting[0]


def _inside(mask: MaskExpr, operator: str) -> str:
    """A mask's text as an operand: a comparison always, a looser operator where needed, in parentheses."""
    binds = {"|": 1, "&": 2, "~": 3}
    loose = isinstance(mask, Comparison) or (isinstance(mask, Joined) and binds[mask.operator] < binds[operator])
    return f"({mask})" if loose else str(mask)


def _listed(rows: np.ndarray) -> str:
    """Rising row numbers for people: 3, 7…9 and 12 more."""
    breaks = np.flatnonzero(np.diff(rows) > 1)
    firsts, lasts = rows[np.r_[0, breaks + 1]], rows[np.r_[breaks, len(rows) - 1]]
    shown = [f"{a}" if a == b else f"{a}…{b}" for a, b in zip(firsts[:4].tolist(), lasts[:4].tolist())]
    left = int((lasts[4:] - firsts[4:] + 1).sum())
    return ", ".join(shown) + (f" and {left:,} more" if left else "")
