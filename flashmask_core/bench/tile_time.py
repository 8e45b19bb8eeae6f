"""About how long a mask takes, from its tiles: a rate for each kind of tile, fitted to the recorded runs.

A kernel's time is, to about a tenth, a sum over its tiles and its blocks of rows:

    time = B * H * (a * PARTIAL + b * FULL + c * blocks of rows)       with tiles of 128 x 128

The three rates are the least squares of the relative error over the recorded rows of one head dim and one direction, so
they move along with the recording. They hold for its GPU, for bf16, and for enough heads to fill it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from ..masks.language import mask as build
from ..tiles.classify import classify_tiles
from .providers import OUR_BACKENDS
from .recorded import recorded_results

BLOCK = 128
HBM_BYTES_PER_MS = 3.5e9  # of an H200, in practice
_MERGED_BYTES = 26  # moved an element of out for every pass that is merged, by PyTorch operations one after the other
_FEWEST_ROWS = 8


@dataclass(frozen=True)
class TileRates:
    """Milliseconds a PARTIAL tile, a FULL tile and a block of 128 rows of one head take on the device."""

    partial: float
    full: float
    rows: float
    device: str
    backend: str
    worst_error: float  # the largest relative error on the recorded rows

    def of(self, partial: int, full: int, row_blocks: int, planes: int) -> float:
        """Milliseconds of B x H = `planes` heads of one mask."""
        return planes * (self.partial * partial + self.full * full + self.rows * row_blocks)


@cache
def tile_rates(head_dim: int = 128, direction: str = "forward") -> TileRates | None:
    """The rates of the recorded FlashMask rows of one backend, the fastest with enough of them; None if none has."""
    recorded = [
        row for row in recorded_results()
        if row.provider == "flashmask" and row.status == "ok" and row.median_ms and row.dtype == "bfloat16"
        and (row.head_dim, row.direction) == (head_dim, direction) and row.heads == row.kv_heads
    ]  # fmt: skip
    by_backend = ([row for row in recorded if row.backend == backend] for backend in OUR_BACKENDS)
    rows = next((rows for rows in by_backend if len(rows) >= _FEWEST_ROWS), None)
    if rows is None:
        return None
    work = []
    for row in rows:
        _, partial, full = (
            classify_tiles(build(row.mask, row.seqlen_q, row.seqlen_k), BLOCK, BLOCK).counts[0, 0].tolist()
        )
        work.append([partial, full, -(-row.seqlen_q // BLOCK)])
    times = np.array([row.median_ms / (row.batch * row.heads) for row in rows])
    share = np.array(work) / times[:, None]
    rates, *_ = np.linalg.lstsq(share, np.ones(len(rows)), rcond=None)
    device = rows[0].where.device if rows[0].where else "a GPU"
    return TileRates(*rates.tolist(), device, rows[0].backend or "", float(abs(share @ rates - 1).max()))


def merge_ms(passes: int, batch: int, seqlen_q: int, heads: int, head_dim: int) -> float:
    """Milliseconds to merge the outputs of so many passes by their lse; 0 for one."""
    elements = batch * seqlen_q * heads * head_dim
    return passes * elements * _MERGED_BYTES / HBM_BYTES_PER_MS if passes > 1 else 0.0
