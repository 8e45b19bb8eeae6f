"""A running app and a real Chromium. A machine without one fails here; it does not skip."""

import os
import shutil

import pytest
from app_server import CHROMIUM_ARGUMENTS, running_app
from canvas_driver import Screen
from playwright.sync_api import sync_playwright


@pytest.fixture(scope="session")
def server():
    """The address of the app."""
    with running_app() as address:
        yield address


@pytest.fixture(scope="session")
def chromium():
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.fail("no chromium on this machine; the browser tests need one (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def contexts(chromium):
    """One browser context for each theme and width, so that scripts are fetched once."""
    kept = {}

    def context(theme: str, width: int):
        if (theme, width) not in kept:
            size = {"width": width, "height": 900 if width > 600 else 844}
            kept[theme, width] = chromium.new_context(
                viewport=size, color_scheme=theme, permissions=["clipboard-read", "clipboard-write"]
            )
        return kept[theme, width]

    yield context
    for context_ in kept.values():
        context_.close()


@pytest.fixture(scope="session")
def shared(server, contexts):
    """One tab that stays open: tests move it to their screen with `go`."""
    tab = Screen(contexts("light", 1440).new_page(), server).open()
    yield tab
    tab.page.close()
    assert tab.errors == []
    assert tab.foreign == []


@pytest.fixture
def screen(server, contexts):
    """screen(theme="light", width=1440): a fresh tab. What it logs as errors or asks of other hosts fails the test."""
    tabs = []

    def screen(theme: str = "light", width: int = 1440) -> Screen:
        tabs.append(Screen(contexts(theme, width).new_page(), server))
        return tabs[-1]

    yield screen
    for tab in tabs:
        tab.page.close()
        assert tab.errors == []
        assert tab.foreign == []
