"""What is measured on the GPU beside the mask, and which runs are shown. Part of the screen."""

from __future__ import annotations

import re
from dataclasses import dataclass

from flashmask_core.bench.config import DEFAULT_PASSES, DTYPES, PASSES, TIME_LIMIT_S
from flashmask_core.bench.providers import DEFAULT_PROVIDERS, PROVIDERS
from flashmask_core.bench.sweep import AXES

from ..parameters import Parameters

NAMES = ("batch", "kv", "dim", "dtype", "passes", "engines", "sweep", "values", "limit", "run", "beside")  # of the parameters
HEAD_DIMS = (32, 64, 96, 128, 192, 256)
MAX_VALUES = 400  # characters
LIMITS_S = (5, 3600)  # the shortest and the longest time limit


@dataclass(frozen=True)
class Trial:
    """kv_heads None means as many key heads as query heads; those belong to the screen itself.

    sweep: an axis, "" for one case; values: its values as text, "" for the usual ones. limit: seconds for a step of an
    engine. run and beside: ids of runs in the history (a job that is still at work has the id of its run), "" for none.
    """

    batch: int = 1
    kv_heads: int | None = None
    head_dim: int = 128
    dtype: str = next(iter(DTYPES))
    passes: tuple[str, ...] = DEFAULT_PASSES
    engines: tuple[str, ...] = tuple(DEFAULT_PROVIDERS)
    sweep: str = ""
    values: str = ""
    limit: int = int(TIME_LIMIT_S)
    run: str = ""
    beside: str = ""

    def said(self) -> dict[str, str]:
        """Query parameters as text."""
        return {
            "batch": str(self.batch),
            "kv": str(self.kv_heads or ""),
            "dim": str(self.head_dim),
            "dtype": self.dtype,
            "passes": ",".join(self.passes) or "none",
            "engines": ",".join(self.engines) or "none",
            "sweep": self.sweep,
            "values": self.values,
            "limit": str(self.limit),
            "run": self.run,
            "beside": self.beside,
        }

    @classmethod
    def from_query(cls, query: dict[str, str]) -> tuple["Trial", list[str]]:
        """The nearest trial, and what of the link could not be read, in words."""
        link = Parameters(query)
        link.number("batch", 1, 1024)
        link.number("kv", 1, 1024, "kv_heads")
        link.number("limit", *LIMITS_S)
        link.one_of("dim", HEAD_DIMS, "head_dim")
        link.one_of("dtype", DTYPES)
        link.one_of("sweep", AXES)
        for name, known in (("passes", PASSES), ("engines", PROVIDERS)):
            if name in query:
                asked = [] if query[name] == "none" else query[name][:1000].split(",")
                link.values[name] = tuple(one for one in known if one in asked)
                if wrong := [one for one in asked if one not in known]:
                    link.problems.append(f"{name}: there is no {', '.join(repr(one[:40]) for one in wrong[:3])}")
        if "values" in query:
            link.values["values"] = query["values"][:MAX_VALUES]
        for name in ("run", "beside"):
            if name in query:
                if re.fullmatch(r"[0-9a-z-]{1,32}", query[name]):
                    link.values[name] = query[name]
                else:
                    link.wrong(name, "no name of a run")
        return cls(**link.values), link.problems
