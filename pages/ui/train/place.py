"""What is packed on the Train page, and how. Part of the screen."""

from __future__ import annotations

from dataclasses import dataclass, fields

from flashmask_core.packing import ANSWERS, POLICIES, TOO_LONG

from ..parameters import Parameters
from . import run_place
from .run_place import TrainPlace

MAX_TEXT = 4000  # characters of lengths that go into a link
MAX_CONTEXT, MAX_SEQUENCES, MAX_RANKS = 2**20, 500, 64
FORMS = {"sft": "SFT, LoRA: 1 answer", "dpo": "DPO: 2 answers", "rm": "reward model: 6 answers"}
assert FORMS.keys() == ANSWERS.keys()
_CHOICES = {"form": FORMS, "policy": POLICIES, "long": TOO_LONG}
_NUMBERS = {"context": (1, MAX_CONTEXT), "count": (1, MAX_SEQUENCES), "seed": (0, 9999), "ranks": (1, MAX_RANKS),
            "sequence": (0, 10**6)}  # fmt: skip


@dataclass(frozen=True)
class PackPlace:
    """lengths: a typed list, "" for examples drawn by the paper's recipe (form, count, seed). sequence: which is shown.
    train: what is trained on them."""

    lengths: str = ""
    form: str = "dpo"
    context: int = 8192
    count: int = 12
    seed: int = 0
    policy: str = "in_order"
    long: str = "refuse"
    ranks: int = 4
    sequence: int = 0
    train: TrainPlace = TrainPlace()

    def said(self) -> dict[str, str]:
        """Query parameters as text; a list too long for a link is left out."""
        said = {f"pack_{name}": str(getattr(self, name)) for name in FIELDS}
        return {**said, "pack_lengths": self.lengths if len(self.lengths) <= MAX_TEXT else "", **self.train.said()}

    @classmethod
    def from_query(cls, query: dict[str, str]) -> tuple["PackPlace", list[str]]:
        """The nearest one, and what of the link could not be read, in words."""
        link = Parameters({name: text for name, text in query.items() if name in NAMES and text.strip()})
        for name in FIELDS:
            parameter = f"pack_{name}"
            if name in _CHOICES:
                link.one_of(parameter, _CHOICES[name], name)
            elif name in _NUMBERS:
                link.number(parameter, *_NUMBERS[name], name)
            elif parameter in link.query:
                link.values[name] = link.query[parameter].strip()
        train, wrong = TrainPlace.from_query(query)
        return cls(**link.values, train=train), link.problems + wrong


FIELDS = tuple(field.name for field in fields(PackPlace) if field.name != "train")
NAMES = (*(f"pack_{name}" for name in FIELDS), *(f"train_{name}" for name in run_place.FIELDS))  # of the parameters
