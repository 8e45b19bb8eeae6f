"""The gallery and the comparison in a real browser."""

import random

import numpy as np
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
    assert page.locator("dl, dt, dd").evaluate_all("all => all.every((e) => e.scrollWidth <= e.clientWidth)")
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


@pytest.mark.parametrize("theme, width", [("light", 1440), ("dark", 390)])
@pytest.mark.parametrize(
    "first, second, n",
    [
        ("causal & document(40, 60)", "sliding_window(30)", 100),
        ("(k < 10) | (q // 8 % 2 == 0)", "prefix_lm(50) & (q != 70)", 90),  # neither fits FlashMask
    ],
)
def test_a_comparison_draws_and_says_the_difference(screen, theme, width, first, second, n):
    tab = screen(theme, width).open("compare", mask=first, n=n, tile="8x8", **{"with": second})
    tab.settled()
    assert tab.word("theme") == theme
    assert tab.page.locator("[data-testid=stMain]").evaluate("e => e.scrollWidth <= e.clientWidth")
    a, b = (fm.parse(text).runs(n).to_dense() for text in (first, second))
    expect(tab.page.locator(".fm-verdict")).to_contain_text(f"They differ in {(a ^ b).sum():,} of {n * n:,} pairs.")
    expect(tab.page.locator("[data-says=extra]")).to_have_text(f"only A shows: {(a & ~b).sum():,}")
    expect(tab.page.locator("[data-says=missing]")).to_have_text(f"only B shows: {(b & ~a).sum():,}")
    dice, colours = np.random.default_rng(width), {}
    places = [*dice.integers(0, n, (40, 2)), *np.argwhere(a & ~b)[:3], *np.argwhere(b & ~a)[:3]]
    fractions = [((k + 0.5) / n, (q + 0.5) / n, "difference") for q, k in places]
    for (q, k), (fx, fy, side), said in zip(places, fractions, tab.sweep(fractions)):
        assert (said["q"], said["k"], said["a"], said["b"]) == (q, k, a[q, k], b[q, k])
        kind = "both" if a[q, k] and b[q, k] else "only A" if a[q, k] else "only B" if b[q, k] else "neither"
        assert kind in said["line"]
        colours.setdefault(kind, set()).update(map(tuple, tab.pixel(fx, fy, side)))
    assert sum(map(len, colours.values())) == len(set().union(*colours.values()))  # no kind looks like another
    assert set(colours) == {"both", "only A", "only B", "neither"}


def test_a_comparison_zooms_all_its_pictures_and_the_swap_is_in_the_link(screen):
    tab = screen().open("compare", mask="full", n=64, tile="8x8", **{"with": "causal"})
    tab.settled()
    tab.page.locator(".pane[data-side=difference] canvas.over").focus()
    for key in ("+", "+", "+", "+", "+"):
        tab.page.keyboard.press(key)
    tab.frames()
    assert tab.word("whole") == "false"
    seen = tab.sweep([(0.01, 0.01, side) for side in ("first", "difference", "second")])
    assert {(one["q"], one["k"]) for one in seen} == {(seen[0]["q"], seen[0]["k"])} and seen[0]["q"] > 8
    tab.page.wait_for_url("**view=*")
    tab.page.reload()
    tab.settled()
    tab.page.locator(".pane[data-side=difference] canvas.over").wait_for()
    again = tab.sweep([(0.01, 0.01, "first")])[0]
    assert (again["q"], again["k"]) == (seen[0]["q"], seen[0]["k"])  # the view is in the link
    tab.page.get_by_role("button", name="Swap A and B").click()
    tab.page.wait_for_url("**with=full*")
    expect(tab.page.get_by_label("Mask", exact=True)).to_have_value("causal")
    expect(tab.page.locator("[data-says=extra]")).to_have_text("only A shows: 0")
    assert "mask=causal" in tab.page.url


def test_an_uploaded_file_is_held_against_the_text_that_was_meant(screen, tmp_path):
    indices, _ = fm.mask("sliding_window(513)", 2048).to_startend_row_indices()
    np.save(tmp_path / "theirs.npy", indices.numpy())
    tab = screen().open("compare", mask="full", n=2048, **{"with": "sliding_window(512)"})
    tab.settled()
    page = tab.page
    page.get_by_role("button", name="Upload", exact=True).click()
    page.locator("input[type=file]").set_input_files(tmp_path / "theirs.npy")
    page.get_by_role("combobox", name="What it holds").click()
    page.get_by_role("option", name="startend_row_indices").click()
    page.get_by_role("dialog").get_by_text("causal", exact=True).click()
    page.get_by_role("button", name="Show it").click()
    expect(page.locator(".fm-verdict")).to_contain_text("They differ in 1,536 of 4,194,304 pairs. Only A shows 1,536")
    expect(page.locator(".pane[data-side=first] small")).to_have_text("theirs.npy")
    expect(page.get_by_text("The 512 of the text reads as 513")).to_be_visible()
    expect(page.get_by_label("B: compare it with")).to_have_value("sliding_window(512)")
