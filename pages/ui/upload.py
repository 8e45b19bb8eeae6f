"""A mask from a file: what it is, is said by the user where the file does not say it."""

from __future__ import annotations

import streamlit as st

from . import shelf, state
from .build import Built
from .link import Screen

_KINDS = {
    "auto": "tell by the file",
    "dense": "dense matrix",
    "startend_row_indices": "startend_row_indices",
    "cu_seqlens": "cu_seqlens",
    "lengths": "document lengths",
    "position_ids": "position_ids",
    "attention_mask": "attention_mask",
    "json": "our own .json",
}
_CAUSAL = ("startend_row_indices", "cu_seqlens", "lengths", "position_ids", "attention_mask")


def popover() -> None:
    """Upload a mask or the small file of a screen."""
    with st.popover("Upload", width=104, key="upload_popover", on_change="rerun"):
        file = st.file_uploader(
            "Mask or screen",
            type=["npy", "npz", "csv", "png", "json"],
            key="upload",
            help="It is read, never executed.",
        )
        kind = st.selectbox("What it holds", list(_KINDS), format_func=_KINDS.__getitem__, key="upload_kind")
        options = {}
        if kind in _CAUSAL:
            flag = st.segmented_control("Causal", ["causal", "not causal"], key="upload_causal")
            options["causal"] = None if flag is None else flag == "causal"
        if kind in ("auto", "dense"):
            options["polarity"] = st.segmented_control(
                "True, 1 or bright means", ["visible", "masked"], key="upload_polarity"
            )
        given = {name: value for name, value in options.items() if value is not None}
        st.button("Show it", type="primary", disabled=file is None, on_click=_take, args=(file, kind, given))
        if problem := st.session_state.pop("upload_problem", None):
            st.error(problem)


def _take(file, kind: str, options: dict) -> None:
    try:
        found = shelf.put_upload(file.getvalue(), file.name, kind=kind, **options)
        if isinstance(found, str):
            mask = shelf.shelf().get(found).content
            found = shelf.fitted_to(Screen(file=found, heads=max(mask.heads, 32)), mask)
    except (ValueError, TypeError, MemoryError) as error:
        st.session_state.upload_problem = str(error)[:800] or type(error).__name__
        return
    state.show(found)
    st.session_state.upload_popover = False


def about(built: Built, screen: Screen) -> None:
    """Which file is shown, and a choice of its batch entries and heads where it has several."""
    whole = built.whole
    planes = [(b, h) for b in range(whole.batch) for h in range(whole.heads)]
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="upload_bar"):
        st.caption(
            f"Uploaded: **{built.text}**. A link to it works while this server keeps it; the screen's small "
            "file (below, Take it with you) always does."
        )
        if len(planes) > 1:
            st.selectbox(
                "Batch entry and mask head",
                planes[:4096],
                **state.widget("w_plane"),
                format_func=lambda plane: f"batch {plane[0]}, head {plane[1]}",
                width=200,
            )
