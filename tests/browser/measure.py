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
from canvas_driver import _ROOT, Screen  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402
from streamlit.testing.v1 import AppTest  # noqa: E402

from flashmask_core.packing import POLICIES  # noqa: E402
from pages.ui.paper.place import TIMES  # noqa: E402

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


def layered_texts(n: int) -> dict[str, str]:
    """What is done to a mask of 64 layers -> its text then, each edit made to the mask before it."""
    rows = [n // 2 + i * n // 200 for i in range(62)]
    boxes = [f"~rect({rows[i]}, {rows[i + 1]}, {8 * i}, {8 * i + 900})" for i in range(61)]
    layers = [f"sliding_window({n // 2})", *boxes, f"document({n})"]
    edits = {"": layers}
    edits["layer 64 added"] = layers = [*layers, f"(k < {n - 5})"]
    edits["one of 64 off"] = layers = [*layers[:9], f"(full | {layers[9]})", *layers[10:]]
    edits["a number of 64"] = layers = [f"sliding_window({n // 2 + 1})", *layers[1:]]
    edits["two of 64 change places"] = [*layers[:20], layers[21], layers[20], *layers[22:]]
    return {what: " & ".join(layers) for what, layers in edits.items()}


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
    if page == "paper":
        return [("another pass", "button_group", "p_time", name) for name in (*list(TIMES)[1:], *list(TIMES)[:1])]
    if page == "train":
        return [("another policy", "selectbox", "p_policy", name) for name in (*list(POLICIES)[1:], *list(POLICIES)[:1])]
    if page == "gallery":
        return [("another tile", "selectbox", "w_tile", tile) for tile in ("64 × 64", "128 × 64", "256 × 128")]
    return [
        *(("another mask", "text_input", "w_mask", text) for text in texts(n)),
        *((what or "63 layers", "text_input", "w_mask", text) for what, text in layered_texts(n).items() if n == 8192),
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


def layers_in_the_browser(context, address: str) -> None:
    """Edits of 64 layers at 8192 by hand: until the picture shows it, and what the page's main thread does for it."""
    tab = Screen(context.new_page(), address).open(mask=layered_texts(8192)["layer 64 added"], n=8192)
    devtools = context.new_cdp_session(tab.page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    card = tab.page.locator(".fm-layers .card")
    edits = {
        "one switched off": lambda: card.nth(9).get_by_label("layer 10 is on").click(),
        "a number": lambda: tab.page.get_by_label("w of layer 1, slider").press("ArrowRight"),
        "two change places": lambda: card.nth(20).get_by_label("Move layer 21 back").click(),
        "one removed": lambda: card.nth(30).get_by_label("Remove layer 31").click(),
        "one added": lambda: tab.page.get_by_role("button", name="Add", exact=True).click(),
        "undo": lambda: tab.page.get_by_role("button", name="Undo").first.click(),
    }
    for what, edit in edits.items():
        tab.settled()
        shown, busy, began = tab.word("ready"), script_seconds(devtools), time.perf_counter()
        edit()
        tab.page.wait_for_function(f"(id) => {_ROOT}.dataset.ready !== id", arg=shown)
        clock = time.perf_counter() - began
        tab.settled()
        print(
            f"64 layers, {what:18}{1000 * clock:6.0f} ms to the picture, "
            f"{1000 * (script_seconds(devtools) - busy):5.0f} ms of the main thread until all is quiet"
        )
    tab.page.close()


def browser() -> None:
    """Edits of 64 layers, then first picture and frame rates at 2^20, in a fresh tab of a server that has started."""
    with running_app() as address, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=CHROMIUM_ARGUMENTS)
        context = chromium.new_context(viewport={"width": 1440, "height": 900})
        Screen(context.new_page(), address).open(mask="causal", n=8192).page.close()
        layers_in_the_browser(context, address)
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
                    f"{name:8} N = {length:9,}, {what:24}{statistics.median(clock):5.0f} ms median, "
                    f"{max(clock):5.0f} ms at most, {statistics.median(busy):5.0f} ms of processor{over}"
                )
    browser()
