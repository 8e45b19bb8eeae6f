"""What the Hopper forward and backward share: barriers, rings, the work list, the element test.

Gluon is Triton's language with explicit layouts, shared memory and warp roles. Three of its notions recur:

* a *mbarrier* is a counter in shared memory that flips its phase when the expected arrivals (and bytes of asynchronous
  copies) are in; `wait(barrier, phase)` returns once the phase of that number has ended;
* a *ring* is a few stages of shared memory with a `full` and an `empty` mbarrier each: the producer waits until stage
  i % depth is empty, starts the copy and lets it arrive at `full`; a consumer waits for `full`, reads, arrives at
  `empty`. The number of times round, (i // depth) & 1, is the phase;
* a *named barrier* (bar.sync / bar.arrive of PTX) is a hardware meeting point of a given number of threads, one of 16;
  Triton itself takes the first ones, up to the number of warp roles.
"""

from triton._C.libtriton import ir
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language._core import builtin
from triton.experimental.gluon.language.nvidia.hopper import mbarrier
from triton.language.core import _aggregate as aggregate

# Triton 3.7 renamed the barrier of all threads of a warp role.
thread_barrier = gl.barrier if hasattr(gl, "barrier") else gl.thread_barrier


@builtin
def tma_reduce_add(desc, coord, src, _semantic=None):
    """Add a shared-memory tile to global memory by one asynchronous copy; Gluon has the operation but no name for it."""
    coord = _semantic._convert_to_ir_values(coord, require_i64=False)
    _semantic.builder.create_async_tma_reduce(ir.DESCRIPTOR_REDUCE_KIND.ADD, desc.handle, coord, src.handle)


@gluon.jit
def sync_named(barrier, THREADS: gl.constexpr = 256):
    """Wait at a named barrier until THREADS threads (two consumers, if not said otherwise) have come or arrived."""
    gl.inline_asm_elementwise(
        f"bar.sync $1, {THREADS}; mov.b32 $0, $1;", "=r,r", [barrier], dtype=gl.int32, is_pure=False, pack=1
    )


@gluon.jit
def arrive_named(barrier, THREADS: gl.constexpr = 256):
    """Count towards a named barrier without waiting for it."""
    gl.inline_asm_elementwise(
        f"bar.arrive $1, {THREADS}; mov.b32 $0, $1;", "=r,r", [barrier], dtype=gl.int32, is_pure=False, pack=1
    )


