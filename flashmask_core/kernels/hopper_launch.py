"""Launchers of the Hopper kernels: tensors of the public layout in, tensors of the public layout out.

D up to 256 in fp16 and bf16; a head dim below the kernel's is filled with zeros by the copies. The backward kernels add
dQ up in float32, in whatever order the programs come, so dQ is not bitwise repeatable (dK and dV are); a caller who
needs that takes the portable backward kernels.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
import triton
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from ..masks.column_mask import PACKINGS
from ..tiles.tile_runs import MAX_RUNS, PADDING, TileRuns
from . import launch
from .hopper_backward import backward_kernel
from .hopper_backward_wide import wide_backward_kernel
from .hopper_forward import forward_kernel
from .hopper_rows import LSE_UNIT, STORED_TERMS, convert_dq_kernel, row_terms_kernel
from .launch import LOG2E, describable


@dataclass(frozen=True)
class ForwardConfig:
    consumers: int  # warp groups of 64 query rows
    block_n: int  # keys of a tile
    q_stages: int
    kv_stages: int
    keep_q: bool  # Q of the FULL loop in registers

    @property
    def block_m(self) -> int:
        return 64 * self.consumers


@dataclass(frozen=True)
class BackwardConfig:
    block_m: int
    block_n: int  # keys of a tile
    q_stages: int
    dout_stages: int


_FORWARD = {
    64: ForwardConfig(3, 128, 2, 3, False),
    128: ForwardConfig(2, 128, 2, 2, True),
    256: ForwardConfig(2, 64, 1, 2, False),  # 192 KB; a second Q does not fit
}
_BACKWARD = {  # as many stages as fit the shared memory
    64: BackwardConfig(128, 128, 2, 2),
    128: BackwardConfig(64, 128, 3, 2),
    256: BackwardConfig(64, 64, 2, 1),
}
_ROWS = 64  # rows a program of the kernels before and after takes
# Made once: a layout costs as much host time as a launch argument should.
_TILE = gl.NVMMASharedLayout(128, 16, 4)
_SUMS = gl.NVMMASharedLayout(128, 32, 2)
_TERMS = gl.NVMMASharedLayout(32, 16, 3)


@functools.cache
def head_block(head_dim: int) -> int:
    """The head dim the kernels work with."""
    return max(64, triton.next_power_of_2(head_dim))


def forward_blocks(head_dim: int) -> tuple[int, int]:
    """(rows, columns) of the forward's tiles."""
    config = _FORWARD[head_block(head_dim)]
    return config.block_m, config.block_n


def backward_blocks(head_dim: int) -> tuple[int, int]:
    """(rows, columns) of the backward's tiles."""
    config = _BACKWARD[head_block(head_dim)]
    return config.block_m, config.block_n


def packed_vectors(vectors, *, causal: bool, bounds: int) -> torch.Tensor:
    """The vectors that the packing reads, behind one another: int32 [1, 2 or 4, B, Hm, pitch]. One alone is not copied."""
    by_name = dict(zip(PACKINGS[False, 4], vectors))  # that packing has them all
    read = [by_name[name] for name in PACKINGS[causal, bounds]]
    return torch.stack(read) if len(read) > 1 else read[0][None]


def forward(q, k, v, packed, tiles: TileRuns, *, causal: bool, bounds: int, scale: float):
    """(out [B, Sq, H, D], lse float32 [B, H, Sq]) of q [B, Sq, H, D], k and v [B, Sk, Hk, D]; no length is 0."""
    q, k, v = describable(q), describable(k), describable(v)
    batch, seqlen_q, heads, head_dim = q.shape
    seqlen_k, group = k.shape[1], heads // k.shape[2]
    head = head_block(head_dim)
    config = _FORWARD[head]
    out = torch.empty_like(q, memory_format=torch.contiguous_format)
    lse = torch.empty(batch, heads, seqlen_q, dtype=torch.float32, device=q.device)
    num_tiles = launch.cdiv(seqlen_q, config.block_m)
    forward_kernel[(_workers(q.device, batch * heads * num_tiles),)](
        _describe(q, 64, head), _describe(k, config.block_n, head), _describe(v, config.block_n, head),
        _describe(out, 64, head), lse,
        scale_log2=scale * LOG2E, total=batch * heads, num_heads=heads, group=group, seqlen_q=seqlen_q,
        offset=seqlen_k - seqlen_q, num_tiles=num_tiles,
        heads_per_section=launch.heads_per_section(batch, heads, group, seqlen_k, k),
        **_mask_args(packed, tiles, causal, bounds),
        HEAD=head, BLOCK_N=config.block_n, CONSUMERS=config.consumers, Q_STAGES=config.q_stages,
        KV_STAGES=config.kv_stages, KEEP_Q=config.keep_q, num_warps=4,
    )  # fmt: skip
    return out, lse


