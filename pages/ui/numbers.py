"""What stands below the picture: the vectors as curves and as a table, the checks, and what can be taken away."""

from __future__ import annotations

import numpy as np
import streamlit as st

from flashmask_core.masks.column_mask import PACKINGS

from . import check, figures, presses, state, take, theme
from .build import Built

_PAGE = 256


def panel(built: Built, at: tuple[int, int]) -> None:
    """Tabs with curves, numbers and files."""
    names = PACKINGS[built.mask.causal, built.mask.bounds]
    vectors = {name: getattr(built.mask, name)[0, 0].numpy() for name in names}
    tabs = ["Vectors as curves", "Vectors as numbers", "Check", "Take it with you"]
    curves, table, checks, files = st.tabs(tabs, key="panel_tabs", on_change="rerun")
    if checks.open:
        with checks:
            check.panel(built)
    elif files.open:
        with files:
            take.panel(built)
    elif table.open:
        with table:
            _table(vectors, built.seqlen_k, at)
    else:
        _curves(curves, built, vectors, at)


def _curves(place, built: Built, vectors: dict[str, np.ndarray], at: tuple[int, int]) -> None:
    with place:
        figure = figures.vector_curves(vectors, built.seqlen_q, theme.colors(), at[1])
        st.plotly_chart(
            figure,
            width="stretch",
            key="curves",
            on_select=presses.later(_click_on_curve, at[0]),
            selection_mode="points",
            config={"displaylogo": False},
        )
        if built.seqlen_k > figures.MAX_POINTS:
            st.caption(
                "Thinned: every bucket of columns keeps its smallest and its largest number, so no step is lost."
            )


def _table(vectors: dict[str, np.ndarray], seqlen_k: int, at: tuple[int, int]) -> None:
    row, column = at
    pages = -(-seqlen_k // _PAGE)
    page = column // _PAGE
    if pages > 1:
        page = (
            st.number_input(
                f"Page of {pages:,}, {_PAGE} columns each", 1, pages, page + 1, key=f"page_{page}_{pages}", width=260
            )
            - 1
        )
    rows = slice(page * _PAGE, min(seqlen_k, (page + 1) * _PAGE))
    data = {"key": np.arange(rows.start, rows.stop), **{name.upper(): v[rows] for name, v in vectors.items()}}
    chosen = np.where(data["key"] == column, "●", "")
    table = f"numbers_{column}_{page}"
    st.dataframe(
        {"chosen": chosen, **data},
        hide_index=True,
        height=280,
        width="stretch",
        key=table,
        on_select=presses.later(_choose, table, row, rows.start),
        selection_mode="single-row",
    )


def _click_on_curve(row: int) -> None:
    """A click on a curve chooses its column in the row that is selected already."""
    points = "curves" in st.session_state and st.session_state["curves"].selection.points
    if points:
        state.select((row, min(int(points[0]["x"]), state.current().keys - 1)))


def _choose(table: str, row: int, first: int) -> None:
    """A row of the table becomes the selected column."""
    picked = table in st.session_state and st.session_state[table].selection.rows
    if picked:
        state.select((row, first + int(picked[0])))
