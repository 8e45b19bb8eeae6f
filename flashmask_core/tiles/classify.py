"""Which tiles of the score matrix a kernel may skip, and in which it needs no element test.

A tile is BLOCK_M query rows by BLOCK_N key columns. It is judged on the pairs that exist, so a ragged edge tile whose
existing pairs are all visible is FULL. Two rules:

* `exact`: EMPTY if no pair of the tile is visible, FULL if every pair is.
* `paper`: equation 4 of arXiv 2410.01359 on the canonical packing. A block of columns is known only by the minimum and
  maximum of each interval [start, end): the rows [r0, r1) are EMPTY if `r0 >= max start and r1 <= min end` for one
  interval, FULL if `r0 >= max end or r1 <= min start` for every interval, otherwise PARTIAL. The causal triangle is the
  interval [0, diagonal), which gives the loop bound that skips the tiles above the diagonal.

Both rules come down to half-open runs of row tiles beside each block of columns: the runs that *hide* tiles and the
runs that *touch* them. Under `exact` each column contributes at most two of either, and a tile is EMPTY where as many
columns hide it as the block has; under `paper` each interval of the block contributes one, and one is enough.
Counting sorts the ends of those runs and sweeps over them: O(Sk log Sk), whatever the tile size, never Tm x Tn.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
import torch

from ..masks.canonical import disjoint_runs
from ..masks.column_mask import ColumnMask

RULES = ("exact", "paper")

MAX_KINDS = 2**26
"""Most tiles that `TileMap.kinds` or `TileMap.window` makes at once: one byte each, 64 MiB."""


class TileKind(IntEnum):
    """What a kernel has to do with a tile; the paper's words are fully masked, partially masked and unmasked."""

    EMPTY = 0  # nothing visible: skipped
    PARTIAL = 1  # some visible, some not: the element test is needed
    FULL = 2  # everything visible: no test


def classify_tiles(mask: ColumnMask, block_m: int = 128, block_n: int = 128, rule: str = "exact") -> "TileMap":
    """Count the EMPTY, PARTIAL and FULL tiles of a mask.

    Args:
        mask: a ColumnMask; vectors [B, Hm, Sk] on any device (they are read on the host).
        block_m, block_n: query rows and key columns of a tile, positive; may exceed the sequence.
        rule: "exact", or "paper" for equation 4 of arXiv 2410.01359 on `mask.canonical()`.

    Returns:
        A TileMap with `.counts` int64 [B, Hm, 3] and `.rho` float64 [B, Hm]; `.kinds` is made when it is asked for.

    Raises:
        TypeError: mask is no ColumnMask, a block size is no int. ValueError: a block size below 1, an unknown rule.
    """
    if not isinstance(mask, ColumnMask):
        raise TypeError(f"mask: wanted a ColumnMask, got {type(mask).__name__}")
    for name, value in (("block_m", block_m), ("block_n", block_n)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"{name}: wanted an int, got {type(value).__name__}")
        if value < 1:
            raise ValueError(f"{name}: wanted 1 or more, got {value}")
    if rule not in RULES:
        raise ValueError(f"rule: wanted one of {', '.join(RULES)}, got {rule!r}")
    return TileMap(mask, int(block_m), int(block_n), rule)


