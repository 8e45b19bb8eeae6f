"""A mask as a stack of layers: another view of the same text, read from the top, each joined to what stands above it.

A layer that is off stays in the text as one that changes nothing: `& (full | layer)` hides nothing and `| ~full & layer`
shows nothing, whatever the layer is. So a text, a link and an undo keep it, and the mask language knows nothing of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import flashmask_core as fm
from flashmask_core.masks.expr import Hidden, Joined, MaskExpr, PatternExpr

_ALL = PatternExpr("full", ())
_NEUTRAL = {"&": _ALL, "|": Hidden(_ALL)}  # joined by the operator, it changes nothing
_OTHER = {"&": "|", "|": "&"}


@dataclass(frozen=True)
class Layer:
    """A mask, perhaps turned round by ~ or off, and how it is joined to those above: "&", "|", "" for the first."""

    operator: str
    negated: bool
    text: str
    on: bool = True

    @property
    def mask(self) -> MaskExpr:
        """What it shows when it is on. MaskSyntaxError for a wrong text."""
        mask = fm.parse(self.text)
        return ~mask if self.negated else mask


def layers_of(text: str) -> list[Layer]:
    """The layers of a mask text: `a & b | c` is a, & b, | c, and `a | b & c` is a, | (b & c).

    MaskSyntaxError for a wrong text.
    """
    return list(_read(text))


@lru_cache(maxsize=32)
def _read(text: str) -> tuple[Layer, ...]:
    stacked = _stacked(fm.parse(text))
    layers = [_layer(operator, mask) for operator, mask in stacked]
    operators = [layer.operator for layer in layers[2:] if layer.on]
    begins = operators[0] if operators else "&"
    if len(layers) > 1 and stacked[0][1] == _NEUTRAL[begins] and stacked[1][0] == _OTHER[begins]:
        first = _layer(stacked[1][0], stacked[1][1])
        if first.on:
            layers[:2] = [replace(first, operator="", on=False)]
    return tuple(layers)


def text_of(layers: list[Layer]) -> str:
    """The canonical text of a stack; the inverse of `layers_of`, "full" for none. MaskSyntaxError as there."""
    joined = None
    begins = next((layer.operator for layer in layers[1:] if layer.on), "&")
    for layer in layers:
        mask, operator = layer.mask, layer.operator or begins
        if not layer.on:
            mask = Joined.of(_OTHER[operator], [_NEUTRAL[operator], mask])
        joined = mask if joined is None else Joined.of(layer.operator, [joined, mask])
    return str(_ALL if joined is None else joined)


def without_off(text: str) -> str:
    """The text without the layers that are off."""
    layers = layers_of(text)
    on = [layer for layer in layers if layer.on]
    if len(on) == len(layers):
        return text
    return text_of([replace(layer, operator=layer.operator if number else "") for number, layer in enumerate(on)])


def _stacked(mask: MaskExpr) -> list[tuple[str, MaskExpr]]:
    if not isinstance(mask, Joined):
        return [("", mask)]
    first, *others = mask.masks
    return [*_stacked(first), *((mask.operator, other) for other in others)]


def _layer(operator: str, mask: MaskExpr) -> Layer:
    off = (
        operator != ""
        and isinstance(mask, Joined)
        and mask.operator == _OTHER[operator]
        and mask.masks[0] == _NEUTRAL[operator]
    )
    if off:
        rest = mask.masks[1:]
        mask = rest[0] if len(rest) == 1 else Joined(mask.operator, rest)
    negated = isinstance(mask, Hidden)
    return Layer(operator, negated, str(mask.mask if negated else mask), not off)
