"""Figures of the screen, printed: `python -m tests.browser.measure`. Run it where nothing else runs.

Server milliseconds for a change on every page at 8192 and 2^20 tokens, the time to the first picture at 2^20, frames a
second there. Processor time is printed beside the clock, because it stays true on a machine that does other things too.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2])]

from app_server import CHROMIUM_ARGUMENTS, ROOT, running_app  # noqa: E402
from canvas_driver import Screen  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402
from streamlit.testing.v1 import AppTest  # noqa: E402

LARGE = 2**20
LIMIT_MS = 150  # for a change at 8192

_ONE_PAGE = """
import streamlit as st
from pages.ui import frame
pages = [st.Page({path!r}, title={name!r}, default=True)]
frame.around(st.navigation(pages, position="hidden"), pages)
"""

# Runs in every page before its own scripts: when the canvas first says that its picture is drawn.
_NOTE_FIRST_PICTURE = """
const look = () => {
  const root = [...document.querySelectorAll("*")].map((e) => e.shadowRoot?.querySelector(".fm-canvas")).find(Boolean);
  if (root?.dataset.ready) window.firstPicture = performance.now();
  else setTimeout(look, 10);
};
look();
"""


def texts(n: int) -> list[str]:
    """Masks of several kinds, none of them on the screen before."""
    return [
        f"causal & document({n // 4}, {n // 4 + 1}, {n // 2 - 1})",
        f"sliding_window({n // 16 + 1})",
        f"prefix_lm({n // 3 + 1})",
        f"global_sliding_window({n // 16 + 1}, {n // 12}, {n // 12})",
        f"random_eviction({n // 2 + 1}, 0)",
    ]


def layered_texts(n: int) -> list[str]:
    """Masks of 64 layers, each other than the one before in one layer."""
    boxes = [f"~rect({n // 2 + i * n // 200}, {n // 2 + (i + 1) * n // 200}, {8 * i}, {8 * i + 900})" for i in range(62)]
    return [" & ".join([f"sliding_window({n // 2 + i})", *boxes, f"document({n})"]) for i in range(6)]


def page_names() -> list[str]:
    return sorted(path.stem for path in (ROOT / "pages").glob("*.py") if path.stem != "__init__")


def changes(page: str, n: int) -> list[tuple[str, str, str, object]]:
    """(what it is, kind of widget, its key, value) of every change that is timed on a page."""
    if page == "learn":
        return [("another step", "button_group", "lesson_step", step) for step in (2, 3, 5, 7, 8, 9)]
    if page == "walk":
        return [
            *(("another mask", "selectbox", "k_source", name) for name in ("causal", "eviction", "video frames", "")),
            *(("another tile", "selectbox", "k_block", tile) for tile in ("4 × 4", "16 × 16", "8 × 4")),
            *(("another pass", "button_group", "k_pass", name) for name in ("dkdv", "dq", "forward")),
        ]
    if page == "gallery":
        return [("another tile", "selectbox", "w_tile", tile) for tile in ("64 × 64", "128 × 64", "256 × 128")]
    return [
        *(("another mask", "text_input", "w_mask", text) for text in texts(n)),
        *(("one of 64 layers", "text_input", "w_mask", text) for text in layered_texts(n) if n == 8192),
        *(("another tile", "selectbox", "w_tile", tile) for tile in ("64 × 64", "128 × 64", "256 × 128")),
        *(("the same again", "number_input", "w_nk", None) for _ in range(3)),
    ]


def server_ms(page: str, n: int) -> dict[str, list[tuple[float, float]]]:
    """(milliseconds on the clock, milliseconds of processor) of a page's whole script for each kind of change."""
    path = str(ROOT / "pages" / f"{page}.py")
    app = AppTest.from_string(_ONE_PAGE.format(path=path, name=page), default_timeout=120)
    app.session_state["canvas_drawn"] = True
    app.query_params["n"], app.query_params["mask"] = str(n), "causal"
    app.run()
    found = {}
    for what, kind, key, value in changes(page, n):
        widget = getattr(app, kind)(key=key)
        began, busy = time.perf_counter(), time.process_time()
        widget.set_value(value).run()
        spent = 1000 * (time.perf_counter() - began), 1000 * (time.process_time() - busy)
        found.setdefault(what, []).append(spent)
        assert not app.exception
    return found


def script_seconds(devtools) -> float:
    """Processor time that the page's main thread has spent in tasks."""
    metrics = devtools.send("Performance.getMetrics")["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


def browser() -> None:
    """First picture and frame rates at 2^20, in a fresh tab of a server that has started."""
    with running_app() as address, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=CHROMIUM_ARGUMENTS)
        context = chromium.new_context(viewport={"width": 1440, "height": 900})
        Screen(context.new_page(), address).open(mask="causal", n=8192).page.close()
        for text in texts(LARGE):
            tab = Screen(context.new_page(), address)
            tab.page.add_init_script(_NOTE_FIRST_PICTURE)
            tab.open(n=LARGE, mask=text)
            seconds = tab.page.evaluate("firstPicture") / 1000
            tab.point(0.4, 0.4)
            devtools = context.new_cdp_session(tab.page)
            devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
            told = []
            for gesture in ("zoom", "drag"):
                busy = script_seconds(devtools)
                rate = tab.frame_rate(3, gesture)
                cost = 1000 * (script_seconds(devtools) - busy) / (3 * rate)
                told.append(f"{gesture} {rate:3.0f} frames/s, {cost:4.1f} ms of processor a frame")
            print(f"{text[:44]:46}{seconds:6.2f} s to the picture; {'; '.join(told)}")
            tab.page.close()
        chromium.close()


if __name__ == "__main__":
    for name in page_names():
        for length in (8192, LARGE):
            for what, values in server_ms(name, length).items():
                clock, busy = zip(*values)
                over = f"  over {LIMIT_MS} ms" if length == 8192 and max(clock) > LIMIT_MS else ""
                print(
                    f"{name:8} N = {length:9,}, {what:15}{statistics.median(clock):5.0f} ms median, "
                    f"{max(clock):5.0f} ms at most, {statistics.median(busy):5.0f} ms of processor{over}"
                )
    browser()
