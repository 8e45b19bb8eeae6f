"""AppTest runs of a page in the app's frame, without a browser."""

import sys
from pathlib import Path

import pytest
from streamlit.runtime.pages_manager import PagesManager
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # `pages` is imported from the checkout

# AppTest opens the default page of a router; so other pages get a router of their own, beside a link to the pages.
_ROUTER = """
import streamlit as st
from pages.ui import frame
names = dict.fromkeys([{page!r}, "learn", "gallery", "compose", "compare", "walk", "train", "measure", "paper"])
pages = [st.Page(f"pages/{{n}}.py", title=n, url_path=n, default=n == {page!r}) for n in names]
frame.around(st.navigation(pages, position="hidden"), pages)
"""


@pytest.fixture
def open_app(monkeypatch, tmp_path):
    """open_app(page="compose", **query): the app as a first visit to that link leaves it."""
    monkeypatch.chdir(ROOT)
    made = PagesManager.__init__

    def begin(self, *args, **kwargs):  # as app.py has the server do
        made(self, *args, **kwargs)
        PagesManager.uses_pages_directory = False

    monkeypatch.setattr(PagesManager, "__init__", begin)

    def open_app(page: str = "compose", **query) -> AppTest:
        if page == "compose":
            app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        else:
            router = tmp_path / "router.py"
            router.write_text(_ROUTER.format(page=page))
            if not (tmp_path / "pages").exists():
                (tmp_path / "pages").symlink_to(ROOT / "pages")
            app = AppTest.from_file(str(router), default_timeout=60)
        app.session_state["canvas_drawn"] = True  # there is no browser that could say so
        for name, value in query.items():
            app.query_params[name] = str(value)
        return app.run()

    return open_app
