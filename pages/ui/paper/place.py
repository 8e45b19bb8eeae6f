"""Which of the paper's tables is shown, and which of its times. Part of the screen."""

from __future__ import annotations

from dataclasses import dataclass

from flashmask_core.bench.reproduce import BLOCKS

from ..parameters import Parameters

NAMES = ("table", "time")  # of the query parameters
TIMES = {"forward": "Forward", "backward": "Backward", "total": "Both"}


@dataclass(frozen=True)
class PaperPlace:
    """table: the name of a block of `flashmask_core.bench.reproduce`; time: one of TIMES."""

    table: str = "8192x128"
    time: str = "forward"

    def said(self) -> dict[str, str]:
        """Query parameters as text."""
        return {"table": self.table, "time": self.time}

    @classmethod
    def from_query(cls, query: dict[str, str]) -> tuple["PaperPlace", list[str]]:
        """The nearest place, and what of the link could not be read, in words."""
        link = Parameters(query)
        link.one_of("table", BLOCKS)
        link.one_of("time", TIMES)
        return cls(**link.values), link.problems
