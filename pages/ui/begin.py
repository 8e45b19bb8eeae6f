"""To begin anew: what takes the place of the whole composition, such as a chip or an example, says what it replaced.

Nothing is said where that was itself only a beginning: it is still a press away.
"""

from __future__ import annotations

import streamlit as st

from flashmask_core.masks.examples import EXAMPLES
from flashmask_core.masks.patterns import PATTERNS

from . import presets, state
from .layers import layers_of
from .link import Screen


def with_values(**values) -> None:
    """Put a mask, and what comes with it, into the screen."""
    _note(values["mask"])
    state.change(**values)


def with_screen(screen: Screen) -> None:
    """Go to the screen that a file holds."""
    _note(screen.mask, screen.file)
    state.show(screen)


def elsewhere(page: str, **values) -> None:
    """Put a mask, and what comes with it, into the screen, and go to another page with it."""
    _note(values["mask"])
    state.go(page, **values)


def says() -> dict | None:
    """What was replaced last, as long as that can be undone by one press: its number, and a sentence."""
    note, now = st.session_state.get("replaced_last"), state.current()
    if not note or not note["says"] or note["mask"] != (now.mask, now.file) or not state.can_undo():
        return None
    return {"number": note["number"], "says": note["says"]}


def _note(mask: str, file: str = "") -> None:
    """These take the place of what is on the screen."""
    lost, number = _of_ones_own(state.current()), st.session_state.get("replaced_last", {}).get("number", 0)
    st.session_state.replaced_last = {"number": number + 1, "says": lost and f"Replaced {lost}", "mask": (mask, file)}


def _of_ones_own(screen: Screen) -> str:
    """What a screen holds that is not there for the asking, in words."""
    if screen.file:
        return "the uploaded mask"
    given = [make(screen.keys) for make in presets.PRESETS.values()]
    given += [example.text for example in EXAMPLES.values()]
    given += [presets.pattern_text(name, screen.keys) for name in PATTERNS if screen.keys >= 8]
    if not screen.mask.strip() or screen.mask.strip() in given:
        return ""
    try:
        many = len(layers_of(screen.mask))
    except ValueError:
        return "the text"
    return f"{many:,} layer{'s' * (many > 1)}"
