"""A dense matrix as a ColumnMask, strip by strip, so that no second matrix of that size is made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..column_mask import ColumnMask
from ..errors import NotRepresentableError
from ..expr import MAX_SEQLEN
from ..runs import MAX_RUNS, MaskedRuns

_STRIP_CELLS = 1 << 22
HIDDEN_FROM = -1e4  # an additive value at or below it hides


@dataclass(frozen=True)
class _Meaning:
    """Which values of a matrix are visible: those equal to `visible` (bool: True or False)."""

    visible: float


def dense_mask(
    values: np.ndarray, polarity: str | None, pixels: bool = False, rows: str | None = None,
    plane: tuple[int, int] | None = None,
) -> ColumnMask:  # fmt: skip
    """[Sq, Sk], [B, Sq, Sk] or [B, Hm, Sq, Sk] of bool, 0 and 1, or 0 and -1e4 or less.

    polarity: what True or 1 (pixels: the brighter tone) means, "visible" or "masked"; bool and pixels need it.
    rows: what a row of the matrix is, "queries" (None) or "keys", with which it is turned over. plane: the (batch entry,
    mask head) that alone is taken, None for all.

    Raises ValueError for anything else, NotRepresentableError with every column that has more than two masked runs.
    """
    if not 2 <= values.ndim <= 4 or 0 in values.shape:
        raise ValueError(f"dense: wanted [Sq, Sk], [B, Sq, Sk] or [B, Hm, Sq, Sk], got {list(values.shape)}")
    if max(values.shape) > MAX_SEQLEN:
        raise ValueError(f"dense: wanted at most {MAX_SEQLEN:,} queries and keys, got {list(values.shape)}")
    planes = values.reshape((1, 1, *values.shape)[-4:]) if values.ndim != 3 else values[:, None]
    if rows == "keys":
        planes = planes.swapaxes(-1, -2)
    if plane is not None:
        if not all(type(n) is int and 0 <= n < there for n, there in zip(plane, planes.shape)) or len(plane) != 2:
            raise ValueError(
                f"plane: wanted a batch entry and a mask head below {planes.shape[0]} and {planes.shape[1]}, got {plane!r}"
            )
        planes = planes[plane[0] : plane[0] + 1, plane[1] : plane[1] + 1]
    meaning = _meaning(planes, polarity, pixels)
    columns, most, broken_planes, masks = set(), 0, [], {}
    for place in np.ndindex(planes.shape[:2]):
        runs, broken, plane_most = _runs(planes[place], meaning)
        most = max(most, plane_most)
        if broken:
            columns |= broken
            broken_planes.append(place)
        elif not columns:
            masks[place] = ColumnMask.from_runs(runs)
    if columns:
        one = planes.shape[:2] == (1, 1)
        raise NotRepresentableError(sorted(columns), most, runs if one else None, () if one else tuple(broken_planes))
    batch, heads = planes.shape[:2]
    rows_of = [ColumnMask.stack([masks[b, h] for h in range(heads)], dim="head") for b in range(batch)]
    return ColumnMask.stack(rows_of, dim="batch")


def _runs(plane: np.ndarray, meaning: _Meaning) -> tuple[MaskedRuns | None, set[int], int]:
    """(masked runs, or None if they are too many to keep; columns with more than two; the most runs of one)."""
    strips, broken, most, total = [], set(), 0, 0
    width = max(1, _STRIP_CELLS // plane.shape[0])
    for first in range(0, plane.shape[1], width):
        runs = MaskedRuns.from_dense(plane[:, first : first + width] == meaning.visible)
        most = max(most, int(runs.counts.max()))
        broken.update((first + np.flatnonzero(runs.counts > 2)).tolist())
        total += len(runs.starts)
        strips = [*strips, runs] if total <= MAX_RUNS else []
    return (MaskedRuns.concatenate(strips) if total <= MAX_RUNS else None), broken, most


def _meaning(planes: np.ndarray, polarity: str | None, pixels: bool) -> _Meaning:
    if planes.dtype.kind == "b":
        if polarity is None:
            what, word = "whether True is visible or masked in a bool array", "True"
            if pixels:
                what, word = "which tone of a picture is visible", "the brighter one"
            raise ValueError(f'polarity: {what} cannot be told, so say "visible" or "masked" ({word} means that)')
        return _Meaning(polarity == "visible")
    zeros, ones, negatives = False, False, False
    height = max(1, _STRIP_CELLS // planes.shape[-1])
    for place in np.ndindex(planes.shape[:2]):
        for first in range(0, planes.shape[2], height):
            strip = planes[place][first : first + height]
            zero, one, hidden = strip == 0, strip == 1, strip <= HIDDEN_FROM
            other = ~(zero | one | hidden)
            if other.any():
                row, column = (int(n) for n in np.argwhere(other)[0])
                raise ValueError(
                    f"dense: row {first + row}, column {column} is {strip[row, column]}; wanted only 0 and 1, or only "
                    f"0 and values of {HIDDEN_FROM:g} or less"
                )
            zeros, ones, negatives = zeros or zero.any(), ones or one.any(), negatives or hidden.any()
    if ones and negatives:
        raise ValueError("dense: the matrix has both 1 and large negative values, so it is neither 0/1 nor additive")
    if negatives and polarity is not None:
        raise ValueError("polarity: an additive matrix says it itself (0 is visible); leave it out")
    if negatives:
        return _Meaning(0)
    if not ones and polarity is None and planes.dtype.kind != "u":
        raise ValueError(
            "dense: the matrix is 0 everywhere, so it may be additive (all visible) or 0/1 (nothing visible); "
            'polarity="visible" or "masked" makes it 0/1'
        )
    return _Meaning(0 if polarity == "masked" else 1)
