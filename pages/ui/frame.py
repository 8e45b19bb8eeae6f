"""The frame around every page: style, sidebar, the state read before and published after."""

from __future__ import annotations

import streamlit as st

from . import state, theme


def around(page, pages) -> None:
    """Run a page inside the frame."""
    screen = state.open_screen(page.url_path)
    state.publish()
    st.html(f"<style>{theme.overlays()}</style>")
    if st.session_state.link_problems:
        st.warning(
            "Part of this link could not be read, so the nearest valid screen is shown: "
            + "; ".join(st.session_state.link_problems)
            + "."
        )
    with st.sidebar:
        st.html('<div class="fm-brand">FlashMask<br>explorer</div>')
        for target in pages:
            st.page_link(target, label=target.title, query_params=screen.to_query(place=False), width="stretch")
    page.run()
    state.publish()
