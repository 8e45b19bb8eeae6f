"""What a component's browser side tells: every press once and in order, whatever becomes of the run it asked for.

The browser (canvas/mount.js) keeps the last presses as the component's state, [number, name, value] each with rising
numbers, so a request carries those that an earlier one may not have brought. Here the highest number that was heard is
kept for each component of the tab.
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st


def draw(component, *, key: str, data, **listeners: Callable) -> None:
    """Draw a component (v2); `listeners` maps the name of a press to what is called with its value before the rerun."""
    component(data=data, key=key, on_presses_change=lambda: hear(key, **listeners))


def hear(key: str, **listeners: Callable) -> None:
    """Hand over the presses that nobody has heard yet. For the head of a run: another run's callback may have been
    stopped by the request for this one."""
    told, latest = st.session_state.get(key), st.session_state.setdefault("presses_heard", {})
    presses = told.get("presses") if told else None
    for number, name, value in filter(_is_press, presses if isinstance(presses, list) else ()):
        if number > latest.get(key, 0) and name in listeners:
            listeners[name](value)  # where the run is stopped in here, the next one hears of it again
            latest[key] = number


def heard(key: str) -> int:
    """The highest number that was heard of a component; 0 for none."""
    return st.session_state.get("presses_heard", {}).get(key, 0)


def _is_press(item) -> bool:
    """What comes from a browser may be anything."""
    return isinstance(item, list) and len(item) == 3 and type(item[0]) is int and isinstance(item[1], str)
