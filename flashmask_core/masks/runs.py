"""Masked runs: which query rows every key column hides, as sorted half-open intervals, any number a column.

This is the form in which masks are combined. What two masks both show hides the union of what they hide, so on
visible pairs `a & b`, `a | b` and `~a` are a union, an intersection and a complement of intervals, exact and without
an Sq x Sk array. The rows that column j hides are

    for run in range(runs.offsets[j], runs.offsets[j + 1]):
        hidden[runs.starts[run] : runs.ends[run], j] = True

`ColumnMask` is the special case of at most two runs a column.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

# Runs that one mask may hold; they take 8 bytes each, and combining masks needs some ten times that for a moment.
MAX_RUNS = 1 << 25
# How much is worked on in one go: cells of a dense array, and columns of masks that are combined (few enough for the
# processor's cache, which is three times as fast as all of a million columns at once).
_STRIP_CELLS = 1 << 22
_STRIP_COLUMNS = 1 << 13


@dataclass(frozen=True, eq=False)
class MaskedRuns:
    """Immutable masked runs a column.

    Attributes:
        seqlen_q, seqlen_k: Sq and Sk in tokens.
        offsets: int64 [Sk + 1]; column j owns the runs offsets[j] ... offsets[j + 1] - 1.
        starts, ends: int32 [R]; run r hides the rows [starts[r], ends[r]). In a column the runs are non-empty, rising
            and do not touch, so equal masks have equal arrays.

    shown: (first, last), int32 [Sk], if it is known that every column shows only the rows [first, last); a shortcut
            for combining such masks, as most patterns are. Nothing shown is (Sq, Sq).

    The constructor takes arrays that already keep these rules; `from_dense`, `from_runs`, `hide` and `show` make
    them from anything.
    """

    seqlen_q: int
    seqlen_k: int
    offsets: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    shown: tuple[np.ndarray, np.ndarray] | None = field(default=None, repr=False)

    def __post_init__(self):
        for array in (self.offsets, self.starts, self.ends, *(self.shown or ())):
            array.flags.writeable = False

    @property
    def counts(self) -> np.ndarray:
        """int64 [Sk]: the number of masked runs of every column."""
        return np.diff(self.offsets)

    @property
    def columns(self) -> np.ndarray:
        """int64 [R]: the column of every run."""
        return np.repeat(np.arange(self.seqlen_k), self.counts)

    def __repr__(self) -> str:
        return f"MaskedRuns(Sq={self.seqlen_q}, Sk={self.seqlen_k}, runs={len(self.starts)})"

    @classmethod
    def from_dense(cls, visible) -> "MaskedRuns":
        """From a bool array [Sq, Sk], True where the query may attend to the key."""
        visible = np.asarray(visible)
        if visible.dtype != np.bool_ or visible.ndim != 2:
            raise TypeError(f"visible: wanted a bool array [Sq, Sk], got {visible.dtype} {list(visible.shape)}")
        seqlen_q, seqlen_k = visible.shape
        width = max(1, _STRIP_CELLS // max(1, seqlen_q))
        counts, starts, ends = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for first in range(0, seqlen_k, width):
            shown = visible[:, first : first + width].T
            framed = np.ones((len(shown), seqlen_q + 2), bool)  # a visible row above and below closes every run
            framed[:, 1:-1] = shown
            column, row = np.nonzero(framed[:, 1:] != framed[:, :-1])  # starts and ends take turns
            counts.append(np.bincount(column[0::2], minlength=len(shown)))
            starts.append(row[0::2])
            ends.append(row[1::2])
        return cls.in_order(seqlen_q, np.concatenate(counts), np.concatenate(starts), np.concatenate(ends))

    @classmethod
    def from_runs(cls, columns, starts, ends, *, seqlen_q: int, seqlen_k: int) -> "MaskedRuns":
        """From runs in any order, overlapping or not: `columns`, `starts`, `ends` are integer arrays [R].

        Rows are clipped to [0, Sq] and empty runs dropped; columns must lie in [0, Sk).
        """
        starts, ends = (np.clip(rows, 0, seqlen_q).astype(np.int64) for rows in (starts, ends))
        there = starts < ends
        edges = _edges(np.asarray(columns, np.int64)[there], starts[there], ends[there], seqlen_q)
        return cls._from_edges(edges, 1, seqlen_q, seqlen_k)

    @classmethod
    def hide(cls, start, end, *, seqlen_q: int, seqlen_k: int) -> "MaskedRuns":
        """One run a column: hide the rows [start, end), integer arrays [Sk] or numbers, clipped to [0, Sq]."""
        start, end = (np.broadcast_to(np.clip(rows, 0, seqlen_q), seqlen_k) for rows in (start, end))
        there = start < end
        return cls.in_order(seqlen_q, there.astype(np.int64), start[there], end[there])

    @classmethod
    def show(cls, start, end, *, seqlen_q: int, seqlen_k: int) -> "MaskedRuns":
        """One visible run a column: show only the rows [start, end), integer arrays [Sk] or numbers, clipped."""
        start, end = (np.broadcast_to(np.clip(rows, 0, seqlen_q), seqlen_k) for rows in (start, end))
        start = np.where(start < end, start, seqlen_q).astype(np.int32)  # nothing to show: one run down to the bottom
        end = np.maximum(start, end, dtype=np.int32, casting="unsafe")
        above, below = start > 0, end < seqlen_q
        offsets = np.zeros(seqlen_k + 1, np.int64)
        np.cumsum(above.view(np.int8) + below.view(np.int8), out=offsets[1:])
        starts, ends = np.zeros(offsets[-1], np.int32), np.full(offsets[-1], seqlen_q, np.int32)
        ends[offsets[:-1][above]] = start[above]
        starts[offsets[1:][below] - 1] = end[below]
        return cls(int(seqlen_q), int(seqlen_k), offsets, starts, ends, (start, end))

    @classmethod
    def show_all(cls, seqlen_q: int, seqlen_k: int) -> "MaskedRuns":
        """Every query sees every key."""
        return cls.hide(0, 0, seqlen_q=seqlen_q, seqlen_k=seqlen_k)

    @classmethod
    def hide_all(cls, seqlen_q: int, seqlen_k: int) -> "MaskedRuns":
        """No query sees any key."""
        return cls.hide(0, seqlen_q, seqlen_q=seqlen_q, seqlen_k=seqlen_k)

    @classmethod
    def concatenate(cls, parts: "list[MaskedRuns]") -> "MaskedRuns":
        """Parts with the same Sq side by side, left to right."""
        counts, starts, ends = ([getattr(part, name) for part in parts] for name in ("counts", "starts", "ends"))
        return cls.in_order(parts[0].seqlen_q, np.concatenate(counts), np.concatenate(starts), np.concatenate(ends))

    def part(self, first: int, last: int) -> "MaskedRuns":
        """The columns first ... last - 1 (clipped to Sk) as a mask of their own."""
        offsets = self.offsets[first : last + 1]
        runs = slice(offsets[0], offsets[-1])
        return MaskedRuns(self.seqlen_q, len(offsets) - 1, offsets - offsets[0], self.starts[runs], self.ends[runs])

    def take(self, columns) -> "MaskedRuns":
        """The mask whose column j is this mask's column columns[j] (an integer array, repeats allowed)."""
        counts = self.counts[columns]
        ends = np.cumsum(counts)
        run = np.arange(ends[-1] if len(ends) else 0) + np.repeat(self.offsets[columns] - (ends - counts), counts)
        return self.in_order(self.seqlen_q, counts, self.starts[run], self.ends[run])

    def keep(self, kept) -> "MaskedRuns":
        """Only the runs for which the bool array kept [R] is True; the rows of the others are shown."""
        counts = np.bincount(self.columns[kept], minlength=self.seqlen_k)
        return self.in_order(self.seqlen_q, counts, self.starts[kept], self.ends[kept])

    def bridge(self, bridged) -> "MaskedRuns":
        """Hide the rows between run r and run r + 1 too where bridged [R], bool, is True; both lie in one column."""
        starts = ~np.concatenate([[False], bridged])[:-1]
        counts = np.bincount(self.columns[starts], minlength=self.seqlen_k)
        return self.in_order(self.seqlen_q, counts, self.starts[starts], self.ends[~bridged])

    def to_dense(self) -> np.ndarray:
        """Visibility, bool [Sq, Sk], True where the query may attend to the key."""
        columns = self.columns
        change = np.zeros((self.seqlen_q + 1, self.seqlen_k), np.int8)
        change[self.starts, columns] = 1
        change[self.ends, columns] = -1
        return np.cumsum(change[: self.seqlen_q], axis=0, dtype=np.int8) == 0

    def two_a_column(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(start1, end1, start2, end2), int32 [Sk] each, for a mask of at most two runs a column.

        Rising; empty ones are (Sq, Sq) and come last. Raises ValueError if a column has more than two.
        """
        if (self.counts > 2).any():
            raise ValueError(f"a column has {self.counts.max()} masked runs, wanted at most two")
        vectors = [np.full(self.seqlen_k, self.seqlen_q, np.int32) for _ in range(4)]
        for nth in range(2):
            column = np.flatnonzero(self.counts > nth)
            run = self.offsets[column] + nth
            vectors[2 * nth][column], vectors[2 * nth + 1][column] = self.starts[run], self.ends[run]
        return tuple(vectors)

    def visible_pairs(self) -> int:
        """The number of visible (query, key) pairs, exactly."""
        return self.seqlen_q * self.seqlen_k - int((self.ends - self.starts).sum(dtype=np.int64))

    def empty_rows(self) -> np.ndarray:
        """bool [Sq]: the queries that see no key at all."""
        size = self.seqlen_q + 1
        change = np.bincount(self.starts, minlength=size) - np.bincount(self.ends, minlength=size)
        return np.cumsum(change)[: self.seqlen_q] == self.seqlen_k

    def equals(self, other: "MaskedRuns") -> bool:
        """True if both have the same lengths and show the same pairs."""
        return (self.seqlen_q, self.seqlen_k) == (other.seqlen_q, other.seqlen_k) and all(
            np.array_equal(a, b)
            for a, b in ((self.offsets, other.offsets), (self.starts, other.starts), (self.ends, other.ends))
        )

    def hidden_union(self, *others: "MaskedRuns") -> "MaskedRuns":
        """Hides what any of the masks hides; shows what all of them show."""
        return self._combine(others, 1, _shown_by_all)

    def hidden_intersection(self, *others: "MaskedRuns") -> "MaskedRuns":
        """Hides what all of the masks hide; shows what any of them shows."""
        return self._combine(others, 1 + len(others), _shown_by_any)

    def hidden_complement(self) -> "MaskedRuns":
        """Hides what this mask shows, and shows what it hides."""
        if self.shown is not None:
            return self.hide(*self.shown, seqlen_q=self.seqlen_q, seqlen_k=self.seqlen_k)
        gaps = len(self.starts) + self.seqlen_k  # one before every run, and one behind the last run of a column
        run = np.arange(len(self.starts)) + self.columns
        starts, ends = np.zeros(gaps, np.int32), np.full(gaps, self.seqlen_q, np.int32)
        starts[run + 1], ends[run] = self.ends, self.starts
        there = starts < ends
        if not self.seqlen_k:
            return self
        counts = np.add.reduceat(there, self.offsets[:-1] + np.arange(self.seqlen_k), dtype=np.int64)
        return self.in_order(self.seqlen_q, counts, starts[there], ends[there])

    def __and__(self, other: "MaskedRuns") -> "MaskedRuns":
        """Visible in both: the union of the hidden rows."""
        return self.hidden_union(other)

    def __or__(self, other: "MaskedRuns") -> "MaskedRuns":
        """Visible in either: the intersection of the hidden rows."""
        return self.hidden_intersection(other)

    def __invert__(self) -> "MaskedRuns":
        """Visible where it was hidden."""
        return self.hidden_complement()

    def _combine(self, others, needed: int, shortcut) -> "MaskedRuns":
        """Hide the rows that at least `needed` of the masks hide."""
        masks, lengths = (self, *others), {"seqlen_q": self.seqlen_q, "seqlen_k": self.seqlen_k}
        for other in others:
            if (other.seqlen_q, other.seqlen_k) != (self.seqlen_q, self.seqlen_k):
                raise ValueError(f"{other!r} does not fit {self!r}: both must have the same lengths")
        if all(mask.shown is not None for mask in masks):
            shown = shortcut([mask.shown for mask in masks], self.seqlen_q)
            if shown is not None:
                return self.show(*shown, **lengths)
        strips, total = [], 0
        for first in range(0, max(1, self.seqlen_k), _STRIP_COLUMNS):
            parts = [mask.part(first, first + _STRIP_COLUMNS) for mask in masks]
            edges = np.concatenate([_edges(part.columns, part.starts, part.ends, self.seqlen_q) for part in parts])
            strips.append(self._from_edges(edges, needed, self.seqlen_q, parts[0].seqlen_k))
            total += len(strips[-1].starts)
            if total > MAX_RUNS:
                raise ValueError(
                    f"these masks together have more than {MAX_RUNS:,} masked runs; a shorter sequence works"
                )
        return self.concatenate(strips)

    @classmethod
    def _from_edges(cls, edges, needed: int, seqlen_q: int, seqlen_k: int) -> "MaskedRuns":
        """The rows that lie in at least `needed` runs, from all the runs' edges in any order."""
        edges = np.sort(edges, kind="stable")  # a merge: the masks' edges come as sorted stretches
        depth = np.cumsum(1 - 2 * (edges & 1), dtype=np.int32)
        place = edges >> 1
        last = np.empty(len(place), bool)  # what counts is the depth after the last edge at a place
        last[-1:], last[:-1] = True, place[1:] != place[:-1]
        place, inside = place[last], depth[last] >= needed
        turn = inside.copy()
        turn[1:] ^= inside[:-1]
        place = place[turn]
        bits = seqlen_q.bit_length()
        column, row = place[0::2] >> bits, (place & ((1 << bits) - 1)).astype(np.int32)
        return cls.in_order(seqlen_q, np.bincount(column, minlength=seqlen_k), row[0::2], row[1::2])

    @classmethod
    def in_order(cls, seqlen_q: int, counts, starts, ends) -> "MaskedRuns":
        """From the number of runs of every column [Sk] and all runs [R] in order, which keep the rules above."""
        offsets = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        starts, ends = (np.ascontiguousarray(rows, np.int32) for rows in (starts, ends))
        return cls(int(seqlen_q), len(counts), offsets, starts, ends)


def _shown_by_all(shown: list[tuple[np.ndarray, np.ndarray]], seqlen_q: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows in all of the intervals of a column."""
    first, last = shown[0]
    for other_first, other_last in shown[1:]:
        first, last = np.maximum(first, other_first), np.minimum(last, other_last)
    return first, last


def _shown_by_any(shown: list[tuple[np.ndarray, np.ndarray]], seqlen_q: int) -> tuple[np.ndarray, np.ndarray] | None:
    """The rows in any of the intervals of a column, if they are one interval in every column, else None."""
    first, last = shown[0]
    for other_first, other_last in shown[1:]:
        empty, other_empty = first == seqlen_q, other_first == seqlen_q
        if not ((np.maximum(first, other_first) <= np.minimum(last, other_last)) | empty | other_empty).all():
            return None
        both = np.where(empty, other_last, np.where(other_empty, last, np.maximum(last, other_last)))
        first, last = np.minimum(first, other_first), both
    return first, last


def _edges(columns, starts, ends, seqlen_q: int) -> np.ndarray:
    """int64 [2 R]: the place column * 2^bits + row of every start and end, doubled, plus one for an end."""
    bits = seqlen_q.bit_length()
    base = columns.astype(np.int64) << bits
    edges = np.empty(2 * len(base), np.int64)
    edges[0::2] = (base + starts) << 1
    edges[1::2] = (base + ends) << 1 | 1
    return edges
