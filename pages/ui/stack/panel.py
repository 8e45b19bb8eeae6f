"""The stack of layers: a Streamlit component (v2) whose every change becomes the text of the screen."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import streamlit as st

from .. import canvas, presses, state
from ..layers import Layer, layers_of, text_of
from ..link import Screen
from ..theme import sheet
from .controls import controls_of, new_layers

_KEY = "stack"
_MOST_LAYERS = 2000  # as many as a text may join
_SCRIPTS = ("fields", "stack")


@cache
def _component():
    here = Path(__file__).parent
    return st.components.v2.component(
        "flashmask_layers",
        html='<div class="fm-layers"></div>',
        css=sheet(".fm-layers", here / "stack.css"),
        js=canvas.scripts("mount") + "".join((here / f"{name}.js").read_text("utf-8") for name in _SCRIPTS),
    )


def panel(screen: Screen) -> None:
    """The layers of the screen's text, each with its parameters; every change goes into the text.

    While that is no mask, they are those of the last one that was, and stand still.
    """
    if screen.file:
        st.caption("An uploaded mask has no layers.")
        return
    layers, stale = _layers(screen), False
    if layers is None:
        last = st.session_state.get("last_valid")
        layers, stale = _layers(last) if last and not last.file else None, True
    problem = st.session_state.get("stack_problem")
    data = {
        "layers": layers,
        "stale": stale,
        "keys": screen.keys,
        "new": new_layers(screen.keys),
        "heard": presses.heard(_KEY),
        "problem": problem if problem and problem["mask"] == screen.mask else None,
    }
    presses.draw(_component(), key=_KEY, data=data, **_LISTENERS)


def _layers(screen: Screen) -> list[dict] | None:
    try:
        return [controls_of(layer, screen.keys) for layer in layers_of(screen.mask)]
    except ValueError:
        return None


def _take(told) -> None:
    """The stack as the browser has it. What is no mask stays there with the reason, and the mask as it was."""
    layers = _read(told)
    if layers is None:
        return
    st.session_state.stack_problem = None
    try:
        state.change(mask=text_of(layers), gesture=str(told.get("gesture") or ""))
    except ValueError as error:
        says = f"Layer {_first_wrong(layers) + 1}: {str(error).splitlines()[0][:400]}"
        st.session_state.stack_problem = {"says": says, "mask": state.current().mask}


def _read(told) -> list[Layer] | None:
    """The layers of a message; None if it is none."""
    given = told.get("layers") if isinstance(told, dict) else None
    if not isinstance(given, list) or not 0 < len(given) <= _MOST_LAYERS:
        return None
    layers = []
    for number, one in enumerate(given):
        if not isinstance(one, dict) or not isinstance(one.get("text"), str):
            return None
        operator = ("|" if one.get("operator") == "|" else "&") if number else ""
        layers.append(Layer(operator, bool(one.get("negated")), one["text"], bool(one.get("on", True))))
    return layers


def _first_wrong(layers: list[Layer]) -> int:
    for number, layer in enumerate(layers):
        try:
            layer.mask
        except ValueError:
            return number
    return len(layers) - 1


_LISTENERS = {"stack": _take}
