"""What is packed on the Train page, and how. Part of the screen."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from flashmask_core.packing import ANSWERS, POLICIES, TOO_LONG

MAX_TEXT = 4000  # characters of lengths that go into a link
MAX_CONTEXT, MAX_SEQUENCES, MAX_RANKS = 2**20, 500, 64
FORMS = {"sft": "SFT, LoRA: 1 answer", "dpo": "DPO: 2 answers", "rm": "reward model: 6 answers"}
assert FORMS.keys() == ANSWERS.keys()
_CHOICES = {"form": FORMS, "policy": POLICIES, "long": TOO_LONG}
_NUMBERS = {"context": (1, MAX_CONTEXT), "count": (1, MAX_SEQUENCES), "seed": (0, 9999), "ranks": (1, MAX_RANKS),
            "sequence": (0, 10**6)}  # fmt: skip


@dataclass(frozen=True)
class PackPlace:
    """lengths: a typed list, "" for examples drawn by the paper's recipe (form, count, seed). sequence: which is shown."""

    lengths: str = ""
    form: str = "dpo"
    context: int = 8192
    count: int = 12
    seed: int = 0
    policy: str = "in_order"
    long: str = "refuse"
    ranks: int = 4
    sequence: int = 0

    def said(self) -> dict[str, str]:
        """Query parameters as text; a list too long for a link is left out."""
        said = {f"pack_{field.name}": str(getattr(self, field.name)) for field in fields(self)}
        return {**said, "pack_lengths": self.lengths if len(self.lengths) <= MAX_TEXT else ""}

    @classmethod
    def from_query(cls, query: dict[str, str]) -> tuple["PackPlace", list[str]]:
        """The nearest one, and what of the link could not be read, in words."""
        values, problems = {}, []
        for name in (field.name for field in fields(cls)):
            text = query.get(f"pack_{name}", "").strip()
            if not text:
                continue
            if name == "lengths":
                values[name] = text
            elif name in _CHOICES:
                if text in _CHOICES[name]:
                    values[name] = text
                else:
                    problems.append(f"pack_{name}={text[:40]!r} is none of {', '.join(_CHOICES[name])}")
            else:
                low, high = _NUMBERS[name]
                if re.fullmatch("[0-9]{1,8}", text) and low <= int(text) <= high:
                    values[name] = int(text)
                else:
                    problems.append(f"pack_{name}={text[:40]!r} is no number from {low:,} to {high:,}")
        return cls(**values), problems


NAMES = tuple(f"pack_{field.name}" for field in fields(PackPlace))  # of the query parameters
