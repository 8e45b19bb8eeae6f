"""The comparison of two masks: its numbers are the library's, whatever the masks are and wherever they come from."""

import numpy as np
import pytest
import streamlit as st
from page_tools import html_of, press

import flashmask_core as fm
from flashmask_core.masks.compare import runs_of
from pages.ui import shelf
from pages.ui.link import Screen
from pages.ui.presets import PRESETS
from pages.ui.shelf import Item
from pages.ui.versus import panes, sides
from pages.ui.versus.place import MAX_TEXT, Other

STRIPES = "(k < 100) | (q // 64 % 2 == 0)"  # does not fit FlashMask


@pytest.fixture(autouse=True)
def empty_shelf():
    st.cache_resource.clear()


@pytest.mark.parametrize("text", [*(make(700) for make in PRESETS.values()), STRIPES])
def test_the_difference_is_that_of_the_matrices(open_app, text):
    app = open_app("compare", mask=text, n=700, **{"with": "sliding_window(200)"})
    page = html_of(app)
    assert not app.exception and "fm-error" not in page
    a, b = (fm.parse(one).runs(700).to_dense() for one in (text, "sliding_window(200)"))
    assert f"Only A shows {(a & ~b).sum():,}, only B shows {(b & ~a).sum():,}." in page
    assert f"<td>{a.sum():,}</td><td>{b.sum():,}</td>" in page


def test_the_costs_are_the_librarys(open_app):
    page = html_of(open_app("compare"))
    counts = [fm.classify_tiles(fm.mask(Screen().mask, 8192)).counts, fm.classify_tiles(fm.mask("causal", 8192)).counts]
    computed = [int(count[0, 0, 1:].sum()) for count in counts]
    assert f"<td>{computed[0]:,}</td><td>{computed[1]:,}</td>" in page
    assert sides.cost(sides.Source(STRIPES, 512, 512), 64, 64, "exact", 32).tiles is not None
    passes = fm.fit(fm.parse(STRIPES).runs(512)).pass_count
    assert passes > 1 and f"does not fit: {passes} passes" in html_of(open_app("compare", mask=STRIPES, n=512))


@pytest.mark.parametrize("query", [{"n": 1}, {"n": 2**20}, {"n": 5, "nk": 300}, {"n": 300, "nk": 5}, {"with": "~full"}])
def test_every_length_can_be_compared(open_app, query):
    app = open_app("compare", mask="causal", **query)
    assert not app.exception and "fm-error" not in html_of(app)


def test_equal_masks_are_called_the_same(open_app):
    app = open_app("compare", mask="causal & document(30, 70)", n=100, **{"with": "causal_document(30, 70)"})
    assert "The same mask, pair by pair." in html_of(app)


@pytest.mark.parametrize("place", ["mask", "with"])
def test_a_wrong_text_is_one_message_that_says_whose(open_app, place):
    app = open_app("compare", **{"mask": "full", "n": 10, place: "causal & documnt(5, 5)"})
    assert not app.exception
    assert html_of(app).count('class="fm-error"') == 1
    assert f"{'A' if place == 'mask' else 'B'}: " in html_of(app) and "documnt" in html_of(app)


def put(mask, name: str, title: str = "theirs") -> str:
    shelf.shelf().put(name * 24, Item(mask.canonical(), title, mask))
    return name * 24


def test_an_upload_is_held_against_the_text_that_was_meant(open_app):
    indices, causal = fm.mask("sliding_window(513)", 2048).to_startend_row_indices()
    file = put(fm.ColumnMask.from_startend_row_indices(indices, causal=causal), "a")
    app = open_app("compare", file=file, n=2048, **{"with": "sliding_window(512)"})
    assert "They differ in 1,536 of" in html_of(app) and "The 512 of the text reads as 513" in html_of(app)
    app.button(key="swap").click().run()
    assert not app.exception and "only B shows 1,536." in html_of(app)
    screen = app.session_state["screen"]
    assert (screen.mask, screen.file, screen.other) == ("sliding_window(512)", "", Other(file=file))
    app.button(key="swap").click().run()
    screen = app.session_state["screen"]
    assert (screen.file, screen.other) == (file, Other("sliding_window(512)"))
    press(app, "undo")
    assert app.session_state["screen"].other == Other(file=file)
    press(app, "redo")
    assert app.session_state["screen"] == screen


def test_uploads_of_several_planes_and_of_other_lengths(open_app):
    both = fm.ColumnMask.stack([fm.mask("causal", 40), fm.mask("full", 40)], "head")
    file, longer = put(both, "b"), put(fm.mask("causal", 50), "c")
    query = {"mask": "full", "n": 40, "withfile": file}
    assert "differ in 780 of" in html_of(open_app("compare", **query))
    assert "The same mask" in html_of(open_app("compare", **query, withplane="0,1"))
    app = open_app("compare", mask="full", n=40, withfile=longer)
    assert "B: theirs has 50 queries" in html_of(app)
    app.button(key="swap").click().run()
    assert app.session_state["screen"].seqlen_q == 50 and "fm-error" not in html_of(app)


def test_links_there_and_back_and_damaged_ones():
    for other in (Other("causal"), Other(file="0123456789abcdef01234567", plane=(1, 3))):
        screen = Screen(other=other)
        assert Screen.from_query(screen.to_query(page="compare")) == (screen, [])
        assert screen.to_query(page="") == {} == screen.to_query(place=False)
    screen, problems = Screen.from_query({"withfile": "../x", "withplane": "y"})
    assert screen == Screen() and [one.split("=")[0] for one in problems] == ["withfile", "withplane"]
    long = Screen(other=Other("causal & (" + "q + " * MAX_TEXT + "1 > k)"))
    shelf.keep_long_text(long)
    opened, problems = shelf.opened(Screen.from_query(long.to_query(page="compare"))[0])
    assert (opened, problems) == (long, [])
    assert "withfile" in shelf.opened(Screen(other=Other(file="f" * 24)))[1][0]


def test_the_layers_that_are_drawn_hide_what_the_mask_hides():
    rng = np.random.default_rng(5)
    for shape in ((1, 1), (30, 17), (9, 40)):
        visible = rng.random(shape) < 0.5
        runs = runs_of(visible)
        layers = sides.layers_of(runs)
        assert len(layers) == sides.layer_count(runs)
        assert np.array_equal(np.logical_and.reduce([m.to_dense()[0, 0].numpy() for m in layers]), visible)


def test_masks_of_very_many_runs_come_as_plain_pictures(open_app, monkeypatch):
    monkeypatch.setattr(panes, "MOST_LAYER_COLUMNS", 100)
    app = open_app("compare", mask=STRIPES, n=512)
    assert not app.exception and "<figcaption>Where they differ</figcaption>" in html_of(app)


def test_the_check_leads_to_the_comparison(open_app):
    app = open_app(mask="sliding_window(513)", n=2048)
    app.session_state["panel_tabs"] = "Check"
    app.run()
    app.text_input(key="w_meant").set_value("sliding_window(512)").run()
    app.button(key="side_by_side").click().run()
    assert not app.exception and app.session_state["screen"].other == Other("sliding_window(512)")
