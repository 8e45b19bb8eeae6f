"""Times, memory and rates of one prepared call. Runs in the worker process only.

Times are CUDA events around each call, the L2 cache flushed before it (`triton.testing.do_bench`). FLOPs count
4 * B * H * Sq * Sk * D * (1 - rho) for the forward pass, as the paper does, and 2.5 times that for the backward pass.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from .config import BenchCase

BACKWARD_FLOPS = 2.5  # five matrix products against two


@dataclass(frozen=True)
class Quartiles:
    """Of the times of single calls, in ms."""

    lower_ms: float
    median_ms: float
    upper_ms: float
    repetitions: int

    @classmethod
    def of(cls, times_ms: list[float]) -> "Quartiles":
        if len(times_ms) == 1:
            return cls(times_ms[0], times_ms[0], times_ms[0], 1)
        lower, median, upper = statistics.quantiles(times_ms, n=4, method="inclusive")
        return cls(lower, median, upper, len(times_ms))


def times_ms(call: Callable[[], object], warmup_ms: float, repeat_ms: float) -> list[float]:
    """The time of every repetition of a call, in ms; as many as fit into repeat_ms, one at least."""
    from triton.testing import do_bench

    return do_bench(call, warmup=warmup_ms, rep=repeat_ms, return_mode="all")


def host_ms(call: Callable[[], object]) -> float:
    """Wall-clock ms of one call and the device work it starts."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) * 1e3


def peak_bytes(call: Callable[[], object]) -> int:
    """Most bytes allocated on the device during a call above those allocated before; its result is dropped."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    result = call()
    torch.cuda.synchronize()
    del result
    return torch.cuda.max_memory_allocated() - before


def flops(case: BenchCase, share: float, direction: str) -> float:
    """FLOPs of a pass that does `share` of all pairs: 1 - rho for the paper's figure, the density for the exact one."""
    forward = 4.0 * case.batch * case.heads * case.seqlen_q * case.seqlen_k * case.head_dim * share
    return forward * (BACKWARD_FLOPS if direction == "backward" else 1.0)


def tflops(case: BenchCase, share: float, direction: str, ms: float) -> float:
    """TFLOP/s of a pass that took `ms`."""
    return flops(case, share, direction) / (ms * 1e-3) / 1e12
