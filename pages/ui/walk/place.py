"""Where one is in the kernel's walk: which mask, how small, which pass, whose loop, which step. Part of the screen."""

from __future__ import annotations

from dataclasses import dataclass

from ..parameters import Parameters
from ..words import tile_of

MAX_TOKENS = 128
MAX_TILE = 16
PASSES = {"forward": "forward", "dkdv": "backward, dK and dV", "dq": "backward, dQ"}
NAMES = ("walk", "tokens", "block", "pass", "line", "step")  # of the query parameters


@dataclass(frozen=True)
class WalkPlace:
    """source: "" for the mask of the screen, else the name of a preset. tokens, line and step None: chosen by itself.

    `line` is the row tile whose loop is shown (the column tile in the pass "dkdv").
    """

    source: str = ""
    tokens: int | None = None
    block_m: int = 8
    block_n: int = 8
    pass_: str = "forward"
    line: int | None = None
    step: int | None = None

    @property
    def block(self) -> str:
        return f"{self.block_m} × {self.block_n}"

    def said(self) -> dict[str, str]:
        """Query parameters as text, "" for what is chosen by itself."""
        text = lambda number: "" if number is None else str(number)  # noqa: E731
        return {
            "walk": self.source,
            "tokens": text(self.tokens),
            "block": f"{self.block_m}x{self.block_n}",
            "pass": self.pass_,
            "line": text(self.line),
            "step": text(self.step),
        }

    @classmethod
    def from_query(cls, query: dict[str, str], sources) -> tuple["WalkPlace", list[str]]:
        """The nearest place, and what of the link could not be read, in words. sources: names of the presets."""
        link = Parameters(query)
        for name, low, high in (("tokens", 1, MAX_TOKENS), ("line", 0, MAX_TOKENS - 1), ("step", 0, 10**5)):
            link.number(name, low, high)
        if "block" in query:
            block = parse_block(query["block"])
            if block:
                link.values["block_m"], link.values["block_n"] = block
            else:
                link.wrong("block", f"no tile such as 8x4, of at most {MAX_TILE} a side")
        link.one_of("pass", PASSES, "pass_")
        link.one_of("walk", sources, "source")
        return cls(**link.values), link.problems


def parse_block(text: str) -> tuple[int, int] | None:
    """ "8 × 4", "8x4" or "8" -> (rows, columns) of at most MAX_TILE; None if it is no tile."""
    return tile_of(text, MAX_TILE)
