"""Walk the kernel: one loop of the forward or of the backward, step by step, on small real numbers."""

import streamlit as st

from pages.ui import presses, state
from pages.ui.walk import controls, viewer

screen = state.current()

st.title("Walk the kernel", anchor=False)
st.html(
    '<p class="fm-sub">One loop of the portable kernel: which tiles it skips, which it computes, and how the softmax '
    "grows. Real numbers, small tiles.</p>"
)
controls.controls(screen)
small = controls.small_mask(screen)
st.html(f'<p class="fm-sub">{small.note}</p>')


@st.fragment
def loop() -> None:
    presses.begin_run()
    viewer.loop(small, state.current().walk)
    state.publish()


loop()