@aggregate
class Ring:
    """`depth` stages with a full and an empty mbarrier each; step i uses stage i % depth."""

    full: gl.shared_memory_descriptor
    empty: gl.shared_memory_descriptor
    depth: gl.constexpr

    @gluon.constexpr_function
    def __init__(self, full, empty, depth):
        self.full = full
        self.empty = empty
        self.depth = gl.constexpr(depth)

    @gluon.jit
    def wait_full(self, i, pred=True):
        mbarrier.wait(self.full.index(i % self.depth), (i // self.depth) & 1, pred=pred)

    @gluon.jit
    def wait_empty(self, i):
        mbarrier.wait(self.empty.index(i % self.depth), ((i // self.depth) & 1) ^ 1)

    @gluon.jit
    def release(self, i, pred=True):
        mbarrier.arrive(self.empty.index(i % self.depth), pred=pred)


@gluon.jit
def new_ring(depth: gl.constexpr, consumers: gl.constexpr):
    """A ring whose stages are empty once every one of `consumers` warp groups has arrived."""
    full = gl.allocate_shared_memory(gl.int64, [depth, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [depth, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(depth):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=consumers)
    return Ring(full, empty, depth)


@aggregate
class StepRing:
    """A ring whose stages are left through named barriers: `first` for stage 0, the next ones for the stages behind it.

    An arrival at an mbarrier makes the warps of a consumer meet first; at a named barrier each warp arrives for itself.
    `threads` counts the consumers' and the producer's.
    """

    full: gl.shared_memory_descriptor
    first: gl.constexpr
    threads: gl.constexpr
    depth: gl.constexpr

    @gluon.constexpr_function
    def __init__(self, full, first, threads, depth):
        self.full = full
        self.first = gl.constexpr(first)
        self.threads = gl.constexpr(threads)
        self.depth = gl.constexpr(depth)

    @gluon.jit
    def wait_full(self, i, pred=True):
        mbarrier.wait(self.full.index(i % self.depth), (i // self.depth) & 1, pred=pred)

    @gluon.jit
    def wait_empty(self, i):
        if i >= self.depth:  # nobody was in a stage before the first step
            sync_named(self.first + i % self.depth, self.threads)

    @gluon.jit
    def leave(self, i):
        arrive_named(self.first + i % self.depth, self.threads)


@gluon.jit
def new_step_ring(depth: gl.constexpr, first: gl.constexpr, consumers: gl.constexpr):
    """A step ring of `consumers` warp groups and a producer of one warp."""
    full = gl.allocate_shared_memory(gl.int64, [depth, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(depth):
        mbarrier.init(full.index(i), count=1)
    return StepRing(full, first, 128 * consumers + 32, depth)


@gluon.jit
def write_slot(slot, a, b, c, d, e):
    """Five scalars to the consumers: slot is int32 [8] in shared memory."""
    i = gl.arange(0, 8, layout=gl.BlockedLayout([8], [32], [gl.num_warps()], [0]))
    x = gl.where(i == 0, a, gl.where(i == 1, b, gl.where(i == 2, c, gl.where(i == 3, d, e))))
    slot.store(x)
    thread_barrier()


@gluon.jit
def read_slot(slot):
    """The five scalars; every thread holds all eight numbers, so nothing is shuffled."""
    x = slot.load(gl.BlockedLayout([8], [32], [gl.num_warps()], [0]))
    i = gl.arange(0, 8, layout=x.type.layout)
    return (
        gl.sum(gl.where(i == 0, x, 0), 0), gl.sum(gl.where(i == 1, x, 0), 0), gl.sum(gl.where(i == 2, x, 0), 0),
        gl.sum(gl.where(i == 3, x, 0), 0), gl.sum(gl.where(i == 4, x, 0), 0),
    )  # fmt: skip


@gluon.jit
def read_one(slot, I: gl.constexpr):
    """Scalar I of a slot alone."""
    return gl.sum(slot.slice(I, 1).load(gl.BlockedLayout([1], [32], [gl.num_warps()], [0])), 0)


@gluon.jit
def opaque_zero(i):
    """0 for every step number i, which the compiler cannot see.

    Indexing a buffer with it makes the operand descriptors of a product depend on the step. The compiler would otherwise
    compute them once, keep 16 registers of them a product, spill these and load them in every step; depending on the
    step, they are a few uniform additions.
    """
    return i >> 30


@gluon.jit
def mask_plane(b, h, num_heads, mask_batch, mask_heads):
    """Index of the mask of batch entry b and query head h in the flattened [B or 1, Hm]."""
    return gl.where(mask_batch > 1, b, 0) * mask_heads + h // (num_heads // mask_heads)


@gluon.jit
def owned_tile(t, order, total_heads, heads, queries_per_head, num_tiles, mask_batch, mask_heads, heads_per_section):
    """(batch entry, head, mask plane, tile) of entry t of the work list over batch x heads x num_tiles.

    Heads are taken in sections whose K and V fit the L2 cache together; inside a section the heaviest tiles of all
    its heads come first. `heads` counts query heads (queries_per_head = 1) or key heads (the group size).
    """
    section = t // (heads_per_section * num_tiles)
    rest = t - section * (heads_per_section * num_tiles)
    heads_here = gl.minimum(heads_per_section, total_heads - section * heads_per_section)
    rank = rest // heads_here
    bh = section * heads_per_section + rest - rank * heads_here
    b = bh // heads
    h = bh % heads
    plane = mask_plane(b, h * queries_per_head, heads * queries_per_head, mask_batch, mask_heads)
    return b, h, plane, gl.load(order + plane * num_tiles + rank)


@gluon.jit
def first_tile(runs, line, MAX_RUNS: gl.constexpr):
    """(run, tile, end) at the start of a line: run counts int32 entries of `runs`."""
    run = line * (2 * MAX_RUNS)
    return run, gl.load(runs + run), gl.load(runs + run + 1)


@gluon.jit
def next_tile(runs, run, tile, end):
    """The tile after `tile`: the next of its run, or the first of the next run."""
    tile += 1
    run += gl.where(tile == end, 2, 0)
    first = gl.load(runs + run)
    return run, gl.where(tile == end, first, tile), gl.load(runs + run + 1)
