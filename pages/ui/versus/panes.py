"""The pictures of a comparison: a Streamlit component (v2) with both masks and their difference under one view."""

from __future__ import annotations

import json
from functools import cache
from html import escape
from pathlib import Path
from zlib import crc32

import numpy as np
import streamlit as st

from flashmask_core.masks.compare import Difference

from .. import canvas, presses, state, theme, thumbnail
from .sides import Side, layer_count, layers_of

_KEY = "versus"
_SHARED = ("vectors", "mask", "levels", "view", "raster", "labels", "draw", "words", "input", "mount")  # of the canvas
MOST_LAYER_COLUMNS = 1 << 22  # of all the masks that are sent


@cache
def _component():
    here = Path(__file__).parent
    return st.components.v2.component(
        "flashmask_versus",
        html=(here / "versus.html").read_text("utf-8"),
        css=canvas.parts()[1] + (here / "versus.css").read_text("utf-8"),
        js=canvas.scripts(*_SHARED) + (here / "layered.js").read_text("utf-8") + (here / "versus.js").read_text("utf-8"),
    )


def panes(first: Side, second: Side, found: Difference) -> None:
    """Draw them. Masks of more hidden runs than the canvas should get come as plain pictures."""
    masks = (first.runs, second.runs, found.extra, found.missing)
    if sum(map(layer_count, masks)) * first.runs.seqlen_k > MOST_LAYER_COLUMNS:
        _plain(first, second, found)
        return
    screen, opened = state.current(), st.session_state.opened
    if st.session_state.get("versus_start", (0,))[0] != opened:  # from there on the browser has its own view
        st.session_state.versus_start = opened, screen.view
    data = _payload(
        first, second, found, (screen.block_m, screen.block_n), screen.rule, screen.at, *st.session_state.versus_start
    )
    presses.draw(_component(), key=_KEY, data=data, selection=state.chosen, view=state.viewed)


def _payload(first: Side, second: Side, found: Difference, block, rule: str, at, opened: int, view) -> bytes:
    """The length of a head, the head as JSON, and the layers of the four masks as the canvas takes masks."""
    groups = [
        [canvas.payload(layer, identity="", block=block, rule=rule, selection=(0, 0)) for layer in layers_of(runs)]
        for runs in (first.runs, second.runs, found.extra, found.missing)
    ]
    layers = b"".join(layer for group in groups for layer in group)
    told = {
        "id": f"{crc32(layers):08x} {len(layers)}",
        "seqlen_q": first.runs.seqlen_q,
        "seqlen_k": first.runs.seqlen_k,
        "titles": [first.title[:200], second.title[:200]],
        "layers": [[len(layer) for layer in group] for group in groups],
        "pairs": [first.pairs, second.pairs, found.extra_pairs, found.missing_pairs],
        "at": at,
        "opened": opened,
        "view": view,
    }
    head = json.dumps(told).encode()
    head += b" " * (-len(head) % 4)
    return b"".join([np.uint32(len(head)).tobytes(), head, layers])


def _plain(first: Side, second: Side, found: Difference) -> None:
    dark = theme.is_dark()
    pictures = (
        (thumbnail.of_runs(first.runs, dark), f"A: {first.title}"),
        (thumbnail.of_difference(found.extra, found.missing, dark), "Where they differ"),
        (thumbnail.of_runs(second.runs, dark), f"B: {second.title}"),
    )
    for column, (source, words) in zip(st.columns(3, gap="medium"), pictures):
        column.html(thumbnail.figure(source, "", above=escape(words[:120])))
