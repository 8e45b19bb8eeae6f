"""What a kernel does for a mask, in tiles: the amounts of which the time model is a sum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..masks.column_mask import ColumnMask
from ..tiles import MAX_RUNS
from ..tiles.classify import classify_tiles

BLOCK = 128
RATES = ("partial", "full", "rows", "vectors", "skipped")
_LINE_BYTES = 4 * (2 * MAX_RUNS + 2 + 1)  # of TileRuns: runs from a tile to a tile, how many tiles there are, a place
_MOST_KINDS = 1 << 22  # tiles whose kinds are looked at to find the fullest line


@dataclass(frozen=True)
class Work:
    """What a kernel does for one plane of a mask, in the worth of tiles of 128 x 128.

    row_blocks: blocks of 128 rows; skipped: EMPTY tiles that a loop over all tiles comes by; vectors: 0, 1, 2 or 4;
    fullest: PARTIAL + FULL tiles of the fullest line of tiles, by rows (forward) and by columns (backward); 0 where
    there are too many tiles to look.
    """

    partial: float
    full: float
    row_blocks: int
    skipped: float
    vectors: int
    fullest: tuple[int, int] = (0, 0)

    @classmethod
    def of(cls, mask: ColumnMask, rows: int = BLOCK) -> "Work":
        """Of a mask by tiles of `rows` x 128; means over its planes."""
        tiles, worth = classify_tiles(mask, rows, BLOCK), rows / BLOCK
        counts = (worth * count for count in tiles.counts.double().mean((0, 1)).tolist())
        canonical = mask.canonical()
        down, across = -(-mask.seqlen_q // rows), -(-mask.seqlen_k // BLOCK)
        fullest = (0, 0)
        if 0 < mask.batch * mask.heads * down * across <= _MOST_KINDS:
            computed = tiles.kinds != 0
            fullest = tuple(int(computed.sum(axis).max()) * worth for axis in (-1, -2))
        return cls.counted(counts, mask.seqlen_q, mask.seqlen_k, *packing(canonical), fullest)

    @classmethod
    def counted(cls, counts, seqlen_q: int, seqlen_k: int, causal: bool, vectors: int, fullest=(0, 0)) -> "Work":
        """Of a mask whose (EMPTY, PARTIAL, FULL) tiles are known."""
        _, partial, full = counts
        down, across = -(-seqlen_q // BLOCK), -(-seqlen_k // BLOCK)
        looked_at = down * across
        if causal:  # the loop ends at the diagonal
            last_keys = (np.arange(down) + 1) * BLOCK - 1 + seqlen_k - seqlen_q
            looked_at = int(np.clip(last_keys // BLOCK + 1, 0, across).sum())
        return cls(partial, full, down, max(0, looked_at - partial - full), vectors, fullest)

    @property
    def amounts(self) -> tuple[float, ...]:
        """In the order of RATES."""
        return self.partial, self.full, self.row_blocks, self.vectors * (self.partial + self.full), self.skipped


def packing(canonical: ColumnMask) -> tuple[bool, int]:
    """(causal, how many vectors say anything: none of full and causal) of a canonical mask."""
    nothing = bool((canonical.lts >= canonical.seqlen_q).all())
    if not canonical.causal:
        nothing &= bool((canonical.ute <= canonical.uts).all())
    return canonical.causal, 0 if nothing else canonical.bounds


def kept_bytes(mask: ColumnMask, rows: int = BLOCK) -> int:
    """What the Hopper kernels keep of a mask on the GPU for both passes, the forward one in tiles of `rows` x 128.

    The vectors; a copy of them if they end within a tile; another if there are several, behind one another; the tiles to
    compute, a list for each line of tiles by rows (forward) and by columns (backward).
    """
    blocks = -(-mask.seqlen_k // BLOCK)
    copies = (mask.seqlen_k % BLOCK > 0) + (mask.bounds > 1)
    a_plane = copies * mask.bounds * 4 * BLOCK * blocks + _LINE_BYTES * (-(-mask.seqlen_q // rows) + blocks)
    return mask.nbytes + mask.batch * mask.heads * a_plane
