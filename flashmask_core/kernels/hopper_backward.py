"""Backward kernel for Hopper: dK and dV of a column tile stay in registers, dQ is added up in memory.

One program stays on a multiprocessor and takes tiles of 128 keys from a shared counter. Its warps have three roles:

    producer     one warp: copies K and V of the tile once, then Q, lse and dO, delta of one row tile after the other
    consumer 0   four warps: the first 64 keys       consumer 1   four warps: the 64 keys behind them

A consumer keeps dK and dV of its 64 keys and works on transposed tiles (keys down, queries across). With
P = exp2(scale (S - lse)) and dS = P * (dP - delta), lse in the units of S, a step on row tile i is

    S^T = K Q^T - lse    dP^T = V dO^T - delta    dV += P^T dO    dQ = dS K    dK += dS^T Q

    tensor cores   | dP(i) ------- | dV(i) ----------------- | dQ(i-1) - dK(i) - S(i+1) ---- | dP(i+1) ...
    consumer       | P(i) of S(i)  | dS(i), to shared memory |           dQ(i-1) leaves      | P(i+1) ...
    producer       Q(i+2), dO(i+1); in the last step K of the next column tile, to where V of this one was (see `k_of`)

Both consumers' halves of dS meet in shared memory, and each takes half the head dim of dQ, which leaves through shared
memory by an asynchronous copy that adds it to the float32 accumulator in global memory.

dQ is a step late because it needs the other consumer's dS: so neither waits for the other as long as they are less than
half a step apart, and one's arithmetic runs under the other's products. Q has a stage more than dO for the same
reason: the consumer ahead wants the next Q before the one behind has left its last.

Shared memory is what the kernel is short of: its products read 8 of 10 operands from it. Hence the rotated rows of dQ
(see `rotate_rows`), and lse and delta as products: split into three terms of 16 bits and multiplied by a constant
matrix they are subtracted by the tensor cores, for a quarter of the reads that a subtraction in registers costs.

With grouped heads the row tiles of all query heads that share the key head are one long list of steps. PARTIAL tiles
come first for each head; a column tile without any tile tests row tile 0, which hides everything.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from .hopper_backward_parts import COLS, add_dq, issue_dq, k_of, new_buffers, producer, summing, v_of
from .hopper_common import (
    arrive_named,
    read_one,
    read_slot,
    sync_named,
)
from .hopper_mask import zero_hidden

NOWHERE: gl.constexpr = gl.constexpr(2**30)  # a row behind all: the copy of what has no place writes nothing
MEET: gl.constexpr = gl.constexpr(4)  # named barriers: both consumers
Q_FREE: gl.constexpr = gl.constexpr(5)  # 5, 6, 7: stage of the ring, both consumers have left it
DOUT_FREE: gl.constexpr = gl.constexpr(8)  # 8, 9
V_FREE: gl.constexpr = gl.constexpr(14)
HALF_READY: gl.constexpr = gl.constexpr(10)  # 10 to 13: consumer and parity of the step


@gluon.jit
def _half_is_ready(WHO: gl.constexpr, i):
    """Consumer WHO tells the other that its half of dS(i) is stored and that it has read dS(i - 1)."""
    arrive_named(HALF_READY + 2 * WHO + (i & 1))


@gluon.jit
def _wait_for_half(WHO: gl.constexpr, i):
    sync_named(HALF_READY + 2 * WHO + (i & 1))


@gluon.jit
def _step(i, j, more, row_before, s, dk, dv, summed, mem, dq_desc, vectors, stride, pitch, cols, scale_log2,
          offset, WHO: gl.constexpr, CAUSAL: gl.constexpr, BOUNDS: gl.constexpr,
          HEAD: gl.constexpr, BLOCK_M: gl.constexpr):  # fmt: skip
    """s = S^T(i) [COLS, BLOCK_M] is there. dQ(i - 1) is added to the rows from row_before on.

    Returns the first row of dQ(i), S^T(i + 1) (without meaning where there is no further step), dK and dV.
    """
    ST: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_M, 16])
    DK: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, HEAD, 16])
    A: gl.constexpr = gl.DotOperandLayout(0, DK, 2)
    DEPTH: gl.constexpr = mem.q_ring.depth
    stage = i % DEPTH
    dout_stage = i % mem.dout_ring.depth
    step = mem.steps.index(stage)
    partial = read_one(step, 0)
    row = read_one(step, 2)
    zero = gl.zeros([COLS, BLOCK_M], gl.float32, ST)
    k_tile = k_of(j, i, mem)
    v_tile = v_of(j, i, mem)
    mem.dout_ring.wait_full(i)
    dout = mem.dout.index(dout_stage)
    dp = warpgroup_mma(summed, mem.delta.index(dout_stage).permute((1, 0)), zero, use_acc=False, is_async=True)
    dp = warpgroup_mma(v_tile.slice(WHO * COLS, COLS), dout.permute((1, 0)), dp, is_async=True)
    p = gl.exp2(s * scale_log2)
    if partial != 0:
        at = vectors + read_one(step, 3) * pitch
        p = zero_hidden(p, read_one(step, 1), cols, at, stride, offset, CAUSAL, BOUNDS)
    p_dv = gl.convert_layout(p.to(mem.q.dtype), A)
    dv = warpgroup_mma(p_dv, dout, dv, is_async=True)
    dp = warpgroup_mma_wait(1, deps=[dp])
    if not more:
        mem.v_ring.leave(j)
    ds = (p * dp).to(mem.q.dtype)
    _wait_for_half(1 - WHO, i - 1)
    mem.ds.index(i & 1).slice(WHO * COLS, COLS).store(ds)
    fence_async_shared()
    ds_dk = gl.convert_layout(ds, A)
    q = mem.q.index(stage)
    dq = issue_dq(i - 1, k_tile, mem, WHO * (HEAD // 2), HEAD // 2, BLOCK_M)
    dk = warpgroup_mma(ds_dk, q, dk, is_async=True)
    dv, p_dv = warpgroup_mma_wait(2, deps=[dv, p_dv])
    mem.dout_ring.leave(i)
    mem.q_ring.wait_full(i + 1, pred=more)
    q_next = mem.q.index((i + 1) % DEPTH)
    s = warpgroup_mma(summed, mem.lse.index((i + 1) % DEPTH).permute((1, 0)), zero, use_acc=False, is_async=True)
    s = warpgroup_mma(k_tile.slice(WHO * COLS, COLS), q_next.permute((1, 0)), s, is_async=True)
    dq = warpgroup_mma_wait(3, deps=[dq])
    add_dq(dq, row_before, WHO * (HEAD // 2), mem, dq_desc, WHO)
    _half_is_ready(WHO, i)
    dk, ds_dk = warpgroup_mma_wait(2, deps=[dk, ds_dk])
    mem.q_ring.leave(i)
    s = warpgroup_mma_wait(0, deps=[s])
    return row, s, dk, dv


@gluon.jit
def _consumer(WHO: gl.constexpr, mem, dq_desc, dk_desc, dv_desc, vectors, stride, pitch, scale, scale_log2, offset,
              CAUSAL: gl.constexpr, BOUNDS: gl.constexpr, HEAD: gl.constexpr, BLOCK_M: gl.constexpr,
              LSE_UNIT: gl.constexpr):  # fmt: skip
    ST: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_M, 16])
    DK: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, HEAD, 16])
    A: gl.constexpr = gl.DotOperandLayout(0, ST, 2)
    summed = summing(LSE_UNIT, mem.q.dtype, A)
    start = 0  # row tiles taken before this column tile
    j = 0
    mem.tile_ring.wait_full(0)
    _, _, col_tile, num_steps, _ = read_slot(mem.slots.index(0))
    while col_tile >= 0:
        if HEAD == 64:
            gl.assume(num_steps > 0)  # 1.4 % faster with every tile FULL; at 128 a little slower
        dk = gl.zeros([COLS, HEAD], gl.float32, DK)
        dv = gl.zeros([COLS, HEAD], gl.float32, DK)
        cols = col_tile * (2 * COLS) + WHO * COLS + gl.arange(0, COLS, layout=gl.SliceLayout(1, ST))
        tma.store_wait(0)
        sync_named(MEET)  # both consumers' dK and dV of the tile before have left the shared memory
        mem.k_ring.wait_full(j)
        mem.q_ring.wait_full(start)
        stage = start % mem.q_ring.depth
        zero = gl.zeros([COLS, BLOCK_M], gl.float32, ST)
        s = warpgroup_mma(summed, mem.lse.index(stage).permute((1, 0)), zero, use_acc=False, is_async=True)
        s = warpgroup_mma(k_of(j, start, mem).slice(WHO * COLS, COLS), mem.q.index(stage).permute((1, 0)), s, is_async=True)
        s = warpgroup_mma_wait(0, deps=[s])
        mem.v_ring.wait_full(j)
        _half_is_ready(WHO, start - 1)  # the dQ of a step before the first is made of anything and added nowhere
        row = NOWHERE
        for i in range(0, num_steps):
            row, s, dk, dv = _step(
                start + i, j, i + 1 < num_steps, row, s, dk, dv, summed, mem, dq_desc, vectors, stride, pitch,
                cols, scale_log2, offset, WHO, CAUSAL, BOUNDS, HEAD, BLOCK_M,
            )  # fmt: skip
        last = start + num_steps - 1
        _wait_for_half(1 - WHO, last)
        dq = issue_dq(last, k_of(j, last, mem), mem, WHO * (HEAD // 2), HEAD // 2, BLOCK_M)
        dq = warpgroup_mma_wait(0, deps=[dq])
        add_dq(dq, row, WHO * (HEAD // 2), mem, dq_desc, WHO)
        mem.k_ring.release(j)
        tma.store_wait(0)
        sync_named(MEET)  # the other consumer has read dS for the last time
        if HEAD == 128:
            SHARED: gl.constexpr = gl.NVMMASharedLayout(128, 16, 2)
            dk_shared = mem.dq.index(WHO)._reinterpret(mem.q.dtype, [COLS, HEAD], SHARED)
            dv_shared = mem.ds.index(WHO)._reinterpret(mem.q.dtype, [COLS, HEAD], SHARED)
        else:
            dk_shared = mem.ds.index(WHO).slice(COLS, COLS).slice(0, HEAD, dim=1)
            dv_shared = mem.ds.index(WHO).slice(0, COLS).slice(0, HEAD, dim=1)
        dk_shared.store((dk * scale).to(mem.q.dtype))
        dv_shared.store(dv.to(mem.q.dtype))
        fence_async_shared()
        b, hk, col_tile, _, _ = read_slot(mem.slots.index(j % 2))
        tma.async_copy_shared_to_global(dk_desc, [b, hk, col_tile * (2 * COLS) + WHO * COLS, 0], dk_shared)
        tma.async_copy_shared_to_global(dv_desc, [b, hk, col_tile * (2 * COLS) + WHO * COLS, 0], dv_shared)
        mem.tile_ring.release(j)
        start += num_steps
        j += 1
        mem.tile_ring.wait_full(j)
        _, _, col_tile, num_steps, _ = read_slot(mem.slots.index(j % 2))
    tma.store_wait(0)


@gluon.jit(
    do_not_specialize=[
        "total", "num_heads", "group", "mask_batch", "mask_heads", "offset", "num_tiles", "heads_per_section",
    ]
)  # fmt: skip
def backward_kernel(
    q_desc, k_desc, v_desc, dout_desc, dk_desc, dv_desc,  # [B, H or Hk, S, D]
    dq_desc,  # float32 [B * H * row_pitch, HEAD], zero; rows in the order of `rotate_rows`, without the scale
    lse_desc, delta_desc,  # [B * H, row_pitch, terms], see `row_terms_kernel`
    vectors,  # int32 [vectors in use, planes, pitch], see packed_vectors
    runs, counts, order,  # TileRuns of the column tiles
    counter,  # int32 [1], zero
    scale, scale_log2, total, num_heads, group, mask_batch, mask_heads, offset, stride, pitch, row_pitch, num_tiles,
    heads_per_section,
    CAUSAL: gl.constexpr,
    BOUNDS: gl.constexpr,
    MAX_RUNS: gl.constexpr,
    HEAD: gl.constexpr,
    BLOCK_M: gl.constexpr,
    Q_STAGES: gl.constexpr,
    DOUT_STAGES: gl.constexpr,
    LSE_UNIT: gl.constexpr,
):  # fmt: skip
    """A column tile is 2 x COLS keys of one key head."""
    mem = new_buffers(
        q_desc, k_desc, dout_desc, dq_desc, 2 * COLS, HEAD, BLOCK_M, Q_STAGES, DOUT_STAGES, Q_FREE, DOUT_FREE, V_FREE, 2
    )  # fmt: skip
    fence_async_shared()
    gl.warp_specialize(
        [
            (_consumer, (0, mem, dq_desc, dk_desc, dv_desc, vectors, stride, pitch, scale, scale_log2, offset,
                         CAUSAL, BOUNDS, HEAD, BLOCK_M, LSE_UNIT)),
            (_consumer, (1, mem, dq_desc, dk_desc, dv_desc, vectors, stride, pitch, scale, scale_log2, offset,
                         CAUSAL, BOUNDS, HEAD, BLOCK_M, LSE_UNIT)),
            (producer, (mem, q_desc, k_desc, v_desc, dout_desc, lse_desc, delta_desc, runs, counts, order, counter,
                         total, num_heads, group, mask_batch, mask_heads, row_pitch, num_tiles, heads_per_section,
                         MAX_RUNS, HEAD, BLOCK_M)),
        ],
        [4, 1],
        [240, 24],
    )  # fmt: skip
