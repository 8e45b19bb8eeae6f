"""A measurement as people meet it: two of them at once, with real jobs in real worker processes.

The engines are stand-ins, on a machine without a GPU their device too (tests/bench).
"""

import json
import os
import struct
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import torch
from app_server import ROOT, running_app
from canvas_driver import Screen
from playwright.sync_api import expect

from flashmask_core.bench.history import History
from flashmask_core.bench.report import from_json

pytestmark = pytest.mark.browser
BENCH = ROOT / "tests" / "bench"
CASE = dict(mask="causal & document(100, 156)", n=256, heads=2, dim=32, dtype="float16")


@pytest.fixture
def bench(chromium, tmp_path):
    """bench() -> a tab of the app with stand-in engines, in a browser context of its own; .history is its file."""
    path = tmp_path / "history.sqlite"
    environment = {
        "FLASHMASK_HISTORY": str(path), "FLASHMASK_ENGINES": "stand_ins" if torch.cuda.is_available() else "cpu_stand_ins",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(BENCH)]),
    }  # fmt: skip
    contexts = []
    with running_app(**environment) as address:

        def tab(width=1440) -> Screen:
            contexts.append(chromium.new_context(viewport={"width": width, "height": 1000}, accept_downloads=True))
            return Screen(contexts[-1].new_page(), address)

        tab.history = History(path)
        yield tab
        for context in contexts:
            context.close()
    until = time.monotonic() + 15
    while workers(path) and time.monotonic() < until:
        time.sleep(0.1)
    assert workers(path) == [], "the server took its worker with it"


def workers(history: Path) -> list[str]:
    """Process numbers of the workers of the server with this history, and of what they forked."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words, variables = ((entry / name).read_bytes().split(b"\0") for name in ("cmdline", "environ"))
        except OSError:
            continue
        if any(b"flashmask_core.bench" in word for word in words) and f"FLASHMASK_HISTORY={history}".encode() in variables:
            found.append(entry.name)
    return found


def press_run(tab, engines: str):
    tab.open("measure", engines=engines, **CASE)
    tab.page.get_by_role("button", name="Run", exact=True).click(timeout=60_000)
    tab.page.get_by_role("button", name="Cancel").wait_for()
    tab.page.wait_for_url("**run=*")
    return tab.page


def test_two_measure_at_once_and_everything_is_kept(bench, tmp_path):
    first, second = bench(), bench(390)
    page, other = press_run(first, "right,wrong,killed,late,leaky,right_bhsd"), press_run(second, "right")
    expect(other.get_by_text("number 1 in the queue")).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="Cancel")).to_be_visible(timeout=30_000)  # found again
    for tab in (page, other):
        expect(tab.get_by_text("Time of one call")).to_be_visible(timeout=180_000)
        assert tab.locator("[data-testid=stMain]").evaluate("e => e.scrollWidth <= e.clientWidth")
    (one, two) = reversed(bench.history.runs())
    assert (one.state, two.state, one.rows, two.rows) == ("done", "done", 12, 2)
    rows = bench.history.rows(one.id)
    assert {row.provider for row in rows if row.status == "failed"} == {"killed"}

    page.get_by_role("button", name="Export").click()
    files = {}
    for label in ("Rows, .csv", "Run, .json", "Report, .html", "Time of one call, .png"):
        with page.expect_download() as download:
            page.get_by_role("button", name=label).click()
        files[label] = tmp_path / download.value.suggested_filename
        download.value.save_as(files[label])
    assert files["Rows, .csv"].read_text().count("\n") == 13
    json.loads(files["Run, .json"].read_text(), parse_constant=pytest.fail)
    assert from_json(files["Run, .json"].read_bytes())[1] == rows
    assert "SIGKILL" in files["Report, .html"].read_text()
    content = files["Time of one call, .png"].read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">I", content[16:20]) == (1920,), "at twice the size"
    expect(page.get_by_text("Time of one call").first).to_be_visible()
    assert len(bench.history.runs()) == 2, "nothing was measured again"

    page.keyboard.press("Escape")
    for name, words in (("Memory", "Dashed: computed"), ("Error", "Against the fp32 reference")):
        page.get_by_role("tab", name=name).click()
        expect(page.get_by_text(words)).to_be_visible()
    assert first.errors == second.errors == [] and first.foreign == second.foreign == []


def test_a_closed_tab_gives_its_place_up_and_a_stopped_server_its_worker(bench):
    """The server is stopped at the end of `bench`, in the middle of a job that hangs."""
    tab, other = bench(), bench()
    url = press_run(tab, "hang").url
    page = press_run(other, "hang")
    tab.page.close()
    began = time.monotonic()
    job = parse_qs(urlsplit(url).query)["run"][0]
    while time.monotonic() - began < 90 and (first := bench.history.run(job)).state == "running":
        time.sleep(0.5)
    assert first.state == "cancelled" and "nobody has looked for 20 s" in first.reason
    assert time.monotonic() - began < 50
    expect(page.get_by_text("compiling and weighing")).to_be_visible(timeout=60_000)  # the next job works
    assert workers(bench.history.path)
