"""A mask that does not fit FlashMask: which columns, drawn and listed, and three ways on with what each costs."""

from __future__ import annotations

from dataclasses import replace
from html import escape

import numpy as np
import streamlit as st

import flashmask_core as fm
from flashmask_core.bench.ways_on import WayOn, ways_on

from . import cards, estimate, presses, state, theme, thumbnail
from .build import Built, fitted, of_screen
from .link import Screen
from .shelf import shelf

_LISTED = 1000  # columns in the table
_WORDS = {
    "narrower": ("Hide a little more", "pairs hidden that should be seen", "one pass, not exact"),
    "wider": ("Show a little more", "pairs shown that should be hidden", "one pass, not exact"),
    "passes": ("Exact", "pairs wrong", "merged by their log-sum-exp"),
}
_LEAST_MS = 0.05  # below it a kernel's launch counts for more than its tiles


def offer(error: fm.NotRepresentableError, screen: Screen) -> Built:
    """What is wrong and the ways on; returns what stands for the mask on the page."""
    item_title, file = _source(screen)
    fit = fitted(item_title, screen.seqlen_q, screen.keys, file)
    way = _way(fit)
    many, name = len(error.columns), item_title if file else "This mask"
    st.html(
        f'<div class="fm-error" role="alert"><b>{escape(name)} does not fit FlashMask.</b> {many:,} of {screen.keys:,} '
        f"column{'s' * (screen.keys != 1)} need up to {error.max_runs:,} hidden runs, and four vectors hold two. The way "
        "on that is chosen below stands for it on this page.</div>"
    )
    if state.can_undo():
        st.button("Undo the last change", on_click=presses.later(state.undo), key="undo_repair", icon=":material/undo:")
    with st.container(key="repair"):
        picture, *columns = st.columns([0.72, 1, 1, 1], gap="small")
        with picture:
            st.html(_picture(fit))
        for column, one in zip(columns, _costs(item_title, screen, file)):
            with column:
                _card(one, way, fit)
        st.caption(f"Tiles of {screen.tile}. {estimate.basis(screen)}")
        _list(fit)
    return of_screen(screen, way)


def _source(screen: Screen) -> tuple[str, str]:
    """(text or title, name of the upload or "")"""
    return (shelf().get(screen.file).title, screen.file) if screen.file else (screen.mask, "")


def _way(fit: fm.Fit) -> str:
    """The way that is chosen in this tab, as far as this mask has it."""
    way = st.session_state.get("way_on", "narrower")
    if way.startswith("pass ") and not (1 < fit.pass_count and int(way[5:]) <= fit.pass_count):
        return "narrower"
    return way


def _choose(way: str) -> None:
    st.session_state["way_on"] = way


@st.cache_data(max_entries=32, show_spinner="Working out what each way costs …")
def _costs_of(text: str, seqlen_q: int, seqlen_k: int, file: str, tile: tuple[int, int], heads: int) -> list[WayOn]:
    fit = fitted(text, seqlen_q, seqlen_k, file)
    return [replace(way, masks=() if way.masks else None) for way in ways_on(fit, *tile, heads=heads)]


def _costs(text: str, screen: Screen, file: str) -> list[WayOn]:
    tile = (screen.block_m, screen.block_n)
    return _costs_of(text, screen.seqlen_q, screen.keys, file, tile, screen.heads)


def _card(way: WayOn, chosen: str, fit: fm.Fit) -> None:
    title, unit, foot = _WORDS[way.name]
    if way.name == "passes":
        title = f"Exact, in {way.passes:,} passes"
    facts = [foot, "too many tiles to count" if way.computed_tiles is None else f"{way.computed_tiles:,} tiles computed"]
    for label, ms in (("forward", way.forward_ms), ("backward", way.backward_ms)):
        if ms is not None:
            facts.append(f"{label} {ms:.3g} ms" if ms >= _LEAST_MS else f"{label} < {_LEAST_MS} ms")
    body = f"<small>{unit}</small><br><small>{', '.join(facts)}</small>"
    st.html(cards.card(title, f"{way.changed_pairs:,}", body))
    if way.name != "passes":
        on = chosen == way.name
        st.button("Shown below" if on else "Show this one", on_click=presses.later(_choose, way.name), key=f"way_{way.name}",
                  width="stretch", disabled=on)  # fmt: skip
    elif way.masks is None:
        st.button("Too many passes to show", disabled=True, width="stretch", key="way_passes")
    elif chosen.startswith("pass "):
        number = int(chosen[5:])
        st.button(f"Shown below: pass {number} of {fit.pass_count}. Next", width="stretch",
                  on_click=presses.later(_choose, f"pass {number % fit.pass_count + 1}"), key="way_passes")  # fmt: skip
    else:
        st.button(f"Show pass 1 of {fit.pass_count}", on_click=presses.later(_choose, "pass 1"),
                  width="stretch", key="way_passes")  # fmt: skip


def _picture(fit: fm.Fit) -> str:
    """The mask as it was meant, with a bar under the columns that have too many runs."""
    source = thumbnail.of_runs(fit.runs, theme.is_dark(), marked=np.array(fit.columns))
    bar = '<i class="fm-key" style="background:var(--fm-select)"></i>'
    words = "The mask as it was written; a bar marks the columns that do not fit"
    return thumbnail.figure(source, words, below=f"As written. {bar}columns that do not fit")


def _list(fit: fm.Fit) -> None:
    """The columns with their hidden runs; a click goes to one."""
    many = len(fit.columns)
    box = st.expander(f"The {many:,} columns that do not fit", on_change="rerun", key="broken_columns")
    if not box.open:
        return
    with box:
        columns = fit.columns[:_LISTED]
        runs = fit.runs
        listed = [_runs_text(runs, column) for column in columns]
        counts = runs.counts[columns]
        table = f"broken_{many}_{columns[0]}"
        st.dataframe(
            {"key": columns, "hidden runs": counts, "rows that are hidden": listed},
            hide_index=True, width="stretch", height=min(280, 38 + 35 * len(columns)), key=table,
            on_select=presses.later(_go_to, table, columns), selection_mode="single-row",
        )  # fmt: skip
        if many > _LISTED:
            st.caption(f"The first {_LISTED:,} of {many:,}.")


def _runs_text(runs: fm.MaskedRuns, column: int, most: int = 8) -> str:
    first, behind = runs.offsets[column], runs.offsets[column + 1]
    shown = slice(first, min(behind, first + most))
    pairs = zip(runs.starts[shown].tolist(), (runs.ends[shown] - 1).tolist())
    text = ", ".join(f"{a:,}" if a == b else f"{a:,} … {b:,}" for a, b in pairs)
    return escape(text, quote=False) + (", and more" if behind - first > most else "")


def _go_to(table: str, columns: list[int]) -> None:
    picked = table in st.session_state and st.session_state[table].selection.rows
    if picked:
        at = state.current().at
        state.select((at[0] if at else 0, columns[int(picked[0])]))
