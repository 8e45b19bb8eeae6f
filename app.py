"""The FlashMask explorer: `streamlit run app.py`. Server, router and page frame; the screens are in pages/."""

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from pages.ui import frame, index_html

if get_script_run_ctx(suppress_warning=True) is None:
    # `streamlit run` asks for the server; every tab then runs this file again for its page.
    app = st.App(__file__, middleware=index_html.MIDDLEWARE)
else:
    pages = [
        st.Page("pages/learn.py", title="Learn", url_path="learn"),
        st.Page("pages/gallery.py", title="Gallery", url_path="gallery"),
        st.Page("pages/compose.py", title="Compose", url_path="compose", default=True),
        st.Page("pages/compare.py", title="Compare", url_path="compare"),
        st.Page("pages/walk.py", title="Walk the kernel", url_path="walk"),
        st.Page("pages/train.py", title="Pack and train", url_path="train"),
        st.Page("pages/measure.py", title="Measure", url_path="measure"),
        st.Page("pages/paper.py", title="The paper", url_path="paper"),
    ]
    st.set_page_config(page_title=index_html.PAGE_TITLE, page_icon="◪", layout="wide", initial_sidebar_state=200)
    frame.around(st.navigation(pages, position="hidden"), pages)
