"""The arguments of patterns: ints, tuples and repeats, as they stand in a text and written out."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

# In a list of this many items no space follows the commas, and as many equal neighbours are written with repeat.
_LONG_LIST = 64


@dataclass(frozen=True)
class Repeat:
    """repeat(item, count) among the items of a list."""

    item: object
    count: int

    def __str__(self):
        return f"repeat({argument_text(self.item)}, {self.count})"


def argument_text(argument) -> str:
    """An int, a `Repeat`, or a tuple of them, as it stands in a mask text."""
    if isinstance(argument, tuple):
        return f"({listed_arguments(argument)}{',' if len(argument) == 1 else ''})"
    return str(argument)


def listed_arguments(arguments: tuple) -> str:
    return (", " if len(arguments) < _LONG_LIST else ",").join(map(argument_text, arguments))


def shortened(items: list) -> list:
    """The items of a list as they are kept: many equal neighbours become a `Repeat`."""
    short = []
    for item, equal in groupby(items):
        count = len(list(equal))
        kept = count < _LONG_LIST or isinstance(item, Repeat)
        short.extend([item] * count if kept else [Repeat(item, count)])
    return short


def written_out(argument) -> list:
    """The items that one argument stands for; a repeat inside a tuple is written out too."""
    if isinstance(argument, Repeat):
        return written_out(argument.item) * argument.count
    if isinstance(argument, tuple):
        return [tuple(value for item in argument for value in written_out(item))]
    return [argument]
