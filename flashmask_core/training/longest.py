"""The longest context of which a training step fits into the GPU's memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from ..bench.run_case import CudaFault
from ..masks.expr import MAX_SEQLEN
from .case import TrainCase
from .engines import ENGINES
from .result import TrainRow
from .throughput import OUT_OF_MEMORY, measure

STEP = 8192  # contexts that are tried are multiples of it
_FIRST = 16384
_FORETELLING = 3  # contexts that fitted, from whose memory the limit is foretold
_WARM_UP_TO = 2**17  # a longer step takes so long that warming up first changes nothing
_MARGIN = 0.97  # of the memory may be foretold to be used


def longest(case: TrainCase, engine: str, *, device: str = "cuda", memory_bytes: int | None = None,
            on_trial: Callable[[int, int], None] = lambda tried, context: None,
            train: Callable[..., TrainRow] = measure) -> TrainRow:  # fmt: skip
    """The row of the longest context, a multiple of STEP up to `case.context`, of which a step fits.

    Peak memory is a polynomial of second degree in the context for every engine, so three short ones foretell the limit;
    what does not fit there is tried an eighth shorter. The step that fits is timed; an engine that compiles warms up
    first. on_trial(trials so far, context) is called before each. A CudaFault has the row so far as `best`.

    memory_bytes: of the device; None asks it.
    """
    memory = memory_bytes or torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory
    most = max(STEP, case.context // STEP * STEP)
    rows: dict[int, TrainRow] = {}
    low, high = 0, most + STEP  # fits, does not
    size: int | None = min(_FIRST, most)
    while size is not None:
        on_trial(len(rows), size)
        warm = ENGINES[engine].compiles or size <= _WARM_UP_TO
        try:
            rows[size] = train(case, engine, device=device, context=size, warmup=int(warm), steps=1)
        except CudaFault as fault:
            if low:
                fault.best = _best(rows[low], f"at {size:,} tokens {fault}")
            raise
        if rows[size].status == "ok":
            low = size
        else:
            high = size
            if OUT_OF_MEMORY not in rows[size].reason:
                break
        size = _next(rows, low, high, most, memory)
    if low:
        other = rows.get(high)
        if other is not None and OUT_OF_MEMORY not in other.reason:
            return _best(rows[low], f"at {high:,} tokens {other.reason}")
        return replace(rows[low], at_least=low == most)
    return replace(rows[high], reason=f"not even {high:,} tokens: {rows[high].reason}")


def _best(row: TrainRow, ended: str) -> TrainRow:
    """The longest that was found before something other than memory ended the search."""
    return replace(row, at_least=True, reason=ended)


def _next(rows: dict[int, TrainRow], low: int, high: int, most: int, memory: int) -> int | None:
    """The context to try, or None where the longest one is known to an eighth."""
    foretells = sum(row.status == "ok" for row in rows.values()) >= _FORETELLING
    if high > most:  # all of them fitted
        size = min(most, _foretold(rows, memory) if foretells else 2 * low)
        return size if size >= low + max(STEP, low // 8) or low < size == most else None
    shorter = high - high // 8
    size = (shorter if foretells and shorter >= low + STEP else (low + high) // 2) // STEP * STEP
    return size if low < size < high and high - low > max(STEP, low // 8) else None


def _foretold(rows: dict[int, TrainRow], memory: int) -> int:
    """The longest context whose peak stays below _MARGIN of the memory, by the last ones that fitted."""
    known = sorted((row.context, row.peak_memory_bytes) for row in rows.values() if row.status == "ok")[-_FORETELLING:]
    sizes, peaks = (np.array(values, float) for values in zip(*known))
    candidates = np.arange(STEP, MAX_SEQLEN + 1, STEP, dtype=float)
    curve = np.polyval(np.polyfit(sizes / sizes.max(), peaks, 2), candidates / sizes.max())
    inside = candidates[curve <= _MARGIN * memory]
    return int(inside.max()) if len(inside) else STEP
