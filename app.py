"""The FlashMask explorer: `streamlit run app.py`. Router and page frame; the screens are in pages/."""

import streamlit as st

from pages.ui import frame

PAGES = [
    st.Page("pages/learn.py", title="Learn", url_path="learn"),
    st.Page("pages/compose.py", title="Compose", url_path="compose", default=True),
    st.Page("pages/walk.py", title="Walk the kernel", url_path="walk"),
    st.Page("pages/measure.py", title="Measure", url_path="measure"),
]

st.set_page_config(page_title="FlashMask explorer", page_icon="◪", layout="wide", initial_sidebar_state="auto")
page = st.navigation(PAGES, position="hidden")
frame.around(page, PAGES)
