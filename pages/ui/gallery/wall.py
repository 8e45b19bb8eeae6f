"""The wall: a Streamlit component (v2) that draws the cards with the scripts of the canvas."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import streamlit as st

from .. import canvas, presses
from ..theme import variables
from .cards import Card, wall_data

_SHARED = ("vectors", "mask", "levels", "view", "raster", "labels", "draw", "mount")  # of the canvas


@cache
def _component():
    here = Path(__file__).parent
    return st.components.v2.component(
        "flashmask_wall",
        html='<div class="fm-wall"><span class="probe" aria-hidden="true"><i></i></span><ul></ul></div>',
        css=variables(".fm-wall") + ":host{container-type:inline-size}" + (here / "wall.css").read_text("utf-8"),
        js=canvas.scripts(*_SHARED) + (here / "wall.js").read_text("utf-8"),
    )


def wall(cards: tuple[Card, ...], rule: str, *, key: str) -> Card | None:
    """Draw the cards; the one that was just clicked, else None."""
    session, name = st.session_state, f"chosen_of_{key}"
    listen = {"chosen": lambda number: session.update({name: number})}
    presses.draw(_component(), key=key, data=wall_data(cards, rule), **listen)
    chosen = session.pop(name, None)
    return cards[chosen] if type(chosen) is int and 0 <= chosen < len(cards) else None
