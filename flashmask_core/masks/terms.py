"""Integer arithmetic in q and k: the terms that a predicate compares.

A term is a small immutable tree. It is written back as text, evaluated on integer arrays, and bounded, so that a
number that would not fit int64 is refused instead of wrapping around.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .errors import MaskSyntaxError

# No number in a predicate, and none that it computes on the way, may be larger; sums of two still fit int64.
LARGEST = 1 << 60

Range = tuple[int, int]


@dataclass(frozen=True)
class Term:
    """Base class: `+ - * // %` chains, abs, min, max, numbers, q and k."""

    @property
    def variables(self) -> frozenset[str]:
        """Those of "q" and "k" that occur."""
        return frozenset().union(*(part.variables for part in self.parts))

    @property
    def parts(self) -> "tuple[Term, ...]":
        return ()

    @property
    def operations(self) -> int:
        """How many arithmetic operations it takes to work out one value."""
        return max(len(self.parts) - 1, bool(self.parts)) + sum(part.operations for part in self.parts)

    def value(self, q, k):
        """The value for integer arrays q and k that broadcast."""
        raise NotImplementedError

    def bounds(self, q: Range, k: Range) -> Range:
        """(lowest, highest) value there may be for q and k in the given ranges; not always reached."""
        raise NotImplementedError

    def checked_bounds(self, q: Range, k: Range) -> Range:
        """`bounds`, refused if int64 could overflow on the way."""
        low, high = self.bounds(q, k)
        if max(-low, high) > LARGEST:
            largest = _rounded(max(-low, high))
            raise MaskSyntaxError(f"{quoted(self)} can get as large as {largest} here; the limit is 2^60")
        return low, high


@dataclass(frozen=True)
class Number(Term):
    number: int

    def value(self, q, k):
        return np.int64(self.number)

    def bounds(self, q, k):
        return self.number, self.number

    def __str__(self):
        return str(self.number)


@dataclass(frozen=True)
class Variable(Term):
    name: str

    @property
    def variables(self):
        return frozenset(self.name)

    def value(self, q, k):
        return q if self.name == "q" else k

    def bounds(self, q, k):
        return q if self.name == "q" else k

    def __str__(self):
        return self.name


@dataclass(frozen=True)
class Negative(Term):
    term: Term

    @property
    def parts(self):
        return (self.term,)

    def value(self, q, k):
        return -self.term.value(q, k)

    def bounds(self, q, k):
        low, high = self.term.checked_bounds(q, k)
        return -high, -low

    def __str__(self):
        return f"-({self.term})" if isinstance(self.term, Chain) else f"-{self.term}"


@dataclass(frozen=True)
class Chain(Term):
    """first op term op term ..., left to right; the operators are all of {+, -} or all of {*, //, %}."""

    first: Term
    rest: tuple[tuple[str, Term], ...]

    @property
    def parts(self):
        return (self.first, *(term for _, term in self.rest))

    @property
    def additive(self) -> bool:
        return self.rest[0][0] in "+-"

    def value(self, q, k):
        result = self.first.value(q, k)
        for op, term in self.rest:
            result = apply_operator(op, result, term.value(q, k), term)
        return result

    def bounds(self, q, k):
        so_far = self.first.checked_bounds(q, k)
        for op, term in self.rest:
            so_far = _bounds_of(op, so_far, term.checked_bounds(q, k))
            if max(-so_far[0], so_far[1]) > LARGEST:
                break  # refused by checked_bounds; going on could only make the numbers longer
        return so_far

    def __str__(self):
        def inside(term: Term, is_first: bool) -> str:
            read_differently = isinstance(term, Chain) and (term.additive or not (self.additive or is_first))
            return f"({term})" if read_differently else str(term)

        return " ".join([inside(self.first, True), *(f"{op} {inside(term, False)}" for op, term in self.rest)])


@dataclass(frozen=True)
class Function(Term):
    """abs of one term, min or max of two or more."""

    name: str
    terms: tuple[Term, ...]

    @property
    def parts(self):
        return self.terms

    def value(self, q, k):
        values = [term.value(q, k) for term in self.terms]
        if self.name == "abs":
            return np.abs(values[0])
        result, choose = values[0], np.minimum if self.name == "min" else np.maximum
        for value in values[1:]:
            result = choose(result, value)
        return result

    def bounds(self, q, k):
        lows, highs = zip(*(term.checked_bounds(q, k) for term in self.terms))
        if self.name == "abs":
            return max(0, lows[0], -highs[0]), max(-lows[0], highs[0])
        choose = min if self.name == "min" else max
        return choose(lows), choose(highs)

    def __str__(self):
        return f"{self.name}({', '.join(map(str, self.terms))})"


def apply_operator(op: str, a, b, divisor: Term):
    """a op b on integer arrays; `divisor` is the term behind b, to be named if it gets 0."""
    if op == "+":
        return a + b
    if op == "-":
        return a - b
    if op == "*":
        return a * b
    if not np.all(b):
        raise MaskSyntaxError(f"{'division' if op == '//' else 'remainder'} by zero: {quoted(divisor)} gets 0 here")
    return a // b if op == "//" else a % b


def _bounds_of(op: str, a: Range, b: Range) -> Range:
    if op == "+":
        return a[0] + b[0], a[1] + b[1]
    if op == "-":
        return a[0] - b[1], a[1] - b[0]
    if op == "*":
        corners = [x * y for x in a for y in b]
        return min(corners), max(corners)
    if op == "//":  # with a divisor of at least 1 in size the quotient is no larger than the number
        if b[0] == b[1] and b[0]:
            corners = [x // b[0] for x in a]
            return min(corners), max(corners)
        largest = max(-a[0], a[1], 0)
        return -largest, largest
    return min(0, b[0] + 1), max(0, b[1] - 1)


def quoted(part, most: int = 100) -> str:
    """The text of an expression for a message, cut where it is long."""
    text = str(part)
    return text if len(text) <= most else f"{text[:most]}…"


def _rounded(number: int) -> str:
    """A large number for people: 2^70 instead of twenty digits."""
    return f"2^{number.bit_length() - 1}"
