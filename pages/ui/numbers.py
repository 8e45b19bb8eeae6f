"""The vectors below the picture: as curves, as a table near the selection, and as files to take away."""

from __future__ import annotations

import io

import numpy as np
import streamlit as st

from flashmask_core.masks.column_mask import PACKINGS

from . import figures, shelf, state, theme
from .build import Built, fitted

_PAGE = 256


def panel(built: Built, at: tuple[int, int]) -> None:
    """Tabs with curves, numbers and files."""
    names = PACKINGS[built.mask.causal, built.mask.bounds]
    vectors = {name: getattr(built.mask, name)[0, 0].numpy() for name in names}
    column = at[1]
    curves, table, files = st.tabs(["Vectors as curves", "Vectors as numbers", "Take it with you"])
    with curves:
        figure = figures.vector_curves(vectors, built.seqlen_q, theme.colors(), column)
        st.plotly_chart(figure, width="stretch", key="curves", config={"displaylogo": False})
        if built.seqlen_k > figures.MAX_POINTS:
            st.caption(
                "Thinned: every bucket of columns keeps its smallest and its largest number, so no step is lost."
            )
    with table:
        _table(vectors, built.seqlen_k, column)
    with files:
        _files(built, names)


def _table(vectors: dict[str, np.ndarray], seqlen_k: int, column: int) -> None:
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
        on_select=lambda: _choose(table, rows.start),
        selection_mode="single-row",
    )


def _choose(table: str, first: int) -> None:
    """A row of the table becomes the selected column."""
    picked = st.session_state[table].selection.rows
    if picked:
        at = state.current().at
        state.select((at[0] if at else 0, first + int(picked[0])))


def _files(built: Built, names: tuple[str, ...]) -> None:
    indices, causal = built.mask.to_startend_row_indices()
    if built.variant in ("wider", "narrower"):
        fit = fitted(*built.source[:3])
        pairs = fit.narrower_pairs if built.variant == "narrower" else fit.wider_pairs
        st.warning(
            f"The mask that was written does not fit FlashMask. These files hold the nearest one that does, which "
            f"{'hides' if built.variant == 'narrower' else 'shows'} {pairs:,} pairs more. The exact answer takes "
            f"{fit.pass_count} passes: `fm.fit(fm.parse(text).runs(N)).passes`, a list for `flashmask_attention`."
        )
    st.markdown(
        f"`startend_row_indices` int32 {list(indices.shape)}, the numbers {', '.join(n.upper() for n in names)}, "
        f"together with **`causal={causal}`**: the same numbers mean another mask under the other flag."
    )
    stem = f"startend_row_indices_causal_{str(causal).lower()}"
    left, middle, right, _ = st.columns([1, 1, 1, 2])
    with left:
        st.download_button(
            "Download .npy", lambda: _npy(indices.numpy()), f"{stem}.npy", on_click="ignore", width="stretch"
        )
    with middle:
        st.download_button(
            "Download .csv",
            lambda: _csv(indices.numpy(), names, causal, built.seqlen_q),
            f"{stem}.csv",
            on_click="ignore",
            width="stretch",
        )
    with right:
        st.download_button(
            "This screen, .json",
            lambda: shelf.screen_file(state.current()),
            "flashmask_screen.json",
            on_click="ignore",
            width="stretch",
            help="The whole screen as a small file, also where the mask is too large for a link. Upload opens it.",
        )


def _npy(indices: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, indices, allow_pickle=False)
    return out.getvalue()


def _csv(indices: np.ndarray, names: tuple[str, ...], causal: bool, seqlen_q: int) -> bytes:
    out = io.StringIO()
    out.write(f"# startend_row_indices, causal={causal}, seqlen_q={seqlen_q}\nkey,{','.join(names)}\n")
    keys = np.arange(indices.shape[2])
    np.savetxt(out, np.column_stack([keys, indices[0, 0]]), fmt="%d", delimiter=",")
    return out.getvalue().encode()
