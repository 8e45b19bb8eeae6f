"""Which of the paper's tables is shown, and which of its times. Part of the screen."""

from __future__ import annotations

from dataclasses import dataclass

from flashmask_core.bench.reproduce import BLOCKS

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
        values, problems = {}, []
        for name, known in (("table", BLOCKS), ("time", TIMES)):
            if name in query:
                if query[name] in known:
                    values[name] = query[name]
                else:
                    problems.append(f"{name}={query[name][:40]!r} is none of {', '.join(known)}")
        return cls(**values), problems
