"""Layers, painting and dragging in a real browser; what the canvas then says is what the library says of the text."""

import random
import re

import pytest
from playwright.sync_api import expect

import flashmask_core as fm

pytestmark = pytest.mark.browser


def text_of(tab) -> str:
    return tab.page.get_by_label("Mask", exact=True).input_value()


def expect_text(tab, text: str):
    expect(tab.page.get_by_label("Mask", exact=True)).to_have_value(text)
    tab.settled()


def same_as_the_library(tab, n: int, seed: int = 0):
    """The picture holds the text's mask at random places."""
    mask, dice = fm.mask(text_of(tab), n), random.Random(seed)
    for said in tab.sweep([(dice.random(), dice.random(), dice.choice(["matrix", "vectors"])) for _ in range(12)]):
        q, k = said["q"], said["k"]
        assert said["visible"] == bool(mask.to_dense(slice(q, q + 1), slice(k, k + 1))), (q, k, text_of(tab))


@pytest.mark.parametrize(("theme", "width"), [("light", 1440), ("dark", 390)])
def test_layers_and_text_are_two_views_of_one_mask(screen, theme, width):
    tab = screen(theme, width).open(mask="causal & document(300, 700)", n=1000)
    card = tab.page.locator(".fm-layers .card")

    card.nth(1).get_by_role("button", name="in layer 2").click()
    field = tab.page.get_by_label("length of item 1 of layer 2")
    field.fill("400")
    field.press("Enter")
    expect_text(tab, "causal & document(400, 700)")
    tab.page.get_by_role("alert").filter(has_text="1,100 tokens").wait_for()
    tab.page.get_by_label("Remove item 2 of layer 2").click()
    expect_text(tab, "causal & document(400)")
    tab.page.get_by_role("button", name="+ one more").click()
    expect_text(tab, "causal & document(400, 600)")
    same_as_the_library(tab, 1000)

    tab.page.get_by_label("Layer to add").select_option("sliding_window")
    tab.page.get_by_role("button", name="Add", exact=True).click()
    expect_text(tab, "causal & document(400, 600) & sliding_window(333)")
    slider = tab.page.get_by_label("w of layer 3, slider")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    y = box["y"] + box["height"] / 2
    tab.page.mouse.move(box["x"] + box["width"] / 2, y)
    tab.page.mouse.down()
    for step in range(12):
        tab.page.mouse.move(box["x"] + box["width"] * (1 / 2 + step / 28), y)
        tab.page.wait_for_timeout(30)
    tab.page.mouse.up()
    width_of = tab.page.get_by_label("w of layer 3", exact=True).input_value()
    assert 400 < int(width_of) < 1000
    expect_text(tab, f"causal & document(400, 600) & sliding_window({width_of})")
    same_as_the_library(tab, 1000, 1)
    tab.page.get_by_role("button", name="Undo", exact=True).click()  # all of the drag is one step
    expect_text(tab, "causal & document(400, 600) & sliding_window(333)")
    expect(tab.page.get_by_label("w of layer 3", exact=True)).to_have_value("333")

    slider.press("ArrowRight")  # the keys go one by one
    expect_text(tab, "causal & document(400, 600) & sliding_window(334)")
    slider.press("ArrowLeft")
    expect_text(tab, "causal & document(400, 600) & sliding_window(333)")
    card.nth(2).get_by_label("layer 3 is on").uncheck()
    expect_text(tab, "causal & document(400, 600) & (full | sliding_window(333))")
    tab.page.reload()
    tab.settled()
    expect(card.nth(2).get_by_label("layer 3 is on")).not_to_be_checked()
    card.nth(2).get_by_role("button", name="not").click()
    card.nth(2).get_by_role("button", name="and", exact=True).click()
    expect_text(tab, "causal & document(400, 600) | ~full & ~sliding_window(333)")
    card.nth(2).get_by_label("layer 3 is on").check()
    expect_text(tab, "causal & document(400, 600) | ~sliding_window(333)")
    card.nth(2).get_by_label("Move layer 3 forward").click()
    expect_text(tab, "(causal | ~sliding_window(333)) & document(400, 600)")
    card.nth(0).get_by_label("Remove layer 1").click()
    expect_text(tab, "~sliding_window(333) & document(400, 600)")
    same_as_the_library(tab, 1000, 2)

    field = tab.page.get_by_label("Mask", exact=True)
    field.fill("q - k < 200")
    field.press("Enter")
    expect(card).to_have_count(1)
    tab.page.get_by_label("Write layer 1 as text").click()
    line = tab.page.get_by_label("Mask of layer 1")
    expect(line).to_have_value("q - k < 200")
    line.fill("q - k <")
    line.press("Enter")
    tab.page.locator(".fm-layers .says").filter(has_text="Layer 1:").wait_for()
    assert line.input_value() == "q - k <" and text_of(tab) == "q - k < 200"
    line.fill("q - k < 7")
    line.press("Enter")
    expect_text(tab, "q - k < 7")
    field = tab.page.get_by_label("Mask", exact=True)
    field.fill("abs(q // 50 - k // 50) <= 2")
    field.press("Enter")
    tab.page.get_by_label("number 3 of layer 1", exact=True).wait_for()  # every number of a text has a field
    for number, value in enumerate((40, 30, 1), 1):
        field = tab.page.get_by_label(f"number {number} of layer 1", exact=True)
        field.fill(str(value))
        field.press("Enter")
    expect_text(tab, "abs(q // 30 - k // 30) <= 1")  # equal divisors change together
    tab.page.get_by_label("number 3 of layer 1, slider").press("ArrowRight")
    expect_text(tab, "abs(q // 30 - k // 30) <= 2")
    same_as_the_library(tab, 1000, 3)
    body = tab.page.locator("[data-testid=stMain]")
    assert body.evaluate("e => e.scrollWidth <= e.clientWidth")


