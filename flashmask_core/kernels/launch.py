"""Launchers of the portable kernels: tensors of the public layout in, tensors of the public layout out.

Every tensor reaches a kernel as a descriptor of [B, H, S, D] in its own strides. Hardware descriptors want a unit
stride along D and multiples of 16 bytes elsewhere; a tensor that has them (any slice of a fused projection, any order
of the other dimensions) is read in place, another one is copied first.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from ..tiles.tile_runs import MAX_RUNS, PADDING, TileRuns
from .backward import delta_kernel, dkdv_kernel, dq_kernel
from .configs import BlockConfig, KernelConfigs, head_block
from .forward import forward_kernel

_L2_BYTES = 32 * 2**20  # K and V of the heads in flight should stay in the L2 cache (50 to 60 MB on Hopper)
LOG2E = math.log2(math.e)
_ALIGNMENT = 16  # bytes, of a descriptor's base and strides


def cdiv(a: int, b: int) -> int:
    """a / b rounded up; Triton's own takes a detour through its compile-time values."""
    return -(-a // b)


def interpreted() -> bool:
    """True if the kernels were decorated under TRITON_INTERPRET=1 and run on the CPU."""
    return not isinstance(forward_kernel, triton.runtime.JITFunction)


def interpreter_problem() -> str | None:
    """Why the installed versions cannot run the kernels on the CPU, or None."""
    triton_version, numpy_version = (tuple(map(int, m.__version__.split(".")[:2])) for m in (triton, np))
    if triton_version < (3, 7) and numpy_version >= (2, 4):
        return f"the interpreter of Triton {triton.__version__} needs numpy below 2.4 or Triton 3.7, got {np.__version__}"
    return None


def describable(x: torch.Tensor) -> torch.Tensor:
    """x [B, S, H, D] if a descriptor can read it in place, else a copy that one can read (D padded with zeros)."""
    unit = _ALIGNMENT // x.element_size()
    aligned = all(size == 1 or (stride > 0 and stride % unit == 0) for size, stride in zip(x.shape, x.stride()[:3]))
    if x.stride(3) == 1 and aligned and x.data_ptr() % _ALIGNMENT == 0 and (x.shape[3] * x.element_size()) % 16 == 0:
        return x
    padded = torch.zeros(*x.shape[:3], x.shape[3] + -x.shape[3] % unit, dtype=x.dtype, device=x.device)
    padded[..., : x.shape[3]] = x
    return padded


def heads_first(x: torch.Tensor) -> tuple[torch.Tensor, list[int], list[int]]:
    """(x, shape, strides) of x [B, S, H, D] seen as [B, H, S, D], as a descriptor wants them."""
    b, s, h, d = x.shape
    unit = _ALIGNMENT // x.element_size()
    # A dimension of size 1 may carry any stride; a descriptor still wants a valid one.
    strides = [st if size > 1 else unit for size, st in ((b, x.stride(0)), (h, x.stride(2)), (s, x.stride(1)))]
    return x, [b, h, s, d], [*strides, 1]


def describe(x: torch.Tensor, rows: int, head: int) -> TensorDescriptor:
    """Descriptor of x [B, S, H, D] seen as [B, H, S, D], for tiles of `rows` tokens of one head."""
    return TensorDescriptor(*heads_first(x), [1, 1, rows, head])


def _new_output(like: torch.Tensor, heads: int, seqlen: int, head_dim: int) -> torch.Tensor:
    return torch.empty(like.shape[0], seqlen, heads, head_dim, dtype=like.dtype, device=like.device)


def heads_per_section(batch: int, heads: int, heads_per_pair: int, length: int, like: torch.Tensor) -> int:
    """How many of the heads a section holds so that the tensor pairs they walk along fit the L2 cache.

    A pair (K and V, or Q and dO) is `length` tokens of the head dim and dtype of `like`, for `heads_per_pair` heads.
    """
    bytes_per_pair = 2 * length * like.shape[3] * like.element_size()
    return min(batch * heads, max(1, _L2_BYTES // bytes_per_pair) * heads_per_pair)


def _mask_args(vectors, tiles: TileRuns, causal: bool, bounds: int) -> dict:
    lts, lte, uts, ute = vectors
    return dict(
        lts=lts, lte=lte, uts=uts, ute=ute, runs=tiles.runs, counts=tiles.counts, order=tiles.order,
        mask_batch=lts.shape[0], mask_heads=lts.shape[1], pitch=lts.shape[2], CAUSAL=causal, BOUNDS=bounds, MAX_RUNS=MAX_RUNS,
    )  # fmt: skip


def _block_args(config: BlockConfig, head_dim: int) -> dict:
    return dict(
        BLOCK_M=config.block_m, BLOCK_N=config.block_n, HEAD=head_block(head_dim),
        num_warps=config.num_warps, num_stages=config.num_stages, maxnreg=config.max_registers,
    )  # fmt: skip


def forward(q, k, v, vectors, tiles: TileRuns, *, causal: bool, bounds: int, scale: float,
            config: BlockConfig):  # fmt: skip
    """(out [B, Sq, H, D], lse float32 [B, H, Sq]) of q [B, Sq, H, D], k and v [B, Sk, Hk, D]; no length is 0.

    `vectors` are the mask's `padded_vectors`; `tiles` the runs of its row tiles in the configuration's blocks.
    A D that is no multiple of 16 bytes comes back rounded up to one, with zeros behind.
    """
    q, k, v = describable(q), describable(k), describable(v)
    batch, seqlen_q, heads, head_dim = q.shape
    seqlen_k, group = k.shape[1], heads // k.shape[2]
    block_m, block_n, head = config.block_m, config.block_n, head_block(head_dim)
    out = _new_output(q, heads, seqlen_q, head_dim)
    lse = torch.empty(batch, heads, seqlen_q, dtype=torch.float32, device=q.device)
    num_tiles = cdiv(seqlen_q, block_m)
    forward_kernel[(batch * heads * num_tiles,)](
        describe(q, block_m, head), describe(k, block_n, head), describe(v, block_n, head),
        describe(out, block_m, head), lse,
        scale_log2=scale * LOG2E, num_batch=batch, num_heads=heads, group=group,
        seqlen_q=seqlen_q, offset=seqlen_k - seqlen_q, num_tiles=num_tiles,
        heads_per_section=heads_per_section(batch, heads, group, seqlen_k, k),
        **_mask_args(vectors, tiles, causal, bounds), **_block_args(config, head_dim),
    )  # fmt: skip
    return out, lse


def backward(dout, dlse, q, k, v, out, lse, vectors, row_tiles: TileRuns, col_tiles: TileRuns, *,
             causal: bool, bounds: int, scale: float, configs: KernelConfigs):  # fmt: skip
    """(dq, dk, dv) in the dtype of q, k, v, D rounded up as in `forward`. dlse: float32 [B, H, Sq] or None.

    `row_tiles` and `col_tiles` are the runs in the blocks of the dq and the dkdv configuration.
    """
    q, k, v, out, dout = (describable(x) for x in (q, k, v, out, dout))
    delta, lse_log2 = _delta(dout, dlse, out, lse)
    shared = dict(q=q, k=k, v=v, dout=dout, lse_log2=lse_log2, delta=delta, scale=scale)
    dk, dv = _dkdv(**shared, mask=_mask_args(vectors, col_tiles, causal, bounds), config=configs.dkdv)
    dq = _dq(**shared, mask=_mask_args(vectors, row_tiles, causal, bounds), config=configs.dq)
    return dq, dk, dv


def _delta(dout, dlse, out, lse):
    batch, seqlen_q, heads, head_dim = out.shape
    rows, head = 64, head_block(head_dim)
    row_pitch = seqlen_q + -seqlen_q % PADDING
    delta, lse_log2 = (torch.empty(batch, heads, row_pitch, dtype=torch.float32, device=out.device) for _ in range(2))
    num_tiles = row_pitch // rows
    delta_kernel[(batch * heads * num_tiles,)](
        describe(out, rows, head), describe(dout, rows, head),
        lse, lse if dlse is None else dlse.contiguous(), delta, lse_log2,
        num_heads=heads, seqlen_q=seqlen_q, row_pitch=row_pitch, num_tiles=num_tiles,
        HAS_DLSE=dlse is not None, BLOCK_M=rows, HEAD=head, num_warps=4,
    )  # fmt: skip
    return delta, lse_log2


def _dkdv(q, k, v, dout, lse_log2, delta, scale, mask, config):
    batch, seqlen_q, heads, _ = q.shape
    _, seqlen_k, kv_heads, head_dim = k.shape
    block_m, block_n, head = config.block_m, config.block_n, head_block(head_dim)
    dk, dv = (_new_output(k, kv_heads, seqlen_k, head_dim) for _ in range(2))
    num_tiles = cdiv(seqlen_k, block_n)
    dkdv_kernel[(batch * kv_heads * num_tiles,)](
        describe(q, block_m, head), describe(k, block_n, head), describe(v, block_n, head),
        describe(dout, block_m, head), describe(dk, block_n, head), describe(dv, block_n, head),
        lse_log2, delta,
        scale=scale, scale_log2=scale * LOG2E, num_batch=batch, num_heads=heads, group=heads // kv_heads,
        offset=seqlen_k - seqlen_q, row_pitch=delta.shape[2], num_tiles=num_tiles,
        heads_per_section=heads_per_section(batch, kv_heads, 1, seqlen_q * heads // kv_heads, q),
        **mask, **_block_args(config, head_dim),
    )  # fmt: skip
    return dk, dv


def _dq(q, k, v, dout, lse_log2, delta, scale, mask, config):
    batch, seqlen_q, heads, head_dim = q.shape
    seqlen_k, group = k.shape[1], heads // k.shape[2]
    block_m, block_n, head = config.block_m, config.block_n, head_block(head_dim)
    dq = _new_output(q, heads, seqlen_q, head_dim)
    num_tiles = cdiv(seqlen_q, block_m)
    dq_kernel[(batch * heads * num_tiles,)](
        describe(q, block_m, head), describe(k, block_n, head), describe(v, block_n, head),
        describe(dout, block_m, head), describe(dq, block_m, head),
        lse_log2, delta,
        scale=scale, scale_log2=scale * LOG2E, num_batch=batch, num_heads=heads, group=group,
        offset=seqlen_k - seqlen_q, row_pitch=delta.shape[2], num_tiles=num_tiles,
        heads_per_section=heads_per_section(batch, heads, group, seqlen_k, k),
        **mask, **_block_args(config, head_dim),
    )  # fmt: skip
    return dq
