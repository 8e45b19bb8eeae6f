"""Whole pages in a real browser: themes, widths, links, and the way between pages."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_first_screen_tells_its_story(screen, theme, width):
    tab = screen(theme, width).open()
    assert tab.word("theme") == theme
    body = tab.page.locator("[data-testid=stMain]")
    assert body.evaluate("e => e.scrollWidth <= e.clientWidth")  # nothing sticks out sideways
    for text in ("Compose a mask", "85.1 %", "2,048× less"):
        assert tab.page.get_by_text(text).first.is_visible()
    assert "Column" in tab.page.locator(".readout").inner_text()
    assert "Attention mask, 8,192 queries by 8,192 keys" in tab.page.locator("canvas.over").first.get_attribute(
        "aria-label"
    )


def test_pages_back_and_forward_lose_nothing(shared):
    tab = shared.go(mask="sliding_window(37)", n=384, tile="64x64")
    page, text = tab.page, tab.page.get_by_label("Mask", exact=True)
    for name in ("Measure", "Compose"):
        page.get_by_role("link", name=name).first.click()
        page.wait_for_selector(f"h1:has-text('{name}')")
        expect(text).to_have_value("sliding_window(37)")
        expect(page.get_by_label("Tokens N")).to_have_value("384")
        assert "tile=64x64" in page.url
    text.fill("causal")
    text.press("Enter")
    page.wait_for_url("**mask=causal*")
    page.go_back()
    expect(text).to_have_value("sliding_window(37)")
    tab.settled()


def test_a_wrong_text_leaves_the_picture_and_the_text(shared):
    tab = shared.go(mask="causal", n=100)
    text = tab.page.get_by_label("Mask", exact=True)
    text.fill("causal & documnt(50, 50)")
    text.press("Enter")
    tab.page.get_by_role("alert").wait_for()
    assert "documnt" in tab.page.get_by_role("alert").inner_text()
    assert text.input_value() == "causal & documnt(50, 50)"
    assert tab.page.locator(".fm-canvas[data-ready]").count() == 1
    text.fill("full")
    text.press("Enter")
    tab.page.get_by_role("alert").wait_for(state="detached")


def test_a_chip_writes_its_text_and_the_link_can_be_copied(shared):
    tab = shared.go(mask="causal", n=8192)
    tab.page.get_by_role("radio", name="sliding window").click()
    tab.page.wait_for_url("**sliding_window*")
    expect(tab.page.get_by_label("Mask", exact=True)).to_have_value("sliding_window(512)")
    tab.page.get_by_role("button", name="Copy link").click()
    tab.page.get_by_role("button", name="Copied").wait_for()
    assert tab.page.evaluate("navigator.clipboard.readText()") == tab.page.url


def test_measure_uses_the_numbers_of_the_screen(screen):
    tab = screen().open("measure", mask="sliding_window(37)", n=384)
    tab.page.wait_for_selector("h1:has-text('Measure')")
    start = tab.page.get_by_role("button", name="Check the kernel here").or_(
        tab.page.get_by_role("button", name="Run", exact=True)
    )
    start.first.wait_for()
    expect(tab.page.get_by_label("Tokens N")).to_have_value("384")
    expect(tab.page.get_by_label("Mask", exact=True)).to_have_value("sliding_window(37)")
