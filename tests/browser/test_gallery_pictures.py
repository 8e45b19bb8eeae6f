"""The gallery and the comparison in a real browser."""

import random

import pytest
from playwright.sync_api import expect

import flashmask_core as fm

pytestmark = pytest.mark.browser

PIXEL = """([title, places]) => {
  const root = [...document.querySelectorAll("*")].map((e) => e.shadowRoot?.querySelector(".fm-wall")).find(Boolean);
  const canvas = root.querySelector(`li[data-title="${title}"] canvas.matrix`), ctx = canvas.getContext("2d");
  return places.map(([fx, fy]) =>
    [...ctx.getImageData(Math.floor(fx * canvas.width), Math.floor(fy * canvas.height), 1, 1).data.slice(0, 3)]);
}"""
EMPTY = {"light": [0xED, 0xED, 0xED], "dark": [0x26, 0x2B, 0x33]}


@pytest.mark.parametrize("theme, width", [("light", 1440), ("dark", 390)])
def test_the_pictures_of_the_gallery_show_what_the_library_says(screen, theme, width):
    tab = screen(theme, width).open("gallery", n=16, tile="1x1")
    page, dice = tab.page, random.Random(width)
    page.locator("li[data-drawn]").first.wait_for()
    assert page.locator("[data-testid=stMain]").evaluate("e => e.scrollWidth <= e.clientWidth")
    for title in ("sliding_window", "global_sliding_window", "block_diffusion"):
        card = page.locator(f'li[data-title="{title}"]')
        card.scroll_into_view_if_needed()
        expect(card).to_have_attribute("data-drawn", theme)
        visible = fm.mask(card.locator("code").inner_text(), 16).to_dense()[0, 0]
        cells = [(dice.randrange(16), dice.randrange(16)) for _ in range(40)]
        seen = page.evaluate(PIXEL, [title, [((k + 0.5) / 16, (q + 0.5) / 16) for q, k in cells]])
        assert [colour != EMPTY[theme] for colour in seen] == [bool(visible[cell]) for cell in cells]


def test_a_picture_of_the_gallery_opens_in_compose(screen):
    tab = screen().open("gallery", n=1000, tile="64x64")
    page, card = tab.page, tab.page.locator('li[data-title="prefix_lm"]')
    card.locator("canvas.matrix").click()
    page.wait_for_selector("h1:has-text('Compose a mask')")
    tab.settled()
    expect(page.get_by_label("Mask", exact=True)).to_have_value("prefix_lm(500)")
    expect(page.get_by_label("Tokens N")).to_have_value("1000")
    assert "tile=64x64" in page.url
    page.go_back()
    card.wait_for()
    address = card.locator("a.open").evaluate("a => a.href")
    page.goto(address)  # as in a new tab
    tab.settled()
    expect(page.get_by_label("Mask", exact=True)).to_have_value("prefix_lm(500)")
