"""Tile metadata for the kernels, built on the mask's device in memory linear in N and without a host read.

A kernel that owns one row tile walks along key tiles, one that owns a column tile walks along row tiles. What it has
to visit is written as *runs*: at most MAX_RUNS pairs (first tile, end tile) a line, the PARTIAL runs first and the
FULL ones behind them, with the number of tiles of either kind. EMPTY tiles are in no run, so they cost nothing. A
line with more runs than fit keeps the first and joins the rest to one long PARTIAL run: always right, only slower.

The kind of a tile comes from the minimum and maximum of each vector over the tile's columns (the paper's equation 4),
sharpened in two ways: the intervals that surely hide every column, the causal triangle among them, are joined before
they are held against the tile's rows; and a column whose interval is empty does not count towards what that interval
may touch. It never calls a tile EMPTY or FULL that is not; it may call one PARTIAL whose columns are hidden by
different intervals (`classify_tiles(rule="exact")` tells these apart).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

import torch
import triton

from . import MAX_RUNS
from .run_kernels import column_bounds, line_order, line_runs

GROUP = 32  # column tiles that a row line judges at once before it looks at each of them: the lanes of a warp
PADDING = 128  # kernels read whole tiles of columns and rows, so what they read is padded to a multiple of this
_PAST_END = 1 << 30  # the end of an interval that reaches beyond every row
_RANKED = 16  # lines that one program puts in their place


class Lines(NamedTuple):
    """The lines of one direction: tiles of block_m rows by block_n columns, in lines of a column tile or of a row tile."""

    block_m: int
    block_n: int
    by_columns: bool

    def count(self, seqlen_q: int, seqlen_k: int) -> int:
        return triton.cdiv(seqlen_k, self.block_n) if self.by_columns else triton.cdiv(seqlen_q, self.block_m)


@dataclass(frozen=True)
class TileRuns:
    """Runs of one direction. MB = batch x mask heads, L = number of tiles along the owner's axis.

    runs: int32 [MB, L, MAX_RUNS, 2], (first, end) tiles; counts: int32 [MB, L, 2], (PARTIAL, FULL) tiles;
    order: int32 [MB, L], the lines by falling work, equal ones by number, so that the heaviest start first.
    """

    runs: torch.Tensor
    counts: torch.Tensor
    order: torch.Tensor

    @classmethod
    def empty(cls, planes: int, lines: int, device: torch.device) -> "TileRuns":
        """Room for `lines` lines of every mask head, not yet written."""
        shapes = (planes, lines, MAX_RUNS, 2), (planes, lines, 2), (planes, lines)
        return cls(*(torch.empty(shape, dtype=torch.int32, device=device) for shape in shapes))

    @property
    def tensors(self) -> list[torch.Tensor]:
        return [self.runs, self.counts, self.order]

    @property
    def nbytes(self) -> int:
        return sum(t.numel() * t.element_size() for t in self.tensors)


def padded_vectors(vectors, *, causal: bool, bounds: int) -> tuple[torch.Tensor, ...]:
    """The vectors for a kernel: contiguous int32 [B, Hm, Sk up to a multiple of PADDING], columns past Sk all hidden.

    Those that the packing does not read are returned as they are. Without padding nothing is copied.
    """
    missing = -vectors[0].shape[-1] % PADDING
    if not missing:
        return tuple(v.contiguous() for v in vectors)
    pad = torch.nn.functional.pad
    lts, lte, uts, ute = vectors
    return (
        pad(lts, (0, missing)),
        pad(lte, (0, missing), value=_PAST_END) if causal and bounds == 2 or bounds == 4 else lte,
        pad(uts, (0, missing)) if bounds == 4 else uts,
        pad(ute, (0, missing), value=_PAST_END) if not causal else ute,
    )


def build_tile_runs(vectors, *, seqlen_q: int, seqlen_k: int, causal: bool, bounds: int,
                    lines: Sequence[Lines]) -> list[TileRuns]:  # fmt: skip
    """The runs of every Lines that is asked for, in that order.

    vectors: what `padded_vectors` returns. `causal` and `bounds` name the packing, as in ColumnMask. block_n is a power
    of two, at most PADDING. Three launches make the runs of one direction, or of both if their block_n is the same.
    """
    planes, device = vectors[0].shape[0] * vectors[0].shape[1], vectors[0].device
    built = [TileRuns.empty(planes, line.count(seqlen_q, seqlen_k), device) for line in lines]
    none = Lines(1, 1, False), TileRuns.empty(planes, 0, device)
    for block_n in dict.fromkeys(line.block_n for line in lines):
        tiles = triton.cdiv(seqlen_k, block_n)
        groups = triton.cdiv(tiles, GROUP)
        step = planes * (tiles + groups)
        limits = torch.empty(8, planes, tiles + groups, dtype=torch.int32, device=device)
        column_bounds[(planes * groups,)](
            *vectors, limits, vectors[0].shape[-1], seqlen_k - seqlen_q, tiles, groups, step,
            CAUSAL=causal, BOUNDS=bounds, BLOCK_N=block_n, GROUP=GROUP, PAST_END=_PAST_END, num_warps=8,
        )  # fmt: skip
        here = [pair for pair in zip(lines, built) if pair[0].block_n == block_n]
        by_rows, by_columns = ([pair for pair in here if pair[0].by_columns == by] for by in (False, True))
        for (row, rows), (column, columns) in zip_longest(by_rows, by_columns, fillvalue=none):
            num_rows, num_columns = rows.order.shape[1], columns.order.shape[1]
            line_runs[(planes * (num_rows + num_columns),)](
                limits, rows.runs, rows.counts, columns.runs, columns.counts, seqlen_q, tiles, groups, step,
                num_rows, row.block_m, num_columns, column.block_m, GROUP=GROUP, MAX_RUNS=MAX_RUNS, num_warps=1,
            )  # fmt: skip
            blocks = triton.cdiv(num_rows, _RANKED) + triton.cdiv(num_columns, _RANKED)
            line_order[(planes * blocks,)](
                rows.counts, rows.order, columns.counts, columns.order, num_rows, num_columns,
                BLOCK=_RANKED, CHUNK=128, num_warps=4,
            )  # fmt: skip
    return built
