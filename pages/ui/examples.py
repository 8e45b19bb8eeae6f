"""Worked examples: real cases at a size at which their numbers can be checked by hand."""

from __future__ import annotations

import streamlit as st

from flashmask_core.masks.compare import runs_of
from flashmask_core.masks.examples import EXAMPLES, Example

from . import begin, presses, theme, thumbnail


def popover() -> None:
    """A menu of the examples; a click takes mask, lengths and tile."""
    with st.popover("Examples", width=108, key="examples_menu", on_change="rerun"):
        with st.container(height=460, border=False, key="examples", gap="small"):
            for example in EXAMPLES.values():
                picture, words = st.columns([1, 6], gap="small", vertical_alignment="top")
                with picture:
                    st.html(thumbnail.figure(_picture(example.name, theme.is_dark()), ""))
                with words:
                    take = presses.later(_take, example)
                    st.button(example.name, on_click=take, key=f"example_{example.name}", type="tertiary")
                    st.html(f'<p class="fm-sub">{example.about} <b>{example.pairs:,}</b> visible pairs.</p>')


@st.cache_data(show_spinner=False)
def _picture(name: str, dark: bool) -> str:
    return thumbnail.of_runs(runs_of(EXAMPLES[name].mask()), dark, blocks=64)


def _take(example: Example) -> None:
    block_m, block_n = example.tile
    st.session_state.examples_menu = False
    begin.with_values(
        mask=example.text, seqlen_q=example.seqlen_q, seqlen_k=example.seqlen_k, block_m=block_m, block_n=block_n
    )
