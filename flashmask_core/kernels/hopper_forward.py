"""Forward kernel for Hopper: warp roles, asynchronous copies and matrix products that overlap with the softmax.

One program stays on a multiprocessor and takes row tiles from a shared counter. Its warps have three roles:

    producer     one warp: picks the next row tile, copies Q once and then one K and V tile after the other (TMA)
    consumer 0   four warps: 64 query rows          consumer 1 (, 2)   four warps: the 64 rows below

Rings in shared memory: Q (with the tile's description beside it), K and V. A consumer issues S(i) = Q K(i)^T and
O += P(i-1) V(i-1) together and does the softmax of S(i) while the second product is still running; named barriers let
the consumers issue in turns, so that one's softmax runs under the other's products:

    tensor cores   S0(i) PV0(i-1) | S1(i) PV1(i-1) | S0(i+1) PV0(i) | ...
    consumer 0            softmax(i) -------------->        softmax(i+1) ---
    consumer 1                      softmax(i) ------------->
    producer       K(i+1) V(i) K(i+2) V(i+1) ...

PARTIAL tiles come first and FULL ones behind them, in two loops: softmax does not care for the order, so the FULL loop
has no mask arithmetic. The first tile of a row tile is always tested (testing a FULL tile changes nothing), and a row
tile without any tile tests tile 0, which hides everything: no branch anywhere. The running maximum starts at a finite
value, so that -inf - -inf is never formed.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from .hopper_common import (
    Ring,
    aggregate,
    arrive_named,
    first_tile,
    new_ring,
    next_tile,
    opaque_zero,
    owned_tile,
    read_slot,
    sync_named,
    write_slot,
)
from .hopper_mask import FIELDS, hide_bits, load_bounds, write_hidden_bits
from .hopper_softmax import rescale, softmax_step

LN2: gl.constexpr = gl.constexpr(0.6931471805599453)
ROWS: gl.constexpr = gl.constexpr(64)  # query rows of a consumer
TURN: gl.constexpr = gl.constexpr(9)  # named barriers 9, 10, 11: the consumers' turns to issue products


@aggregate
class Shape:
    """The compile-time constants of a kernel."""

    CONSUMERS: gl.constexpr  # warp groups of ROWS queries
    CAUSAL: gl.constexpr  # with BOUNDS, the packing of the mask
    BOUNDS: gl.constexpr
    MAX_RUNS: gl.constexpr
    HEAD: gl.constexpr  # head dim, a power of two
    BLOCK_N: gl.constexpr  # keys of a tile
    KEEP_Q: gl.constexpr  # Q of the FULL loop stays in registers

    @gluon.constexpr_function
    def __init__(self, CONSUMERS, CAUSAL, BOUNDS, MAX_RUNS, HEAD, BLOCK_N, KEEP_Q):
        self.CONSUMERS = gl.constexpr(CONSUMERS)
        self.CAUSAL = gl.constexpr(CAUSAL)
        self.BOUNDS = gl.constexpr(BOUNDS)
        self.MAX_RUNS = gl.constexpr(MAX_RUNS)
        self.HEAD = gl.constexpr(HEAD)
        self.BLOCK_N = gl.constexpr(BLOCK_N)
        self.KEEP_Q = gl.constexpr(KEEP_Q)


@aggregate
class Buffers:
    """Shared memory of a program and the rings over it."""

    q: gl.shared_memory_descriptor  # [q_ring.depth * consumers, ROWS, HEAD]; the output leaves from here too
    k: gl.shared_memory_descriptor  # [kv stages, BLOCK_N, HEAD]
    v: gl.shared_memory_descriptor
    hidden: gl.shared_memory_descriptor  # int16 [consumers, 4, BLOCK_N], see hopper_mask
    slots: gl.shared_memory_descriptor  # int32 [q_ring.depth, 8]: batch x head, mask plane, row tile, PARTIAL, all tiles
    q_ring: Ring
    k_ring: Ring
    v_ring: Ring

    @gluon.constexpr_function
    def __init__(self, q, k, v, hidden, slots, q_ring, k_ring, v_ring):
        self.q = q
        self.k = k
        self.v = v
        self.hidden = hidden
        self.slots = slots
        self.q_ring = q_ring
        self.k_ring = k_ring
        self.v_ring = v_ring


@gluon.jit
def _step(i, more, q, q_index, mem, acc, p, m_i, l_i, tile, row, vectors, stride, scale_log2, offset, shape,
          WHO: gl.constexpr, MASKED: gl.constexpr, Q_KEPT: gl.constexpr):  # fmt: skip
    """Issue S(i) and O += P(i-1) V(i-1), then the softmax of S(i) under the second product.

    Q_KEPT: q is Q in registers; otherwise Q is read from shared memory, at q_index.
    """
    S: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, shape.BLOCK_N, 16])
    O: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, shape.HEAD, 16])
    if MASKED:
        cols, a, b, c, d = load_bounds(vectors, stride, tile * shape.BLOCK_N, shape.CAUSAL, shape.BOUNDS, shape.BLOCK_N)
    sync_named(TURN + WHO)
    zero = gl.zeros([ROWS, shape.BLOCK_N], gl.float32, S)
    k = mem.k.index(i % mem.k_ring.depth)
    if not Q_KEPT:
        q = mem.q.index(q_index + opaque_zero(i))
    s = warpgroup_mma(q, k.permute((1, 0)), zero, use_acc=False, is_async=True)
    mem.v_ring.wait_full(i - 1)
    acc = warpgroup_mma(p, mem.v.index((i - 1) % mem.v_ring.depth), acc, is_async=True)
    arrive_named(TURN + (WHO + 1) % shape.CONSUMERS)
    if MASKED:
        write_hidden_bits(mem.hidden.index(WHO), row, offset, cols, a, b, c, d, shape.CAUSAL, shape.BOUNDS, shape.BLOCK_N)
    s = warpgroup_mma_wait(1, deps=[s])
    mem.k_ring.release(i)
    if MASKED:
        s = hide_bits(s, mem.hidden.index(WHO))
    p_new, m_i, l_i, alpha = softmax_step(s, m_i, l_i, scale_log2)
    p_next = gl.convert_layout(p_new.to(mem.v.dtype), gl.DotOperandLayout(0, O, 2))
    # Waiting for the next K here makes an edge in the control flow, over which the assembler does not move the
    # softmax; without it the softmax sinks below the wait for the product that it should run beside.
    mem.k_ring.wait_full(i + 1, pred=more)
    acc, p, p_next = warpgroup_mma_wait(0, deps=[acc, p, p_next])
    mem.v_ring.release(i - 1)
    return rescale(acc, alpha, shape.HEAD), p_next, m_i, l_i


@gluon.jit
def _consumer(WHO: gl.constexpr, mem, out_desc, lse, runs, vectors, stride, pitch, scale_log2, offset, seqlen_q,
              num_heads, num_tiles, shape):  # fmt: skip
    S: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, shape.BLOCK_N, 16])
    O: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, shape.HEAD, 16])
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 8, 16])
    P: gl.constexpr = gl.DotOperandLayout(0, O, 2)
    DEPTH: gl.constexpr = mem.q_ring.depth
    if WHO == shape.CONSUMERS - 1:
        arrive_named(TURN)  # consumer 0 begins
    start = 0  # K and V tiles taken before this row tile
    j = 0
    mem.q_ring.wait_full(0)
    bh, plane, row_tile, num_partial, num_all = read_slot(mem.slots.index(0))
    while row_tile >= 0:
        q_index = (j % DEPTH) * shape.CONSUMERS + WHO
        q_shared = mem.q.index(q_index)
        row = (row_tile * shape.CONSUMERS + WHO) * ROWS
        at = vectors + plane * pitch
        run, tile, end = first_tile(runs, plane * num_tiles + row_tile, shape.MAX_RUNS)
        acc = gl.zeros([ROWS, shape.HEAD], gl.float32, O)
        m_i = gl.full([ROWS], -1.0e30, gl.float32, gl.SliceLayout(1, S))
        l_i = gl.zeros([ROWS, 8], gl.float32, SUMS)

        # The first tile, without a product with V before it.
        cols, a, b, c, d = load_bounds(at, stride, tile * shape.BLOCK_N, shape.CAUSAL, shape.BOUNDS, shape.BLOCK_N)
        mem.k_ring.wait_full(start)
        sync_named(TURN + WHO)
        k = mem.k.index(start % mem.k_ring.depth)
        zero = gl.zeros([ROWS, shape.BLOCK_N], gl.float32, S)
        s = warpgroup_mma(q_shared, k.permute((1, 0)), zero, use_acc=False, is_async=True)
        arrive_named(TURN + (WHO + 1) % shape.CONSUMERS)
        if DEPTH > 1:  # the output of the row tile before has left by now
            tma.store_wait(0)
            mem.q_ring.release(j + DEPTH - 1, pred=j > 0)
        write_hidden_bits(mem.hidden.index(WHO), row, offset, cols, a, b, c, d, shape.CAUSAL, shape.BOUNDS, shape.BLOCK_N)
        s = warpgroup_mma_wait(0, deps=[s])
        mem.k_ring.release(start)
        s = hide_bits(s, mem.hidden.index(WHO))
        p_new, m_i, l_i, alpha = softmax_step(s, m_i, l_i, scale_log2)
        p = gl.convert_layout(p_new.to(mem.v.dtype), P)
        mem.k_ring.wait_full(start + 1, pred=1 < num_all)

        for i in range(1, num_partial):
            run, tile, end = next_tile(runs, run, tile, end)
            acc, p, m_i, l_i = _step(
                start + i, i + 1 < num_all, q_shared, q_index, mem, acc, p, m_i, l_i, tile, row, at, stride, scale_log2,
                offset, shape, WHO, True, False,
            )  # fmt: skip
        if shape.KEEP_Q:  # in registers, where it is read without using the shared memory's bandwidth
            q = q_shared.load(gl.DotOperandLayout(0, S, 2))
        else:
            q = q_shared
        for i in range(gl.maximum(num_partial, 1), num_all):
            acc, p, m_i, l_i = _step(
                start + i, i + 1 < num_all, q, q_index, mem, acc, p, m_i, l_i, 0, row, at, stride, scale_log2,
                offset, shape, WHO, False, shape.KEEP_Q,
            )  # fmt: skip

        last = start + num_all - 1
        mem.v_ring.wait_full(last)
        acc = warpgroup_mma(p, mem.v.index(last % mem.v_ring.depth), acc, is_async=True)
        l = gl.convert_layout(gl.sum(l_i, 1), gl.SliceLayout(1, S))
        log_sum = gl.where(l > 0, (m_i + gl.log2(l)) * LN2, float("-inf"))
        inverse = gl.where(l > 0, 1.0 / l, 0.0)
        acc, p = warpgroup_mma_wait(0, deps=[acc, p])
        mem.v_ring.release(last)
        acc = acc * gl.convert_layout(inverse, gl.SliceLayout(1, O))[:, None]
        q_shared.store(acc.to(mem.q.dtype))
        fence_async_shared()
        tma.async_copy_shared_to_global(out_desc, [bh // num_heads, bh % num_heads, row, 0], q_shared)
        exists = row + gl.arange(0, ROWS, layout=gl.SliceLayout(1, S))
        gl.store(lse + bh.to(gl.int64) * seqlen_q + exists, log_sum, mask=exists < seqlen_q)
        if DEPTH == 1:
            tma.store_wait(0)
            mem.q_ring.release(j)
        start += num_all
        j += 1
        mem.q_ring.wait_full(j)
        bh, plane, row_tile, num_partial, num_all = read_slot(mem.slots.index(j % DEPTH))
    tma.store_wait(0)
    if WHO == 0:
        sync_named(TURN)  # takes the arrival that nobody waits for


@gluon.jit
def _producer(mem, q_desc, k_desc, v_desc, runs, counts, order, counter, total, num_heads, group, mask_batch,
              mask_heads, num_tiles, heads_per_section, shape):  # fmt: skip
    Q_BYTES: gl.constexpr = shape.CONSUMERS * ROWS * shape.HEAD * 2
    KV_BYTES: gl.constexpr = shape.BLOCK_N * shape.HEAD * 2
    i = 0
    j = 0
    t = gl.program_id(0)
    while t < total * num_tiles:
        b, h, plane, row_tile = owned_tile(
            t, order, total, num_heads, 1, num_tiles, mask_batch, mask_heads, heads_per_section
        )
        line = plane * num_tiles + row_tile
        num_partial = gl.load(counts + 2 * line)
        num_all = num_partial + gl.load(counts + 2 * line + 1)
        num_partial = gl.where(num_all == 0, 1, num_partial)
        num_all = gl.maximum(num_all, 1)
        t = gl.atomic_add(counter, 1, sem="relaxed") + gl.num_programs(0)
        hk = h // group
        stage = j % mem.q_ring.depth
        mem.q_ring.wait_empty(j)
        write_slot(mem.slots.index(stage), b * num_heads + h, plane, row_tile, num_partial, num_all)
        full = mem.q_ring.full.index(stage)
        mbarrier.expect(full, Q_BYTES)
        for who in gl.static_range(shape.CONSUMERS):
            row = (row_tile * shape.CONSUMERS + who) * ROWS
            tma.async_copy_global_to_shared(q_desc, [b, h, row, 0], full, mem.q.index(stage * shape.CONSUMERS + who))
        run, tile, end = first_tile(runs, line, shape.MAX_RUNS)
        for _ in range(0, num_all):
            col = tile * shape.BLOCK_N
            mem.k_ring.wait_empty(i)
            full_k = mem.k_ring.full.index(i % mem.k_ring.depth)
            mbarrier.expect(full_k, KV_BYTES)
            tma.async_copy_global_to_shared(k_desc, [b, hk, col, 0], full_k, mem.k.index(i % mem.k_ring.depth))
            run, tile, end = next_tile(runs, run, tile, end)
            mem.v_ring.wait_empty(i)
            full_v = mem.v_ring.full.index(i % mem.v_ring.depth)
            mbarrier.expect(full_v, KV_BYTES)
            tma.async_copy_global_to_shared(v_desc, [b, hk, col, 0], full_v, mem.v.index(i % mem.v_ring.depth))
            i += 1
        j += 1
    mem.q_ring.wait_empty(j)
    write_slot(mem.slots.index(j % mem.q_ring.depth), 0, 0, -1, 0, 0)
    mbarrier.arrive(mem.q_ring.full.index(j % mem.q_ring.depth), count=1)


@gluon.jit(
    do_not_specialize=[
        "total", "num_heads", "group", "mask_batch", "mask_heads", "seqlen_q", "offset", "num_tiles", "heads_per_section",
    ]
)  # fmt: skip
def forward_kernel(
    q_desc, k_desc, v_desc, out_desc,  # [B, H or Hk, S, D]
    lse,  # float32 [B, H, Sq], natural log
    vectors,  # int32 [vectors in use, planes, pitch], see packed_vectors
    runs, counts, order,  # TileRuns of the row tiles
    counter,  # int32 [1], zero: how many row tiles have been taken beyond the first of each program
    scale_log2, total, num_heads, group, mask_batch, mask_heads, seqlen_q, offset, stride, pitch, num_tiles,
    heads_per_section,
    CAUSAL: gl.constexpr,
    BOUNDS: gl.constexpr,
    MAX_RUNS: gl.constexpr,
    HEAD: gl.constexpr,
    BLOCK_N: gl.constexpr,
    CONSUMERS: gl.constexpr,
    Q_STAGES: gl.constexpr,
    KV_STAGES: gl.constexpr,
    KEEP_Q: gl.constexpr,
):  # fmt: skip
    """A row tile is CONSUMERS x ROWS queries of one head; `total` = batch x heads."""
    SHARED: gl.constexpr = gl.NVMMASharedLayout(128, 16, 2)
    mem = Buffers(
        gl.allocate_shared_memory(q_desc.dtype, [Q_STAGES * CONSUMERS, ROWS, HEAD], SHARED),
        gl.allocate_shared_memory(k_desc.dtype, [KV_STAGES, BLOCK_N, HEAD], SHARED),
        gl.allocate_shared_memory(v_desc.dtype, [KV_STAGES, BLOCK_N, HEAD], SHARED),
        gl.allocate_shared_memory(gl.int16, [CONSUMERS, 4, BLOCK_N], FIELDS),
        gl.allocate_shared_memory(gl.int32, [Q_STAGES, 8], gl.SwizzledSharedLayout(1, 1, 1, [0])),
        new_ring(Q_STAGES, CONSUMERS), new_ring(KV_STAGES, CONSUMERS), new_ring(KV_STAGES, CONSUMERS),
    )  # fmt: skip
    fence_async_shared()
    shape = Shape(CONSUMERS, CAUSAL, BOUNDS, MAX_RUNS, HEAD, BLOCK_N, KEEP_Q)
    if CONSUMERS == 2:
        gl.warp_specialize(
            [
                (_consumer, (0, mem, out_desc, lse, runs, vectors, stride, pitch, scale_log2, offset, seqlen_q,
                             num_heads, num_tiles, shape)),
                (_consumer, (1, mem, out_desc, lse, runs, vectors, stride, pitch, scale_log2, offset, seqlen_q,
                             num_heads, num_tiles, shape)),
                (_producer, (mem, q_desc, k_desc, v_desc, runs, counts, order, counter, total, num_heads, group,
                             mask_batch, mask_heads, num_tiles, heads_per_section, shape)),
            ],
            [4, 1],
            [240, 24],
        )  # fmt: skip
    else:
        gl.warp_specialize(
            [
                (_consumer, (0, mem, out_desc, lse, runs, vectors, stride, pitch, scale_log2, offset, seqlen_q,
                             num_heads, num_tiles, shape)),
                (_consumer, (1, mem, out_desc, lse, runs, vectors, stride, pitch, scale_log2, offset, seqlen_q,
                             num_heads, num_tiles, shape)),
                (_consumer, (2, mem, out_desc, lse, runs, vectors, stride, pitch, scale_log2, offset, seqlen_q,
                             num_heads, num_tiles, shape)),
                (_producer, (mem, q_desc, k_desc, v_desc, runs, counts, order, counter, total, num_heads, group,
                             mask_batch, mask_heads, num_tiles, heads_per_section, shape)),
            ],
            [4, 4, 1],
            [160, 160, 32],
        )  # fmt: skip
