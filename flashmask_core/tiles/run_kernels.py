"""The kernels behind `tile_runs`: bounds of the column tiles, runs of the lines, order of the lines.

A row line first holds its rows against whole groups of column tiles and opens those that are not EMPTY, so it takes
the time of what it sees. Along a column line the kind changes only where an interval begins to touch or to hide its
tile or ends to, which follows from the tile's bounds: it takes the same time at any length.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _extremes(start, end, exists, PAST_END: tl.constexpr):
    """[..., 2, 2] of an interval [start, end) a column: (-start, start), (-end, end), to take the maximum of.

    The minimum of start and the maximum of end over columns say what the interval may touch, the other two what it hides
    in all of them. So an empty interval counts for nothing in the first and lets the others hide nothing.
    """
    there = exists & (start < end)
    nowhere = tl.where(exists, PAST_END, 0)  # where an interval starts that does not hide
    starts = tl.join(tl.where(there, -start, -PAST_END), tl.where(there, start, nowhere))
    ends = tl.join(tl.where(there, -end, nowhere - PAST_END), tl.where(there, end, 0))
    return tl.join(starts, ends)


@triton.jit(do_not_specialize=["offset", "num_tiles", "num_groups", "step"])
def column_bounds(lts, lte, uts, ute, bounds, pitch, offset, num_tiles, num_groups, step,
                  CAUSAL: tl.constexpr, BOUNDS: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr,
                  PAST_END: tl.constexpr):  # fmt: skip
    """Bounds of the column tiles of one group and, behind all tiles, of the group as if it were one tile.

    bounds: int32 [8, MB, tiles + groups], minimum and maximum of start, then of end, of the lower interval, then those
    of the upper one or of the causal triangle: whoever reads them needs no packing. offset = Sk - Sq. The columns past
    Sk are hidden from every row, so the edge tile is never FULL.
    """
    group, plane = tl.program_id(0) % num_groups, (tl.program_id(0) // num_groups).to(tl.int64)
    tile = group * GROUP + tl.arange(0, GROUP)
    cols = tile[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]  # [GROUP, BLOCK_N]
    at, exists = plane * pitch + cols, (tile < num_tiles)[:, None]
    start = tl.load(lts + at, mask=exists, other=0)
    end = tl.full([GROUP, BLOCK_N], PAST_END, tl.int32)
    if CAUSAL and BOUNDS == 2 or BOUNDS == 4:
        end = tl.load(lte + at, mask=exists, other=0)
    upper_start = tl.zeros([GROUP, BLOCK_N], tl.int32)
    if BOUNDS == 4:
        upper_start = tl.load(uts + at, mask=exists, other=0)
    upper_end = cols - offset
    if not CAUSAL:
        upper_end = tl.load(ute + at, mask=exists, other=0)
    lower = _extremes(start, end, exists, PAST_END)
    upper = _extremes(upper_start, upper_end, exists, PAST_END)
    of_tiles = tl.max(tl.join(lower, upper), 1)  # [GROUP, 2, 2, 2]: minimum or maximum, start or end, lower or upper
    of_group = tl.max(of_tiles, 0)
    i = tl.arange(0, 8)
    is_max = i // 4
    bounds += plane * (num_tiles + num_groups) + step * (is_max + 2 * (i // 2 % 2) + 4 * (i % 2))
    tl.store(bounds + num_tiles + group, tl.where(is_max > 0, of_group.reshape([8]), -of_group.reshape([8])))
    x = of_tiles.reshape([GROUP, 8])
    tl.store(bounds[None, :] + tile[:, None], tl.where(is_max[None, :] > 0, x, -x), mask=exists)


@triton.jit
def _hidden_on(hidden_to, start_max, end_min):
    """Where the rows end that every column hides, which so far end at hidden_to, once an interval has carried them on."""
    return tl.where((start_max <= hidden_to) & (end_min > hidden_to), end_min, hidden_to)


@triton.jit
def _kind(bounds, step, tile, exists, r0, r1):
    """Kind (0 EMPTY, 1 PARTIAL, 2 FULL) of the rows [r0, r1) in column tiles (or groups); EMPTY what does not exist."""
    bounds += tile
    start_min = tl.load(bounds, mask=exists, other=0)
    start_max = tl.load(bounds + step, mask=exists, other=0)
    end_min = tl.load(bounds + 2 * step, mask=exists, other=0)
    end_max = tl.load(bounds + 3 * step, mask=exists, other=0)
    upper_start_min = tl.load(bounds + 4 * step, mask=exists, other=0)
    upper_start_max = tl.load(bounds + 5 * step, mask=exists, other=0)
    upper_end_min = tl.load(bounds + 6 * step, mask=exists, other=0)
    upper_end_max = tl.load(bounds + 7 * step, mask=exists, other=0)
    touched = (start_min < r1) & (end_max > r0) | (upper_start_min < r1) & (upper_end_max > r0)
    hidden_to = _hidden_on(r0, upper_start_max, upper_end_min)
    hidden_to = _hidden_on(hidden_to, start_max, end_min)
    hidden_to = _hidden_on(hidden_to, upper_start_max, upper_end_min)  # the lower one may have opened the way to it
    return tl.where(exists & (hidden_to < r1), tl.where(touched, 1, 2), 0)


@triton.jit
def _place(runs, first, end, before, kind, after, num_runs, partial_runs, rest_end, MAX_RUNS: tl.constexpr):
    """Write where the runs start and end along ascending stretches of tiles [first, end) of one kind each.

    before, after: the kinds beside a stretch. The PARTIAL runs go to the first slots, the FULL ones, while nobody knows
    how many PARTIAL ones there will be, to the last but two and back from there. The slot behind takes the start of the
    rest; the last one is never used, so that a walker may read it.
    Returns num_runs, of these the PARTIAL ones that are kept, and the end of the rest.
    """
    KEPT: tl.constexpr = MAX_RUNS - 2
    starts = ((kind > 0) & (kind != before)).to(tl.int32)
    partial = (kind == 1).to(tl.int32)
    both = tl.cumsum(starts + (starts * partial << 16), 0)  # two counts in one scan
    run = num_runs + (both & 0xFFFF) - 1
    partial_run = partial_runs + (both >> 16) - 1
    kept = run < KEPT
    slot = tl.where(kept, tl.where(kind == 1, partial_run, KEPT - 1 - (run - partial_run - 1)), KEPT)
    tl.store(runs + 2 * slot, first, mask=(starts > 0) & (run <= KEPT))
    tl.store(runs + 2 * slot + 1, end, mask=(kind > 0) & (kind != after) & kept)
    both = tl.sum(starts + (starts * partial * kept.to(tl.int32) << 16), 0)
    num_runs += both & 0xFFFF
    if num_runs > KEPT:
        rest_end = tl.maximum(rest_end, tl.max(tl.where(kind > 0, end, 0), 0))
    return num_runs, partial_runs + (both >> 16), rest_end


@triton.jit
def _finish(runs, counts, num_runs, partial_runs, rest_end, MAX_RUNS: tl.constexpr):
    """Close the gap between the PARTIAL and the FULL runs of a line, put the rest between them and count the tiles."""
    KEPT: tl.constexpr = MAX_RUNS - 2
    i = tl.arange(0, 2 * MAX_RUNS)
    slot, is_end = i // 2, i % 2
    partial_end = partial_runs + (num_runs > KEPT).to(tl.int32)
    full_end = tl.minimum(num_runs, KEPT) - partial_runs + partial_end
    source = tl.where(slot < partial_runs, slot, tl.where(slot < partial_end, KEPT, KEPT - 1 - (slot - partial_end)))
    tl.debug_barrier()  # other threads have written what is read
    x = tl.load(runs + 2 * source + is_end, mask=slot < full_end, other=0)
    x = tl.where((slot >= partial_runs) & (slot < partial_end) & (is_end > 0), rest_end, x)
    tiles = tl.where(is_end > 0, x, -x)
    tl.store(counts, tl.sum(tl.where(slot < partial_end, tiles, 0), 0))
    tl.store(counts + 1, tl.sum(tl.where(slot >= partial_end, tiles, 0), 0))
    # A kernel that takes a tile without asking takes the first, where it hides everything.
    x = tl.where(num_runs == 0, is_end, x)
    tl.debug_barrier()  # all have read what is written over
    tl.store(runs + i, x, mask=slot < tl.maximum(full_end, 1))


@triton.jit
def _row_line(bounds, runs, counts, line, block, seqlen_q, num_tiles, num_groups, step,
              GROUP: tl.constexpr, MAX_RUNS: tl.constexpr):  # fmt: skip
    """Runs along the column tiles for the rows of row tile `line`."""
    num_runs = 0
    partial_runs = 0
    rest_end = 0
    r0 = line * block
    r1 = tl.minimum(r0 + block, seqlen_q)
    for chunk in range(0, num_groups, GROUP):
        groups = chunk + tl.arange(0, GROUP)
        opened = _kind(bounds, step, num_tiles + groups, groups < num_groups, r0, r1) > 0
        group = tl.min(tl.where(opened, groups, num_groups), 0)
        while group < num_groups:
            u = group * GROUP + tl.arange(0, GROUP)
            before = _kind(bounds, step, u - 1, (u > 0) & (u <= num_tiles), r0, r1)
            kind = _kind(bounds, step, u, u < num_tiles, r0, r1)
            after = _kind(bounds, step, u + 1, u + 1 < num_tiles, r0, r1)
            num_runs, partial_runs, rest_end = _place(
                runs, u, u + 1, before, kind, after, num_runs, partial_runs, rest_end, MAX_RUNS
            )
            group = tl.min(tl.where(opened & (groups > group), groups, num_groups), 0)
    _finish(runs, counts, num_runs, partial_runs, rest_end, MAX_RUNS)


@triton.jit
def _column_line(bounds, runs, counts, line, block, seqlen_q, step, MAX_RUNS: tl.constexpr):
    """Runs along the row tiles for the columns of column tile `line`."""
    num_rows = tl.cdiv(seqlen_q, block)
    # The eight bounds are where an interval begins to touch and to hide, ends to hide and to touch: the tile of that
    # row and the one behind it in turn. The last of the 16 is 0; if it is the end instead, all are their successors.
    i = tl.arange(0, 16)
    turn = tl.load(bounds + line + step * i, mask=i < 8, other=0)
    turn = (tl.minimum(tl.maximum(turn, 0), seqlen_q) + (i % 2) * (block - 1)) // block
    first = tl.sort(turn)
    end = tl.sort(tl.where(i == 15, num_rows, turn))
    tile = line + 0 * i
    before = _kind(bounds, step, tile, first > 0, (first - 1) * block, first * block)
    kind = _kind(bounds, step, tile, first < end, first * block, tl.minimum((first + 1) * block, seqlen_q))
    after = _kind(bounds, step, tile, end < num_rows, end * block, tl.minimum((end + 1) * block, seqlen_q))
    none = 0  # runs before the first
    num_runs, partial_runs, rest_end = _place(runs, first, end, before, kind, after, none, none, none, MAX_RUNS)
    _finish(runs, counts, num_runs, partial_runs, rest_end, MAX_RUNS)


@triton.jit(do_not_specialize=["seqlen_q", "num_tiles", "num_groups", "step", "row_lines", "row_block", "column_lines",
                               "column_block"])  # fmt: skip
def line_runs(bounds, row_runs, row_counts, column_runs, column_counts, seqlen_q, num_tiles, num_groups, step,
              row_lines, row_block, column_lines, column_block,
              GROUP: tl.constexpr, MAX_RUNS: tl.constexpr):  # fmt: skip
    """One program writes the runs of one line: those of the row tiles come first, then those of the column tiles."""
    lines = row_lines + column_lines
    line, plane = tl.program_id(0) % lines, (tl.program_id(0) // lines).to(tl.int64)
    bounds += plane * (num_tiles + num_groups)
    if line < row_lines:
        at = plane * row_lines + line
        _row_line(bounds, row_runs + at * (2 * MAX_RUNS), row_counts + 2 * at, line, row_block, seqlen_q, num_tiles,
                  num_groups, step, GROUP, MAX_RUNS)  # fmt: skip
    else:
        at = plane * column_lines + line - row_lines
        _column_line(bounds, column_runs + at * (2 * MAX_RUNS), column_counts + 2 * at, line - row_lines, column_block,
                     seqlen_q, step, MAX_RUNS)  # fmt: skip


@triton.jit
def _work(counts, line, lines):
    """How long the tiles of lines take, in eighths of a FULL tile; less than any line's where there is none."""
    partial = tl.load(counts + 2 * line, mask=line < lines, other=-1)
    return 9 * partial + 8 * tl.load(counts + 2 * line + 1, mask=line < lines, other=0)


