"""What the Hopper backward kernels share: shared memory, the producer, how dQ leaves.

The kernels differ in what a consumer keeps in registers, see `hopper_backward` (head dims up to 128) and
`hopper_backward_wide` (256).
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma, warpgroup_mma

from .hopper_common import (
    Ring,
    StepRing,
    aggregate,
    first_tile,
    mask_plane,
    new_ring,
    new_step_ring,
    next_tile,
    opaque_zero,
    owned_tile,
    tma_reduce_add,
    write_slot,
)

COLS: gl.constexpr = gl.constexpr(64)  # keys of a consumer
TERMS: gl.constexpr = gl.constexpr(16)  # 3 in use for each of delta and lse; the depth of one matrix instruction


@aggregate
class Buffers:
    """Shared memory of a program and the rings over it."""

    kv: gl.shared_memory_descriptor  # [2, keys of a column tile, HEAD], see `k_of`
    q: gl.shared_memory_descriptor  # [stages, BLOCK_M, HEAD]
    dout: gl.shared_memory_descriptor
    lse: gl.shared_memory_descriptor  # [stages, BLOCK_M, TERMS], see `row_terms_kernel`
    delta: gl.shared_memory_descriptor
    ds: gl.shared_memory_descriptor  # [2, keys of a column tile, BLOCK_M]
    dq: gl.shared_memory_descriptor  # float32 [2, BLOCK_M, columns that leave together], one a consumer
    steps: gl.shared_memory_descriptor  # int32 [stages, 8]: PARTIAL or not, first row, row of dQ, mask plane
    slots: gl.shared_memory_descriptor  # int32 [2, 8]: batch entry, key head, column tile, steps
    tile_ring: Ring
    k_ring: Ring
    v_ring: StepRing
    q_ring: StepRing
    dout_ring: StepRing

    @gluon.constexpr_function
    def __init__(self, kv, q, dout, lse, delta, ds, dq, steps, slots, tile_ring, k_ring, v_ring, q_ring, dout_ring):
        self.kv = kv
        self.q = q
        self.dout = dout
        self.lse = lse
        self.delta = delta
        self.ds = ds
        self.dq = dq
        self.steps = steps
        self.slots = slots
        self.tile_ring = tile_ring
        self.k_ring = k_ring
        self.v_ring = v_ring
        self.q_ring = q_ring
        self.dout_ring = dout_ring


@gluon.jit
def new_buffers(q_desc, k_desc, dout_desc, dq_desc, KEYS: gl.constexpr, HEAD: gl.constexpr, BLOCK_M: gl.constexpr,
                Q_STAGES: gl.constexpr, DOUT_STAGES: gl.constexpr, Q_FREE: gl.constexpr, DOUT_FREE: gl.constexpr,
                V_FREE: gl.constexpr, V_READERS: gl.constexpr):  # fmt: skip
    """Of a program whose column tiles are KEYS keys, V of which V_READERS consumers read.

    *_FREE: the first named barriers of the rings.
    """
    SHARED: gl.constexpr = gl.NVMMASharedLayout(128, 16, 2)
    TERM_ROWS: gl.constexpr = gl.NVMMASharedLayout(32, 16, 2)
    PLAIN: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    return Buffers(
        gl.allocate_shared_memory(k_desc.dtype, [2, KEYS, HEAD], SHARED),
        gl.allocate_shared_memory(q_desc.dtype, [Q_STAGES, BLOCK_M, HEAD], SHARED),
        gl.allocate_shared_memory(dout_desc.dtype, [DOUT_STAGES, BLOCK_M, HEAD], SHARED),
        gl.allocate_shared_memory(q_desc.dtype, [Q_STAGES, BLOCK_M, TERMS], TERM_ROWS),
        gl.allocate_shared_memory(q_desc.dtype, [DOUT_STAGES, BLOCK_M, TERMS], TERM_ROWS),
        gl.allocate_shared_memory(q_desc.dtype, [2, KEYS, BLOCK_M], SHARED),
        gl.allocate_shared_memory(gl.float32, [2, dq_desc.block_shape[0], dq_desc.block_shape[1]], dq_desc.layout),
        gl.allocate_shared_memory(gl.int32, [Q_STAGES, 8], PLAIN),
        gl.allocate_shared_memory(gl.int32, [2, 8], PLAIN),
        new_ring(2, 2), new_ring(2, 2), new_step_ring(1, V_FREE, V_READERS), new_step_ring(Q_STAGES, Q_FREE, 2),
        new_step_ring(DOUT_STAGES, DOUT_FREE, 2),
    )  # fmt: skip


@gluon.jit
def k_of(j, i, mem):
    """K of the j-th column tile of a program, at step i.

    K of a tile is copied to where V of the tile before was, which is left a step before K, and V to where K was: so the
    next tile's first product need not wait for its copy.
    """
    return mem.kv.index((j & 1) + opaque_zero(i))


@gluon.jit
def v_of(j, i, mem):
    return mem.kv.index(1 - (j & 1) + opaque_zero(i))


@gluon.jit
def summing(UNIT: gl.constexpr, dtype: gl.constexpr, L: gl.constexpr):
    """A constant [COLS, TERMS] left operand: the product with terms [TERMS, rows] is, in every row, the sum of terms 0, 1,
    2 (delta) and UNIT times that of 3, 4, 5 (lse). One constant for both: a second one has no registers."""
    term = gl.expand_dims(gl.arange(0, TERMS, layout=gl.SliceLayout(0, L)), 0)
    unit = gl.where(term < 6, gl.full([COLS, TERMS], UNIT, gl.float32, L), 0.0)
    return gl.where(term < 3, gl.full([COLS, TERMS], 1.0, gl.float32, L), unit).to(dtype)


@gluon.jit
def rotate_rows(x, ROWS: gl.constexpr, COLUMNS: gl.constexpr):
    """Rows r2 r1 r0 of every eight as r1 r0 r2: stored in this order into the swizzled buffer, float32 accumulators
    meet no bank conflict. It renames registers only; `convert_dq_kernel` reads the rows back in order."""
    return x.reshape([ROWS // 8, 2, 4, COLUMNS]).permute([0, 2, 1, 3]).reshape([ROWS, COLUMNS])


@gluon.jit
def issue_dq(i, k_tile, mem, COLUMN: gl.constexpr, COLUMNS: gl.constexpr, BLOCK_M: gl.constexpr):
    """Columns COLUMN ... of dQ(i) [BLOCK_M, COLUMNS] = dS K, in flight."""
    DQ: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, COLUMNS, 16])
    zero = gl.zeros([BLOCK_M, COLUMNS], gl.float32, DQ)
    k_part = k_tile.slice(COLUMN, COLUMNS, dim=1)
    return warpgroup_mma(mem.ds.index(i & 1).permute((1, 0)), k_part, zero, use_acc=False, is_async=True)


@gluon.jit
def add_dq(dq, row, column, mem, dq_desc, WHO: gl.constexpr):
    """Send dq [rows, columns] on its way to rows `row` ... and columns `column` ... of the sums."""
    tma.store_wait(0)
    mem.dq.index(WHO).store(rotate_rows(dq, dq.shape[0], dq.shape[1]))
    fence_async_shared()
    tma_reduce_add(dq_desc, [row, column], mem.dq.index(WHO))


@gluon.jit
def _load_q(i, mem, b, h, bh, partial, row_tile, plane, q_desc, lse_desc, row_pitch,
            HEAD: gl.constexpr, BLOCK_M: gl.constexpr):  # fmt: skip
    stage = i % mem.q_ring.depth
    row = row_tile * BLOCK_M
    mem.q_ring.wait_empty(i)
    write_slot(mem.steps.index(stage), partial, row, bh * row_pitch + row, plane, 0)
    full = mem.q_ring.full.index(stage)
    mbarrier.expect(full, BLOCK_M * (HEAD + TERMS) * 2)
    tma.async_copy_global_to_shared(q_desc, [b, h, row, 0], full, mem.q.index(stage))
    tma.async_copy_global_to_shared(lse_desc, [bh, row, 0], full, mem.lse.index(stage))


@gluon.jit
def _load_dout(i, mem, b, h, bh, row_tile, dout_desc, delta_desc, HEAD: gl.constexpr, BLOCK_M: gl.constexpr):
    stage = i % mem.dout_ring.depth
    row = row_tile * BLOCK_M
    mem.dout_ring.wait_empty(i)
    full = mem.dout_ring.full.index(stage)
    mbarrier.expect(full, BLOCK_M * (HEAD + TERMS) * 2)
    tma.async_copy_global_to_shared(dout_desc, [b, h, row, 0], full, mem.dout.index(stage))
    tma.async_copy_global_to_shared(delta_desc, [bh, row, 0], full, mem.delta.index(stage))


@gluon.jit
def producer(mem, q_desc, k_desc, v_desc, dout_desc, lse_desc, delta_desc, runs, counts, order, counter, total,
              num_heads, group, mask_batch, mask_heads, row_pitch, num_tiles, heads_per_section,
              MAX_RUNS: gl.constexpr, HEAD: gl.constexpr, BLOCK_M: gl.constexpr):  # fmt: skip
    """`total` = batch x key heads."""
    COLUMNS: gl.constexpr = mem.kv.shape[1]
    i = 0
    j = 0
    t = gl.program_id(0)
    while t < total * num_tiles:
        b, hk, first_plane, col_tile = owned_tile(
            t, order, total, num_heads // group, group, num_tiles, mask_batch, mask_heads, heads_per_section
        )
        t = gl.atomic_add(counter, 1, sem="relaxed") + gl.num_programs(0)
        num_steps = 0
        for h in range(hk * group, hk * group + group):
            line = mask_plane(b, h, num_heads, mask_batch, mask_heads) * num_tiles + col_tile
            num_steps += gl.load(counts + 2 * line) + gl.load(counts + 2 * line + 1)
        nothing = num_steps == 0
        mem.tile_ring.wait_empty(j)
        write_slot(mem.slots.index(j % 2), b, hk, col_tile, gl.maximum(num_steps, 1), 0)
        mbarrier.arrive(mem.tile_ring.full.index(j % 2), count=1)
        began = i
        for h in range(hk * group, hk * group + group):
            bh = b * num_heads + h
            plane = mask_plane(b, h, num_heads, mask_batch, mask_heads)
            line = plane * num_tiles + col_tile
            num_partial = gl.load(counts + 2 * line)
            num_all = num_partial + gl.load(counts + 2 * line + 1)
            if nothing:  # the first query head of the group takes the one step that hides everything
                num_partial = (h == hk * group).to(gl.int32)
                num_all = num_partial
            run, tile, end = first_tile(runs, line, MAX_RUNS)
            for step in range(0, num_all):
                partial = (step < num_partial).to(gl.int32)
                _load_q(i, mem, b, h, bh, partial, tile, plane, q_desc, lse_desc, row_pitch, HEAD, BLOCK_M)
                if i == began:
                    mem.v_ring.wait_empty(j)
                    full = mem.k_ring.full.index(j % 2)
                    mbarrier.expect(full, COLUMNS * HEAD * 2)
                    tma.async_copy_global_to_shared(k_desc, [b, hk, col_tile * COLUMNS, 0], full, k_of(j, i, mem))
                _load_dout(i, mem, b, h, bh, tile, dout_desc, delta_desc, HEAD, BLOCK_M)
                if i == began:
                    mem.k_ring.wait_empty(j + 1)  # where K of the tile before is
                    full = mem.v_ring.full.index(0)
                    mbarrier.expect(full, COLUMNS * HEAD * 2)
                    tma.async_copy_global_to_shared(v_desc, [b, hk, col_tile * COLUMNS, 0], full, v_of(j, i, mem))
                run, tile, end = next_tile(runs, run, tile, end)
                i += 1
        j += 1
    mem.tile_ring.wait_empty(j)
    write_slot(mem.slots.index(j % 2), 0, 0, -1, 0, 0)
    mbarrier.arrive(mem.tile_ring.full.index(j % 2), count=1)
