"""What each way on costs for a mask that four vectors cannot hold: pairs changed, tiles computed, time on a GPU."""

from __future__ import annotations

from dataclasses import dataclass

from ..masks.column_mask import ColumnMask
from ..masks.fit import Fit
from ..tiles.classify import TileKind, classify_tiles
from .paper import DIRECTIONS
from .tile_time import merge_ms, time_model

# Columns of all the passes together that are counted tile by tile; more passes than that are no sensible answer.
MAX_COUNTED_COLUMNS = 1 << 22


@dataclass(frozen=True)
class WayOn:
    """One way on.

    Attributes:
        name: "narrower", "wider" or "passes".
        masks: what `flashmask_attention` takes; None for more passes than are counted.
        passes: how many there are.
        changed_pairs: pairs that are visible and should not be, or the other way round; 0 for the exact passes.
        partial, full: tiles a kernel computes, over all passes; None where they were not counted.
        forward_ms, backward_ms: about how long B x H heads take on the recorded GPU; None where that is not known.
    """

    name: str
    masks: tuple[ColumnMask, ...] | None
    passes: int
    changed_pairs: int
    partial: int | None = None
    full: int | None = None
    forward_ms: float | None = None
    backward_ms: float | None = None

    @property
    def computed_tiles(self) -> int | None:
        return None if self.full is None else self.partial + self.full


def ways_on(
    fit: Fit, block_m: int = 128, block_n: int = 128, *, batch: int = 1, heads: int = 32, head_dim: int = 128
) -> list[WayOn]:
    """[narrower, wider, passes] with their costs. Tiles are of block_m x block_n; times count tiles of 128 x 128.

    A mask that fits needs none of them: all three are the mask itself.
    """
    columns = fit.pass_count * fit.runs.seqlen_k
    passes = tuple(fit.passes) if columns <= MAX_COUNTED_COLUMNS else None
    ways = [
        ("narrower", (fit.narrower,), 1, fit.narrower_pairs),
        ("wider", (fit.wider,), 1, fit.wider_pairs),
        ("passes", passes, fit.pass_count, 0),
    ]
    return [
        WayOn(*way, *_tiles(way[1], block_m, block_n), *(estimated_ms(way[1], batch, heads, head_dim, d) for d in DIRECTIONS))
        for way in ways
    ]


def _tiles(masks, block_m: int, block_n: int) -> tuple[int | None, int | None]:
    """(PARTIAL, FULL) tiles of all masks together."""
    if masks is None:
        return None, None
    counts = sum(classify_tiles(mask, block_m, block_n).counts[0, 0] for mask in masks).tolist()
    return counts[TileKind.PARTIAL], counts[TileKind.FULL]


def estimated_ms(masks, batch: int, heads: int, head_dim: int, direction: str) -> float | None:
    """About how long B x H heads of a mask in some passes take on the recorded GPU; None where that is not known."""
    model = time_model(head_dim, direction)
    if masks is None or model is None:
        return None
    merging = merge_ms(len(masks), batch, masks[0].seqlen_q, heads, head_dim)
    return sum(model.ms(model.work(mask), batch * heads) for mask in masks) + merging
