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
from ..tiles.tile_runs import MAX_RUNS, TileRuns, build_tile_runs, padded_vectors
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
    engine = choose_engine(q.shape[3], hopper=hopper, deterministic=deterministic)
    vectors, plan = prepare(mask, q.shape[3], q.dtype, needs_grad, engine)
    # A scale of 0 would make 0 x -inf; the smallest product that is still a number does the same.
    return _forward_op(q, k, v, vectors, plan, mask.causal, mask.bounds, scale or 1e-30, engine)


def gradients(dout, q, k, v, out, lse, mask: ColumnMask, scale: float, *, hopper: bool = False,
              deterministic: bool = False):  # fmt: skip
    """(dq, dk, dv) of `attend` at a scale above 0, of what it returned, for who recomputes and not records."""
    deterministic = deterministic or scale < _SMALLEST_HOPPER_SCALE
    engine = choose_engine(q.shape[3], hopper=hopper, deterministic=deterministic)
    vectors, plan = prepare(mask, q.shape[3], q.dtype, True, engine)
    return _backward_op(dout, None, q, k, v, out, lse, vectors, plan[3:], mask.causal, mask.bounds, scale, engine)


def choose_engine(head_dim: int, *, hopper: bool, deterministic: bool) -> str:
    if not hopper:
        return "triton"
    from . import hopper_launch

    return "hopper_exact" if deterministic or head_dim > hopper_launch.LARGEST_BACKWARD_HEAD else "hopper"


def prepare(mask: ColumnMask, head_dim: int, dtype: torch.dtype, needs_grad: bool,
            engine: str = "triton") -> tuple[list[Tensor], list[Tensor]]:  # fmt: skip
    """What the kernels read of a mask: (padded vectors, tensors of TileRuns for forward and, if needed, backward).

    Built on the mask's device on first use and kept with the mask, for every layer and step that shares it. The Hopper
    kernels want the vectors behind one another: that tensor is the fifth.
    """
    causal, bounds = mask.causal, mask.bounds
    vectors = _kept(mask, "padded", lambda: padded_vectors(mask.vectors, causal=causal, bounds=bounds))
    configs = kernel_configs(head_dim, dtype, mask.device, causal=causal, bounds=bounds)
    forward, backward = _blocks(configs.forward), [(_blocks(configs.dkdv), True), (_blocks(configs.dq), False)]
    if engine != "triton":
        from . import hopper_launch

        pack = lambda: [hopper_launch.packed_vectors(vectors, causal=causal, bounds=bounds)]  # noqa: E731
        vectors = [*vectors, *_kept(mask, "packed", pack)]
        forward = hopper_launch.forward_blocks(head_dim)
        if engine == "hopper":
            backward = [(hopper_launch.backward_blocks(head_dim), True)]
    plan = [*_runs(mask, vectors, forward, False)]
    if needs_grad:
        for blocks, column_lines in backward:
            plan += _runs(mask, vectors, blocks, column_lines)
    return vectors, plan


def _blocks(config) -> tuple[int, int]:
    return config.block_m, config.block_n


def _runs(mask: ColumnMask, vectors, blocks: tuple[int, int], column_lines: bool) -> list[Tensor]:
    build = lambda: _tile_runs_op(  # noqa: E731
        vectors[:4], mask.seqlen_q, mask.seqlen_k, mask.causal, mask.bounds, *blocks, column_lines
    )
    return _kept(mask, (*blocks, column_lines), build)


def _kept(mask: ColumnMask, key, build) -> list[Tensor]:
    """Tile metadata is cached with its mask; a graph that is being traced uses what is there and adds nothing."""
    if key in mask._cache:
        return mask._cache[key]
    if torch.compiler.is_compiling():
        return list(build())
    with torch.inference_mode(False):  # a tensor made in inference mode could not be saved for a later backward
        mask._cache[key] = [x.clone() if x.is_inference() else x for x in build()]
    return mask._cache[key]


@torch.library.custom_op("flashmask::tile_runs", mutates_args=())
def _tile_runs_op(vectors: list[Tensor], seqlen_q: int, seqlen_k: int, causal: bool, bounds: int, block_m: int,
                  block_n: int, column_lines: bool) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    with _on_device(vectors[0]):
        tiles = build_tile_runs(
            vectors, seqlen_q=seqlen_q, seqlen_k=seqlen_k, causal=causal, bounds=bounds, block_m=block_m,
            block_n=block_n, column_lines=column_lines,
        )  # fmt: skip
    return tiles.runs, tiles.counts, tiles.order


@_tile_runs_op.register_fake
def _(vectors, seqlen_q, seqlen_k, causal, bounds, block_m, block_n, column_lines):
    planes = vectors[0].shape[0] * vectors[0].shape[1]
    length, block = (seqlen_k, block_n) if column_lines else (seqlen_q, block_m)
    lines = (length + block - 1) // block
    new = lambda *shape: vectors[0].new_empty(shape, dtype=torch.int32)  # noqa: E731
    return new(planes, lines, MAX_RUNS, 2), new(planes, lines, 2), new(planes, lines)


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
