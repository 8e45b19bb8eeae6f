"""Predicates to masked runs: solved for q where that is possible, evaluated and run-length encoded where not.

A comparison is brought to the form  sum of coefficient * atom + constant <= 0,  where coefficients and constant may
depend on k in any way. The atoms are q itself, abs, min and max of such sums, and floor divisions of them:

* abs, min and max go away: abs(x) <= c is x <= c and -x <= c, abs(x) >= c is x >= c or -x >= c, and so on;
* a single floor division goes away: x // m <= t is x <= m * t + m - 1;
* what is linear in q shows one interval of queries a column.

The rest is evaluated, once for every distinct column and row: those on which the terms in k alone, or in q alone,
have equal values are equal. `q % 4 == k % 4` looks at four columns however long the sequence is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .errors import MaskSyntaxError
from .positions import Positions
from .runs import MAX_RUNS, MaskedRuns
from .terms import Chain, Function, Negative, Number, Term, Variable, apply_operator, quoted
from .work import CELL, CELL_OPERATION, DISTINCT, LEAF, OPERATION, RUN, Work

# (query, key) pairs that a predicate without a closed form may be evaluated on.
MAX_CELLS = 1 << 28
_STRIP_CELLS = 1 << 20
# abs, min and max double the number of inequalities; with more than this the predicate is evaluated instead.
_MAX_INEQUALITIES = 64
# Every atom but q doubles them at least, or has no company; the constant and q come on top.
_MAX_ATOMS = 8
# Terms stay within 2^60 and quotients too, so a bound on a quotient may be clipped to this times 1 / divisor.
_LARGEST_PRODUCT = 1 << 61


def solve_comparison(a: Term, op: str, b: Term, seqlen_q: int, seqlen_k: int, work: Work) -> MaskedRuns:
    """The mask that shows the pairs with `a op b`; op is one of < <= > >= == !=.

    Raises MaskSyntaxError for a division by zero, numbers too large, or more cells, runs or work than the limits allow.
    """
    positions = Positions(seqlen_q, seqlen_k)
    if not seqlen_q or not seqlen_k:
        return MaskedRuns.show_all(seqlen_q, seqlen_k)
    # Ranges around zero bound the coefficients of q and k on their own, too.
    for term in (a, b):
        term.checked_bounds((-1, max(1, seqlen_k - 1)), (-1, max(1, seqlen_k - 1)))
    if op in (">", ">="):
        a, op, b = b, {">": "<", ">=": "<="}[op], a
    shown = _closed_form(a, op, b, positions, work)
    return shown if shown is not None else _evaluated(a, op, b, positions, work)


class _Sum(dict):
    """atom -> coefficient, an int64 array [Sk] or number; the key 1 is the constant."""

    def scaled(self, factor) -> "_Sum":
        return _Sum({atom: coefficient * factor for atom, coefficient in self.items()})

    def plus(self, other: "_Sum") -> "_Sum":
        result = _Sum(self)
        for atom, coefficient in other.items():
            result[atom] = result.get(atom, 0) + coefficient
        return result

    def without(self, atom) -> "_Sum":
        return _Sum({other: coefficient for other, coefficient in self.items() if other != atom})


@dataclass(frozen=True, eq=False)
class _Quotient:
    """The atom number // divisor; the divisor, int64 [Sk] or a number, does not depend on q."""

    number: _Sum
    divisor: np.ndarray


@dataclass(frozen=True, eq=False)
class _Choice:
    """The atom abs(x) = max(x, -x), or min or max of sums."""

    largest: bool
    sums: tuple[_Sum, ...]


_Q = Variable("q")


def _as_sum(term: Term, k: np.ndarray, work: Work) -> _Sum | None:
    """The term as a sum of atoms, or None if q occurs in it in another way."""
    if isinstance(term, Function) and len(term.terms) > _MAX_INEQUALITIES:
        return None
    work.spend(OPERATION * len(k) * (len(term.parts) if "q" in term.variables else term.operations))
    if "q" not in term.variables:
        return _Sum({1: term.value(None, k)})
    if isinstance(term, Variable):
        return _Sum({_Q: np.int64(1)})
    if isinstance(term, Negative):
        inner = _as_sum(term.term, k, work)
        return inner.scaled(-1) if inner is not None else None
    if isinstance(term, Function):
        sums = [_as_sum(part, k, work) for part in term.terms]
        if any(s is None for s in sums):
            return None
        if term.name == "abs":
            return _Sum({_Choice(True, (sums[0], sums[0].scaled(-1))): np.int64(1)})
        return _Sum({_Choice(term.name == "max", tuple(sums)): np.int64(1)})
    assert isinstance(term, Chain)
    result, has_q = _as_sum(term.first, k, work), "q" in term.first.variables
    for op, part in term.rest:
        other = _as_sum(part, k, work)
        if result is None or other is None or len(result) > _MAX_ATOMS:
            return None
        part_has_q = "q" in part.variables
        if op in "+-":
            result = result.plus(other if op == "+" else other.scaled(-1))
        elif op == "*" and not part_has_q:
            result = result.scaled(other[1])
        elif op == "*" and not has_q:
            result = other.scaled(result[1])
        elif not has_q and not part_has_q:
            result = _Sum({1: apply_operator(op, result[1], other[1], part)})
        elif op == "//" and not part_has_q:
            if not np.all(other[1]):
                raise MaskSyntaxError(f"division by zero: {quoted(part)} gets 0 here")
            result = _Sum({_Quotient(result, other[1]): np.int64(1)})
        else:
            return None
        has_q = has_q or part_has_q
    return result


