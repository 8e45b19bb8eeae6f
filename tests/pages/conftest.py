"""AppTest runs of a page in the app's frame, without a browser."""

import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # `pages` is imported from the checkout

# AppTest starts a page's own file, without app.py around it; so other pages get a router with one page.
_ROUTER = """
import streamlit as st
from pages.ui import frame
pages = [st.Page({path!r}, title={page!r}, default=True)]
frame.around(st.navigation(pages, position="hidden"), pages)
"""


@pytest.fixture
def open_app(monkeypatch):
    """open_app(page="compose", **query): the app as a first visit to that link leaves it."""
    monkeypatch.chdir(ROOT)

    def open_app(page: str = "compose", **query) -> AppTest:
        if page == "compose":
            app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        else:
            path = str(ROOT / "pages" / f"{page}.py")
            app = AppTest.from_string(_ROUTER.format(path=path, page=page), default_timeout=60)
        app.session_state["canvas_drawn"] = True  # there is no browser that could say so
        for name, value in query.items():
            app.query_params[name] = str(value)
        return app.run()

    return open_app