class TileMap:
    """The tiles of a mask by kind.

    Attributes:
        block_m, block_n, rule: as given to `classify_tiles`.
        shape: (B, Hm, Tm, Tn), the tiles of every mask head.
        counts: int64 tensor [B, Hm, 3], indexed by TileKind.
        rho: float64 tensor [B, Hm], EMPTY tiles / tiles (0 where there are no tiles).
    """

    def __init__(self, mask: ColumnMask, block_m: int, block_n: int, rule: str):
        self.block_m, self.block_n, self.rule = block_m, block_n, rule
        block_m, block_n = min(block_m, max(1, mask.seqlen_q)), min(block_n, max(1, mask.seqlen_k))
        self._block_m, self._block_n = block_m, block_n  # a tile past the sequence is the sequence; this fits int64
        tiles_m, tiles_n = -(-mask.seqlen_q // block_m), -(-mask.seqlen_k // block_n)
        self.shape = (mask.batch, mask.heads, tiles_m, tiles_n)
        self._source = mask.canonical() if rule == "paper" else mask
        self.counts = torch.zeros(mask.batch, mask.heads, 3, dtype=torch.int64)
        for b, h in np.ndindex(mask.batch, mask.heads):
            hide, touch = self._runs(b, h, 0, tiles_n)
            empty, touched = hide.count(tiles_m), touch.count(tiles_m)
            self.counts[b, h] = torch.tensor([empty, touched - empty, tiles_m * tiles_n - touched])
        self.rho = self.counts[..., TileKind.EMPTY].double() / max(tiles_m * tiles_n, 1)

    def __repr__(self) -> str:
        empty, partial, full = self.counts.sum((0, 1)).tolist()
        return (
            f"TileMap({'x'.join(map(str, self.shape))} tiles of {self.block_m}x{self.block_n}, rule={self.rule!r}, "
            f"EMPTY={empty}, PARTIAL={partial}, FULL={full})"
        )

    @cached_property
    def kinds(self) -> torch.Tensor:
        """uint8 [B, Hm, Tm, Tn] of TileKind codes; ValueError past MAX_KINDS tiles."""
        return self.window()

    def window(self, row_tiles: slice = slice(None), column_tiles: slice = slice(None)) -> torch.Tensor:
        """A part of `kinds`: uint8 [B, Hm, row tiles, column tiles], without making the rest.

        Slices count tiles, with step 1. Raises ValueError past MAX_KINDS tiles.
        """
        batch, heads, tiles_m, tiles_n = self.shape
        (r0, r1, row_step), (c0, c1, column_step) = row_tiles.indices(tiles_m), column_tiles.indices(tiles_n)
        if row_step != 1 or column_step != 1:
            raise ValueError(f"row_tiles, column_tiles: wanted slices of step 1, got {row_step} and {column_step}")
        r1, c1 = max(r0, r1), max(c0, c1)
        wanted = batch * heads * (r1 - r0) * (c1 - c0)
        if wanted > MAX_KINDS:
            raise ValueError(
                f"kinds: {batch} x {heads} x {r1 - r0} x {c1 - c0} = {wanted:,} tiles of {self.block_m}x{self.block_n} "
                f"are more than the {MAX_KINDS:,} that are made at once. Use .counts and .rho, which need no map, "
                f"larger tiles, or .window(row_tiles, column_tiles) for a part."
            )
        kinds = np.empty((batch, heads, r1 - r0, c1 - c0), dtype=np.uint8)
        strip = max(1, 2**22 // (tiles_m + 1))  # column blocks at once, so that the counters stay near 32 MiB
        for b, h in np.ndindex(batch, heads):
            for left in range(c0, c1, strip):
                right = min(left + strip, c1)
                hide, touch = self._runs(b, h, left, right)
                out = kinds[b, h, :, left - c0 : right - c0]
                out[...] = TileKind.FULL
                out[touch.reached(tiles_m)[:, r0:r1].T] = TileKind.PARTIAL
                out[hide.reached(tiles_m)[:, r0:r1].T] = TileKind.EMPTY
        return torch.from_numpy(kinds)

    def _runs(self, b: int, h: int, first: int, last: int) -> "tuple[_TileRuns, _TileRuns]":
        """(hiding, touching) runs of row tiles beside the column blocks [first, last) of one mask head."""
        block_n = self._block_n
        columns = slice(first * block_n, min(last * block_n, self._source.seqlen_k))
        vectors = [v[b, h, columns].cpu() for v in self._source.vectors]
        width = columns.stop - columns.start
        starts = np.arange(0, width, block_n)  # of the blocks
        if self.rule == "exact":
            return self._exact_runs(vectors, starts, np.diff(np.append(starts, width)))
        start, end = (np.stack([v.numpy() for v in pair]) for pair in (vectors[0::2], vectors[1::2]))
        if width == 0:
            bounds = [np.zeros((2, 0), np.int32)] * 4
        else:
            bounds = [f.reduceat(v, starts, axis=1) for v in (start, end) for f in (np.minimum, np.maximum)]
        hide_from, hide_to, touch_from, touch_to = self._tiles_of(*bounds)
        block, one = np.tile(np.arange(last - first), 2), np.ones(last - first, np.int64)
        return (
            _TileRuns.of(block, hide_from.ravel(), hide_to.ravel(), one),
            _TileRuns.of(block, touch_from.ravel(), touch_to.ravel(), one),
        )

    def _exact_runs(self, vectors, starts, enough) -> "tuple[_TileRuns, _TileRuns]":
        """The runs of blocks of `enough` columns each that begin at `starts`.

        Each column has up to two. Where those of a block have one common part, which is so nearly everywhere, that part
        stands for all of them; in the other blocks every column has its own.
        """
        sq = self._source.seqlen_q
        a1, b1, a2, b2 = (v.numpy() for v in disjoint_runs(*vectors, seqlen_q=sq))
        alone = (b1 == sq) & (a1 > 0) & (a1 < sq)  # a run down to the last row stands with its likes, second
        start = np.stack([np.where(alone, sq, a1), np.where(alone, a1, a2)])  # [2, columns]
        end = np.stack([np.where(alone, sq, b1), np.where(alone, b1, b2)])  # a run that is not there is [Sq, Sq)
        if start.shape[1] == 0:
            return _TileRuns.of(starts, starts, starts, enough), _TileRuns.of(starts, starts, starts, enough)

        def of_blocks(ufunc, values):
            return ufunc.reduceat(values, starts, axis=1)

        there = start < end
        start_min, start_max = of_blocks(np.minimum, start), of_blocks(np.maximum, start)
        end_min, end_max = of_blocks(np.minimum, end), of_blocks(np.maximum, np.where(there, end, 0))
        last_start = of_blocks(np.maximum, np.where(there, start, 0))
        joint = self._tiles_of(start_min, start_max, end_min, end_max)
        second_from, first_to, last_from, least_to = self._tiles_of(last_start, start_min, end_max, end_min)
        apart = first_to[0] <= second_from[1]  # no tile is hidden by the first run of a column and another's second
        meet = (last_from <= least_to).all(0)  # what the runs touch has no gap

        def with_own(simple, which):
            blocks = np.repeat(np.arange(len(starts)), enough)
            own = ~simple[blocks]
            tiles = self._tiles_of(*2 * [start[:, own]], *2 * [end[:, own]])[which]
            common = [v[:, simple].ravel() for v in joint[which]]
            return (
                np.concatenate([np.tile(np.flatnonzero(simple), 2), np.tile(blocks[own], 2)]),
                *(np.concatenate([v, w.ravel()]) for v, w in zip(common, tiles)),
            )

        return (
            _TileRuns.of(*with_own(apart, slice(0, 2)), np.where(apart, 1, enough)),
            _TileRuns.of(*with_own(meet, slice(2, 4)), np.ones_like(enough)),
        )

    def _tiles_of(self, start_min, start_max, end_min, end_max):
        """Row tiles (hidden from, hidden to, touched from, touched to) of runs of rows; a tile is [r0, r1) up to Sq."""
        sq, block_m, tiles_m = self._source.seqlen_q, self._block_m, self.shape[2]
        return (
            -(-start_max // block_m),  # hidden: r0 >= start_max and r1 <= end_min
            np.where(end_min >= sq, tiles_m, end_min // block_m),
            np.where(start_min >= sq, tiles_m, start_min // block_m),  # touched: r1 > start_min and r0 < end_max
            -(-end_max // block_m),
        )


@dataclass(frozen=True)
class _TileRuns:
    """Half-open runs [start, end) of row tiles, each in one column block; a tile where `enough[block]` overlap is hit.

    All arrays are int64: block, start and end have one entry a run, enough one a block.
    """

    block: np.ndarray
    start: np.ndarray
    end: np.ndarray
    enough: np.ndarray

    @classmethod
    def of(cls, block, start, end, enough) -> "_TileRuns":
        there = start < end
        return cls(*(v[there].astype(np.int64, copy=False) for v in (block, start, end)), enough)

    def count(self, tiles_m: int) -> int:
        """How many tiles are hit, by a sweep over the sorted ends of all runs."""
        # One line for all blocks: block b owns the places [b * (Tm + 1), (b + 1) * (Tm + 1)). The runs of a block
        # all end inside it, so the sweep reaches the next one at level 0. The lowest bit says start or end.
        line = self.block * (tiles_m + 1)
        events = np.concatenate([2 * (line + self.start), 2 * (line + self.end) + 1])
        events.sort()
        place, is_end = events >> 1, events & 1
        level = np.cumsum(1 - 2 * is_end)[:-1]
        length = np.diff(place)
        hit = level >= self.enough[place[:-1] // (tiles_m + 1)]
        return int(length[hit].sum())

    def reached(self, tiles_m: int) -> np.ndarray:
        """bool [blocks, Tm]: which tiles are hit."""
        blocks, stride = len(self.enough), tiles_m + 1
        line = self.block * stride
        change = np.bincount(line + self.start, minlength=blocks * stride)
        change -= np.bincount(line + self.end, minlength=blocks * stride)
        level = change.reshape(blocks, stride)[:, :tiles_m].cumsum(1)
        return level >= self.enough[:, None]
