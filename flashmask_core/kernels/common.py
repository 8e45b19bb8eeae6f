"""What the forward and the backward kernels share: which tile a program owns, its walk along runs, the element test."""

from __future__ import annotations

import triton
import triton.language as tl

# Compiled once for all sizes: Triton would otherwise make a kernel for every size that is 1 or a multiple of 16.
SIZES = (
    "num_batch", "num_heads", "group", "mask_batch", "mask_heads", "seqlen_q", "offset", "num_tiles",
    "heads_per_section",
)  # fmt: skip


@triton.jit
def owned_tile(pid, order, num_tiles, num_batch, heads, queries_per_head, mask_batch, mask_heads, heads_per_section):
    """(batch entry, head, tile) of a program of a 1-D grid over num_batch x heads x num_tiles.

    Heads are taken in sections whose K and V fit the L2 cache together; inside a section the heaviest tiles of all
    its heads start first. `heads` counts query heads (queries_per_head = 1) or key heads (the group size).
    """
    section = pid // (heads_per_section * num_tiles)
    rest = pid - section * heads_per_section * num_tiles
    heads_here = tl.minimum(heads_per_section, num_batch * heads - section * heads_per_section)
    rank = rest // heads_here
    bh = section * heads_per_section + rest - rank * heads_here
    b, h = bh // heads, bh % heads
    plane = mask_plane(b, h * queries_per_head, heads * queries_per_head, mask_batch, mask_heads)
    return b, h, tl.load(order + plane * num_tiles + rank)


@triton.jit
def mask_plane(b, h, num_heads, mask_batch, mask_heads):
    """Index of the mask of batch entry b and query head h in the flattened [B or 1, Hm]."""
    return (tl.where(mask_batch > 1, b, 0) * mask_heads + h // (num_heads // mask_heads)).to(tl.int64)


@triton.jit
def first_tile(runs):
    """(pointer, tile, end) at the start of a line of runs."""
    return runs, tl.load(runs), tl.load(runs + 1)


@triton.jit
def next_tile(run, tile, end):
    """The tile after `tile`: the next of its run, or the first of the next run."""
    tile += 1
    run += tl.where(tile == end, 2, 0)
    first = tl.load(run)
    tile = tl.where(tile == end, first, tile)
    return run, tile, tl.load(run + 1)


@triton.jit
def hidden_pairs(rows, cols, lts, lte, uts, ute, offset,
                 CAUSAL: tl.constexpr, BOUNDS: tl.constexpr, COLUMN_AXIS: tl.constexpr):  # fmt: skip
    """The element test of a PARTIAL tile: True where column `cols` hides row `rows`.

    rows and cols are 1-D; cols lies along COLUMN_AXIS of the result. The vectors are pointers to the mask's padded
    plane, offset = Sk - Sq.
    """
    ROW_AXIS: tl.constexpr = 1 - COLUMN_AXIS
    r = tl.expand_dims(rows, COLUMN_AXIS)
    hidden = r >= tl.expand_dims(tl.load(lts + cols), ROW_AXIS)
    if CAUSAL and BOUNDS == 2 or BOUNDS == 4:
        hidden = hidden & (r < tl.expand_dims(tl.load(lte + cols), ROW_AXIS))
    if CAUSAL:
        hidden = hidden | (r < tl.expand_dims(cols - offset, ROW_AXIS))
    else:
        upper = r < tl.expand_dims(tl.load(ute + cols), ROW_AXIS)
        if BOUNDS == 4:
            upper = upper & (r >= tl.expand_dims(tl.load(uts + cols), ROW_AXIS))
        hidden = hidden | upper
    return hidden


@triton.jit
def load_tile(desc, b, h, start, ROWS: tl.constexpr, HEAD: tl.constexpr):
    """Rows start .. start + ROWS - 1 of one head through a descriptor of [B, H, S, D]; zeros past the edges."""
    return desc.load([b, h, start, 0]).reshape([ROWS, HEAD])


@triton.jit
def store_tile(desc, b, h, start, x, ROWS: tl.constexpr, HEAD: tl.constexpr):
    """Write x [ROWS, HEAD] back in the tensor's dtype; what lies past the edges is dropped."""
    desc.store([b, h, start, 0], x.to(desc.dtype).reshape([1, 1, ROWS, HEAD]))
