"""Reading the query parameters of a link: what can be read becomes values, the rest is said in words."""

from __future__ import annotations

import re
from collections.abc import Iterable


class Parameters:
    """The parameters of one link. values: what was read, by the field it goes into; problems: what was not, in words.

    A parameter that is not in the link is neither. `field` is left out where it has the parameter's name.
    """

    def __init__(self, query: dict[str, str]):
        self.query = query
        self.values: dict = {}
        self.problems: list[str] = []

    def one_of(self, name: str, known: Iterable, field: str = "") -> None:
        """One of the known values, by its text."""
        if name in self.query:
            found = [one for one in known if str(one) == self.query[name].strip()]
            if found:
                self.values[field or name] = found[0]
            else:
                self.wrong(name, f"none of {', '.join(map(str, known))}")

    def number(self, name: str, low: int, high: int, field: str = "") -> None:
        """A whole number from `low` to `high`."""
        if name in self.query:
            text = self.query[name].strip()
            if re.fullmatch("[0-9]{1,8}", text) and low <= int(text) <= high:
                self.values[field or name] = int(text)
            else:
                self.wrong(name, f"no number from {low:,} to {high:,}")

    def wrong(self, name: str, what: str) -> None:
        """Say that a parameter is not what was wanted: "what" follows "is"."""
        self.problems.append(f"{name}={self.query[name][:40]!r} is {what}")
