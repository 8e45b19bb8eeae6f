"""A bar over the page while a mask without a closed form is evaluated; a change on the page ends that work."""

from __future__ import annotations

from time import monotonic

import streamlit as st

_AFTER_S, _EVERY_S = 0.4, 0.12


def progress():
    """A function to call with the share of the work that is done; its bar shows if the work takes a while.

    Streamlit ends a run that is out of date when it next draws something, and so an evaluation that reports here.
    """
    with st.container(key="working"):
        place = st.empty()
    started = shown = monotonic()

    def report(share: float) -> None:
        nonlocal shown
        now = monotonic()
        if now - started > _AFTER_S and now - shown > _EVERY_S:
            shown = now
            place.progress(min(1.0, share), text=f"Evaluating pair by pair: {100 * share:.0f} %")
        if share >= 1.0:
            place.empty()

    return report
