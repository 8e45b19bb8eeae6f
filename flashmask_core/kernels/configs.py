"""Block sizes of the portable kernels, by head dim, dtype and the multiprocessor's shared memory.

Timed on an H200 against each other (bf16, 32768 tokens, the paper's masks); the reason for a row stands beside it.
Other GPUs are compiled for, not timed.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import torch
import triton


@dataclass(frozen=True)
class BlockConfig:
    block_m: int  # query rows a tile
    block_n: int  # key columns a tile
    num_warps: int
    num_stages: int  # depth of the software pipeline over K, V (or Q, dO)
    max_registers: int | None = None  # a thread, so that several programs share a multiprocessor


@dataclass(frozen=True)
class KernelConfigs:
    forward: BlockConfig
    dkdv: BlockConfig  # the owner of a column tile walks row tiles
    dq: BlockConfig


# Head dim -> packing -> configuration. Packings: "causal", "two" (lts, ute) and "four" (all vectors).
_Table = dict[int, dict[str, KernelConfigs]]


def _any_packing(configs: KernelConfigs, **others: KernelConfigs) -> dict[str, KernelConfigs]:
    return {packing: others.get(packing, configs) for packing in ("causal", "two", "four")}


_ROWS_128 = KernelConfigs(
    forward=BlockConfig(64, 128, 4, 1, 168),  # three programs a multiprocessor; they, not a pipeline, hide the loads
    dkdv=BlockConfig(64, 64, 4, 2),  # two programs, 1.1x one of 128 columns
    dq=BlockConfig(64, 64, 4, 2, 168),
)
_LARGE: _Table = {  # 227 KB of shared memory: H100, H200, B200
    64: _any_packing(
        KernelConfigs(
            forward=BlockConfig(64, 128, 4, 2, 168),  # three programs hide each other's softmax
            dkdv=BlockConfig(64, 64, 4, 2, 168),  # three programs, 1.1x two at 255 registers
            dq=BlockConfig(64, 64, 4, 2, 168),
        )
    ),
    128: _any_packing(
        _ROWS_128,
        # 128 rows a tile are 1.1x faster where most tiles are FULL; documents lose 4 %.
        two=replace(_ROWS_128, dq=BlockConfig(128, 64, 8, 3)),
        # With four vectors the three programs would spill 300 bytes.
        four=replace(_ROWS_128, forward=BlockConfig(128, 64, 8, 2, 128)),
    ),
    256: _any_packing(
        KernelConfigs(
            forward=BlockConfig(128, 64, 8, 2), dkdv=BlockConfig(64, 64, 8, 2), dq=BlockConfig(64, 64, 8, 2)
        )
    ),
}
_SMALL: _Table = {  # 99 KB and more: A100, RTX 30, 40 and 50; the largest tiles that hardly spill on any of them
    64: _any_packing(
        KernelConfigs(
            forward=BlockConfig(64, 64, 4, 2), dkdv=BlockConfig(64, 32, 4, 2), dq=BlockConfig(64, 32, 4, 2)
        )
    ),
    128: _any_packing(
        KernelConfigs(
            forward=BlockConfig(64, 64, 8, 2), dkdv=BlockConfig(32, 32, 8, 2), dq=BlockConfig(32, 64, 8, 2)
        )
    ),
    256: _any_packing(
        KernelConfigs(
            forward=BlockConfig(32, 32, 8, 1), dkdv=BlockConfig(32, 16, 8, 1), dq=BlockConfig(16, 32, 8, 1)
        )
    ),
}
_FP32: _Table = {  # exact products without tensor cores (no TF32): small tiles and 8 warps, to stay in registers
    64: _any_packing(
        KernelConfigs(
            forward=BlockConfig(64, 32, 8, 1), dkdv=BlockConfig(32, 32, 8, 1), dq=BlockConfig(32, 32, 8, 1)
        )
    ),
    128: _any_packing(
        KernelConfigs(
            forward=BlockConfig(32, 32, 8, 1), dkdv=BlockConfig(16, 16, 8, 1), dq=BlockConfig(16, 16, 8, 1)
        )
    ),
    256: _any_packing(
        KernelConfigs(
            forward=BlockConfig(32, 16, 8, 1), dkdv=BlockConfig(16, 16, 8, 1), dq=BlockConfig(16, 16, 8, 1)
        )
    ),
}
_LARGE_BYTES = 227 * 1024


@functools.cache
def head_block(head_dim: int) -> int:
    """The power of two a kernel works with; the descriptors fill what is beyond head_dim with zeros."""
    return max(16, triton.next_power_of_2(head_dim))


def kernel_configs(
    head_dim: int, dtype: torch.dtype, device: torch.device, *, causal: bool, bounds: int
) -> KernelConfigs:
    """The configuration of the smallest row that holds head_dim (at most 256), for a mask of that packing."""
    if dtype == torch.float32:
        table = _FP32
    elif device.type == "cuda":
        shared = torch.cuda.get_device_properties(device).shared_memory_per_block_optin
        table = _LARGE if shared >= _LARGE_BYTES else _SMALL
    else:
        table = _SMALL
    return table[max(64, head_block(head_dim))]["causal" if causal else "two" if bounds == 2 else "four"]


def all_configs() -> dict[str, _Table]:
    """Every configuration, by table, head dim and packing: for tests that compile them without a GPU."""
    return {"large": _LARGE, "small": _SMALL, "fp32": _FP32}