def drag(tab, side: str, places, release: bool = True):
    """The pointer goes down at the first of some (key, query) of a pane, over the others, and up again."""
    c, w, r, h = tab.told("view")
    box = tab.box(side)
    for number, (k, q) in enumerate(places):
        x, y = box["x"] + (k + 0.5 - c) / w * box["width"], box["y"] + (q + 0.5 - r) / h * box["height"]
        tab.page.mouse.move(x, y, steps=3)
        if not number:
            tab.page.mouse.down()
    tab.frames()
    if release:
        tab.page.mouse.up()


@pytest.mark.parametrize(("theme", "width"), [("light", 390), ("dark", 1440)])
def test_a_box_that_is_painted_is_in_the_text(screen, theme, width):
    tab = screen(theme, width).open(mask="causal | (k < 20)", n=100)
    top = tab.box()["y"]
    tab.page.get_by_role("button", name="Hide a box").click()
    drag(tab, "matrix", [(10, 40), (39, 79)], release=False)
    shown = tab.told("edit")
    assert all(abs(shown[name] - near) <= 1 for name, near in dict(r0=40, r1=80, c0=10, c1=40).items())
    tab.page.keyboard.press("Escape")  # nothing happened
    tab.page.mouse.up()
    assert tab.told("edit") is None and text_of(tab) == "causal | (k < 20)"
    drag(tab, "matrix", [(10, 40), (39, 79)])
    tab.page.wait_for_url("**rect*")
    box = f"{shown['r0']}, {shown['r1']}, {shown['c0']}, {shown['c1']}"
    expect_text(tab, f"(causal | (k < 20)) & ~rect({box})")
    same_as_the_library(tab, 100)
    assert tab.box()["y"] == top  # the picture stays where it is
    assert tab.word("mode") == "hide"  # and painting goes on
    tab.keys("Escape", "v")  # and with the keys alone
    assert tab.page.get_by_role("button", name="Show a box").get_attribute("aria-pressed") == "true"
    at = tab.told("selected")
    tab.keys("Enter", "ArrowRight", "ArrowRight", "ArrowDown", "Enter")
    tab.page.wait_for_url("**%7C+rect*")
    rect = f"rect({at['q']}, {at['q'] + 2}, {at['k']}, {at['k'] + 3})"
    expect_text(tab, f"(causal | (k < 20)) & ~rect({box}) | {rect}")
    same_as_the_library(tab, 100, 1)
    tab.page.get_by_role("button", name="Undo", exact=True).click()
    expect_text(tab, f"(causal | (k < 20)) & ~rect({box})")
    tab.settled()
    assert tab.word("mode") == "show"
    tab.page.get_by_role("radio", name="prefix LM").click()  # another mask ends it
    tab.page.wait_for_function("() => document.querySelector('[aria-label=Mask]').value === 'prefix_lm(33)'")
    tab.settled()
    assert tab.word("mode") is None