def backward(dout, dlse, q, k, v, out, lse, packed, tiles: TileRuns, *, causal: bool, bounds: int, scale: float):
    """(dq, dk, dv) in the dtype of q, k, v. `tiles` are the runs of the column tiles; dlse: float32 [B, H, Sq] or None."""
    q, k, v, out, dout = (describable(x) for x in (q, k, v, out, dout))
    batch, seqlen_q, heads, head_dim = q.shape
    _, seqlen_k, kv_heads, _ = k.shape
    head = head_block(head_dim)
    config = _BACKWARD[head]
    block_m, block_n = config.block_m, config.block_n
    kernel = wide_backward_kernel if head == 256 else backward_kernel
    row_pitch = seqlen_q + -seqlen_q % PADDING
    lse_terms, delta_terms, dq_sums = _row_terms(dout, dlse, out, lse, row_pitch, scale)
    dq, dk, dv = (torch.empty_like(x, memory_format=torch.contiguous_format) for x in (q, k, v))
    num_tiles = launch.cdiv(seqlen_k, block_n)
    kernel[(_workers(q.device, batch * kv_heads * num_tiles),)](
        _describe(q, block_m, head), _describe(k, block_n, head), _describe(v, block_n, head),
        _describe(dout, block_m, head), _describe(dk, 64, min(head, 128)), _describe(dv, 64, min(head, 128)),
        TensorDescriptor(dq_sums, list(dq_sums.shape), [head, 1], [block_m, min(head // 2, 64)], _SUMS),
        _describe_terms(lse_terms, block_m), _describe_terms(delta_terms, block_m),
        scale=scale, scale_log2=scale * LOG2E, total=batch * kv_heads, num_heads=heads, group=heads // kv_heads,
        offset=seqlen_k - seqlen_q, row_pitch=row_pitch, num_tiles=num_tiles,
        # Beside Q and dO the float32 sums of dQ want to stay in the L2 cache, and half of it is better than all.
        heads_per_section=launch.heads_per_section(batch, kv_heads, 1, 4 * seqlen_q * heads // kv_heads, q),
        **_mask_args(packed, tiles, causal, bounds),
        HEAD=head, BLOCK_M=block_m, Q_STAGES=config.q_stages, DOUT_STAGES=config.dout_stages,
        LSE_UNIT=LSE_UNIT[q.dtype], num_warps=4,
    )  # fmt: skip
    num_tiles = launch.cdiv(seqlen_q, _ROWS)
    convert_dq_kernel[(batch * heads * num_tiles,)](
        dq_sums, launch.describe(dq, _ROWS, head), scale=scale, num_heads=heads, row_pitch=row_pitch,
        num_tiles=num_tiles, BLOCK_M=_ROWS, HEAD=head, num_warps=4,
    )  # fmt: skip
    return dq, dk, dv


def _row_terms(dout, dlse, out, lse, row_pitch: int, scale: float):
    """(lse terms, delta terms [B * H, row_pitch, STORED_TERMS], zeroed float32 sums [B * H * row_pitch, head])."""
    batch, seqlen_q, heads, head_dim = out.shape
    head, lines = head_block(head_dim), batch * heads
    lse_terms, delta_terms = (
        torch.empty(lines, row_pitch, STORED_TERMS, dtype=out.dtype, device=out.device) for _ in range(2)
    )
    dq_sums = torch.empty(lines * row_pitch, head, dtype=torch.float32, device=out.device)
    num_tiles = row_pitch // _ROWS
    row_terms_kernel[(lines * num_tiles,)](
        launch.describe(out, _ROWS, head), launch.describe(dout, _ROWS, head),
        lse, lse if dlse is None else dlse.contiguous(), lse_terms, delta_terms, dq_sums, scale=scale,
        num_heads=heads, seqlen_q=seqlen_q, row_pitch=row_pitch, num_tiles=num_tiles, HAS_DLSE=dlse is not None,
        LARGEST=torch.finfo(out.dtype).max / 4 if out.dtype == torch.bfloat16 else torch.finfo(out.dtype).max,
        LSE_UNIT=LSE_UNIT[out.dtype], STORED_TERMS=STORED_TERMS, BLOCK_M=_ROWS, HEAD=head, num_warps=4,
    )  # fmt: skip
    return lse_terms, delta_terms, dq_sums


def _mask_args(packed, tiles: TileRuns, causal: bool, bounds: int) -> dict:
    _, mask_batch, mask_heads, pitch = packed.shape
    return dict(
        vectors=packed, runs=tiles.runs, counts=tiles.counts, order=tiles.order,
        counter=torch.zeros(1, dtype=torch.int32, device=packed.device), mask_batch=mask_batch, mask_heads=mask_heads,
        stride=mask_batch * mask_heads * pitch, pitch=pitch, CAUSAL=causal, BOUNDS=bounds, MAX_RUNS=MAX_RUNS,
    )  # fmt: skip


def _describe(x: torch.Tensor, rows: int, columns: int) -> TensorDescriptor:
    base, shape, strides = launch.heads_first(x)
    return TensorDescriptor(base, shape, strides, [1, 1, rows, columns], _TILE)


def _describe_terms(x: torch.Tensor, rows: int) -> TensorDescriptor:
    lines, pitch, terms = x.shape
    return TensorDescriptor(x, [lines, pitch, terms], [pitch * terms, terms, 1], [1, rows, 2 * terms], _TERMS)


def _workers(device: torch.device, tiles: int) -> int:
    """One program a multiprocessor, and none without a tile of its own."""
    return min(tiles, _multiprocessors(device))


@functools.cache
def _multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count
