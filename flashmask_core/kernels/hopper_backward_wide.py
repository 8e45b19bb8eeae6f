"""Backward kernel for Hopper, head dims 129 to 256: as `hopper_backward`, with the head dim shared out instead of the keys.

dK and dV of 64 keys fill the registers of both consumers: each keeps them for its half of the head dim, and the two
share the work on the scores of a tile of 64 keys (down) and 64 queries (across):

    producer     one warp, the same as for the smaller head dims
    consumer 0   P^T = exp2(scale (K Q^T - lse))       dV, dK, dQ of the first half of the head dim
    consumer 1   dS^T = P^T * (V dO^T - delta)         dV, dK, dQ of the second half

P goes to consumer 1 and dS to consumer 0 through shared memory, in 16 bits (dS is made of the P that dV is made of). So
each score product reads a whole tile for one consumer, not half a tile twice, and consumer 0 is about half a step ahead:
one's arithmetic runs under the other's products. Step i, its products and what runs under them:

    consumer 0    dV += P^T dO, S^T(i + 1) | dS(i) is there: dK += dS^T Q, dQ(i) = dS K    P^T(i + 1) under the last two
    consumer 1    P(i) is there: dV += P^T dO | dK += dS^T Q, dQ(i) = dS K, dP^T(i + 1)    dS^T(i) under dV

dQ(i) leaves in two parts of 64 columns, one after the other through the consumer's 16 KB of shared memory.

What is written to shared memory, and what keeps it until it has been read:

    Q, dO    by the producer; each consumer leaves a stage when its products with it are done, through a named barrier
    K, V     by the producer, see `k_of`: V left by consumer 1 before its last step, K released by each behind its last
    P        by consumer 0, which has waited for dS(i) before it writes P(i + 1): consumer 1 has P(i) in registers
    dS       by consumer 1, two buffers: it has waited for P(i) before it writes dS(i), so consumer 0 is done with step i - 2
    dQ       by its consumer alone, when its copy before has been read

P_READY and DS_READY alternate: neither consumer can arrive at one twice before the other has passed it.
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
from .hopper_common import arrive_named, opaque_zero, read_one, read_slot, sync_named
from .hopper_mask import zero_hidden

PART: gl.constexpr = gl.constexpr(64)  # columns of dQ that leave together
Q_FREE: gl.constexpr = gl.constexpr(4)  # named barriers: 4, 5: stage of the ring, both consumers have left it
DOUT_FREE: gl.constexpr = gl.constexpr(6)
P_READY: gl.constexpr = gl.constexpr(7)
DS_READY: gl.constexpr = gl.constexpr(8)
V_FREE: gl.constexpr = gl.constexpr(9)  # consumer 1 alone reads V


@gluon.jit
def _dout_stage(i, mem):
    return i % mem.dout_ring.depth + opaque_zero(i)


@gluon.jit
def _issue_scores(i, j, summed, mem, HEAD: gl.constexpr, BLOCK_M: gl.constexpr):
    """S^T(i) [COLS, BLOCK_M] = K Q^T - lse, in flight as two products."""
    ST: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_M, 16])
    stage = i % mem.q_ring.depth
    zero = gl.zeros([COLS, BLOCK_M], gl.float32, ST)
    s = warpgroup_mma(summed, mem.lse.index(stage).permute((1, 0)), zero, use_acc=False, is_async=True)
    return warpgroup_mma(k_of(j, i, mem), mem.q.index(stage).permute((1, 0)), s, is_async=True)


@gluon.jit
def _issue_dp(i, j, summed, mem, HEAD: gl.constexpr, BLOCK_M: gl.constexpr):
    """dP^T(i) [COLS, BLOCK_M] = V dO^T - delta, in flight as two products."""
    ST: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_M, 16])
    stage = _dout_stage(i, mem)
    zero = gl.zeros([COLS, BLOCK_M], gl.float32, ST)
    dp = warpgroup_mma(summed, mem.delta.index(stage).permute((1, 0)), zero, use_acc=False, is_async=True)
    return warpgroup_mma(v_of(j, i, mem), mem.dout.index(stage).permute((1, 0)), dp, is_async=True)


@gluon.jit
def _half(x, WHO: gl.constexpr):
    """A consumer's columns of a tile in shared memory."""
    return x.slice(WHO * (x.shape[1] // 2), x.shape[1] // 2, dim=1)


@gluon.jit
def _probabilities(i, there, s, mem, p_shared, vectors, stride, pitch, cols, scale_log2, offset,
                   CAUSAL: gl.constexpr, BOUNDS: gl.constexpr, HEAD: gl.constexpr):  # fmt: skip
    """Store P^T(i) for consumer 1, return it as the left operand of dV. Without a step i (`there`) nobody reads it."""
    DK: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, HEAD // 2, 16])
    A: gl.constexpr = gl.DotOperandLayout(0, DK, 2)
    step = mem.steps.index(i % mem.q_ring.depth)
    partial = read_one(step, 0)
    p = gl.exp2(s * scale_log2)
    if there & (partial != 0):
        at = vectors + read_one(step, 3) * pitch
        p = zero_hidden(p, read_one(step, 1), cols, at, stride, offset, CAUSAL, BOUNDS)
    p = p.to(mem.q.dtype)
    p_shared.store(p)
    if there:
        arrive_named(P_READY)
    return gl.convert_layout(p, A)


@gluon.jit
def _step_of_scores(i, j, more, p, dk, dv, summed, mem, p_shared, dq_desc, vectors, stride, pitch, cols, scale_log2,
                    offset, CAUSAL: gl.constexpr, BOUNDS: gl.constexpr, HEAD: gl.constexpr,
                    BLOCK_M: gl.constexpr):  # fmt: skip
    """Consumer 0. p = P^T(i); returns P^T(i + 1) (without meaning where there is no further step), dK and dV."""
    stage = i % mem.q_ring.depth
    row = read_one(mem.steps.index(stage), 2)
    k_tile = k_of(j, i, mem)
    mem.dout_ring.wait_full(i)
    dv = warpgroup_mma(p, _half(mem.dout.index(_dout_stage(i, mem)), 0), dv, is_async=True)
    mem.q_ring.wait_full(i + 1, pred=more)
    s = _issue_scores(i + 1, j, summed, mem, HEAD, BLOCK_M)
    dv, p = warpgroup_mma_wait(2, deps=[dv, p])
    mem.dout_ring.leave(i)
    sync_named(DS_READY)
    dk = warpgroup_mma(mem.ds.index(i & 1), _half(mem.q.index(stage), 0), dk, is_async=True)
    dq = issue_dq(i, k_tile, mem, 0, PART, BLOCK_M)
    s = warpgroup_mma_wait(2, deps=[s])
    p = _probabilities(
        i + 1, more, s, mem, p_shared, vectors, stride, pitch, cols, scale_log2, offset, CAUSAL, BOUNDS, HEAD
    )
    dk = warpgroup_mma_wait(1, deps=[dk])
    mem.q_ring.leave(i)
    dq_behind = issue_dq(i, k_tile, mem, PART, PART, BLOCK_M)
    dq = warpgroup_mma_wait(1, deps=[dq])
    add_dq(dq, row, 0, mem, dq_desc, 0)
    dq_behind = warpgroup_mma_wait(0, deps=[dq_behind])
    add_dq(dq_behind, row, PART, mem, dq_desc, 0)
    return p, dk, dv


@gluon.jit
def _step_of_gradients(i, j, more, dp, dk, dv, summed, mem, p_shared, dq_desc,
                       HEAD: gl.constexpr, BLOCK_M: gl.constexpr):  # fmt: skip
    """Consumer 1. dp = dP^T(i); returns dP^T(i + 1) (without meaning where there is no further step), dK and dV."""
    ST: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_M, 16])
    DK: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, HEAD // 2, 16])
    A: gl.constexpr = gl.DotOperandLayout(0, DK, 2)
    stage = i % mem.q_ring.depth
    k_tile = k_of(j, i, mem)
    if not more:
        mem.v_ring.leave(j)
    mem.q_ring.wait_full(i)
    row = read_one(mem.steps.index(stage), 2)
    sync_named(P_READY)
    p = p_shared.load(A)
    dv = warpgroup_mma(p, _half(mem.dout.index(_dout_stage(i, mem)), 1), dv, is_async=True)
    ds = (gl.convert_layout(p, ST, assert_trivial=True).to(gl.float32) * dp).to(mem.q.dtype)
    mem.ds.index(i & 1).store(ds)
    fence_async_shared()
    arrive_named(DS_READY)
    ds_dk = gl.convert_layout(ds, A)
    dk = warpgroup_mma(ds_dk, _half(mem.q.index(stage), 1), dk, is_async=True)
    dq = issue_dq(i, k_tile, mem, 2 * PART, PART, BLOCK_M)
    dv, p = warpgroup_mma_wait(2, deps=[dv, p])
    mem.dout_ring.leave(i)
    dk, ds_dk = warpgroup_mma_wait(1, deps=[dk, ds_dk])
    mem.q_ring.leave(i)
    dq_behind = issue_dq(i, k_tile, mem, 3 * PART, PART, BLOCK_M)
    dq = warpgroup_mma_wait(1, deps=[dq])
    add_dq(dq, row, 2 * PART, mem, dq_desc, 1)
    mem.dout_ring.wait_full(i + 1, pred=more)
    dp = _issue_dp(i + 1, j, summed, mem, HEAD, BLOCK_M)
    dq_behind = warpgroup_mma_wait(2, deps=[dq_behind])
    add_dq(dq_behind, row, 3 * PART, mem, dq_desc, 1)
    dp = warpgroup_mma_wait(0, deps=[dp])
    return dp, dk, dv


