"""The canvas for a built mask, its selection and view tied to the screen."""

from __future__ import annotations

from dataclasses import astuple
from zlib import crc32

import streamlit as st

from . import canvas, cuts, presses, state, strokes
from .build import Built, fitted_of, of_screen
from .link import Screen

_KEY = "canvas"


def begin() -> None:
    """Take selection and view of the moment into the canvas's data, on every full run of a page.

    Between full runs the canvas moves on by itself, and its data, megabytes for a million tokens, stays as it is.
    """
    screen = state.current()
    st.session_state.canvas_start = {
        "opened": st.session_state.opened,
        "heard": presses.heard(_KEY),
        "at": screen.at,
        "view": screen.view,
        "drawn": is_drawn(),
    }


def picture(built: Built) -> None:
    """Draw the mask; a click on it becomes the screen's selection, where it looks the screen's view.

    What is painted on it goes into the screen's text, if it is that text's mask, or stands for it.
    """
    if st.session_state.canvas_start["opened"] != st.session_state.opened:
        begin()
    screen, start = state.current(), st.session_state.canvas_start
    editable = not screen.file and (built.text, built.seqlen_q, built.seqlen_k) == _text_and_lengths(screen)
    data = canvas.payload(
        built.mask,
        identity=built.identity,
        block=(screen.block_m, screen.block_n),
        rule=screen.rule,
        selection=spot(built, start["at"]),
        view=start["view"],
        opened=start["opened"],
        heard=start["heard"],
        drawn=start["drawn"],
        editable=editable,
        cuts=[astuple(cut) for cut in cuts.cuts_of(screen.mask, screen.keys)] if editable else (),
        painted_on=f"{crc32(strokes.canvas_of(screen.mask).encode()):08x}" if editable else "",
        edited=st.session_state.get("edit_heard", 0),
        broken=fitted_of(built).columns if built.way else (),
    )
    st.session_state.shown_way = built.way
    canvas.draw(data, key=_KEY, **_LISTENERS)


def is_drawn() -> bool:
    """True once the canvas has shown its first picture in this tab; what loads slowly waits for that."""
    return st.session_state.get("canvas_drawn", False)


def _drawn(_) -> None:
    st.session_state.canvas_drawn = True


def spot(built: Built, at: tuple[int, int] | None) -> tuple[int, int]:
    """The selected (query, key); before anything was selected, a visible cell a little left of the middle."""
    if at and at[0] < built.seqlen_q and at[1] < built.seqlen_k:
        return at
    column = int(0.39 * built.seqlen_k)
    hidden = sorted(
        (int(a[0, 0, column]), int(b[0, 0, column])) for a, b in (built.mask.vectors[:2], built.mask.vectors[2:])
    )
    edges = [0, *(v for run in hidden for v in run if run[0] < run[1]), built.seqlen_q]
    first, last = max(zip(edges[::2], edges[1::2]), key=lambda run: run[1] - run[0])
    return min(built.seqlen_q - 1, max(0, first + int(0.8 * (last - first)))), column


def _text_and_lengths(screen: Screen) -> tuple[str, int, int]:
    return screen.mask, screen.seqlen_q, screen.keys


def _edit(told) -> None:
    """What was painted or dragged becomes text."""
    try:
        st.session_state.edit_heard = int(told["told"])
        text = _edited(told, state.current())
    except (ValueError, TypeError, KeyError) as error:
        st.toast(str(error).splitlines()[0][:200])
        return
    state.change(mask=text)


def _edited(told: dict, screen: Screen) -> str:
    if "box" in told:
        r0, r1, c0, c1 = map(int, told["box"])
        if not (0 <= r0 < r1 <= screen.seqlen_q and 0 <= c0 < c1 <= screen.keys):
            raise ValueError("the box lies outside the mask")
        return strokes.painted(screen.mask, told.get("paint") == "hide", (r0, r1, c0, c1))
    if "cut" in told:
        layer, part, at, by = map(int, told["cut"])
        return cuts.moved(screen.mask, screen.keys, layer, part, at, by)
    name, *numbers = told["move"]
    if name not in ("lts", "lte", "uts", "ute") or len(numbers) != 4:
        raise ValueError("this is no boundary")
    shown = of_screen(screen, st.session_state.get("shown_way", ""))
    return strokes.moved(screen.mask, shown.mask, strokes.Move(name, *map(int, numbers)))


_LISTENERS = {"selection": state.chosen, "view": state.viewed, "drawn": _drawn, "edit": _edit}