@triton.jit
def _rank(counts, order, block, lines, BLOCK: tl.constexpr, CHUNK: tl.constexpr):
    """Put BLOCK lines in their places: as many lines go before one as have more work, or as much and a lower number."""
    line = block * BLOCK + tl.arange(0, BLOCK)
    work = _work(counts, line, lines)
    before = tl.zeros([BLOCK, CHUNK], tl.int32)
    for chunk in range(0, lines, CHUNK):
        other = chunk + tl.arange(0, CHUNK)
        others = _work(counts, other, lines)
        lower = (other[None, :] < line[:, None]).to(tl.int32)
        before += (others[None, :] + lower > work[:, None]).to(tl.int32)
    tl.store(order + tl.sum(before, 1), line, mask=line < lines)


@triton.jit(do_not_specialize=["row_lines", "column_lines"])
def line_order(row_counts, row_order, column_counts, column_order, row_lines, column_lines,
               BLOCK: tl.constexpr, CHUNK: tl.constexpr):  # fmt: skip
    """The order of the row lines and of the column lines, BLOCK lines a program."""
    row_blocks = tl.cdiv(row_lines, BLOCK)
    blocks = row_blocks + tl.cdiv(column_lines, BLOCK)
    block, plane = tl.program_id(0) % blocks, (tl.program_id(0) // blocks).to(tl.int64)
    if block < row_blocks:
        at = plane * row_lines
        _rank(row_counts + 2 * at, row_order + at, block, row_lines, BLOCK, CHUNK)
    else:
        at = plane * column_lines
        _rank(column_counts + 2 * at, column_order + at, block - row_blocks, column_lines, BLOCK, CHUNK)
