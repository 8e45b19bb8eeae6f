"""A mask as MagiAttention's slices: disjoint pairs of a query range and a key range, each of one of four types.

Source of the format: `flex_flash_attn_func` of MagiAttention. For a slice of queries [r0, r1) and keys [k0, k1):

    FULL            every pair
    CAUSAL          aligned bottom-right: k <= q + k1 - r1
    INVERSE_CAUSAL  aligned top-left: k >= q + k0 - r0
    BICAUSAL        both
"""

from __future__ import annotations

import numpy as np

from ..column_mask import ColumnMask
from ..progressions import linear_pieces

FULL, CAUSAL, INVERSE_CAUSAL, BICAUSAL = 0, 1, 2, 3
MAX_SLICES = 20_000

Slice = tuple[int, int, int, int, int]  # (r0, r1, k0, k1, type)


def slices_of(mask: ColumnMask) -> list[Slice]:
    """Disjoint slices that show exactly what the mask shows.

    Batch entry b has queries b * Sq ... and keys b * Sk ..., as sequences laid end to end. ValueError for several mask
    heads, which the format does not have, and for more than 20,000 slices.
    """
    if mask.heads > 1:
        raise ValueError(f"magi: its ranges hold for all heads alike, and this mask has Hm = {mask.heads} heads")
    slices = []
    for b, vectors in enumerate(zip(*mask.normal_vectors())):
        start1, end1, start2, end2 = (v[0].numpy().astype(np.int64) for v in vectors)
        rows, keys = b * mask.seqlen_q, b * mask.seqlen_k
        bottom = np.full_like(start1, mask.seqlen_q)
        firsts, lasts = np.stack([np.zeros_like(start1), end1, end2]), np.stack([start1, start2, bottom])
        # Empty runs last, so that the n-th visible run of a column continues that of its neighbour.
        order = np.argsort(firsts >= lasts, axis=0, kind="stable")
        for first, last in zip(np.take_along_axis(firsts, order, 0), np.take_along_axis(lasts, order, 0)):
            slices += [
                (r0 + rows, r1 + rows, k0 + keys, k1 + keys, kind)
                for r0, r1, k0, k1, kind in _visible_runs(first, last, MAX_SLICES - len(slices))
            ]
    return sorted(slices)


def _visible_runs(first: np.ndarray, last: np.ndarray, left: int) -> list[Slice]:
    """Slices of one visible run [first, last) a column, where there is one."""
    column = np.flatnonzero(first < last)
    values = np.stack([first[column], last[column], column], axis=1)
    step = np.diff(values, axis=0)
    allowed = ((step >= 0) & (step <= 1)).all(axis=1) & (step[:, 2] == 1)
    slices = []
    places = linear_pieces(values, allowed)
    for place, count in zip(places.tolist(), np.diff(places, append=len(values)).tolist()):
        top, bottom, key = values[place].tolist()
        falls = (values[place + 1, :2] - values[place, :2]).tolist() if count > 1 else [0, 0]
        slices += _parallelogram(top, bottom, key, key + count, *falls)
        if len(slices) > left:
            raise ValueError(
                f"magi: this mask needs more than {MAX_SLICES:,} pairs of ranges; it is too irregular for MagiAttention"
            )
    return slices


def _parallelogram(top: int, bottom: int, k0: int, k1: int, top_falls: int, bottom_falls: int) -> list[Slice]:
    """Slices of the keys k0 ... k1 - 1, of which key k0 + i is seen by the rows [top + i * top_falls, bottom + i *
    bottom_falls); both steps are 0 or 1."""
    keys = k1 - k0
    if not top_falls and not bottom_falls:
        return [(top, bottom, k0, k1, FULL)]
    if not bottom_falls:  # a triangle with its right angle at the bottom left, and a rectangle below
        parts = [(top, top + keys, k0, k1, CAUSAL), (top + keys, bottom, k0, k1, FULL)]
    elif not top_falls:  # a rectangle, and below it a triangle with its right angle at the top right
        parts = [(top, bottom - 1, k0, k1, FULL), (bottom - 1, bottom - 1 + keys, k0, k1, INVERSE_CAUSAL)]
    elif (window := bottom - top) > keys:
        parts = [
            (top, top + keys, k0, k1, CAUSAL),
            (top + keys, bottom - 1, k0, k1, FULL),
            (bottom - 1, bottom - 1 + keys, k0, k1, INVERSE_CAUSAL),
        ]
    else:
        parts = [
            (top, bottom - 1, k0, k0 + window - 1, CAUSAL),
            (bottom - 1, top + keys, k0, k1, BICAUSAL),
            (top + keys, bottom - 1 + keys, k1 - window + 1, k1, INVERSE_CAUSAL),
        ]
    return [part for part in parts if part[0] < part[1] and part[2] < part[3]]