@gluon.jit
def _store_half(x, b, hk, col_tile, mem, desc, WHO: gl.constexpr):
    """Send x [COLS, HEAD / 2] on its way to the keys of the column tile."""
    SHARED: gl.constexpr = gl.NVMMASharedLayout(128, 16, 2)
    tma.store_wait(0)
    shared = mem.dq.index(WHO)._reinterpret(mem.q.dtype, [COLS, x.shape[1]], SHARED)
    shared.store(x.to(mem.q.dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(desc, [b, hk, col_tile * COLS, WHO * x.shape[1]], shared)


@gluon.jit
def _consumer(WHO: gl.constexpr, mem, p_shared, dq_desc, dk_desc, dv_desc, vectors, stride, pitch, scale, scale_log2,
              offset, CAUSAL: gl.constexpr, BOUNDS: gl.constexpr, HEAD: gl.constexpr, BLOCK_M: gl.constexpr,
              LSE_UNIT: gl.constexpr):  # fmt: skip
    ST: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_M, 16])
    DK: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, HEAD // 2, 16])
    summed = summing(LSE_UNIT, mem.q.dtype, gl.DotOperandLayout(0, ST, 2))
    start = 0  # row tiles taken before this column tile
    j = 0
    mem.tile_ring.wait_full(0)
    _, _, col_tile, num_steps, _ = read_slot(mem.slots.index(0))
    while col_tile >= 0:
        dk = gl.zeros([COLS, HEAD // 2], gl.float32, DK)
        dv = gl.zeros([COLS, HEAD // 2], gl.float32, DK)
        mem.k_ring.wait_full(j)
        if WHO == 0:
            cols = col_tile * COLS + gl.arange(0, COLS, layout=gl.SliceLayout(1, ST))
            mem.q_ring.wait_full(start)
            s = _issue_scores(start, j, summed, mem, HEAD, BLOCK_M)
            s = warpgroup_mma_wait(0, deps=[s])
            p = _probabilities(
                start, True, s, mem, p_shared, vectors, stride, pitch, cols, scale_log2, offset, CAUSAL, BOUNDS, HEAD
            )
            for i in range(0, num_steps):
                p, dk, dv = _step_of_scores(
                    start + i, j, i + 1 < num_steps, p, dk, dv, summed, mem, p_shared, dq_desc, vectors, stride, pitch, cols,
                    scale_log2, offset, CAUSAL, BOUNDS, HEAD, BLOCK_M,
                )  # fmt: skip
        else:
            mem.v_ring.wait_full(j)
            mem.dout_ring.wait_full(start)
            dp = _issue_dp(start, j, summed, mem, HEAD, BLOCK_M)
            dp = warpgroup_mma_wait(0, deps=[dp])
            for i in range(0, num_steps):
                dp, dk, dv = _step_of_gradients(
                    start + i, j, i + 1 < num_steps, dp, dk, dv, summed, mem, p_shared, dq_desc, HEAD, BLOCK_M
                )
        mem.k_ring.release(j)
        b, hk, col_tile, _, _ = read_slot(mem.slots.index(j % 2))
        _store_half(dk * scale, b, hk, col_tile, mem, dk_desc, WHO)
        _store_half(dv, b, hk, col_tile, mem, dv_desc, WHO)
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
def wide_backward_kernel(
    q_desc, k_desc, v_desc, dout_desc, dk_desc, dv_desc, dq_desc, lse_desc, delta_desc, vectors, runs, counts, order,
    counter, scale, scale_log2, total, num_heads, group, mask_batch, mask_heads, offset, stride, pitch, row_pitch,
    num_tiles, heads_per_section,
    CAUSAL: gl.constexpr,
    BOUNDS: gl.constexpr,
    MAX_RUNS: gl.constexpr,
    HEAD: gl.constexpr,
    BLOCK_M: gl.constexpr,
    Q_STAGES: gl.constexpr,
    DOUT_STAGES: gl.constexpr,
    LSE_UNIT: gl.constexpr,
):  # fmt: skip
    """A column tile is COLS keys of one key head; the arguments are those of `backward_kernel`."""
    mem = new_buffers(
        q_desc, k_desc, dout_desc, dq_desc, COLS, HEAD, BLOCK_M, Q_STAGES, DOUT_STAGES, Q_FREE, DOUT_FREE, V_FREE, 1
    )  # fmt: skip
    p_shared = gl.allocate_shared_memory(q_desc.dtype, [COLS, BLOCK_M], gl.NVMMASharedLayout(128, 16, 2))
    fence_async_shared()
    gl.warp_specialize(
        [
            (_consumer, (0, mem, p_shared, dq_desc, dk_desc, dv_desc, vectors, stride, pitch, scale, scale_log2, offset,
                         CAUSAL, BOUNDS, HEAD, BLOCK_M, LSE_UNIT)),
            (_consumer, (1, mem, p_shared, dq_desc, dk_desc, dv_desc, vectors, stride, pitch, scale, scale_log2, offset,
                         CAUSAL, BOUNDS, HEAD, BLOCK_M, LSE_UNIT)),
            (producer, (mem, q_desc, k_desc, v_desc, dout_desc, lse_desc, delta_desc, runs, counts, order, counter,
                        total, num_heads, group, mask_batch, mask_heads, row_pitch, num_tiles, heads_per_section,
                        MAX_RUNS, HEAD, BLOCK_M)),
        ],
        [4, 1],
        [240, 24],
    )  # fmt: skip
