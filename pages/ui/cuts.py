"""Where the parts of a text meet that have lengths, documents above all: boundaries that can be dragged.

The part before a boundary grows by what the part behind it loses, so all the others stay where they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate

import flashmask_core as fm
from flashmask_core.masks.arguments import shortened
from flashmask_core.masks.expr import PatternExpr
from flashmask_core.masks.patterns import PATTERNS

from .layers import layers_of, text_of

_MOST_PARTS = 512  # of a layer; with more of them, no boundary can be told from the next


@dataclass(frozen=True)
class Cut:
    """The boundary behind one part of a layer, in key positions.

    It stands at `at`, between the start of that part and the end of the next, and goes from `low` to `high`. Behind the
    last part it can take from the padding.
    """

    layer: int
    part: int
    start: int
    at: int
    end: int
    low: int
    high: int


@lru_cache(maxsize=32)
def cuts_of(text: str, keys: int) -> tuple[Cut, ...]:
    """The boundaries of a mask text that can be moved. MaskSyntaxError for a wrong text."""
    cuts = []
    for number, layer in enumerate(layers_of(text)):
        mask = fm.parse(layer.text)
        parts = _parts(mask) if layer.on and isinstance(mask, PatternExpr) else []
        if len(parts) > _MOST_PARTS:
            continue
        ends = list(accumulate(length for length, _ in parts))
        for part, (at, (length, least)) in enumerate(zip(ends, parts)):
            behind, kept = (*parts, (keys - ends[-1], 0))[part + 1]
            low, high = at - length + least, at + behind - kept
            if low <= at <= high and low < high and at < keys:
                cuts.append(Cut(number, part, at - length, at, at + behind, low, high))
    return tuple(cuts)


def moved(text: str, keys: int, layer: int, part: int, at: int, by: int) -> str:
    """The text with the boundary that stands at `at` moved by so many tokens.

    ValueError where there is none or it cannot go there, MaskSyntaxError for a wrong text.
    """
    found = [cut for cut in cuts_of(text, keys) if (cut.layer, cut.part, cut.at) == (layer, part, at)]
    if not found or not found[0].low <= at + by <= found[0].high:
        raise ValueError("the mask has no such boundary any more")
    layers = layers_of(text)
    mask = _with_moved(fm.parse(layers[layer].text), part, by)
    return text_of([*layers[:layer], replace(layers[layer], text=str(mask)), *layers[layer + 1 :]])


def _parts(mask: PatternExpr) -> list[tuple[int, int]]:
    """(length, the least that a boundary leaves of it) of every part of a pattern; none where parts have no lengths."""
    kind = PATTERNS[mask.name].parameters[0].kind if PATTERNS[mask.name].parameters else ""
    if kind == "lengths":
        return [(length, 1) for length in mask.values()]
    if mask.name == "share_question":
        return [(length, 1) for example in mask.values() for length in example]
    if mask.name == "prefix_lm_document":
        return [(length, max(1, prefix)) for prefix, length in mask.values()]
    return []


def _with_moved(mask: PatternExpr, part: int, by: int) -> PatternExpr:
    lengths = [length for length, _ in _parts(mask)]
    lengths[part] += by
    if part + 1 < len(lengths):
        lengths[part + 1] -= by
    if mask.name == "share_question":
        left = iter(lengths)
        items = [tuple(shortened([next(left) for _ in example])) for example in mask.values()]
    elif mask.name == "prefix_lm_document":
        items = [(prefix, length) for (prefix, _), length in zip(mask.values(), lengths)]
    else:
        items = lengths
    return PatternExpr(mask.name, tuple(shortened(items)))
