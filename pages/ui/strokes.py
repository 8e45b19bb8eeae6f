"""What is painted on the matrix and dragged in the vectors, as text.

A box that is hidden becomes `& ~rect(r0, r1, c0, c1)`, one that is shown `| rect(r0, r1, c0, c1)`, behind all the text
there is. A boundary that is dragged hides or shows what lies between its old and its new place, so it becomes a rect
as well (a band inside one where it runs along a diagonal), or another number where one number of the text says the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

import flashmask_core as fm
from flashmask_core.masks.expr import PatternExpr
from flashmask_core.masks.patterns import PATTERNS

from .layers import Layer, layers_of, text_of

_MOST_TRIED = 64  # numbers of a text that are tried in place of a rect

Box = tuple[int, int, int, int]  # first row, row behind the last, first column, column behind the last


@dataclass(frozen=True)
class Move:
    """A boundary that is dragged: `name` (lts, lte, uts, ute) in the columns c0 ... c1 - 1 goes down by `by` rows.

    slope 0: it has one number in all of them. slope 1: it runs along a diagonal, clipped to [0, Sq].
    """

    name: str
    c0: int
    c1: int
    slope: int
    by: int


def painted(text: str, hide: bool, box: Box) -> str:
    """The text with a box painted on it; paintings that it covers or completes to a rectangle go into it.

    MaskSyntaxError for a wrong text.
    """
    layers = layers_of(text)
    first = _first_stroke(layers)
    strokes = [*(_box_of(layer) for layer in layers[first:]), (hide, box)]
    return text_of([*layers[:first], *(_layer(*stroke) for stroke in _folded(strokes))])


def canvas_of(text: str) -> str:
    """The text without the paintings at its end: what is painted on. MaskSyntaxError for a wrong text."""
    layers = layers_of(text)
    return text_of(layers[: _first_stroke(layers)])


def _first_stroke(layers: list[Layer]) -> int:
    """Where the paintings at the end of a stack begin; the first layer is none."""
    first = len(layers)
    while first > 1 and _box_of(layers[first - 1]):
        first -= 1
    return first


def _layer(hide: bool, box: Box) -> Layer:
    return Layer("&" if hide else "|", hide, f"rect{box}")


def _box_of(layer: Layer) -> tuple[bool, Box] | None:
    """(hide, box) of a layer that is a painting: `& ~rect(…)` or `| rect(…)`."""
    if not layer.on or layer.operator != ("&" if layer.negated else "|"):
        return None
    mask = fm.parse(layer.text)
    return (layer.negated, mask.arguments) if isinstance(mask, PatternExpr) and mask.name == "rect" else None


def _folded(strokes: list[tuple[bool, Box]]) -> list[tuple[bool, Box]]:
    """Fewer strokes that paint the same in their order: the last one takes in what it covers or completes."""
    *before, (hide, box) = strokes
    while True:
        before = [stroke for stroke in before if not _inside(stroke[1], box)]
        found = _completed(before, hide, box)
        if found is None:
            return [*before, (hide, box)]
        number, box = found
        del before[number]


def _completed(before: list[tuple[bool, Box]], hide: bool, box: Box) -> tuple[int, Box] | None:
    """(number of an earlier stroke that makes one rectangle with this one, that rectangle)."""
    for number in reversed(range(len(before))):
        whole = _one_box(before[number][1], box) if before[number][0] == hide else None
        between = (other for kind, other in before[number + 1 :] if kind != hide)
        if whole and not any(_meet(other, whole) for other in between):
            return number, whole
    return None


def _inside(a: Box, b: Box) -> bool:
    return b[0] <= a[0] and a[1] <= b[1] and b[2] <= a[2] and a[3] <= b[3]


def _meet(a: Box, b: Box) -> bool:
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]


def _one_box(a: Box, b: Box) -> Box | None:
    """The rectangle that two boxes make together, if they do."""
    if _inside(b, a):
        return a
    same_rows, same_columns = a[:2] == b[:2], a[2:] == b[2:]
    touch = a[0] <= b[1] and b[0] <= a[1] and a[2] <= b[3] and b[2] <= a[3]
    if touch and (same_rows or same_columns):
        return min(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), max(a[3], b[3])
    return None


def moved(text: str, mask: "fm.ColumnMask", move: Move) -> str:
    """The text with a boundary of its mask (B = Hm = 1, as it is drawn) dragged.

    ValueError where the mask has no such boundary, MaskSyntaxError for a wrong text.
    """
    before = getattr(mask, move.name)[0, 0].long().numpy()
    columns = np.arange(move.c0, min(move.c1, mask.seqlen_k))
    if not len(columns) or move.by == 0 or move.name in ("uts", "ute") and mask.causal:
        raise ValueError("the mask has no such boundary any more")
    rows = before[columns] - move.slope * columns
    inner = (before[columns] > 0) & (before[columns] < mask.seqlen_q) if move.slope else slice(None)
    found = np.unique(rows[inner])
    if len(found) != 1:
        raise ValueError("the mask has no such boundary any more")
    line = int(found[0])
    after = np.clip(line + move.by + move.slope * columns, 0, mask.seqlen_q)
    number = _other_number(text, _with_boundary(mask, move.name, columns, after), move.by)
    if number:
        return number
    hides = (move.by < 0) == move.name.endswith("s")
    first, behind = sorted((line, line + move.by))
    if not move.slope:
        box = (max(0, first), min(mask.seqlen_q, behind), move.c0, move.c1)
        return painted(text, hides, box)
    offset = mask.seqlen_k - mask.seqlen_q
    band = f"({first + offset} <= q - k < {behind + offset})"
    if (move.c0, move.c1) != (0, mask.seqlen_k):
        band += f" & rect(0, {mask.seqlen_q}, {move.c0}, {move.c1})"
    return text_of([*layers_of(text), Layer("&" if hides else "|", hides, band)])


def _with_boundary(mask: "fm.ColumnMask", name: str, columns: np.ndarray, numbers: np.ndarray) -> "fm.ColumnMask":
    vector = getattr(mask, name).clone()
    vector[0, 0, torch.from_numpy(columns)] = torch.from_numpy(numbers).to(vector.dtype)
    vectors = (vector if other == name else getattr(mask, other) for other in ("lts", "lte", "uts", "ute"))
    return fm.ColumnMask(*vectors, seqlen_q=mask.seqlen_q, causal=False, bounds=4)


def _other_number(text: str, wanted: "fm.ColumnMask", by: int) -> str | None:
    """The text with one number of a pattern moved by as many rows, where exactly that gives the wanted mask."""
    layers, tried = layers_of(text), 0
    for place, layer in enumerate(layers):
        mask = fm.parse(layer.text)
        if not layer.on or not isinstance(mask, PatternExpr):
            continue
        for index, parameter in enumerate(PATTERNS[mask.name].parameters):
            if parameter.kind != "int" or parameter.name == "seed":
                continue
            for step in (by, -by):
                number, tried = mask.arguments[index] + step, tried + 1
                if tried > _MOST_TRIED or parameter.minimum is not None and number < parameter.minimum:
                    continue
                arguments = (*mask.arguments[:index], number, *mask.arguments[index + 1 :])
                other = replace(layer, text=str(PatternExpr(mask.name, arguments)))
                candidate = text_of([*layers[:place], other, *layers[place + 1 :]])
                if _shows(candidate, wanted):
                    return candidate
    return None


def _shows(text: str, wanted: "fm.ColumnMask") -> bool:
    try:
        return fm.mask(text, wanted.seqlen_q, wanted.seqlen_k).equals(wanted)
    except ValueError:
        return False
