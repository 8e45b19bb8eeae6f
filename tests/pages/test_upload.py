"""What is too large for a link: long texts, uploads, and the small file of a screen."""

import json

import numpy as np
import pytest
import streamlit as st
from page_tools import html_of, link_of, npy, press

import flashmask_core as fm
from pages.ui import shelf
from pages.ui.link import MAX_LINK, Screen

LONG = "causal & document(" + ", ".join(["1"] * 4000) + ")"


@pytest.fixture(autouse=True)
def empty_shelf():
    st.cache_resource.clear()


def two_heads() -> bytes:
    masks = [fm.mask("causal", 40), fm.mask("sliding_window(3)", 40)]
    return npy(fm.ColumnMask.stack(masks, dim="head").to_startend_row_indices()[0].numpy())


def test_a_long_text_travels_by_name(open_app):
    app = open_app(n=4000)
    app.text_input(key="w_mask").set_value(LONG).run()
    assert len(LONG) > MAX_LINK and "too many for a link" in app.caption[0].value
    name = link_of(app)["file"]
    again = open_app(n=4000, file=name)
    assert again.session_state["screen"].mask == LONG and not again.warning
    st.cache_resource.clear()
    lost = open_app(n=4000, file=name)
    assert "small file" in lost.warning[0].value and not lost.exception
    assert lost.session_state["screen"] == Screen(seqlen_q=4000) and "file" not in lost.query_params


def test_the_file_of_a_screen_brings_all_of_it_back():
    screen = Screen(mask=LONG, seqlen_q=4000, block_m=64, rule="paper", at=(3, 2), view=(0.0, 20.5, 10.0, 30.0))
    data = shelf.screen_file(screen)
    assert shelf.put_upload(data, "x.json", kind="auto") == screen


def test_an_upload_is_shown_head_by_head(open_app):
    name = shelf.put_upload(two_heads(), "my <b>heads</b>.npy", kind="startend_row_indices", causal=True)
    app = open_app(file=name)
    assert not app.exception and app.session_state["screen"].seqlen_q == 40
    assert "fm-error" not in html_of(app)
    assert app.text_input(key="w_mask").value == "" and app.number_input(key="w_n").disabled
    assert "<b>" not in app.caption[0].value
    app.selectbox(key="w_plane").set_value((0, 1)).run()
    assert link_of(app)["plane"] == "0,1" and not app.exception
    screen = app.session_state["screen"]
    again = shelf.put_upload(shelf.screen_file(screen), "x.json", kind="auto")
    assert (again.plane, again.seqlen_q) == ((0, 1), 40)
    assert shelf.shelf().get(again.file).content.equals(shelf.shelf().get(name).content)
    app.text_input(key="w_mask").set_value("full").run()
    assert "file" not in app.query_params and app.session_state["screen"].mask == "full"
    press(app, "undo")
    assert app.session_state["screen"].file == name


@pytest.mark.parametrize("page", ["compose", "measure"])
def test_every_page_shows_an_upload(open_app, page):
    app = open_app(page, file=shelf.put_upload(npy(np.tril(np.ones((30, 50)))), "dense.npy", kind="dense"))
    assert not app.exception and "fm-error" not in html_of(app)
    assert (app.session_state["screen"].seqlen_q, app.session_state["screen"].keys) == (30, 50)


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (b"", {}),
        (b"not a mask", {}),
        (b"{", {}),
        (b'{"format": "flashmask-screen", "version": 9}', {}),
        (b'{"format": "flashmask-screen", "version": 1, "screen": {"n": "-4"}}', {}),
        (npy(np.ones((4, 4), bool)), {}),
        (npy(np.full((4, 4), 0.5)), {"kind": "dense"}),
        (npy(np.eye(9)[:, ::-1] + np.eye(9)), {"kind": "cu_seqlens"}),
        (npy(np.zeros((0, 0))), {"kind": "dense"}),
    ],
    ids=["empty", "text", "cut off", "version", "damaged", "bool", "half", "kind", "no tokens"],
)
def test_a_file_that_is_no_mask_is_refused_in_words(data, options):
    with pytest.raises((ValueError, TypeError)) as caught:
        shelf.put_upload(data, "x", **{"kind": "auto", **options})
    assert str(caught.value)


def test_the_shelf_lets_the_oldest_go(monkeypatch):
    monkeypatch.setattr(shelf, "MAX_ITEMS", 2)
    kept = shelf.Shelf()
    for name in "abc":
        kept.put(name, shelf.Item(name * 5))
    assert kept.get("a") is None and kept.get("c").content == "ccccc"
    monkeypatch.setattr(shelf, "MAX_BYTES", 4)
    with pytest.raises(ValueError, match="more than"):
        kept.put("d", shelf.Item("ddddd"))


def test_the_screen_file_is_plain_json():
    told = json.loads(shelf.screen_file(Screen(mask="causal", seqlen_q=9)))
    assert told["screen"] == {"mask": "causal", "n": "9"} and told["mask"] is None
