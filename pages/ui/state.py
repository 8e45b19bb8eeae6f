"""What a screen shows, as one value that travels in the URL.

A `Screen` is read from the query parameters when a session opens and whenever the address changes under us (the Back
button, a link), and written back after every change, so a copied link reopens the same screen. Widgets are seeded from
it and feed it through their callbacks; that is why it survives a switch of pages, where Streamlit forgets widgets.
Session state belongs to one browser tab, so two tabs do not touch each other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import streamlit as st

MAX_LENGTH = 2**20
MAX_TILE = 2**20
MAX_LINK = 8000  # characters of mask text that still go into a link
RULES = {"exact": "exact union", "paper": "paper, eq. 4"}
DEFAULT_TEXT = "causal & document(2481, 1388, 1978, 2345)"


@dataclass(frozen=True)
class Screen:
    """The mask and how it is looked at. seqlen_k None means as many keys as queries; `at` is the selected cell."""

    mask: str = DEFAULT_TEXT
    seqlen_q: int = 8192
    seqlen_k: int | None = None
    block_m: int = 128
    block_n: int = 128
    rule: str = "exact"
    heads: int = 32
    at: tuple[int, int] | None = None

    @property
    def keys(self) -> int:
        return self.seqlen_q if self.seqlen_k is None else self.seqlen_k

    @property
    def tile(self) -> str:
        return f"{self.block_m} × {self.block_n}"

    def to_query(self) -> dict[str, str]:
        """Query parameters; what equals the first screen is left out, and a mask text too long for a link too."""
        said = {
            "mask": self.mask if len(self.mask) <= MAX_LINK else DEFAULT_TEXT,
            "n": str(self.seqlen_q),
            "nk": str(self.seqlen_k) if self.seqlen_k else "",
            "tile": f"{self.block_m}x{self.block_n}",
            "rule": self.rule,
            "heads": str(self.heads),
            "at": f"{self.at[0]},{self.at[1]}" if self.at else "",
        }
        usual = {
            "mask": DEFAULT_TEXT,
            "n": "8192",
            "nk": "",
            "tile": "128x128",
            "rule": "exact",
            "heads": "32",
            "at": "",
        }
        return {name: value for name, value in said.items() if value != usual[name]}

    @classmethod
    def from_query(cls, query: dict[str, str]) -> tuple["Screen", list[str]]:
        """The nearest valid screen, and what of the link had to be left out, in words."""
        values, problems = {}, []

        def number(name: str, field: str, low: int, high: int):
            if name not in query:
                return
            text = query[name].strip()
            if text.isdecimal() and len(text) < 9 and low <= int(text) <= high:
                values[field] = int(text)
            else:
                problems.append(f"{name}={query[name][:40]!r} is no number from {low:,} to {high:,}")

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
                problems.append(f"tile={query['tile'][:40]!r} is no tile such as 128x64")
        if "rule" in query:
            if query["rule"] in RULES:
                values["rule"] = query["rule"]
            else:
                problems.append(f"rule={query['rule'][:40]!r} is none of {', '.join(RULES)}")
        screen = cls(**values)
        if "at" in query:
            spot = re.fullmatch(r"(\d{1,7}),(\d{1,7})", query["at"].strip())
            if spot and int(spot[1]) < screen.seqlen_q and int(spot[2]) < screen.keys:
                screen = replace(screen, at=(int(spot[1]), int(spot[2])))
            else:
                problems.append(f"at={query['at'][:40]!r} is no cell of this mask")
        return screen, problems


def parse_tile(text: str) -> tuple[int, int] | None:
    """ "128 × 64", "128x64" or "128" -> (rows, columns); None if it is no tile."""
    found = re.fullmatch(r"\s*(\d{1,7})\s*(?:[x×*,]\s*(\d{1,7})\s*)?", str(text))
    if not found:
        return None
    rows, columns = int(found[1]), int(found[2] or found[1])
    return (rows, columns) if 1 <= rows <= MAX_TILE and 1 <= columns <= MAX_TILE else None


def open_screen() -> Screen:
    """The screen of this run. Call it first on every page."""
    query = st.query_params.to_dict()
    if "screen" not in st.session_state or _differs(query, st.session_state.published):
        screen, problems = Screen.from_query(query)
        st.session_state.screen, st.session_state.link_problems = screen, problems
        st.session_state.published = query
    _seed_widgets(st.session_state.screen)
    return st.session_state.screen


def current() -> Screen:
    """The screen as the last callback left it."""
    return st.session_state.screen


def _differs(query: dict[str, str], published: dict[str, str]) -> bool:
    """True if the address says something that we did not write. A link between pages may leave the selection out."""
    return query != published and {"at": published.get("at"), **query} != {"at": None, **published}


def change(**values) -> None:
    """Put new values into the screen (from a callback or a page), and into its widgets and the URL."""
    before = st.session_state.screen
    if "mask" in values and values["mask"] != before.mask:
        st.session_state.setdefault("texts", []).append(before.mask)
        del st.session_state.texts[:-50]
    screen = replace(before, **values)
    if screen.at and not (screen.at[0] < screen.seqlen_q and screen.at[1] < screen.keys):
        screen = replace(screen, at=None)
    st.session_state.screen, st.session_state.link_problems = screen, []
    _seed_widgets(screen)


def publish() -> None:
    """Write the screen into the URL, if it says something new."""
    query = st.session_state.screen.to_query()
    if query != st.session_state.published:
        st.session_state.published = query
        st.query_params.from_dict(query)


def undo_text() -> None:
    """Bring back the mask text before the last change."""
    if st.session_state.get("texts"):
        text = st.session_state.texts.pop()
        st.session_state.screen = replace(st.session_state.screen, mask=text)
        _seed_widgets(st.session_state.screen)


def _seed_widgets(screen: Screen) -> None:
    """Give the widgets their values; on every run, since a widget of another page with the same key is forgotten."""
    for key, value in {
        "w_mask": screen.mask,
        "w_n": screen.seqlen_q,
        "w_nk": screen.seqlen_k,
        "w_tile": screen.tile,
        "w_rule": screen.rule,
        "w_heads": screen.heads,
    }.items():
        st.session_state[key] = value


def collect() -> None:
    """Callback of the screen's widgets: what they say becomes the screen. A tile nobody can read is put back."""
    widgets, before = st.session_state, st.session_state.screen
    tile = parse_tile(widgets.get("w_tile") or "") or (before.block_m, before.block_n)
    change(
        mask=widgets.get("w_mask", before.mask),
        seqlen_q=int(widgets.get("w_n") or before.seqlen_q),
        seqlen_k=int(widgets["w_nk"]) if widgets.get("w_nk") else None,
        block_m=tile[0],
        block_n=tile[1],
        rule=widgets.get("w_rule") or before.rule,
        heads=int(widgets.get("w_heads") or before.heads),
    )
