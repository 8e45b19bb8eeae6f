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
    latest = st.session_state.setdefault("presses_heard", {})
    latest.setdefault(key, 0)
    for number, name, value in _presses(key):
        if number > latest[key] and name in listeners:
            listeners[name](value)  # where the run is stopped in here, the next one hears of it again
            latest[key] = number


def heard(key: str) -> int:
    """The highest number that was heard of a component; 0 for none."""
    return st.session_state.get("presses_heard", {}).get(key, 0)


def waiting() -> bool:
    """True if there are presses that nobody has heard yet: the request of this run was made for them."""
    latest = st.session_state.get("presses_heard", {})
    return any(number > latest[key] for key in latest for number, *_ in _presses(key))


def _presses(key: str) -> list:
    told = st.session_state.get(key)
    presses = told.get("presses") if told else None
    return [press for press in presses if _is_press(press)] if isinstance(presses, list) else []


def _is_press(item) -> bool:
    """What comes from a browser may be anything."""
    return isinstance(item, list) and len(item) == 3 and type(item[0]) is int and isinstance(item[1], str)
