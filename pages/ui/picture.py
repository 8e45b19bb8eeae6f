"""The canvas for a built mask, its selection tied to the screen."""

from __future__ import annotations

import streamlit as st

from . import canvas, state
from .build import Built

_KEY = "canvas"


def picture(built: Built, screen: state.Screen) -> None:
    """Draw the mask; a click on it becomes the screen's selection."""
    data = canvas.payload(
        built.mask,
        identity=built.identity,
        block=(screen.block_m, screen.block_n),
        rule=screen.rule,
        density=built.pairs / (built.seqlen_q * built.seqlen_k),
        selection=spot(built, screen),
        drawn=is_drawn(),
    )
    canvas.draw(data, key=_KEY, on_select=_select, on_drawn=_drawn)


def is_drawn() -> bool:
    """True once the canvas has shown its first picture in this tab; what loads slowly waits for that."""
    return st.session_state.get("canvas_drawn", False)


def _drawn() -> None:
    st.session_state.canvas_drawn = True


def spot(built: Built, screen: state.Screen) -> tuple[int, int]:
    """The selected (query, key); before anything was selected, a visible cell a little left of the middle."""
    if screen.at:
        return screen.at
    column = int(0.39 * built.seqlen_k)
    hidden = sorted(
        (int(a[0, 0, column]), int(b[0, 0, column])) for a, b in (built.mask.vectors[:2], built.mask.vectors[2:])
    )
    edges = [0, *(v for run in hidden for v in run if run[0] < run[1]), built.seqlen_q]
    first, last = max(zip(edges[::2], edges[1::2]), key=lambda run: run[1] - run[0])
    return min(built.seqlen_q - 1, max(0, first + int(0.8 * (last - first)))), column


def _select() -> None:
    spot = st.session_state[_KEY].get("selection")
    state.change(at=(int(spot[0]), int(spot[1])) if spot else None)
