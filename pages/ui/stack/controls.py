"""What the stack of layers shows of each layer: its parameters with their limits, from the patterns' own table."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache

import flashmask_core as fm
from flashmask_core.masks.arguments import Repeat
from flashmask_core.masks.expr import PatternExpr
from flashmask_core.masks.patterns import PATTERNS, Parameter, Pattern

from .. import presets
from ..layers import Layer

_MOST_ITEMS = 200  # of a list as a table; longer ones are a line of text
_MOST_NUMBERS = 12  # of a composite mask that get fields; with more it is a line of text
_NUMBER = re.compile(r"(?<![\w.])\d+(?!\w)")


def controls_of(layer: Layer, keys: int) -> dict:
    """A layer as the browser gets it.

    A single pattern has a field for every parameter. Another mask is its text, with fields for the numbers in it; one
    with many numbers, or with a long list, is a line of text.
    """
    shown = {"operator": layer.operator, "negated": layer.negated, "on": layer.on, "text": layer.text}
    return {**shown, **_parts(layer.text, keys)}


@lru_cache(maxsize=512)
def _parts(text: str, keys: int) -> dict:
    mask = fm.parse(text)
    if not isinstance(mask, PatternExpr):
        return {"name": None, "parts": _numbers_in(text, keys)}
    pattern = PATTERNS[mask.name]
    parameters = pattern.parameters
    if parameters and parameters[0].variadic:
        items = [_item(argument) for argument in mask.arguments]
        if len(items) > _MOST_ITEMS or None in items:
            return {"name": None}
        return {"name": pattern.name, "about": pattern.about, "list": _list(pattern, mask, items, keys)}
    numbers = [_number(pattern, mask.arguments, index, keys) for index in range(len(parameters))]
    return {"name": pattern.name, "about": pattern.about, "numbers": numbers}


def _numbers_in(text: str, keys: int) -> list | None:
    """The text as pieces, every second one a number with its limits; None for a text with none, or with too many.

    What is divided by is at least 1.
    """
    found = list(_NUMBER.finditer(text))
    if not 0 < len(found) <= _MOST_NUMBERS:
        return None
    parts, behind = [], 0
    for match in found:
        least, value = int(text[: match.start()].rstrip().endswith(("//", "%"))), int(match[0])
        parts += [text[behind : match.start()], {"value": value, "least": least, "slider": [least, max(keys, value)]}]
        behind = match.end()
    return [*parts, text[behind:]]


def _item(argument) -> list | None:
    """[count, its numbers …] of one item of a list; None for a tuple with a repeat inside."""
    count, item = (argument.count, argument.item) if isinstance(argument, Repeat) else (1, argument)
    values = list(item) if isinstance(item, tuple) else [item]
    return [count, *values] if all(isinstance(value, int) for value in values) else None


def _list(pattern: Pattern, mask: PatternExpr, items: list, keys: int) -> dict:
    parameter = pattern.parameters[0]
    used = pattern.used(*mask.values())
    return {
        "about": parameter.about,
        "fields": parameter.fields or (parameter.name,),
        "open": parameter.open_ended,
        "tuples": parameter.kind == "tuples",
        "items": items,
        "used": used,
        "longer": _longer(pattern, mask.arguments, keys - used),
    }


def _longer(pattern: Pattern, arguments: tuple, left: int) -> str:
    """The pattern with one item more: it takes the tokens that are left, or else half of the last item."""
    *before, last = arguments
    if isinstance(last, Repeat):
        before, last = [*before, *([Repeat(last.item, last.count - 1)] if last.count > 1 else [])], last.item
    if pattern.name == "qk_sparse":
        offset, length = last
        new = (offset + length, min(left, length)) if left else (offset + length - length // 2, length // 2)
        last = last if left else (offset, length - length // 2)
    elif isinstance(last, tuple):
        parts = len(last)
        if left >= parts and pattern.name != "prefix_lm_document":
            new = (left - (parts - 1) * (left // parts), *[left // parts] * (parts - 1))
        elif left:
            new = (left // 2, left)
        else:
            new, last = tuple(n // 2 for n in last), tuple(n - n // 2 for n in last)
    elif left:
        new = left
    else:
        new, last = last // 2, last - last // 2
    return str(PatternExpr(pattern.name, (*before, last, new)))


def _number(pattern: Pattern, arguments: tuple, index: int, keys: int) -> dict:
    """One argument of a pattern that takes a fixed number of them: a whole number, or one tuple of them."""
    parameter = pattern.parameters[index]
    told = {"name": parameter.name, "about": parameter.about, "least": parameter.minimum}
    if parameter.kind == "ints":
        return {**told, "value": list(arguments[index]), "many": True}
    slider = None if parameter.name == "seed" else [parameter.minimum or 0]  # its field takes negative ones
    if slider:
        slider.append(_most(pattern, arguments, index, keys, parameter))
    return {**told, "value": arguments[index], "slider": slider}


def _most(pattern: Pattern, arguments: tuple, index: int, keys: int, parameter: Parameter) -> int:
    """The largest number that says something new and leaves the arguments within the keys, the others as they are."""
    if parameter.within:
        return arguments[[other.name for other in pattern.parameters].index(parameter.within)]
    if pattern.used is None:
        return keys
    low = parameter.minimum or 0
    used = lambda number: pattern.used(*arguments[:index], number, *arguments[index + 1 :])  # noqa: E731
    return max(low, low + bisect_right(range(low, keys + 1), keys, key=used) - 1)


@lru_cache(maxsize=8)
def new_layers(keys: int) -> dict[str, str]:
    """What can be added: its name -> its text, with arguments for a good picture of this many tokens."""
    near, block = max(1, keys // 16), max(1, keys // 8)
    comparisons = {
        "first keys: k < n": f"k < {max(1, min(16, keys // 8))}",
        "last keys: q - k < w": f"q - k < {near}",
        "near keys: abs(q - k) <= w": f"abs(q - k) <= {near}",
        "same block: q // b == k // b": f"q // {block} == k // {block}",
        "near blocks: abs(q // b - k // b) <= w": f"abs(q // {block} - k // {block}) <= 1",
    }
    return {**{name: presets.pattern_text(name, keys) for name in PATTERNS}, **comparisons}


