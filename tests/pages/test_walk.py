"""The kernel's walk without a browser: its data for every mask and pass, its links, and masks that are made small."""

import json

import numpy as np
import pytest
import torch
from page_tools import html_of

import flashmask_core as fm
from flashmask_core.masks.patterns import PATTERNS
from pages.ui.link import Screen
from pages.ui.presets import PRESETS, argument_texts
from pages.ui.walk.controls import small_mask
from pages.ui.walk.place import PASSES, WalkPlace, parse_block
from pages.ui.walk.small import middles, shrunk
from pages.ui.walk.story import dense, inputs, story

ROUNDING = 5e-6  # of float32 sums of 64 products of small numbers


def pattern_text(name: str, n: int) -> str:
    arguments = ", ".join(text for text in argument_texts(name, n) if text)
    return f"{name}({arguments})" if arguments else name


@pytest.mark.parametrize("pass_", PASSES)
@pytest.mark.parametrize("text", [PRESETS["attention sink"](32), *(pattern_text(name, 32) for name in PATTERNS)])
def test_every_loop_of_every_mask_ends_in_the_dense_result(text, pass_):
    mask = fm.mask(text, 32)
    judge = dense(mask, inputs(32, 32))
    wanted = {"forward": ["out", "lse"], "dkdv": ["dk", "dv"], "dq": ["dq"]}[pass_]
    together = {name: [] for name in wanted}
    for line in range(4):
        told = story(mask, 8, 8, pass_, line)
        assert json.loads(json.dumps(told, allow_nan=False)) == told and told["worst"] < ROUNDING
        for name in wanted:
            together[name] += told["steps"][-1][2][name]
    for name in wanted:
        got = torch.tensor([[float("-inf") if x is None else x for x in np.ravel(row)] for row in together[name]])
        got = got.float()
        torch.testing.assert_close(got.view(judge[name].shape), judge[name], rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("text", [make(700) for make in PRESETS.values()])
def test_a_mask_is_made_small_by_its_middle_cells(text):
    mask = fm.mask(text, 700)
    small = shrunk(mask, 64)
    rows = middles(700, 64)
    assert torch.equal(small.to_dense()[0, 0], mask.to_dense()[0, 0][rows][:, rows])
    assert shrunk(mask, 700) is mask


@pytest.mark.parametrize("seqlen_q, seqlen_k", [(1, 5000), (5000, 1), (300, 4096), (4096, 300), (2**20, 2**20)])
def test_rectangles_are_made_small(seqlen_q, seqlen_k):
    mask = fm.mask("causal & (q - k < 4000)", seqlen_q, seqlen_k)
    small = shrunk(mask, 64)
    assert max(small.seqlen_q, small.seqlen_k) == 64 and min(small.seqlen_q, small.seqlen_k) >= 1
    rows, columns = middles(seqlen_q, small.seqlen_q), middles(seqlen_k, small.seqlen_k)
    for i in (0, small.seqlen_q - 1):
        there = mask.to_dense(slice(int(rows[i]), int(rows[i]) + 1))[0, 0, 0][columns]
        assert torch.equal(small.to_dense()[0, 0, i], there)


def test_the_place_goes_into_the_link_of_its_page_alone(open_app):
    app = open_app("walk", mask="causal", n=64, line=2, step=7, **{"pass": "dq", "block": "4x8", "tokens": 32})
    assert not app.exception
    walk = app.session_state["screen"].walk
    assert walk == WalkPlace("", 32, 4, 8, "dq", 2, 7)
    screen = app.session_state["screen"]
    assert screen.to_query(page="walk").keys() == {"mask", "n", "line", "step", "pass", "block", "tokens"}
    assert screen.to_query(page="compose") == screen.to_query(place=False) == {"mask": "causal", "n": "64"}
    assert Screen.from_query(screen.to_query(page="walk")) == (screen, [])


@pytest.mark.parametrize(
    "query",
    [
        {"pass": "sideways"},
        {"walk": "no such preset"},
        {"block": "0x3"},
        {"block": "64x64"},
        {"tokens": "4096"},
        {"line": "-1"},
        {"step": "1e9"},
    ],
    ids=str,
)
def test_a_damaged_link_says_so_and_opens_the_nearest_walk(open_app, query):
    app = open_app("walk", **query)
    assert not app.exception
    assert len(app.warning) == 1 and next(iter(query.values())) in app.warning[0].value
    assert app.session_state["screen"].walk == WalkPlace()


@pytest.mark.parametrize(
    "query",
    [
        {"mask": "causal", "n": 1},
        {"mask": "full", "n": 50},
        {"mask": "~full", "n": 100},
        {"mask": "full", "n": 3, "block": "16x16"},
        {"mask": "document(repeat(1, 1048576))", "n": 2**20},
        {"mask": "causal", "n": 5, "nk": 300},
        {"mask": "causal", "n": 300, "nk": 5, "pass": "dkdv"},
        {"mask": "causal", "n": 64, "line": 99, "step": 5000},
        {"walk": "block diffusion", "tokens": 33},
        {"walk": "video frames", "tokens": 1},
        {"walk": "causal", "tokens": 128, "block": "1x1"},
    ],
    ids=str,
)
def test_extreme_masks_have_a_walk(open_app, query):
    app = open_app("walk", **query)
    assert not app.exception and not app.warning


def test_controls_change_the_walk_and_begin_it_anew(open_app):
    app = open_app("walk", line=3, step=4)
    app.selectbox(key="k_source").set_value("sliding window").run()
    app.number_input(key="k_tokens").set_value(40).run()
    app.selectbox(key="k_block").set_value("8 × 4").run()
    app.button_group(key="k_pass").set_value("dkdv").run()
    assert app.session_state["screen"].walk == WalkPlace("sliding window", 40, 8, 4, "dkdv")
    assert "sliding_window(2)" in html_of(app) and not app.exception


def test_the_walk_begins_at_the_selected_cell_of_a_large_mask():
    small = small_mask(Screen(at=(1000, 5000)))
    assert (small.mask.seqlen_q, small.at) == (64, (7, 39))
    assert small_mask(Screen()).at == (32, 32)
    assert small_mask(Screen(at=(1000, 5000), walk=WalkPlace("causal"))).at == (32, 32)


def test_a_large_mask_says_what_was_made_of_it(open_app):
    page = html_of(open_app("walk"))
    assert "64 × 64 of 8,192 × 8,192" in page and "128 × 128" in page and "13.0 % there" in page


@pytest.mark.parametrize(
    ("text", "tile"), [("8 × 4", (8, 4)), ("16", (16, 16)), ("17", None), ("0x1", None), ("", None)]
)
def test_tiles_as_they_are_typed(text, tile):
    assert parse_block(text) == tile


def test_what_stands_for_a_mask_that_does_not_fit_is_not_called_the_mask(open_app):
    page = html_of(open_app("walk", mask="causal & ((q - k) % 2 == 0)", n=64))
    assert "In place of" in page and "hides a little more, as it is: 64 × 64" in page
    page = html_of(open_app("walk", mask="causal & ((q - k) % 9000 == 0)", n=20_000))
    assert "In place of" in page and "about 312 × 312" in page
    assert "about 15,625 × 15,625" in html_of(open_app("walk", mask="causal", n=1_000_000))
