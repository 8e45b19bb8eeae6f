"""What the mask of the screen is compared with. Part of the screen."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256

NAMES = ("with", "withfile", "withplane")  # of the query parameters
MAX_TEXT = 4000  # characters of it that go into a link


@dataclass(frozen=True)
class Other:
    """A text, or an upload on the shelf and which (batch entry, mask head) of it; neither: the page finds a mask."""

    text: str = ""
    file: str = ""
    plane: tuple[int, int] = (0, 0)

    @property
    def name(self) -> str:
        """What a text too long for a link is called on the shelf."""
        return sha256(self.text.encode()).hexdigest()[:24]

    def said(self) -> dict[str, str]:
        """Query parameters as text."""
        long = len(self.text) > MAX_TEXT
        return {
            "with": "" if long else self.text,
            "withfile": self.name if long else self.file,
            "withplane": f"{self.plane[0]},{self.plane[1]}",
        }

    @classmethod
    def from_query(cls, query: dict[str, str]) -> tuple["Other", list[str]]:
        """The nearest one, and what of the link could not be read, in words."""
        values, problems = {}, []
        if query.get("with", "").strip():
            values["text"] = query["with"].strip()
        if "withfile" in query:
            if re.fullmatch("[0-9a-f]{24}", query["withfile"]):
                values["file"] = query["withfile"]
                values.pop("text", None)
            else:
                problems.append(f"withfile={query['withfile'][:40]!r} is no name of a file")
        if "withplane" in query:
            plane = re.fullmatch("([0-9]{1,7}),([0-9]{1,7})", query["withplane"].strip())
            if plane:
                values["plane"] = (int(plane[1]), int(plane[2]))
            else:
                problems.append(f"withplane={query['withplane'][:40]!r} is no batch entry and head such as 0,3")
        return cls(**values), problems
