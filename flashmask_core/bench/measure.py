"""Times, memory and rates of one prepared call. Runs in the worker process only.

Times are of the device: an event in the stream before and after each call, the L2 cache flushed before the first of the
two, one wait at the very end. A call that returns at once and leaves its work in the queue is timed by that work.

FLOPs count 4 * B * H * Sq * Sk * D * (1 - rho) for the forward pass, as the paper does, 2.5 times that for the backward
pass and 3.5 times that for both.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from .config import BenchCase

PASS_FLOPS = {"forward": 1.0, "backward": 2.5, "both": 3.5}  # two matrix products; five; seven
MAX_REPETITIONS = 2000
_ESTIMATE_CALLS = 3


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


def times_ms(
    device, call: Callable[[], object], warmup_ms: float, repeat_ms: float, about_ms: float | None = None
) -> list[float]:
    """Device time of every repetition of a call, in ms; as many as fit into repeat_ms, one at least.

    about_ms: about how long a call takes; None: found out first. Warm-up calls are apart and not in the result.
    """
    fewest = 1  # warm-up calls
    if about_ms is None:
        call()
        for calls in (1, _ESTIMATE_CALLS):
            before = device.mark()
            for _ in range(calls):
                call()
            after = device.mark()
            device.synchronize()
            about_ms = device.elapsed_ms(before, after) / calls
            if about_ms > warmup_ms:
                fewest = 0  # it is warm already, and every further call is dear
                break
    about_ms = max(about_ms, 1e-3)
    for _ in range(min(MAX_REPETITIONS, max(fewest, round(warmup_ms / about_ms)))):
        call()
    marks = []
    for _ in range(min(MAX_REPETITIONS, max(1, round(repeat_ms / about_ms)))):
        device.flush_cache()
        before = device.mark()
        call()
        marks.append((before, device.mark()))
    device.synchronize()
    return [device.elapsed_ms(before, after) for before, after in marks]


def host_ms(device, call: Callable[[], object]) -> float:
    """Wall-clock ms of one call and the device work it starts."""
    device.synchronize()
    began = time.perf_counter()
    call()
    device.synchronize()
    return (time.perf_counter() - began) * 1e3


def peak_bytes(device, call: Callable[[], object]) -> int:
    """Most bytes allocated on the device at a time during a call, all that was there before among them."""
    device.synchronize()
    device.reset_peak()
    result = call()
    device.synchronize()
    del result
    return device.peak_bytes()


def flops(case: BenchCase, share: float, direction: str) -> float:
    """FLOPs of a pass that does `share` of all pairs: 1 - rho for the paper's figure, the density for the exact one."""
    forward = 4.0 * case.batch * case.heads * case.seqlen_q * case.seqlen_k * case.head_dim * share
    return forward * PASS_FLOPS[direction]


def tflops(case: BenchCase, share: float, direction: str, ms: float) -> float:
    """TFLOP/s of a pass that took `ms`."""
    return flops(case, share, direction) / (ms * 1e-3) / 1e12
