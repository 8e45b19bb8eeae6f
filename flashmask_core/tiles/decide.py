"""Why a kernel skips, tests or passes a tile: the kernels' own decision on the host, with the comparisons behind it.

`tile_runs` makes the same decision on the device for every tile of a mask; this one explains it for masks of a size
that people look at. Each vector is known by its minimum and maximum over the tile's columns; a column whose interval is
empty counts for neither, and keeps the interval from hiding the tile. The intervals that surely hide every column are
joined before they are held against the tile's rows (see `tile_runs`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from ..masks.column_mask import ColumnMask
from .classify import TileKind
from .tile_runs import padded_vectors

MAX_TILES = 2**16  # of a plan: decisions are made one at a time
_NEVER = 1 << 30  # a row behind every row


@dataclass(frozen=True)
class Comparison:
    """`bound` of `vector` over a tile's columns, a number of rows, against a row: "max LTS 21 ≤ first row 32".

    The columns whose interval is empty are left out. bound: "min", "max", or "" for the causal diagonal, whose number is
    the first row that sees the tile's first (hiding) or last (touching) column. relation: "≤" or ">". past_end: the
    number comes from columns behind the last key, which the kernels take as hidden.
    """

    vector: str
    bound: str
    value: int
    relation: str
    against: str
    row: int
    past_end: bool = False

    def __str__(self) -> str:
        if self.past_end:
            return "its columns past the last key count as hidden"
        name = f"{self.bound} {self.vector.upper()}" if self.bound else "diagonal"
        return f"{name} {self.value} {self.relation} {self.against} {self.row}"


@dataclass(frozen=True)
class Decision:
    """What a kernel does with a tile, and the comparisons that say so."""

    kind: TileKind
    because: tuple[Comparison, ...]

    def __str__(self) -> str:
        return " and ".join(map(str, self.because)) or "no interval reaches its columns"


@dataclass(frozen=True)
class _Interval:
    """One of the two intervals of a column block: the names of its ends, and their ranges (low, high).

    The columns whose interval is empty are left out, but keep it from hiding every column: then it begins at _NEVER at
    the highest, and at the lowest too if there is no other column.
    """

    names: tuple[str, str]
    start: tuple[int, int]
    end: tuple[int, int]
    real_start: tuple[int, int]  # of the columns that exist alone
    real_end: tuple[int, int]


class TilePlan:
    """The loops of the kernels over the tiles of one mask head.

    Args:
        mask: a ColumnMask. block_m, block_n: query rows and key columns of a tile. batch, head: which plane of it.

    Raises ValueError past MAX_TILES tiles. Unlike `tile_runs` it joins no runs, however many a line has.
    """

    def __init__(self, mask: ColumnMask, block_m: int, block_n: int, *, batch: int = 0, head: int = 0):
        self.block_m, self.block_n = block_m, block_n
        self.seqlen_q, self.seqlen_k = mask.seqlen_q, mask.seqlen_k
        self.causal, self.offset = mask.causal, mask.seqlen_k - mask.seqlen_q
        self.shape = (-(-mask.seqlen_q // block_m), -(-mask.seqlen_k // block_n))
        if self.shape[0] * self.shape[1] > MAX_TILES:
            raise ValueError(
                f"block_m, block_n: {self.shape[0]} x {self.shape[1]} tiles are more than the {MAX_TILES:,} that are "
                "explained one at a time; use larger tiles or a shorter sequence, or classify_tiles for counts"
            )
        reads_lte = mask.causal and mask.bounds == 2 or mask.bounds == 4
        self._reads = {"lts": True, "lte": reads_lte, "uts": mask.bounds == 4, "ute": not mask.causal}
        plane = [v[batch : batch + 1, head : head + 1].cpu() for v in mask.vectors]
        padded = padded_vectors(plane, causal=mask.causal, bounds=mask.bounds)
        self._padded = {
            name: v[0, 0] if self._reads[name] else torch.full_like(padded[0][0, 0], _NEVER if name == "lte" else 0)
            for name, v in zip(self._reads, padded)
        }
        self._decisions: dict[tuple[int, int], Decision] = {}

    def rows(self, i: int) -> slice:
        """The query rows of row tile i."""
        return slice(i * self.block_m, min((i + 1) * self.block_m, self.seqlen_q))

    def columns(self, j: int) -> slice:
        """The key columns of column tile j."""
        return slice(j * self.block_n, min((j + 1) * self.block_n, self.seqlen_k))

    def decision(self, i: int, j: int) -> Decision:
        """What a kernel does with the tile of row tile i and column tile j, and why."""
        if (i, j) not in self._decisions:
            self._decisions[i, j] = self._decide(i, j)
        return self._decisions[i, j]

    @cached_property
    def kinds(self) -> np.ndarray:
        """uint8 [Tm, Tn] of TileKind."""
        kinds = [[self.decision(i, j).kind for j in range(self.shape[1])] for i in range(self.shape[0])]
        return np.array(kinds, dtype=np.uint8).reshape(self.shape)

    def row_loop(self, i: int) -> list[int]:
        """The column tiles that the owner of row tile i visits, PARTIAL ones first."""
        return _in_order(self.kinds[i])

    def column_loop(self, j: int) -> list[int]:
        """The row tiles that the owner of column tile j visits, PARTIAL ones first."""
        return _in_order(self.kinds[:, j])

    @cached_property
    def _intervals(self) -> list[list[_Interval]]:
        """Of every column tile: the lower interval and, unless it is the causal triangle, the upper one."""
        pairs = [("lts", "lte")] if self.causal else [("lts", "lte"), ("uts", "ute")]
        return [[self._interval(j, *pair) for pair in pairs] for j in range(self.shape[1])]

    def _interval(self, j: int, start_name: str, end_name: str) -> _Interval:
        there = self.columns(j)
        start, end = (self._padded[name][there.start : there.start + self.block_n] for name in (start_name, end_name))
        real = slice(0, there.stop - there.start)
        return _Interval((start_name, end_name), *_ranges(start, end), *_ranges(start[real], end[real]))

    def _decide(self, i: int, j: int) -> Decision:
        rows, columns = self.rows(i), self.columns(j)
        hidden = self._hidden(rows, columns, self._intervals[j])
        if hidden is not None:
            return Decision(TileKind.EMPTY, tuple(hidden))
        touching, missing = [], []
        if self.causal:
            last = columns.stop - 1 - self.offset  # the first row that sees the tile's last column
            touches = rows.start < last
            relation = ">" if touches else "≤"
            (touching if touches else missing).append(_compare("diagonal", "", last, relation, rows.start, rows))
        for interval in self._intervals[j]:
            touches = interval.start[0] < rows.stop and interval.end[1] > rows.start
            (touching if touches else missing).extend(self._touch(interval, rows, touches))
        if touching:
            return Decision(TileKind.PARTIAL, tuple(touching))
        return Decision(TileKind.FULL, tuple(missing))

    def _hidden(self, rows: slice, columns: slice, intervals: list[_Interval]) -> list[Comparison] | None:
        """The comparisons by which every column hides all of these rows; None if they do not say so."""
        to, said = rows.start, []  # the rows before `to` are hidden in every column
        diagonal = columns.start - self.offset  # the first row that sees the tile's first column
        if self.causal and diagonal > to:
            to = diagonal
            said.append(_compare("diagonal", "", to, ">", min(to, rows.stop) - 1, rows))
        # Each interval that has begun by row `to` carries it on; the lower one may open the way to the upper one.
        for interval in intervals if self.causal else [intervals[1], intervals[0], intervals[1]]:
            start, end = interval.start[1], interval.end[0]
            if to < rows.stop and start <= to < end:
                if self._reads[interval.names[0]]:
                    said.append(_compare(interval.names[0], "max", start, "≤", to, rows))
                if self._reads[interval.names[1]]:
                    said.append(_compare(interval.names[1], "min", end, ">", min(end, rows.stop) - 1, rows))
                to = end
        return said if to >= rows.stop else None

    def _touch(self, interval: _Interval, rows: slice, touches: bool) -> list[Comparison]:
        """The comparisons that say that an interval reaches some of these rows in some column, or that it does not."""
        (start_name, end_name), start, end = interval.names, interval.real_start[0], interval.real_end[1]
        first, last = rows.start, rows.stop - 1
        if touches and not (start <= last and end > first):
            return [_compare(start_name, "min", 0, "≤", last, rows, past_end=True)]
        if start == _NEVER:
            return []
        said = []
        if self._reads[start_name] and (touches or start > last):
            said.append(_compare(start_name, "min", start, "≤" if touches else ">", last, rows))
        if self._reads[end_name] and (touches or end <= first):
            said.append(_compare(end_name, "max", end, ">" if touches else "≤", first, rows))
        return said


def _ranges(start: torch.Tensor, end: torch.Tensor) -> tuple[tuple[int, int], tuple[int, int]]:
    """(low, high) of start and of end, see _Interval."""
    there = start < end
    if not there.any():
        return (_NEVER, _NEVER), (0, 0)
    start_max = int(start.max()) if there.all() else _NEVER
    return (int(start[there].min()), start_max), (int(end[there].min()), int(end[there].max()))


def _compare(vector, bound, value, relation, row, rows: slice, *, past_end=False) -> Comparison:
    one = rows.stop - rows.start == 1
    against = "row" if one else "last row" if row == rows.stop - 1 else "first row" if row == rows.start else "row"
    return Comparison(vector, bound, value, relation, against, row, past_end)


def _in_order(kinds: np.ndarray) -> list[int]:
    return [*np.flatnonzero(kinds == TileKind.PARTIAL).tolist(), *np.flatnonzero(kinds == TileKind.FULL).tolist()]
