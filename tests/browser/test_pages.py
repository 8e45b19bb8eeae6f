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
    for name in ("Learn", "Compose", "Walk the kernel", "Compose", "Measure", "Compose"):
        page.get_by_role("link", name=name).first.click()
        page.wait_for_selector(f"h1:has-text('{name.split()[0]}')")
        if name in ("Measure", "Compose"):
            expect(text).to_have_value("sliding_window(37)")
            expect(page.get_by_label("Tokens N")).to_have_value("384")
        page.wait_for_url("**tile=64x64*")
    text.fill("causal")
    text.press("Enter")
    page.wait_for_url("**mask=causal*")
    page.go_back()
    expect(text).to_have_value("sliding_window(37)")
    tab.settled()


def test_a_wrong_text_leaves_the_picture_and_the_text(shared):
    tab = shared.go(mask="causal & (q - k < 50)", n=100)
    text, top = tab.page.get_by_label("Mask", exact=True), tab.box()["y"]
    text.fill("causal & documnt(50, 50)")
    text.press("Enter")
    tab.page.get_by_role("alert").wait_for()
    tab.page.get_by_text("Layers of the last text that was a mask").wait_for()
    assert tab.page.locator(".fm-layers .card").count() == 2 and tab.box()["y"] == top
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


def test_the_keyboard_reaches_the_picture_in_one_step(screen):
    tab = screen().open(mask="causal", n=100)
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("document.activeElement.textContent") == "Skip to the picture"
    tab.page.keyboard.press("Enter")
    before = tab.told("selected")
    tab.page.keyboard.press("ArrowRight")
    tab.rested()
    assert tab.told("selected") == {"q": before["q"], "k": before["k"] + 1}


def test_pointing_at_a_curve_lights_its_column_and_a_click_chooses_it(shared):
    tab = shared.go(mask="causal & document(60, 40)", n=100)
    plot = tab.page.locator(".js-plotly-plot .nsewdrag").first
    plot.scroll_into_view_if_needed()
    tab.page.wait_for_timeout(300)
    box = plot.bounding_box()
    row = tab.told("selected")["q"]
    for share in (0.7, 0.2):
        tab.page.mouse.move(box["x"] + share * box["width"], box["y"] + 0.5 * box["height"])
        tab.page.wait_for_timeout(200)
        assert tab.told("says")["k"] in (round(100 * share) - 1, round(100 * share))
        tab.page.mouse.down()
        tab.page.mouse.up()
        tab.page.wait_for_url(f"**at={row}%2C{100 * share:.0f}*")
        tab.settled()
        assert tab.told("selected") == {"q": row, "k": round(100 * share)}


# Shifts of what is seen: on a phone the element around the page moves beneath its own contents, which stay.
_NOTE_SHIFTS = """
window.shifted = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries())
    if (entry.sources.some(({ node }) => node?.parentElement?.dataset.testid !== "stAppViewContainer"))
      window.shifted += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""


@pytest.mark.parametrize("width", [1440, 390])
def test_nothing_jumps_while_the_page_loads(screen, width):
    tab = screen(width=width)
    tab.page.add_init_script(_NOTE_SHIFTS)
    tab.open()
    tab.page.locator(".js-plotly-plot").wait_for(state="attached")
    assert tab.page.evaluate("window.shifted") < 0.1
    assert tab.page.title() == "FlashMask explorer"


@pytest.mark.parametrize("name", ["learn", "walk", "train", "measure", "paper"])
def test_a_link_to_any_page_opens_without_a_word_in_the_console(screen, name):
    tab = screen().open(name, mask="sliding_window(37)", n=384, tile="64x64")
    tab.page.locator("h1").wait_for()
    tab.page.get_by_role("link", name="Compose").first.click()
    tab.page.wait_for_selector("h1:has-text('Compose')")
    tab.settled()
    expect(tab.page.get_by_label("Mask", exact=True)).to_have_value("sliding_window(37)")
    assert tab.word("mask").startswith("384x384:") and "tile=64x64" in tab.page.url


def test_a_packed_sequence_opens_in_compose(screen):
    tab = screen().open("train", pack_lengths="300, (200, 100, 50), 40", pack_context=512)
    tab.page.get_by_role("spinbutton", name="Sequence").fill("1")
    tab.page.get_by_role("spinbutton", name="Sequence").press("Enter")
    tab.page.get_by_text("Sequence 1: 2 examples, 122 of 512 tokens padding").wait_for()
    tab.page.get_by_role("button", name="Open in Compose").click()
    tab.page.wait_for_selector("h1:has-text('Compose')")
    tab.settled()
    expect(tab.page.get_by_label("Mask", exact=True)).to_have_value("share_question((200, 100, 50), (40,))")
    assert tab.word("mask").startswith("512x512:")


def test_the_papers_tables_are_read_on_a_phone_without_scrolling_sideways(screen):
    wide, narrow = (screen(width=width).open("paper") for width in (1440, 390))
    for tab in (wide, narrow):
        tables = tab.page.locator(".fm-wide:visible")
        tables.nth(1).wait_for()
        assert tables.evaluate_all("all => all.every(e => e.scrollWidth <= e.clientWidth)")
    display = ".fm-stacks tr:nth-child(4) td.fm-apart"
    for tab, below in ((wide, False), (narrow, True)):
        here, paper = (box["y"] for box in (tab.page.locator(display).nth(i).bounding_box() for i in (0, 1)))
        assert (paper > here) is below
    said = narrow.page.locator(display).evaluate_all("all => all.map(e => getComputedStyle(e, '::before').content)")
    assert said == ['"H200"', '"A100, the paper"']
