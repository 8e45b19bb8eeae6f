"""What is trained on the Train page, and which run is shown. Part of the screen."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from flashmask_core.training.names import ENGINE_LABELS, TASKS

from ..parameters import Parameters
from ..words import numbers_of

MAX_CONTEXTS = 8
MAX_TEXT = 100  # characters of contexts
_NUMBERS = {"layers": (1, 1000), "width": (2, 2**16), "heads": (1, 1024), "kv_heads": (1, 1024), "steps": (1, 46)}
_LISTS = {"tasks": TASKS, "engines": tuple(ENGINE_LABELS)}
_FLAGS = ("longest", "exact")


@dataclass(frozen=True)
class TrainPlace:
    """contexts: as typed. longest: search it too. exact: fp32 and deterministic. run: the id of a job, "" for none."""

    tasks: tuple[str, ...] = TASKS
    engines: tuple[str, ...] = tuple(ENGINE_LABELS)
    layers: int = 4
    width: int = 2048
    heads: int = 16
    kv_heads: int = 4
    contexts: str = "8192, 32768"
    steps: int = 5
    longest: bool = False
    exact: bool = False
    run: str = ""

    def said(self) -> dict[str, str]:
        """Query parameters as text."""
        said = {}
        for name in FIELDS:
            value = getattr(self, name)
            said[f"train_{name}"] = ",".join(value) if name in _LISTS else str(int(value)) if name in _FLAGS else str(value)
        return said

    @classmethod
    def from_query(cls, query: dict[str, str]) -> tuple["TrainPlace", list[str]]:
        """The nearest one, and what of the link could not be read, in words."""
        link = Parameters({name: text for name, text in query.items() if text.strip()})
        for name in FIELDS:
            parameter, text = f"train_{name}", query.get(f"train_{name}", "").strip()
            if name in _NUMBERS:
                link.number(parameter, *_NUMBERS[name], name)
            elif name in _FLAGS:
                link.one_of(parameter, (0, 1), name)
                if name in link.values:
                    link.values[name] = bool(link.values[name])
            elif not text:
                continue
            elif name in _LISTS:
                link.values[name] = tuple(one for one in _LISTS[name] if one in text.split(","))
                if set(text.split(",")) - set(_LISTS[name]):
                    link.wrong(parameter, f"no list of {', '.join(_LISTS[name])}")
            elif name == "contexts":
                link.values[name] = text[:MAX_TEXT]
            elif re.fullmatch(r"[0-9a-z-]{1,32}", text):
                link.values[name] = text
            else:
                link.wrong(parameter, "no name of a run")
        return cls(**link.values), link.problems


FIELDS = tuple(field.name for field in fields(TrainPlace))


def contexts_of(text: str) -> tuple[int, ...]:
    """The numbers of a typed list, each once; ValueError for what is none."""
    found = tuple(dict.fromkeys(numbers_of(text, "Contexts", "8192, 32768")))
    if len(found) > MAX_CONTEXTS:
        raise ValueError(f"Contexts: wanted at most {MAX_CONTEXTS}, got {len(found)}")
    return found
