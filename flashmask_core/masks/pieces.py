"""Masks said in pieces: rectangles and slanted ones that together are the mask, and lists as short as they get."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from .positions import Positions
from .progressions import linear_pieces
from .runs import MaskedRuns


def pieces(runs: MaskedRuns, most: int) -> list[str] | None:
    """Texts of masks whose union is the mask: rectangles and slanted ones of columns whose runs go on evenly.

    None if they are more than `most`.
    """
    shown = ~runs  # hides what the mask shows, so its runs are the visible ones
    offset = Positions(runs.seqlen_q, runs.seqlen_k).offset
    number = np.arange(len(shown.starts)) - np.repeat(shown.offsets[:-1], shown.counts)
    order = np.argsort(number, kind="stable")
    values = np.stack([shown.starts, shown.ends, shown.columns], axis=1)[order].astype(np.int64)
    step = np.diff(values, axis=0)
    even = (number[order][1:] == number[order][:-1]) & (step[:, 2] == 1) & ((step >= 0) & (step <= 1)).all(1)
    places = linear_pieces(values, even)
    if len(places) > most:
        return None
    texts = []
    for place, count in zip(places.tolist(), np.diff(places, append=len(values)).tolist()):
        top, bottom, key = values[place].tolist()
        slant_top, slant_bottom = (values[place + 1, :2] - values[place, :2]).tolist() if count > 1 else (0, 0)
        if not slant_top and not slant_bottom:
            texts.append(f"rect({top}, {bottom}, {key}, {key + count})")
            continue
        low, high = top + offset, bottom + offset
        rows = {
            (1, 1): f"({low - key} <= q - k < {high - key})",
            (1, 0): f"({low - key} <= q - k) & (q < {high})",
            (0, 1): f"(q >= {low}) & (q - k < {high - key})",
        }[slant_top, slant_bottom]
        texts.append(f"({key} <= k < {key + count}) & {rows}")
    return texts


def list_text(items: list) -> str:
    """The items of a list with equal neighbours as repeat(item, count) where that is shorter."""
    parts = []
    for item, equal in groupby(items):
        count = len(list(equal))
        item = f"({', '.join(map(str, item))}{',' * (len(item) == 1)})" if isinstance(item, tuple) else str(item)
        plain, short = ", ".join([item] * count), f"repeat({item}, {count})"
        parts.append(plain if len(plain) <= len(short) else short)
    return ", ".join(parts)
