"""What the browser tells: everything once and in order, whatever becomes of the run that it asked for.

A request that comes while Streamlit's callbacks run ends one of them half-way, and may be answered after a later one. So
callbacks do nothing here but note what is to be done; `begin_run` does it at the head of the run, undisturbed.

Components of ours keep their last presses as state (canvas/mount.js), [number, name, value] with numbers that rise with
the clock, so a request carries those that an earlier one may not have brought. The highest number that was heard is kept
for each component of the tab.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Thread

import streamlit as st
from streamlit.runtime.scriptrunner import add_script_run_ctx, get_script_run_ctx


def draw(component, *, key: str, data, **listeners: Callable) -> None:
    """Draw a component (v2); `listeners` maps the name of a press to what is called with its value before the rerun."""
    st.session_state.setdefault("presses_listeners", {})[key] = listeners
    component(data=data, key=key, on_presses_change=_nothing)


def later(function: Callable, *arguments, **named) -> Callable[[], None]:
    """A callback for a widget of Streamlit's: `function(*arguments, **named)` is called at the head of the run."""
    return partial(st.session_state.setdefault("asked", []).append, partial(function, *arguments, **named))


def begin_run() -> None:
    """Do what the browser asked for. Call it at the head of every run and fragment, before anything is drawn."""
    session = st.session_state
    waiting = _waiting()
    session["made_for_presses"] = bool(waiting)
    if waiting or session.get("asked"):
        _undisturbed(_do)
    session["made_for_presses"] = False


def heard(key: str) -> int:
    """The highest number that was heard of a component; 0 for none."""
    return st.session_state.get("presses_heard", {}).get(key, 0)


def made_this_run() -> bool:
    """In what `begin_run` calls: True if the request of this run was made for a press."""
    return st.session_state.get("made_for_presses", False)


def _do() -> None:
    session = st.session_state
    for number, key, name, value in _waiting():
        session["presses_listeners"][key][name](value)
        session.setdefault("presses_heard", {})[key] = number
    asked = session.get("asked", [])
    while asked:
        asked.pop(0)()


def _undisturbed(work: Callable[[], None]) -> None:
    """Do it on a thread of its own: a request can stop the thread of a script wherever that touches the session."""
    errors = []

    def run() -> None:
        try:
            work()
        except Exception as error:
            errors.append(error)

    thread = Thread(target=run)
    add_script_run_ctx(thread, get_script_run_ctx())
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def _nothing() -> None:
    pass


def _waiting() -> list[tuple[int, str, str, object]]:
    """(number, component, name, value) of the presses that wait for being heard."""
    waiting = []
    for key, listeners in st.session_state.get("presses_listeners", {}).items():
        told = st.session_state.get(key)
        presses = told.get("presses") if told else None
        for press in presses if isinstance(presses, list) else []:
            if _is_press(press) and press[0] > heard(key) and press[1] in listeners:
                waiting.append((press[0], key, press[1], press[2]))
    return sorted(waiting, key=lambda press: press[:2])


def _is_press(item) -> bool:
    """What comes from a browser may be anything."""
    return isinstance(item, list) and len(item) == 3 and type(item[0]) is int and isinstance(item[1], str)
