"""The walk itself: a Streamlit component (v2) that has every step of one loop and asks no server on the way."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path

import streamlit as st

import flashmask_core as fm

from .. import canvas, presses, state
from .controls import Small
from .place import WalkPlace
from .story import story

_KEY = "walk"
_SHARED = ("vectors", "mask", "levels", "view", "raster", "draw", "words", "mount")  # of the canvas
_SCRIPTS = ("code", "replay", "says", "picture", "tables", "main")


@cache
def _component():
    return canvas.component(Path(__file__).parent, "walk", *_SCRIPTS, shared=_SHARED)


def loop(small: Small, walk: WalkPlace) -> None:
    """Draw the loop of the chosen tile. Another tile is asked of the server; a step is not."""
    mask = small.mask
    block_m, block_n = min(walk.block_m, mask.seqlen_q), min(walk.block_n, mask.seqlen_k)
    lines = -(-mask.seqlen_k // block_n) if walk.pass_ == "dkdv" else -(-mask.seqlen_q // block_m)
    first = small.at[1] // block_n if walk.pass_ == "dkdv" else small.at[0] // block_m
    line = min(first if walk.line is None else walk.line, lines - 1)
    vectors = b"".join(v.numpy().tobytes() for v in mask.vectors)
    identity = sha256(
        vectors + repr((mask.seqlen_q, mask.causal, mask.bounds, block_m, block_n, walk.pass_, line)).encode()
    ).hexdigest()[:16]
    data = _story(identity, mask, block_m, block_n, walk.pass_, line)
    data = {**data, "id": identity, "title": small.title, "step": walk.step, "opened": st.session_state.opened}
    presses.draw(_component(), key=_KEY, data=data, **_LISTENERS)


@st.cache_data(max_entries=64, show_spinner=False)
def _story(identity: str, _mask: "fm.ColumnMask", block_m: int, block_n: int, pass_: str, line: int) -> dict:
    return story(_mask, block_m, block_n, pass_, line)


@state.of_this_screen
def _stepped(step) -> None:
    """The browser has gone to a step and has written that into the address itself."""
    if type(step) is int and 0 <= step < 10**5:
        state.looked(walk=replace(state.current().walk, step=step))


def _other_line(line) -> None:
    if type(line) is int and 0 <= line < 10**3:
        state.change(walk=replace(state.current().walk, line=line, step=None))


_LISTENERS = {"step": _stepped, "line": _other_line}
