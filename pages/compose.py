"""Compose a mask: write it, see it, see what it costs."""

import streamlit as st

from pages.ui import bar, beside, cards, jobs, numbers, picture, presses, state
from pages.ui.stack import panel as stack

screen = state.current()
picture.begin()

st.title("Compose a mask", anchor=False)
st.html(
    '<p class="fm-sub">Left, who may attend to whom: N × N cells. Right, the same mask as FlashMask stores it: '
    "up to four row numbers a key column.</p>"
)


def run_button() -> None:
    label = "Run on this GPU" if jobs.may_have_gpu() else "Measure"
    if st.button(label, type="primary", width=148 if jobs.may_have_gpu() else 112):
        st.switch_page("pages/measure.py", query_params=screen.to_query(place=False))


bar.mask_bar(screen, action=run_button)
bar.chips(screen, layers=False)
stack.panel(screen)
built = bar.built_or_explained(screen)


@st.fragment
def canvas_and_cards() -> None:
    presses.begin_run()
    if state.current().mask != screen.mask:  # it was painted on
        st.rerun()
    left, right = st.columns([3.5, 1], gap="medium")
    with left:
        picture.picture(built)
    with right:
        beside.cards_of(built, state.current())
    if built.notes:
        st.html(cards.notes_html(built.notes))
    if picture.is_drawn():
        numbers.panel(built, picture.spot(built, state.current().at))
    state.publish()


canvas_and_cards()
