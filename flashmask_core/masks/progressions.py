"""Whole numbers in pieces of equal steps, the compact form of a mask's vectors in files and snippets.

The vectors of a mask are mostly constant or rise by one a column, so a few pieces (first, step, count) hold them:
[4, 4, 4, 4, 7, 8, 9] is (4, 0, 4), (7, 1, 3).
"""

from __future__ import annotations

import numpy as np


def linear_pieces(values: np.ndarray, allowed: np.ndarray | None = None) -> np.ndarray:
    """int64 [P]: where pieces begin in which every column of `values`, int [N, V], has one step; greedy from the left.

    allowed: bool [N - 1], which values may stand in one piece with the value behind them; None: all.
    """
    size = len(values)
    if size < 2:
        return np.arange(size)
    steps = np.diff(values.astype(np.int64), axis=0)
    changes = np.flatnonzero((steps[1:] != steps[:-1]).any(axis=1)) + 1
    # By place: the place behind the last value that a piece starting there can hold.
    reach = np.append(np.repeat(np.append(changes, size - 1), np.diff(changes, prepend=0, append=size - 1)) + 1, size)
    if allowed is not None:
        reach[:-1] = np.where(allowed, reach[:-1], np.arange(1, size))
    reach, places, place = reach.tolist(), [], 0
    while place < size:
        places.append(place)
        place = reach[place]
    return np.array(places)


def pieces_of(vector: np.ndarray) -> list[tuple[int, int, int]]:
    """(first, step, count) pieces of an int vector; a piece of one value has step 0."""
    vector = np.asarray(vector, np.int64)
    place = linear_pieces(vector[:, None])
    count = np.diff(place, append=len(vector))
    step = np.where(count > 1, vector[np.minimum(place + 1, len(vector) - 1)] - vector[place], 0)
    return list(zip(vector[place].tolist(), step.tolist(), count.tolist()))


def vector_of(pieces) -> np.ndarray:
    """int64: the vector that `pieces_of` was given. The caller has checked the counts."""
    if not len(pieces):
        return np.zeros(0, np.int64)
    first, step, count = np.asarray(pieces, np.int64).T
    start = np.cumsum(count) - count
    return np.repeat(first - step * start, count) + np.repeat(step, count) * np.arange(count.sum())