def _closed_form(a: Term, op: str, b: Term, positions: Positions, work: Work) -> MaskedRuns | None:
    """The comparison solved for q; None if it has no closed form."""
    left, right = _as_sum(a, positions.k, work), _as_sum(b, positions.k, work)
    if left is None or right is None:
        return None
    difference = left.plus(right.scaled(-1))
    if op in ("<", "<="):
        return _at_most_zero(difference.plus({1: int(op == "<")}), positions, work)
    below = _at_most_zero(difference, positions, work)
    if below is None:
        return None
    both = work.union([below, _at_most_zero(difference.scaled(-1), positions, work)])
    return both if op == "==" else work.complement(both)


def _at_most_zero(total: _Sum, positions: Positions, work: Work, inequalities: int = 1) -> MaskedRuns | None:
    """Shows the pairs on which the sum is <= 0; None if there is no closed form."""
    choice = next((atom for atom in total if isinstance(atom, _Choice)), None)
    if choice is not None:
        coefficient, rest = total[choice], total.without(choice)
        inequalities *= len(choice.sums)
        rising = np.all(coefficient >= 0)
        if not (rising or np.all(coefficient <= 0)) or inequalities > _MAX_INEQUALITIES:
            return None
        # coefficient * max(x, y) is the largest of both products, or the smallest if the coefficient is negative.
        masks = []
        for s in choice.sums:
            work.spend(OPERATION * positions.seqlen_k)
            masks.append(_at_most_zero(rest.plus(s.scaled(coefficient)), positions, work, inequalities))
            if masks[-1] is None:
                return None
        return work.union(masks) if choice.largest == rising else work.intersection(masks)
    quotient = next((atom for atom in total if isinstance(atom, _Quotient)), None)
    work.spend(LEAF * positions.seqlen_k)
    if quotient is None:
        return _linear(total.get(_Q, np.int64(0)), total.get(1, np.int64(0)), positions)
    if set(total) <= {quotient, 1}:
        inner = _without_quotient(quotient, total[quotient], total.get(1, np.int64(0)))
        return _at_most_zero(inner, positions, work, inequalities) if inner is not None else None
    return None


