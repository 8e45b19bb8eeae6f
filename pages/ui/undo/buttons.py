"""The two buttons: a Streamlit component (v2), since of two fast clicks on a button of Streamlit's one is lost."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import streamlit as st

from .. import begin, canvas, presses, state

_KEY = "undo"


@cache
def _component():
    return canvas.component(Path(__file__).parent, "undo", "undo")


def buttons() -> None:
    """Draw them, each able if there is a step to take; what a beginning has just replaced is said for a while."""
    steps = {"undo": state.can_undo(), "redo": state.can_redo()}
    data = {**steps, "replaced": begin.says(), "heard": presses.heard(_KEY)}
    with st.container(key="undo_redo", width=84):
        presses.draw(_component(), key=_KEY, data=data, **_LISTENERS)


_LISTENERS = {"undo": lambda _: state.undo(), "redo": lambda _: state.redo()}
