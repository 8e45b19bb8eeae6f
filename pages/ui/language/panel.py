"""The reference as a Streamlit component (v2) in a popover beside the text field."""

from __future__ import annotations

from functools import cache
from html import escape
from pathlib import Path

import streamlit as st

from flashmask_core.masks.grammar import GRAMMAR
from flashmask_core.masks.patterns import PATTERNS, Pattern

from .. import begin, canvas, presses, state
from ..layers import Layer, layers_of, text_of
from ..link import Screen
from ..stack.controls import new_layers

_KEY = "language_list"
_JOINS = {"&": "and", "|": "or"}


@cache
def _component():
    return canvas.component(Path(__file__).parent, "language", "language", html=_html())


def popover(screen: Screen) -> None:
    """A quiet button; what stands behind it is made when it opens."""
    box = st.popover("Language", type="tertiary", key="language", on_change="rerun")
    if box.open:
        with box:
            _panel(screen)


def _panel(screen: Screen) -> None:
    data = {
        "text": screen.mask,
        "file": bool(screen.file),
        "stale": not screen.file and _layers(screen.mask) is None,
        "examples": new_layers(screen.keys),
        "heard": presses.heard(_KEY),
    }
    presses.draw(_component(), key=_KEY, data=data, **_LISTENERS)


def _layers(text: str) -> list[Layer] | None:
    try:
        return layers_of(text)
    except ValueError:
        return None


def _add(told) -> None:
    """An example becomes a layer; one that is pressed over an uploaded mask takes its place."""
    screen = state.current()
    name, operator = (told.get("name"), told.get("join")) if isinstance(told, dict) else (None, None)
    example = new_layers(screen.keys).get(name) if isinstance(name, str) else None
    if example is None or operator not in _JOINS:
        return
    if screen.file:
        begin.with_values(mask=example)
    elif (layers := _layers(screen.mask)) is not None:
        state.change(mask=text_of([*layers, Layer(operator, False, example)]))


_LISTENERS = {"add": _add}


def _html() -> str:
    """All that the reference says; the examples go with the number of keys, so the browser gets them as data."""
    rules = "".join(
        f"<li><code>{escape(rule.form)}</code><p>{escape(rule.meaning)} <code>{escape(rule.example)}</code></p></li>"
        for rule in GRAMMAR
    )
    patterns = "".join(_entry(p.name, p.signature, p.about, p.rule, _arguments(p)) for p in PATTERNS.values())
    comparisons = ""
    for name in new_layers(1):
        if name not in PATTERNS:
            about, form = name.split(": ", 1)
            comparisons += _entry(name, form, f"{about.capitalize()}.")
    joins = "".join(f'<option value="{escape(sign)}">{word}</option>' for sign, word in _JOINS.items())
    return (
        '<div class="fm-language"><div class="now"><p><code role="status"></code></p>'
        f'<label>A press joins an example by <select aria-label="Join an example by">{joins}</select></label></div>'
        f'<h2>Grammar</h2><ul class="rules">{rules}</ul>'
        f"<h2>Patterns</h2><ul>{patterns}</ul><h2>Comparisons</h2><ul>{comparisons}</ul></div>"
    )


def _entry(name: str, form: str, about: str, rule: str = "", arguments: str = "") -> str:
    shown = f'<p class="rule">visible: {escape(rule)}</p>' if rule else ""
    return (
        f'<li><div><code class="form">{escape(form)}</code>{arguments}</div>'
        f"<div><p>{escape(about)}</p>{shown}"
        f'<button type="button" data-name="{escape(name)}"></button></div></li>'
    )


def _arguments(pattern: Pattern) -> str:
    said = "".join(
        f"<dt>{escape(', '.join(p.fields) or p.name)}</dt><dd>{escape(p.about)}</dd>" for p in pattern.parameters
    )
    return f"<dl>{said}</dl>" if said else ""