def test_a_boundary_of_documents_that_is_dragged_changes_two_lengths(shared):
    text = "causal & document(60, 40)"
    tab = shared.go(mask=text, n=100)
    drag(tab, "vectors", [(20, 59.5), (20, 75)], release=False)
    by = tab.told("edit")["by"]
    assert tab.told("edit")["cut"] == [1, 0, 60] and abs(by - 15) <= 1
    tab.page.mouse.up()
    expect_text(tab, f"causal & document({60 + by}, {40 - by})")
    same_as_the_library(tab, 100)
    tab.page.get_by_role("button", name="Undo", exact=True).click()
    expect_text(tab, text)
    drag(tab, "matrix", [(59.5, 80), (49.5, 80)], release=False)  # an edge of the picture too, up and down or across
    assert tab.page.locator(".pane[data-side=matrix] canvas.over").evaluate("e => e.style.cursor") == "ew-resize"
    tab.page.keyboard.press("Escape")
    tab.page.mouse.up()
    assert tab.told("edit") is None and text_of(tab) == text
    drag(tab, "matrix", [(59.5, 80)])  # pressed and not moved, it is a click
    tab.page.wait_for_url("**at=*")
    drag(tab, "matrix", [(59.5, 80), (49.5, 80)])
    expect(tab.page.get_by_label("Mask", exact=True)).to_have_value(re.compile(r"document\((49|50|51), (51|50|49)\)"))
    tab.settled()
    same_as_the_library(tab, 100)
    before = text_of(tab)
    first = int(re.search(r"\d+", before)[0])
    drag(tab, "matrix", [(10, 20)])
    tab.keys("b", "ArrowDown", "ArrowDown", "Enter")
    expect_text(tab, f"causal & document({first + 2}, {98 - first})")


def test_a_boundary_that_is_dragged_is_in_the_text(shared):
    tab = shared.go(mask="padding(60)", n=100)
    drag(tab, "vectors", [(20, 59.5), (20, 75)], release=False)
    assert tab.told("edit") | {"low": 0, "high": 0, "grabbed": 0} == dict(
        name="lts", c0=0, c1=60, slope=0, line=60, by=tab.told("edit")["by"], low=0, high=0, grabbed=0
    )
    by = tab.told("edit")["by"]
    assert abs(by - 15) <= 1
    tab.page.mouse.up()
    tab.page.wait_for_url("**rect*")
    expect_text(tab, f"padding(60) | rect(60, {60 + by}, 0, 60)")
    same_as_the_library(tab, 100)

    tab = shared.go(mask="sliding_window(30)", n=100)  # one number says it
    drag(tab, "vectors", [(20, 49.5), (20, 59.5)])
    tab.page.wait_for_function("() => document.querySelector('[aria-label=Mask]').value !== 'sliding_window(30)'")
    tab.settled()
    assert text_of(tab) in ("sliding_window(39)", "sliding_window(40)", "sliding_window(41)")
    same_as_the_library(tab, 100)
    before = text_of(tab)
    width = int(before[15:-1])
    tab.keys("b", "ArrowUp", "ArrowUp", "Enter")
    expect_text(tab, f"sliding_window({width - 2})")


def test_what_is_painted_beyond_reach_says_so_and_offers_ways_on(shared):
    tab = shared.go(mask="causal", n=100)
    tab.page.get_by_role("button", name="Hide a box").click()
    drag(tab, "matrix", [(10, 40), (29, 59)])
    tab.page.get_by_role("button", name="Hide a box").click()
    tab.page.wait_for_url("**rect*")
    tab.settled()
    tab.page.get_by_role("button", name="Hide a box").click()
    drag(tab, "matrix", [(12, 70), (25, 80)])
    tab.page.get_by_role("alert").filter(has_text="does not fit FlashMask").wait_for()
    tab.page.locator("[data-broken]").wait_for()  # the columns are marked on the picture
    for name in ("Undo", "Show this one"):
        assert tab.page.get_by_role("button", name=name).first.is_visible()
    tab.page.get_by_role("button", name="Undo the last change").click()
    tab.page.get_by_role("alert").filter(has_text="does not fit").wait_for(state="detached")
    assert text_of(tab).count("rect") == 1


def test_fast_presses_of_undo_and_redo_all_count(shared):
    tab = shared.go(mask="causal", n=64)
    layers = tab.page.locator(".fm-layers")
    expect(layers).to_have_attribute("data-layers", "1")
    add = tab.page.get_by_role("button", name="Add", exact=True)
    for _ in range(5):
        add.click()
    undo = tab.page.get_by_role("button", name="Undo", exact=True)
    for _ in range(3):
        undo.click()
    expect(layers).to_have_attribute("data-layers", "3")
    tab.page.locator("h1").click()
    tab.page.keyboard.press("Control+z")
    expect(layers).to_have_attribute("data-layers", "2")
    for _ in range(2):
        tab.page.keyboard.press("Control+Shift+z")
    expect(layers).to_have_attribute("data-layers", "4")
    same_as_the_library(tab, 64, 1)


