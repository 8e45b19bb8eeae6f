"""A mask that comes from a file, one that does not fit, and a page that leaves the server, in a real browser."""

import json

import numpy as np
import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def test_an_upload_asks_shows_and_is_marked_where_it_does_not_fit(screen, tmp_path):
    visible = np.tri(120, dtype=bool)
    visible[60:110, 20:40] = False
    visible[80:90, 25:30] = True
    np.save(tmp_path / "odd.npy", visible)
    tab = screen().open(mask="causal", n=64)
    page = tab.page
    page.get_by_role("button", name="Upload", exact=True).click()
    page.locator("input[type=file]").set_input_files(tmp_path / "odd.npy")
    expect(page.get_by_text("Which of the two is it?")).to_be_visible()
    page.get_by_role("button", name="It is visible").click()
    expect(page.get_by_role("dialog")).to_contain_text("6,310 pairs visible, 43.8 % · 5 columns do not fit FlashMask")
    page.get_by_role("button", name="Show it").click()
    expect(page.get_by_role("alert")).to_contain_text("odd.npy does not fit FlashMask. 5 of 120 columns")
    expect(page.locator("[data-broken]")).to_be_visible()
    page.get_by_role("button", name="Show pass 1 of 2").click()
    expect(page.get_by_role("button", name="Shown below: pass 1 of 2. Next")).to_be_visible()
    text = page.get_by_label("Mask", exact=True)
    text.fill("causal")
    text.press("Enter")
    page.get_by_role("alert").wait_for(state="detached")
    tab.settled()
    expect(page.locator("[data-broken]")).to_be_hidden()


@pytest.mark.parametrize("theme, width", [("light", 1440), ("dark", 390)])
def test_the_page_that_is_taken_away_works_without_a_server(screen, chromium, tmp_path, theme, width):
    tab = screen(width=1440).open(mask="causal & document(40, 60)", n=100, at="70,45")
    tab.page.get_by_role("tab", name="Take it with you").click()
    with tab.page.expect_download() as download:
        tab.page.get_by_role("button", name="This page, .html").click()
    download.value.save_as(tmp_path / "mask.html")
    context = chromium.new_context(offline=True, color_scheme=theme, viewport={"width": width, "height": 800})
    page, trouble = context.new_page(), []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.goto((tmp_path / "mask.html").as_uri())
    root = page.locator(".fm-canvas[data-ready]")
    root.wait_for()
    assert root.get_attribute("data-theme") == theme
    expect(page.locator(".readout")).to_contain_text("Column 45")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator("canvas.over").first.hover(position={"x": 20, "y": 60})
    expect(page.locator(".readout")).to_contain_text("Query")
    assert trouble == []
    context.close()


def test_the_small_file_of_a_screen_holds_this_screen(screen, tmp_path):
    tab = screen(width=1440).open(mask="causal & document(40, 60)", n=100, at="70,45")
    tab.page.get_by_role("tab", name="Take it with you").click()
    with tab.page.expect_download() as download:
        tab.page.get_by_role("button", name="This screen, .json").click()
    download.value.save_as(tmp_path / "screen.json")
    told = json.loads((tmp_path / "screen.json").read_text())["screen"]
    assert told == {"mask": "causal & document(40, 60)", "n": "100", "at": "70,45"}
