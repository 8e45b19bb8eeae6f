"""The kernels as registered operators: metadata kept with its mask, fake kernels, the gradient.

`torch.compile(fullgraph=True)` sees three opaque operators (flashmask::tile_runs, flashmask::forward and
flashmask::backward) and plain tensor operations between them; nothing reads a tensor on the host.

An *engine* says whose kernels run: "triton" (portable), "hopper", or "hopper_exact", which is the Hopper forward with
the portable, bitwise repeatable backward.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..masks.column_mask import ColumnMask
from ..tiles.tile_runs import Lines, TileRuns, build_tile_runs, padded_vectors
from . import launch
from .configs import kernel_configs

_SMALLEST_HOPPER_SCALE = 1e-4


def attend(q, k, v, mask: ColumnMask, scale: float, *, hopper: bool = False, deterministic: bool = False):
    """(out [B, Sq, H, D], lse float32 [B, H, Sq]) of checked arguments, differentiable."""
    if scale < 0:  # the running maximum wants a positive scale
        return attend(-q, k, v, mask, -scale, hopper=hopper, deterministic=deterministic)
    needs_grad = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)
    # The Hopper backward keeps lse / scale in 16-bit terms, which have no room for a scale near 0.
    deterministic = deterministic or scale < _SMALLEST_HOPPER_SCALE
    engine = choose_engine(hopper=hopper, deterministic=deterministic)
    vectors, plan = prepare(mask, q.shape[3], q.dtype, needs_grad, engine)
    # A scale of 0 would make 0 x -inf; the smallest product that is still a number does the same.
    return _forward_op(q, k, v, vectors, plan, mask.causal, mask.bounds, scale or 1e-30, engine)


def gradients(dout, q, k, v, out, lse, mask: ColumnMask, scale: float, *, hopper: bool = False,
              deterministic: bool = False):  # fmt: skip
    """(dq, dk, dv) of `attend` at a scale above 0, of what it returned, for who recomputes and not records."""
    deterministic = deterministic or scale < _SMALLEST_HOPPER_SCALE
    engine = choose_engine(hopper=hopper, deterministic=deterministic)
    vectors, plan = prepare(mask, q.shape[3], q.dtype, True, engine)
    return _backward_op(dout, None, q, k, v, out, lse, vectors, plan[3:], mask.causal, mask.bounds, scale, engine)


def choose_engine(*, hopper: bool, deterministic: bool) -> str:
    if not hopper:
        return "triton"
    return "hopper_exact" if deterministic else "hopper"


def prepare(mask: ColumnMask, head_dim: int, dtype: torch.dtype, needs_grad: bool,
            engine: str = "triton") -> tuple[list[Tensor], list[Tensor]]:  # fmt: skip
    """What the kernels read of a mask: (padded vectors, tensors of TileRuns for forward and, if needed, backward).

    Built on the mask's device on first use and kept with the mask, for every layer and step that shares it. The Hopper
    kernels want the vectors behind one another: that tensor is the fifth.
    """
    causal, bounds = mask.causal, mask.bounds
    packing = dict(causal=causal, bounds=bounds)
    (vectors,) = _kept(mask, ["padded"], lambda _: [list(padded_vectors(mask.vectors, **packing))])
    configs = kernel_configs(head_dim, dtype, mask.device, **packing)
    forward = Lines(*_blocks(configs.forward), False)
    backward = [Lines(*_blocks(configs.dkdv), True), Lines(*_blocks(configs.dq), False)]
    if engine != "triton":
        from . import hopper_launch

        (packed,) = _kept(mask, ["packed"], lambda _: [[hopper_launch.packed_vectors(vectors, **packing)]])
        forward = Lines(*hopper_launch.forward_blocks(head_dim), False)
        if engine == "hopper":
            backward = [Lines(*hopper_launch.backward_blocks(head_dim), True)]

    def build(lines: list[Lines]) -> list[list[Tensor]]:
        numbers = [number for line in lines for number in line]
        flat = _tile_runs_op(vectors, mask.seqlen_q, mask.seqlen_k, causal, bounds, numbers)
        return [flat[i : i + 3] for i in range(0, len(flat), 3)]

    plan = _kept(mask, [forward, *backward] if needs_grad else [forward], build)
    return vectors if engine == "triton" else [*vectors, *packed], [x for tensors in plan for x in tensors]


def _blocks(config) -> tuple[int, int]:
    return config.block_m, config.block_n


def _kept(mask: ColumnMask, keys: list, build) -> list[list[Tensor]]:
    """The tensors that are kept with a mask under each key; `build(missing keys)` makes those that are not there yet.

    A graph that is being traced uses what is there and adds nothing.
    """
    missing = [key for key in dict.fromkeys(keys) if key not in mask._cache]
    if missing and torch.compiler.is_compiling():
        made = dict(zip(missing, build(missing)))
        return [made[key] if key in made else mask._cache[key] for key in keys]
    if missing:
        with torch.inference_mode(False):  # a tensor made in inference mode could not be saved for a later backward
            for key, tensors in zip(missing, build(missing)):
                mask._cache[key] = [x.clone() if x.is_inference() else x for x in tensors]
    return [mask._cache[key] for key in keys]


@torch.library.custom_op("flashmask::tile_runs", mutates_args=())
def _tile_runs_op(vectors: list[Tensor], seqlen_q: int, seqlen_k: int, causal: bool, bounds: int,
                  lines: list[int]) -> list[Tensor]:  # fmt: skip
    """lines: the three numbers of every Lines that is wanted. Returns the tensors of their TileRuns."""
    with _on_device(vectors[0]):
        built = build_tile_runs(
            vectors, seqlen_q=seqlen_q, seqlen_k=seqlen_k, causal=causal, bounds=bounds, lines=_lines(lines)
        )
    return [x for tiles in built for x in tiles.tensors]


@_tile_runs_op.register_fake
def _(vectors, seqlen_q, seqlen_k, causal, bounds, lines):
    planes = vectors[0].shape[0] * vectors[0].shape[1]
    counts = [line.count(seqlen_q, seqlen_k) for line in _lines(lines)]
    return [x for count in counts for x in TileRuns.empty(planes, count, vectors[0].device).tensors]


def _lines(numbers: list[int]) -> list[Lines]:
    return [Lines(block_m, block_n, bool(by)) for block_m, block_n, by in zip(*[iter(numbers)] * 3)]


@torch.library.custom_op("flashmask::forward", mutates_args=())
def _forward_op(q: Tensor, k: Tensor, v: Tensor, vectors: list[Tensor], plan: list[Tensor], causal: bool, bounds: int,
                scale: float, engine: str) -> tuple[Tensor, Tensor]:  # fmt: skip
    """plan: the tensors of TileRuns for the forward and, where a gradient is wanted, for the backward behind them."""
    batch, seqlen_q, heads, head_dim = q.shape
    if q.numel() == 0 or k.numel() == 0:
        lse = torch.full((batch, heads, seqlen_q), float("-inf"), dtype=torch.float32, device=q.device)
        return torch.zeros_like(q, memory_format=torch.contiguous_format), lse
    tiles, mask = TileRuns(*plan[:3]), dict(causal=causal, bounds=bounds, scale=scale)
    with _on_device(q):
        if engine == "triton":
            configs = kernel_configs(head_dim, q.dtype, q.device, causal=causal, bounds=bounds)
            out, lse = launch.forward(q, k, v, vectors, tiles, **mask, config=configs.forward)
        else:
            from . import hopper_launch

            out, lse = hopper_launch.forward(q, k, v, vectors[4], tiles, **mask)
    return _cut(out, head_dim), lse


@_forward_op.register_fake
def _(q, k, v, vectors, plan, causal, bounds, scale, engine):
    batch, seqlen_q, heads, head_dim = q.shape
    return q.new_empty(batch, seqlen_q, heads, head_dim), q.new_empty(batch, heads, seqlen_q, dtype=torch.float32)


@torch.library.custom_op("flashmask::backward", mutates_args=())
def _backward_op(dout: Tensor, dlse: Tensor | None, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor,
                 vectors: list[Tensor], plan: list[Tensor], causal: bool, bounds: int,
                 scale: float, engine: str) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """plan: the tensors of TileRuns for dkdv and, but for the Hopper backward, for dq."""
    if q.numel() == 0 or k.numel() == 0:
        return tuple(torch.zeros_like(x, memory_format=torch.contiguous_format) for x in (q, k, v))
    mask = dict(causal=causal, bounds=bounds, scale=scale)
    with _on_device(q):
        if engine == "hopper":
            from . import hopper_launch

            grads = hopper_launch.backward(dout, dlse, q, k, v, out, lse, vectors[4], TileRuns(*plan), **mask)
        else:
            configs = kernel_configs(q.shape[3], q.dtype, q.device, causal=causal, bounds=bounds)
            row_tiles, col_tiles = TileRuns(*plan[3:]), TileRuns(*plan[:3])
            grads = launch.backward(
                dout, dlse, q, k, v, out, lse, vectors[:4], row_tiles, col_tiles, **mask, configs=configs
            )
    return tuple(_cut(grad, q.shape[3]) for grad in grads)


@_backward_op.register_fake
def _(dout, dlse, q, k, v, out, lse, vectors, plan, causal, bounds, scale, engine):
    return tuple(x.new_empty(x.shape) for x in (q, k, v))


def _save_for_backward(ctx, inputs, output):
    q, k, v, vectors, plan, ctx.causal, ctx.bounds, ctx.scale, ctx.engine = inputs
    ctx.num_vectors, ctx.num_plan = len(vectors), len(plan)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(q, k, v, *output, *vectors, *plan[3:])


def _gradient(ctx, dout, dlse):
    nothing = ([None] * ctx.num_vectors, [None] * ctx.num_plan, None, None, None, None)
    if dout is None and dlse is None:
        return None, None, None, *nothing
    q, k, v, out, lse, *rest = ctx.saved_tensors
    vectors, plan = rest[: ctx.num_vectors], rest[ctx.num_vectors :]
    dout = torch.zeros_like(out) if dout is None else dout
    grads = _backward_op(dout, dlse, q, k, v, out, lse, vectors, plan, ctx.causal, ctx.bounds, ctx.scale, ctx.engine)
    return *grads, *nothing


_forward_op.register_autograd(_gradient, setup_context=_save_for_backward)


def _cut(x: Tensor, head_dim: int) -> Tensor:
    return x if x.shape[3] == head_dim else x[..., :head_dim].contiguous()


def _on_device(x: Tensor):
    """Triton launches on the current device, which need not be the tensor's."""
    return torch.cuda.device(x.device) if x.is_cuda else torch.no_grad()