def test_a_chip_says_what_it_replaced_and_gives_it_back(shared):
    text = "causal & document(40, 24) & (q - k < 9)"
    tab = shared.go(mask=text, n=64)
    tab.page.get_by_role("radio", name="prefix LM").click()
    note = tab.page.locator(".replaced")
    expect(note).to_contain_text("Replaced 3 layers")
    note.get_by_role("button").click()
    expect_text(tab, text)
    expect(note).to_be_hidden()
    tab.page.get_by_role("radio", name="sliding window").click()
    expect(note).to_be_visible()
    tab.page.get_by_role("radio", name="eviction").click()  # what that replaces is a press away
    expect(note).to_be_hidden()


@pytest.mark.parametrize(("theme", "width"), [("light", 390), ("dark", 1440)])
def test_labels_stand_on_no_line_and_on_no_other_label(screen, theme, width):
    tab = screen(theme, width).open(mask="causal", n=96)
    many = 0
    for text in ("global_sliding_window(6, 8, 8)", "frames(8, 12, 1, (0, 4))", "block_diffusion(48, 6)", "band(9, 4)"):
        tab.go(mask=text, n=96)
        for keys in ("0", "++++", "+++++"):
            tab.keys(*keys)
            labels, width = tab.told("labels"), tab.box("vectors")["width"]
            many += len(labels)
            for n, (label, x0, y0, x1, y1) in enumerate(labels):
                assert 0 <= x0 < x1 <= width and 0 <= y0 < y1
                assert all(x1 <= a or c <= x0 or y1 <= b or d <= y0 for _, a, b, c, d in labels[:n]), (text, label)
    assert many > 30, many


@pytest.mark.parametrize(("theme", "width"), [("dark", 390), ("light", 1440)])
def test_the_reference_of_the_language_adds_its_examples_by_keys_alone(screen, theme, width):
    tab = screen(theme, width).open(mask="causal", n=64)
    page = tab.page
    page.get_by_role("button", name="Language").focus()
    page.keyboard.press("Enter")
    page.locator(".fm-language").wait_for()
    expect(page.get_by_label("Join an example by")).to_be_focused()
    page.keyboard.press("o")  # or
    for _ in range(4):  # full, causal, sliding_window, band
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".fm-language .now code")).to_have_text("causal | band(6, 6)")
    expect(page.locator(".fm-language button[data-name=band]")).to_be_focused()
    assert page.locator(".fm-language").evaluate("e => e.scrollWidth <= e.clientWidth")
    page.keyboard.press("Escape")
    page.locator(".fm-language").wait_for(state="detached")
    expect_text(tab, "causal | band(6, 6)")
    same_as_the_library(tab, 64)


def test_fast_presses_in_the_layers_all_count(shared):
    tab = shared.go(mask="causal & document(20, 44) & sliding_window(9)", n=64)
    layers, page = tab.page.locator(".fm-layers"), tab.page
    expect(layers).to_have_attribute("data-layers", "3")
    page.get_by_title("Turn layer 2 round").dblclick()
    expect_text(tab, "causal & document(20, 44) & sliding_window(9)")
    page.get_by_label("Remove layer 3").click()
    page.get_by_label("Move layer 2 forward").click()
    expect_text(tab, "document(20, 44) & causal")
    page.get_by_label("Remove layer 1").click()
    expect(page.get_by_label("Remove layer 1")).to_be_disabled(timeout=100)  # the last one stays
    expect_text(tab, "causal")
    same_as_the_library(tab, 64, 2)


def test_a_choice_and_a_link_at_once_show_the_other_page(screen):
    tab = screen().open(mask="causal", n=64)
    for name in ("sliding window", "prefix LM"):
        tab.page.get_by_role("button", name=name, exact=True).or_(
            tab.page.get_by_role("radio", name=name, exact=True)
        ).first.click()
        tab.page.wait_for_timeout(60)
    tab.page.get_by_role("link", name="The paper").first.click()
    tab.page.wait_for_selector("h1:has-text('The paper')")
    expect(tab.page.get_by_role("radio", name="Backward")).to_be_visible()
    for name in ("Backward", "Both"):
        tab.page.get_by_role("radio", name=name, exact=True).click()
        tab.page.wait_for_timeout(60)
    tab.page.get_by_role("link", name="Learn").first.click()
    tab.page.wait_for_selector(".fm-board[data-ready]")
    assert tab.page.locator("[data-testid=stException]").count() == 0
