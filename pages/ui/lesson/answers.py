"""What the exercises share.

An exercise has `task()`, what the board shows as JSON; `start()` and `solution()`, answers as lists of integers; and
`check(answer)`, which has the library judge an answer. An answer comes from the browser and may be anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Verdict:
    """right, what to say about it, and the cells (query, key) that are wrong."""

    right: bool
    says: str
    wrong: tuple[tuple[int, int], ...] = ()


def lines_of(dense: torch.Tensor) -> list[str]:
    """A picture as text, a row a query: "1" visible, "0" hidden."""
    return ["".join("01"[int(x)] for x in row) for row in dense]


def integers(answer, length: int, low: int, high: int) -> list[int] | None:
    """The answer if it is `length` integers from low to high, else None."""
    fits = isinstance(answer, list) and len(answer) == length
    if fits and all(type(x) is int and low <= x <= high for x in answer):
        return answer
    return None


def rows_text(rows: list[int], what: str = "row") -> str:
    """ "rows 3 … 5", "row 3", "rows 3 and 4", "rows 3, 5 and 7"."""
    if len(rows) == 1:
        return f"{what} {rows[0]}"
    if len(rows) > 2 and rows[-1] - rows[0] + 1 == len(rows):
        return f"{what}s {rows[0]} … {rows[-1]}"
    return f"{what}s {', '.join(map(str, rows[:-1]))} and {rows[-1]}"
