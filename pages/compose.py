"""Compose a mask: write it, see it, see what it costs."""

from dataclasses import replace

import streamlit as st

from pages.ui import bar, beside, cards, jobs, numbers, picture, presses, repair, state
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
with st.container(key="over"):
    built, error = bar.built_or_error(screen)
    if error and not bar.does_not_fit(error):
        bar.explain(error, screen, built)
bar.chips(screen, layers=False)
with st.container(key="desk"):
    instruments, pictures = st.columns([1, 3.3], gap="medium")
with instruments:
    stack.panel(screen)
    if bar.does_not_fit(error):
        built = repair.offer(error, screen)


@st.fragment
def picture_and_numbers() -> None:
    presses.begin_run()
    if replace(state.current(), at=screen.at, view=screen.view) != screen:  # it was painted on, or a step undone
        st.rerun()
    picture.picture(built)
    if built.notes:
        st.html(cards.notes_html(built.notes))
    if picture.is_drawn():
        numbers.panel(built, picture.spot(built, state.current().at))
    state.publish()


with pictures:
    picture_and_numbers()
with instruments, st.container(key="cards"):
    beside.cards_of(built, screen)
