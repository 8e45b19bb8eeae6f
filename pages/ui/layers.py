"""A mask as a stack of layers: another view of the same text, read from the top, each joined to what stands above it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape

import streamlit as st

import flashmask_core as fm
from flashmask_core.masks.expr import Hidden, Joined, MaskExpr

from . import state
from .link import Screen

MOST_ROWS = 32  # layers that are shown; a text may have more
_TURNED = {"&": "|", "|": "&"}
_WORDS = {"&": "and", "|": "or"}


@dataclass(frozen=True)
class Layer:
    """A mask, perhaps turned round by ~, and how it is joined to those above: "&", "|", or "" for the first."""

    operator: str
    negated: bool
    text: str


def layers_of(text: str) -> list[Layer]:
    """The layers of a mask text: `a & b | c` is a, & b, | c, and `a | b & c` is a, | (b & c).

    MaskSyntaxError for a wrong text.
    """
    return [_layer(operator, mask) for operator, mask in _stacked(fm.parse(text))]


def text_of(layers: list[Layer]) -> str:
    """The canonical text of a stack of at least one layer; the inverse of `layers_of`. MaskSyntaxError as there."""
    joined: MaskExpr | None = None
    for layer in layers:
        mask = fm.parse(layer.text)
        mask = ~mask if layer.negated else mask
        joined = mask if joined is None else joined & mask if layer.operator == "&" else joined | mask
    return str(joined)


def _stacked(mask: MaskExpr) -> list[tuple[str, MaskExpr]]:
    if not isinstance(mask, Joined):
        return [("", mask)]
    first, *others = mask.masks
    return [*_stacked(first), *((mask.operator, other) for other in others)]


def _layer(operator: str, mask: MaskExpr) -> Layer:
    negated = isinstance(mask, Hidden)
    return Layer(operator, negated, str(mask.mask if negated else mask))


def moved_up(layers: list[Layer], number: int) -> list[Layer]:
    """The stack with a layer, not the first, one place higher; the first of a stack is joined to nothing."""
    above, layer = layers[number - 1], layers[number]
    if number == 1:
        above, layer = replace(above, operator=layer.operator), replace(layer, operator="")
    return [*layers[: number - 1], layer, above, *layers[number + 1 :]]


def without(layers: list[Layer], number: int) -> list[Layer]:
    """The stack without one of its layers."""
    left = layers[:number] + layers[number + 1 :]
    return [replace(left[0], operator=""), *left[1:]] if left else left


def panel(screen: Screen) -> None:
    """The stack, a row a layer; every change goes into the text."""
    if screen.file:
        st.caption("An uploaded mask has no layers.")
        return
    try:
        layers = layers_of(screen.mask)
    except ValueError:
        st.caption("The text is not a mask yet: its layers show when it is.")
        return
    problem = st.session_state.pop("layer_problem", None)
    with st.container(key="layers", gap="xsmall"):
        for number in range(min(len(layers), MOST_ROWS)):
            _row(layers, number, problem[1] if problem and problem[0] == number else None)
    if problem:
        st.html(f'<div class="fm-error" role="alert">{escape(problem[2])}</div>')
    if len(layers) > MOST_ROWS:
        st.caption(f"The first {MOST_ROWS} of {len(layers):,} layers; the text has all of them.")


def _row(layers: list[Layer], number: int, typed: str | None) -> None:
    layer = layers[number]
    name, most = f"layer {number + 1}", len(layers) > 1
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        if layer.operator:
            turned = replace(layer, operator=_TURNED[layer.operator])
            _button(_WORDS[layer.operator], f"op_{number}", f"Join {name} by {_WORDS[turned.operator]} instead",
                    _with(layers, number, turned), width=54)  # fmt: skip
        else:
            st.html('<span class="fm-sub">start</span>', width=54)
        opposite = replace(layer, negated=not layer.negated)
        _button("not", f"not_{number}", f"Turn {name} round", _with(layers, number, opposite), width=48,
                type="primary" if layer.negated else "secondary")  # fmt: skip
        st.session_state[f"layer_{number}"] = layer.text if typed is None else typed
        st.text_input(f"Mask of {name}", key=f"layer_{number}", on_change=_typed, args=(layers, number),
                      label_visibility="collapsed")  # fmt: skip
        _button(":material/arrow_upward:", f"up_{number}", f"Move {name} up",
                moved_up(layers, number) if number else None, width=38)  # fmt: skip
        _button(":material/close:", f"drop_{number}", f"Remove {name}", without(layers, number) if most else None,
                width=38)  # fmt: skip


def _button(label: str, key: str, words: str, layers: list[Layer] | None, **look) -> None:
    """A button that puts a stack in place of the mask; None for one that cannot be pressed."""
    st.button(label, key=f"layer_{key}", help=words, on_click=_take, args=(layers,), disabled=layers is None, **look)


def _with(layers: list[Layer], number: int, layer: Layer) -> list[Layer]:
    return [*layers[:number], layer, *layers[number + 1 :]]


def _take(layers: list[Layer]) -> None:
    state.change(mask=text_of(layers))


def _typed(layers: list[Layer], number: int) -> None:
    """What was typed into a row; what is no mask stays there with the reason, and the mask as it was."""
    text = st.session_state[f"layer_{number}"]
    try:
        _take(_with(layers, number, replace(layers[number], text=text)))
    except ValueError as error:
        st.session_state.layer_problem = (number, text, str(error).splitlines()[0][:400])
