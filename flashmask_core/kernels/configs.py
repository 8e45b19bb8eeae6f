"""Block sizes of the portable kernels, by head dim and dtype. The reason for a row stands beside it."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class BlockConfig:
    block_m: int  # query rows a tile
    block_n: int  # key columns a tile
    num_warps: int
    num_stages: int  # depth of the software pipeline over K, V (or Q, dO)
    max_registers: int | None = None  # a thread; 128 lets two programs of 8 warps share a multiprocessor


@dataclass(frozen=True)
class KernelConfigs:
    forward: BlockConfig
    dkdv: BlockConfig  # the owner of a column tile walks row tiles
    dq: BlockConfig


_16_BIT = {
    64: KernelConfigs(
        forward=BlockConfig(128, 128, 8, 3), dkdv=BlockConfig(64, 128, 8, 3), dq=BlockConfig(128, 64, 8, 3)
    ),
    128: KernelConfigs(
        forward=BlockConfig(128, 64, 8, 3), dkdv=BlockConfig(64, 128, 8, 3), dq=BlockConfig(128, 64, 8, 3)
    ),
    256: KernelConfigs(
        forward=BlockConfig(64, 64, 4, 2), dkdv=BlockConfig(64, 64, 8, 1), dq=BlockConfig(64, 64, 8, 1)
    ),
}
# fp32 products run without tensor cores (no TF32 in between): small tiles, to stay in registers.
_FP32 = {
    64: KernelConfigs(BlockConfig(64, 32, 4, 2), BlockConfig(32, 32, 4, 2), BlockConfig(32, 32, 4, 2)),
    128: KernelConfigs(BlockConfig(32, 32, 4, 2), BlockConfig(32, 32, 4, 1), BlockConfig(32, 32, 4, 1)),
    256: KernelConfigs(BlockConfig(32, 32, 4, 1), BlockConfig(32, 32, 8, 1), BlockConfig(32, 32, 8, 1)),
}


def kernel_configs(head_dim: int, dtype: torch.dtype) -> KernelConfigs:
    """The configuration of the smallest row that holds head_dim (at most 256)."""
    table = _FP32 if dtype == torch.float32 else _16_BIT
    return table[next(size for size in sorted(table) if head_dim <= size)]