def _without_quotient(quotient: _Quotient, coefficient, constant) -> _Sum:
    """A sum that is <= 0 exactly where coefficient * (number // divisor) + constant is."""
    sign = np.sign(quotient.divisor)
    number, divisor = quotient.number.scaled(sign), np.abs(quotient.divisor)
    largest = _LARGEST_PRODUCT // divisor
    size = np.maximum(np.abs(coefficient), 1)
    # coefficient > 0: number // divisor <= at_most, so number <= divisor * at_most + divisor - 1
    at_most = np.clip(-constant // size, -largest, largest)
    # coefficient < 0: number // divisor >= at_least, so number >= divisor * at_least
    at_least = np.clip(-(-constant // size), -largest, largest)
    up, down = coefficient > 0, coefficient < 0
    result = number.scaled(np.sign(coefficient))
    shift = np.where(up, -(divisor * at_most + divisor - 1), np.where(down, divisor * at_least, constant))
    return result.plus({1: shift})


def _linear(slope, constant, positions: Positions) -> MaskedRuns:
    """Shows the pairs with slope * q + constant <= 0; slope and constant are int64 arrays [Sk] or numbers."""
    slope, constant = (np.broadcast_to(np.asarray(x, np.int64), positions.seqlen_k) for x in (slope, constant))
    size = np.maximum(np.abs(slope), 1)
    first, end = positions.first_q, positions.seqlen_k
    highest = np.clip(-constant // size, first - 1, end)  # slope > 0: q <= -constant / slope
    lowest = np.clip(-(-constant // size), first, end)  # slope < 0: q >= constant / -slope
    always = (slope == 0) & (constant <= 0)
    return positions.show(
        np.where(slope < 0, lowest, first), np.where((slope < 0) | always, end, np.where(slope > 0, highest + 1, first))
    )


_COMPARE = {"<": np.less, "<=": np.less_equal, "==": np.equal, "!=": np.not_equal}


def _evaluated(a: Term, op: str, b: Term, positions: Positions, work: Work) -> MaskedRuns:
    """The comparison evaluated on every distinct row and column."""
    keys_q, keys_k = set(), set()
    for term in (a, b):
        _collect_keys(term, keys_q, keys_k)
    work.spend(DISTINCT * (len(keys_q) * len(positions.q) + len(keys_k) * len(positions.k)))
    work.spend(OPERATION * (a.operations + b.operations) * max(len(positions.q), len(positions.k)))
    codes = _codes([key.value(positions.q, None) for key in keys_q], len(positions.q))
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])  # of groups of equal rows, one below the other
    q = positions.q[starts][:, None]
    codes = _codes([key.value(None, positions.k) for key in keys_k], len(positions.k))
    _, columns, column_of = np.unique(codes, return_index=True, return_inverse=True)
    k = positions.k[columns]
    cells = len(starts) * len(k)
    if cells > MAX_CELLS:
        raise MaskSyntaxError(
            f"{quoted(f'{a} {op} {b}')} has no closed form in q and would have to be evaluated on {cells:,} pairs; the "
            f"limit is {MAX_CELLS:,}, about 16,384 tokens. A shorter sequence, or a predicate linear in q, works"
        )
    work.spend(cells * (CELL + CELL_OPERATION * (a.operations + b.operations)))
    parts, width = [], max(1, _STRIP_CELLS // len(starts))
    for first in range(0, len(k), width):
        some = k[first : first + width]
        shown = _COMPARE[op](a.value(q, some), b.value(q, some))
        parts.append(MaskedRuns.from_dense(np.broadcast_to(shown, (len(starts), len(some)))))
        _check_runs(sum(len(part.starts) for part in parts), a, op, b)
        work.progress(min(1.0, (first + width) / len(k)))
    distinct = MaskedRuns.concatenate(parts)
    _check_runs(int(distinct.counts[column_of].sum()), a, op, b)
    work.spend(RUN * int(distinct.counts[column_of].sum()))
    row = np.append(starts + positions.first_q - positions.offset, positions.seqlen_q).astype(np.int32)
    row[0] = 0  # rows before the first key go with the first group
    return MaskedRuns(
        positions.seqlen_q, distinct.seqlen_k, distinct.offsets, row[distinct.starts], row[distinct.ends]
    ).take(column_of)


def _check_runs(runs: int, a: Term, op: str, b: Term) -> None:
    if runs > MAX_RUNS:
        raise MaskSyntaxError(
            f"{quoted(f'{a} {op} {b}')} has {runs:,} masked runs at this length, and at most {MAX_RUNS:,} are kept; a "
            f"shorter sequence works"
        )


def _collect_keys(term: Term, keys_q: set[Term], keys_k: set[Term]) -> None:
    """Find terms in q alone and in k alone whose values decide the value of `term`, as large ones as there are."""
    if isinstance(term, Number):
        return
    if term.variables == {"q"}:
        keys_q.add(term)
    elif term.variables == {"k"}:
        keys_k.add(term)
    else:
        modulus = term.rest[-1][1] if isinstance(term, Chain) and term.rest[-1][0] == "%" else None
        if isinstance(modulus, Number) and modulus.number and _whole_polynomial(term.first, term.rest[:-1]):
            keys_q.add(Chain(_Q, (("%", modulus),)))  # (q - k) % 4 depends on q % 4 and k % 4 alone
            keys_k.add(Chain(Variable("k"), (("%", modulus),)))
            return
        for part in term.parts:
            _collect_keys(part, keys_q, keys_k)


def _whole_polynomial(first: Term, rest=()) -> bool:
    """Only + - * of q, k and numbers, so that equal remainders of q and k give equal remainders of the value."""

    def whole(term: Term) -> bool:
        if isinstance(term, Chain):
            return _whole_polynomial(term.first, term.rest)
        return whole(term.term) if isinstance(term, Negative) else isinstance(term, (Number, Variable))

    return whole(first) and all(op in ("+", "-", "*") and whole(term) for op, term in rest)


def _codes(values: list[np.ndarray], length: int) -> np.ndarray:
    """int64 [length]: equal numbers where all of the value arrays are equal."""
    codes = np.zeros(length, np.int64)
    for value in values:
        code = np.unique(value, return_inverse=True)[1]
        codes = np.unique(codes * (int(code.max()) + 1) + code, return_inverse=True)[1]
    return codes
