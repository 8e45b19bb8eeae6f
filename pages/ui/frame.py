"""The frame around every page: style, sidebar, the state read before and published after."""

from __future__ import annotations

import streamlit as st

from . import state, theme

_PAGE_CSS = """
[data-testid="stMainBlockContainer"] { padding: 1.4rem 1.5rem 3rem; max-width: 1440px; }
[data-testid="stHeader"] { background: transparent; height: 2.2rem; min-height: 2.2rem; pointer-events: none; }
[data-testid="stHeader"] * { pointer-events: auto; }
[data-testid="stSidebar"] { width: 200px !important; min-width: 200px !important; }
[data-testid="stSidebarContent"] { padding: 0 .7rem; }
[data-testid="stSidebarHeader"] { height: 2.4rem; padding-bottom: 0; margin-bottom: 0; }
[data-testid="stMainBlockContainer"] h1 { font-size: 1.3rem; padding: 0; }
[data-testid="stMainBlockContainer"] h3 { font-size: 1.05rem; padding: .6rem 0 0; }
[data-testid="stTextInput"] input { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
[data-testid="stSidebarUserContent"] { padding: 0 0 2rem; }
[data-testid="stButtonGroup"] button { min-height: 1.75rem; padding: 1px 10px; }
[data-testid="stButtonGroup"] button p { font-size: 12.5px; }
[data-testid="stBaseButton-primary"], [data-testid="stBaseButton-primary"] p { color: var(--fm-ground); }
[data-testid="stElementContainer"]:has(> [data-testid="stSpinner"]) { position: fixed; top: 3px; left: 50%;
  width: auto; z-index: 1000; background: var(--fm-card); border-radius: 8px; padding: 2px 10px; }
.st-key-mask_bar [data-testid="stNumberInputStepUp"], .st-key-mask_bar [data-testid="stNumberInputStepDown"] {
  display: none; }
.fm-brand { font-weight: 700; font-size: 15px; margin: 0 0 6px 8px; line-height: 1.3; }
@media (min-width: 641px) {
  .st-key-chips [role="radiogroup"] { flex-wrap: wrap; row-gap: 6px; overflow: visible; mask-image: none; }
  .st-key-chips [role="radiogroup"] button { flex-grow: 0; }
}
@media (max-width: 640px) {
  [data-testid="stHeader"] { position: absolute; }
  [data-testid="stMainBlockContainer"] { padding: 2.4rem .8rem 2rem; }
  .st-key-mask_bar { gap: .45rem; }
  .st-key-mask_bar > div { flex: 1 1 24%; min-width: 0; }
  .st-key-mask_bar > .st-key-w_tile, .st-key-mask_bar > .st-key-w_rule { flex-basis: 31%; }
  .st-key-mask_bar > div:has([data-testid="stTextInput"]),
  .st-key-chips > div:has([data-testid="stButtonGroup"]) { flex-basis: 100%; }
  .st-key-mask_bar [data-testid="stButton"], .st-key-mask_bar [data-testid="stButton"] button { width: 100%; }
  .st-key-chips { gap: .45rem; }
  .st-key-chips > div:has([data-testid="stPopover"]) { flex-grow: 1; }
  .fm-sub { font-size: 13px; line-height: 1.4; }
}
.fm-skip { position: fixed; left: 8px; top: -60px; z-index: 1000001; padding: 8px 14px; border-radius: 8px;
  background: var(--fm-full); color: var(--fm-ground); font: 600 14px var(--st-font, system-ui, sans-serif); }
.fm-skip:focus { top: 8px; }
"""
# A long text gets a line of its own.
_WIDE_TEXT_CSS = '.st-key-mask_bar > div:has([data-testid="stTextInput"]) { flex-basis: 100%; }'


def around(page, pages) -> None:
    """Run a page inside the frame."""
    screen = state.open_screen(page.url_path)
    state.publish()
    wide = _WIDE_TEXT_CSS if len(screen.mask) > 42 else ""
    st.html(f"<style>{theme.variables(':root')}{theme.overlays()}{theme.CARD_CSS}{_PAGE_CSS}{wide}</style>")
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
