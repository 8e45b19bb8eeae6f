"""Tile metadata for the kernels, built on the mask's device in memory linear in N and without a host read.

A kernel that owns one row tile walks along key tiles, one that owns a column tile walks along row tiles. What it has
to visit is written as *runs*: at most MAX_RUNS pairs (first tile, end tile) a line, the PARTIAL runs first and the
FULL ones behind them, with the number of tiles of either kind. EMPTY tiles are in no run, so they cost nothing. A
line with more runs than fit keeps the first and joins the rest to one long PARTIAL run: always right, only slower.

The kind of a tile comes from the minimum and maximum of each vector over the tile's columns (the paper's equation 4),
sharpened in one way: the intervals that surely hide every column, the causal triangle among them, are joined before
they are held against the tile's rows. It never calls a tile EMPTY or FULL that is not; it may call one PARTIAL whose
columns are hidden by different intervals (`classify_tiles(rule="exact")` tells these apart).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

MAX_RUNS = 32  # 256 bytes a line; the paper's masks need at most 7 but random eviction, which overflows near its start
_PAST_END = 1 << 30  # the end of the interval that hides a column that does not exist


@dataclass(frozen=True)
class TileRuns:
    """Runs of one direction. MB = batch x mask heads, L = number of tiles along the owner's axis.

    runs: int32 [MB, L, MAX_RUNS, 2], (first, end) tiles; counts: int32 [MB, L, 2], (PARTIAL, FULL) tiles;
    order: int32 [MB, L], the lines by falling work, so that the heaviest start first.
    """

    runs: torch.Tensor
    counts: torch.Tensor
    order: torch.Tensor

    @property
    def nbytes(self) -> int:
        return sum(t.numel() * t.element_size() for t in (self.runs, self.counts, self.order))


PADDING = 128  # kernels read whole tiles of columns and rows, so what they read is padded to a multiple of this


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


@triton.jit
def _column_stats(lts, lte, uts, ute, stats, pitch, num_tiles, plane,
                  CAUSAL: tl.constexpr, BOUNDS: tl.constexpr, BLOCK_N: tl.constexpr):  # fmt: skip
    """Minimum and maximum of every vector in use over one tile's columns. stats: int32 [8, MB, tiles].

    The columns past Sk are hidden from every row, so the edge tile is never FULL.
    """
    tile, mb = tl.program_id(0) % num_tiles, (tl.program_id(0) // num_tiles).to(tl.int64)
    cols = mb * pitch + tile * BLOCK_N + tl.arange(0, BLOCK_N)
    at = stats + mb * num_tiles + tile
    x = tl.load(lts + cols)
    tl.store(at, tl.min(x, 0))
    tl.store(at + plane, tl.max(x, 0))
    if CAUSAL and BOUNDS == 2 or BOUNDS == 4:
        x = tl.load(lte + cols)
        tl.store(at + 2 * plane, tl.min(x, 0))
        tl.store(at + 3 * plane, tl.max(x, 0))
    if BOUNDS == 4:
        x = tl.load(uts + cols)
        tl.store(at + 4 * plane, tl.min(x, 0))
        tl.store(at + 5 * plane, tl.max(x, 0))
    if not CAUSAL:
        x = tl.load(ute + cols)
        tl.store(at + 6 * plane, tl.min(x, 0))
        tl.store(at + 7 * plane, tl.max(x, 0))


@triton.jit
def _kind(line, u, num_u, stats, plane, seqlen_q, seqlen_k,
          CAUSAL: tl.constexpr, BOUNDS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
          COLUMN_LINES: tl.constexpr):  # fmt: skip
    """Kind (0 EMPTY, 1 PARTIAL, 2 FULL) of tiles u [CH] of one line; EMPTY outside 0 <= u < num_u."""
    exists = (u >= 0) & (u < num_u)
    if COLUMN_LINES:
        row_tile, col_tile = u, line + 0 * u
    else:
        row_tile, col_tile = line + 0 * u, u
    r0 = row_tile * BLOCK_M
    r1 = tl.minimum(r0 + BLOCK_M, seqlen_q)
    c0 = col_tile * BLOCK_N
    at = stats + col_tile
    start_min = tl.load(at, mask=exists, other=0)
    start_max = tl.load(at + plane, mask=exists, other=0)
    end_min = start_max * 0 + (1 << 30)
    end_max = end_min
    if CAUSAL and BOUNDS == 2 or BOUNDS == 4:
        end_min = tl.load(at + 2 * plane, mask=exists, other=0)
        end_max = tl.load(at + 3 * plane, mask=exists, other=0)
    touched = (r0 < end_max) & (r1 > start_min)
    hidden_to = r0  # rows r0 .. hidden_to - 1 are hidden in every column
    if CAUSAL:
        diagonal = c0 - (seqlen_k - seqlen_q)  # the first row that sees the tile's first column
        last = tl.minimum(c0 + BLOCK_N, seqlen_k) - 1 - (seqlen_k - seqlen_q)
        touched = touched | (r0 < last)
        hidden_to = tl.maximum(hidden_to, diagonal)
    else:
        upper_min = start_max * 0
        upper_max = upper_min
        if BOUNDS == 4:
            upper_min = tl.load(at + 4 * plane, mask=exists, other=0)
            upper_max = tl.load(at + 5 * plane, mask=exists, other=0)
        upper_end_min = tl.load(at + 6 * plane, mask=exists, other=0)
        upper_end_max = tl.load(at + 7 * plane, mask=exists, other=0)
        touched = touched | ((r0 < upper_end_max) & (r1 > upper_min))
        hidden_to = tl.where((upper_max <= hidden_to) & (upper_end_min > hidden_to), upper_end_min, hidden_to)
    hidden_to = tl.where((start_max <= hidden_to) & (end_min > hidden_to), end_min, hidden_to)
    if BOUNDS == 4:  # the lower interval may have opened the way to the upper one
        hidden_to = tl.where((upper_max <= hidden_to) & (upper_end_min > hidden_to), upper_end_min, hidden_to)
    kind = tl.where(hidden_to >= r1, 0, tl.where(touched, 1, 2))
    return tl.where(exists, kind, 0)


@triton.jit
def _tile_runs(stats, runs, counts, work, num_lines, num_u, seqlen_q, seqlen_k, num_col_tiles, plane,
               CAUSAL: tl.constexpr, BOUNDS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
               COLUMN_LINES: tl.constexpr, MAX_RUNS: tl.constexpr, CHUNK: tl.constexpr):  # fmt: skip
    """One program writes the runs of one line, see the module's text. Two passes: count, then place."""
    line, mb = tl.program_id(0) % num_lines, (tl.program_id(0) // num_lines).to(tl.int64)
    stats += mb * num_col_tiles
    at = mb * num_lines + line
    runs += at * (2 * MAX_RUNS)
    KEPT: tl.constexpr = MAX_RUNS - 2  # one slot for the joined rest, one that a walker may read and never uses
    num_runs = 0
    partial_runs = 0
    partial_tiles = 0
    full_tiles = 0
    rest_first = num_u  # the joined rest
    rest_end = 0
    for chunk in range(0, num_u, CHUNK):
        u = chunk + tl.arange(0, CHUNK)
        before = _kind(line, u - 1, num_u, stats, plane, seqlen_q, seqlen_k, CAUSAL, BOUNDS, BLOCK_M, BLOCK_N, COLUMN_LINES)  # fmt: skip
        kind = _kind(line, u, num_u, stats, plane, seqlen_q, seqlen_k, CAUSAL, BOUNDS, BLOCK_M, BLOCK_N, COLUMN_LINES)  # fmt: skip
        starts = ((kind != before) & (kind > 0)).to(tl.int32)
        run = num_runs + tl.cumsum(starts, 0) - 1
        kept = (kind > 0) & (run < KEPT)
        rest = (kind > 0) & (run >= KEPT)
        partial_runs += tl.sum(starts * (kept & (kind == 1)).to(tl.int32), 0)
        partial_tiles += tl.sum((kept & (kind == 1)).to(tl.int32), 0)
        full_tiles += tl.sum((kept & (kind == 2)).to(tl.int32), 0)
        rest_first = tl.minimum(rest_first, tl.min(tl.where(rest, u, num_u), 0))
        rest_end = tl.maximum(rest_end, tl.max(tl.where(rest, u + 1, 0), 0))
        num_runs += tl.sum(starts, 0)
    if rest_end > 0:
        tl.store(runs + 2 * partial_runs, rest_first)
        tl.store(runs + 2 * partial_runs + 1, rest_end)
        partial_runs += 1
        partial_tiles += rest_end - rest_first
    if num_runs == 0:  # a kernel that takes a tile without asking takes the first, where it hides everything
        tl.store(runs, 0)
        tl.store(runs + 1, 1)
    tl.store(counts + 2 * at, partial_tiles)
    tl.store(counts + 2 * at + 1, full_tiles)
    tl.store(work + at, 9 * partial_tiles + 8 * full_tiles)

    num_runs = 0
    partials = 0
    for chunk in range(0, num_u, CHUNK):
        u = chunk + tl.arange(0, CHUNK)
        before = _kind(line, u - 1, num_u, stats, plane, seqlen_q, seqlen_k, CAUSAL, BOUNDS, BLOCK_M, BLOCK_N, COLUMN_LINES)  # fmt: skip
        kind = _kind(line, u, num_u, stats, plane, seqlen_q, seqlen_k, CAUSAL, BOUNDS, BLOCK_M, BLOCK_N, COLUMN_LINES)  # fmt: skip
        after = _kind(line, u + 1, num_u, stats, plane, seqlen_q, seqlen_k, CAUSAL, BOUNDS, BLOCK_M, BLOCK_N, COLUMN_LINES)  # fmt: skip
        starts = ((kind != before) & (kind > 0)).to(tl.int32)
        partial_starts = starts * (kind == 1).to(tl.int32)
        run = num_runs + tl.cumsum(starts, 0) - 1
        partial = partials + tl.cumsum(partial_starts, 0) - 1
        slot = tl.where(kind == 1, partial, partial_runs + run - partial - 1)
        kept = (kind > 0) & (run < KEPT)
        tl.store(runs + 2 * slot, u, mask=kept & (kind != before))
        tl.store(runs + 2 * slot + 1, u + 1, mask=kept & (kind != after))
        num_runs += tl.sum(starts, 0)
        partials += tl.sum(partial_starts, 0)


def build_tile_runs(vectors, *, seqlen_q: int, seqlen_k: int, causal: bool, bounds: int, block_m: int, block_n: int,
                    column_lines: bool) -> TileRuns:  # fmt: skip
    """Runs of every row tile along the key tiles (column_lines=False) or of every column tile along the row tiles.

    vectors: what `padded_vectors` returns. `causal` and `bounds` name the packing, as in ColumnMask. Tiles are
    block_m rows by block_n columns, powers of two of at most PADDING columns.
    """
    lts = vectors[0]
    planes, pitch = lts.shape[0] * lts.shape[1], lts.shape[-1]
    num_row_tiles, num_col_tiles = triton.cdiv(seqlen_q, block_m), triton.cdiv(seqlen_k, block_n)
    num_lines, num_u = (num_col_tiles, num_row_tiles) if column_lines else (num_row_tiles, num_col_tiles)
    new = lambda *shape: torch.empty(shape, dtype=torch.int32, device=lts.device)  # noqa: E731
    stats, plane = new(8, planes, num_col_tiles), planes * num_col_tiles
    runs, counts, work = new(planes, num_lines, MAX_RUNS, 2), new(planes, num_lines, 2), new(planes, num_lines)
    _column_stats[(num_col_tiles * planes,)](
        *vectors, stats, pitch, num_col_tiles, plane, causal, bounds, block_n, num_warps=1
    )
    chunk = min(1024, max(16, triton.next_power_of_2(num_u)))
    _tile_runs[(num_lines * planes,)](
        stats, runs, counts, work, num_lines, num_u, seqlen_q, seqlen_k, num_col_tiles, plane,
        causal, bounds, block_m, block_n, column_lines, MAX_RUNS, chunk, num_warps=4 if chunk > 256 else 1,
    )  # fmt: skip
    order = torch.argsort(work, dim=-1, descending=True, stable=True).to(torch.int32)
    return TileRuns(runs, counts, order)
