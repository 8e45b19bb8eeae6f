"""Compose a mask: write it, see it, see what it costs."""

import streamlit as st

from pages.ui import bar, cards, numbers, recorded, state
from pages.ui.build import tile_counts
from pages.ui.picture import is_drawn, picture, spot

screen = state.current()

st.title("Compose a mask", anchor=False)
st.html(
    '<p class="fm-sub">Left, who may attend to whom: N × N cells. Right, the same mask as FlashMask stores it: '
    "up to four row numbers a key column.</p>"
)


def run_button() -> None:
    if st.button("Run on this GPU", type="primary", width=148):
        st.switch_page("pages/measure.py", query_params=screen.to_query())


bar.mask_bar(screen, action=run_button)
bar.chips(screen)
built, error = bar.built_or_error(screen)
if error is not None:
    built = bar.explain(error, screen, built)


@st.fragment
def canvas_and_cards() -> None:
    left, right = st.columns([3.5, 1], gap="medium")
    with left:
        picture(built, screen)
    with right:
        both = {rule: tile_counts(*built.source, screen.block_m, screen.block_n, rule) for rule in state.RULES}
        other = both["paper" if screen.rule == "exact" else "exact"]
        st.html(cards.tiles_card(both[screen.rule], other, screen.rule))
        st.html(cards.memory_card(built))
        measured = recorded.card(built, screen)
        st.html(measured or cards.work_card(built, screen.heads))
    if built.notes:
        st.html(cards.notes_html(built.notes))
    if is_drawn():
        numbers.panel(built, spot(built, state.current()))
    state.publish()


canvas_and_cards()
