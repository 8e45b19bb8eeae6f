"""A screen as a link: what is shown as one value, its query parameters, and the nearest valid screen of any link."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from hashlib import sha256

from . import presets
from .lesson import place as lesson_place
from .lesson.place import LessonPlace
from .measure import trial
from .measure.trial import Trial
from .paper import place as paper_place
from .paper.place import PaperPlace
from .presets import DEFAULT_TEXT
from .train import place as train_place
from .train.place import PackPlace
from .versus import place as versus_place
from .versus.place import Other
from .walk import place as walk_place
from .walk.place import WalkPlace
from .words import tile_of

MAX_LENGTH = 2**20
MAX_TILE = 2**20
MAX_LINK = 8000  # characters of mask text that still go into a link
RULES = {"exact": "exact", "paper": "paper, eq. 4"}
_PAIR = "([0-9]{1,7}),([0-9]{1,7})"
# Where one is on a page: only its own address says so.
PLACES = {
    "walk": walk_place.NAMES,
    "learn": lesson_place.NAMES,
    "measure": (*trial.NAMES, "case"),
    "compare": versus_place.NAMES,
    "train": train_place.NAMES,
    "paper": paper_place.NAMES,
}
PLACE = ("at", "view", *(name for names in PLACES.values() for name in names))  # left out of links from page to page


@dataclass(frozen=True)
class Screen:
    """The mask and how it is looked at.

    seqlen_k None means as many keys as queries. `file` names an uploaded mask on the server's shelf, which then stands
    in place of the text, and `plane` the (batch entry, mask head) of it that is drawn. `trial` is what is measured with
    it, `case` names a recorded result that was chosen in place of the nearest one. `at` is the selected cell (query,
    key), `view` the part that is drawn: (first column, columns, first row, rows), None for all of it. `walk` and
    `lesson` say where one is on those pages, `paper` which of its tables is shown, `other` what the mask is compared
    with.
    """

    mask: str = DEFAULT_TEXT
    seqlen_q: int = 8192
    seqlen_k: int | None = None
    block_m: int = 128
    block_n: int = 128
    rule: str = "exact"
    heads: int = 32
    file: str = ""
    plane: tuple[int, int] = (0, 0)
    trial: Trial = Trial()
    case: str = ""
    at: tuple[int, int] | None = None
    view: tuple[float, float, float, float] | None = None
    walk: WalkPlace = WalkPlace()
    lesson: LessonPlace = LessonPlace()
    other: Other = Other()
    pack: PackPlace = PackPlace()
    paper: PaperPlace = PaperPlace()

    @property
    def keys(self) -> int:
        return self.seqlen_q if self.seqlen_k is None else self.seqlen_k

    @property
    def tile(self) -> str:
        return f"{self.block_m} × {self.block_n}"

    @property
    def is_long(self) -> bool:
        """True for a text that does not go into a link and lies on the shelf instead."""
        return not self.file and len(self.mask) > MAX_LINK

    def to_query(self, place: bool = True, page: str = "") -> dict[str, str]:
        """Query parameters; what equals the first screen is left out, and with place=False where one looks.

        Where one is on a page of its own places is said by the address of that page alone.
        """
        said = _said(self)
        usual = _said(Screen())
        others = {name for owner, names in PLACES.items() if owner != page for name in names}
        hidden = others if place else PLACE
        return {name: v for name, v in said.items() if v != usual[name] and name not in hidden}

    @classmethod
    def from_query(cls, query: dict[str, str]) -> tuple["Screen", list[str]]:
        """The nearest valid screen, and what of the link had to be left out, in words."""
        values, problems = {}, []

        def number(name: str, field: str, low: int, high: int):
            if name not in query:
                return
            text = query[name].strip()
            if re.fullmatch("[0-9]{1,8}", text) and low <= int(text) <= high:
                values[field] = int(text)
            else:
                problems.append(f"{name}={query[name][:40]!r} is no number from {low:,} to {high:,}")

        def damaged(name: str, wanted: str):
            problems.append(f"{name}={query[name][:40]!r} is {wanted}")

        number("n", "seqlen_q", 1, MAX_LENGTH)
        number("nk", "seqlen_k", 1, MAX_LENGTH)
        number("heads", "heads", 1, 1024)
        if query.get("mask", "").strip():
            values["mask"] = query["mask"]
        if "tile" in query:
            tile = parse_tile(query["tile"])
            if tile:
                values["block_m"], values["block_n"] = tile
            else:
                damaged("tile", "no tile such as 128x64")
        if "rule" in query:
            if query["rule"] in RULES:
                values["rule"] = query["rule"]
            else:
                damaged("rule", f"none of {', '.join(RULES)}")
        if "file" in query:
            if re.fullmatch(r"[0-9a-f]{24}", query["file"]):
                values["file"] = query["file"]
            else:
                damaged("file", "no name of a file")
        if "plane" in query:
            plane = re.fullmatch(_PAIR, query["plane"].strip())
            if plane:
                values["plane"] = (int(plane[1]), int(plane[2]))
            else:
                damaged("plane", "no batch entry and head such as 0,3")
        if "case" in query:
            if re.fullmatch(r"[0-9a-f]{8}", query["case"]):
                values["case"] = query["case"]
            else:
                damaged("case", "no name of a recorded result")
        values["walk"], wrong = WalkPlace.from_query(query, presets.PRESETS)
        problems += wrong
        values["lesson"], wrong = LessonPlace.from_query(query)
        problems += wrong
        values["trial"], wrong = Trial.from_query(query)
        problems += wrong
        values["other"], wrong = Other.from_query(query)
        problems += wrong
        values["pack"], wrong = PackPlace.from_query(query)
        problems += wrong
        values["paper"], wrong = PaperPlace.from_query(query)
        problems += wrong
        screen = cls(**values)
        if "at" in query:
            spot = re.fullmatch(_PAIR, query["at"].strip())
            if spot and screen.holds((int(spot[1]), int(spot[2]))):
                screen = replace(screen, at=(int(spot[1]), int(spot[2])))
            else:
                damaged("at", "no cell of this mask")
        if "view" in query:
            numbers = query["view"].strip().split(",")
            plain = len(numbers) == 4 and all(re.fullmatch(r"[0-9]{1,7}(\.[0-9]{1,6})?", n) for n in numbers)
            view = screen.nearest_view(numbers) if plain else None
            if view is None:
                damaged("view", "no part of this mask such as 0,128,0,128")
            screen = replace(screen, view=view)
        return screen, problems

    def holds(self, spot: tuple[int, int]) -> bool:
        """Whether (query, key) is a cell of the mask."""
        return 0 <= spot[0] < self.seqlen_q and 0 <= spot[1] < self.keys

    def nearest_view(self, numbers) -> tuple[float, float, float, float] | None:
        """Four numbers (first column, columns, first row, rows) as a view of this mask; None if they are none."""
        try:
            column, columns, row, rows = (round(float(number), 2) for number in numbers)
        except (TypeError, ValueError, OverflowError):
            return None
        inside = 0 <= column < self.keys and 0 <= row < self.seqlen_q and columns > 0 and rows > 0
        return (column, min(columns, self.keys), row, min(rows, self.seqlen_q)) if inside else None


def _said(screen: Screen) -> dict[str, str]:
    """Every parameter of a screen as text."""
    file = name_of(screen.mask.encode()) if screen.is_long else screen.file
    return {
        "mask": DEFAULT_TEXT if file else screen.mask,
        "n": str(screen.seqlen_q),
        "nk": str(screen.seqlen_k) if screen.seqlen_k else "",
        "tile": f"{screen.block_m}x{screen.block_n}",
        "rule": screen.rule,
        "heads": str(screen.heads),
        "file": file,
        "plane": f"{screen.plane[0]},{screen.plane[1]}",
        **screen.trial.said(),
        "case": screen.case,
        "at": f"{screen.at[0]},{screen.at[1]}" if screen.at else "",
        "view": ",".join(f"{number:.2f}".rstrip("0").rstrip(".") for number in screen.view) if screen.view else "",
        **screen.walk.said(),
        **screen.lesson.said(),
        **screen.other.said(),
        **screen.pack.said(),
        **screen.paper.said(),
    }


def name_of(content: bytes) -> str:
    """What a text or a file is called on the shelf: by its content."""
    return sha256(content).hexdigest()[:24]


def parse_tile(text: str) -> tuple[int, int] | None:
    """ "128 × 64", "128x64" or "128" -> (rows, columns); None if it is no tile."""
    return tile_of(text, MAX_TILE)
