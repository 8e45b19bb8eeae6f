"""The upload dialog: a preview of what was read, questions where a file does not say it, and what comes after."""

import html
import io

import numpy as np
import pytest
import streamlit as st
from conftest import ROOT
from page_tools import html_of, link_of, npy
from streamlit.testing.v1 import AppTest

import flashmask_core as fm
from pages.ui import shelf
from pages.ui.link import Screen

WINDOW = fm.mask("sliding_window(9)", 60).to_dense()[0, 0].numpy()
CHECKERBOARD = np.add.outer(np.arange(40), np.arange(40)) % 8 < 4


@pytest.fixture(autouse=True)
def empty_shelf():
    st.cache_resource.clear()


@pytest.fixture
def dialog(monkeypatch):
    """dialog(data, name): what stands in the dialog after that file was given, without the page around it."""
    monkeypatch.chdir(ROOT)  # a run of the whole page would close the dialog, and AppTest knows no others

    def dialog(data: bytes, name: str = "mask.npy"):
        app = AppTest.from_string(
            "from pages.ui import state, upload\nstate.open_screen('compose')\nupload.ask()", default_timeout=60
        ).run()
        assert "never executed" in app.markdown[0].value
        app.file_uploader(key="upload").upload(name, data).run()
        assert not app.exception
        return app

    return dialog


def shown(app) -> Screen:
    """The screen behind `Show it`."""
    app.button(key="upload_show").click().run()
    assert not app.exception
    return app.session_state["screen"]


def mask_of(screen: Screen):
    return shelf.shelf().get(screen.file).content


def words(app) -> str:
    return "\n".join([html_of(app), *(m.value for m in app.markdown), *(c.value for c in app.caption)])


def test_polarity_is_asked_with_both_readings_drawn(dialog, open_app):
    app = dialog(npy(WINDOW))
    assert "Which of the two is it?" in words(app) and html_of(app).count("<img") == 2
    app.button(key="upload_visible").click().run()
    assert "This is `sliding_window(9)`." in words(app) and "504 pairs visible" in words(app)
    screen = shown(app)
    assert mask_of(screen).equals(fm.mask("sliding_window(9)", 60))
    app = open_app(file=screen.file)
    assert "It is exactly `sliding_window(9)`." in words(app)
    app.button(key="use_text_above").click().run()
    assert app.session_state["screen"].mask == "sliding_window(9)" and "file" not in link_of(app)


def test_rows_that_are_keys_are_noticed_and_turned(dialog):
    app = dialog(npy(np.triu(np.ones((30, 30), int))))
    assert "If the rows are keys" in words(app) and "This is `q <= k`." in words(app)
    app.button_group(key="upload_rows").set_value("keys").run()
    assert "If the rows are keys" not in words(app)
    assert mask_of(shown(app)).equals(fm.mask("causal", 30))


def test_a_mask_that_does_not_fit_is_shown_with_its_ways_on(dialog, open_app):
    app = dialog(npy(CHECKERBOARD.astype(np.float32)))
    assert "40 columns do not fit FlashMask" in words(app)
    screen = shown(app)
    runs = mask_of(screen)
    app = open_app(file=screen.file)
    np.testing.assert_array_equal(runs.to_dense(), CHECKERBOARD)
    assert "mask.npy does not fit FlashMask" in html_of(app) and app.button(key="way_wider")
    app.button(key="way_passes").click().run()
    assert not app.exception and "Next" in app.button(key="way_passes").label
    again = shelf.put_upload(shelf.screen_file(screen), "x.json", kind="auto")
    assert shelf.shelf().get(again.file).content.equals(runs)


def test_numbers_under_the_wrong_flag_are_pointed_at(dialog):
    indices, _ = fm.mask("document(4, 3, 3)", 10).to_startend_row_indices()
    app = dialog(npy(indices.numpy()))
    assert "the file does not say their causal flag" in words(app)
    app.selectbox(key="upload_kind").set_value("startend_row_indices").run()
    app.button_group(key="upload_causal").set_value("causal").run()
    assert "The causal flag looks flipped" in html_of(app)
    app.button_group(key="upload_causal").set_value("not causal").run()
    assert "flipped" not in html_of(app) and "document(4, 3, 3)" in words(app)
    assert mask_of(shown(app)).equals(fm.mask("document(4, 3, 3)", 10))


def test_a_column_of_a_data_set_is_lengths_of_documents(dialog):
    app = dialog(b"name,tokens\na,4\nb,3\nc,3\n", "lengths.csv")
    app.selectbox(key="upload_kind").set_value("lengths").run()
    assert "a table with a heading needs “Column”" in words(app)
    app.text_input(key="upload_column").set_value("tokens").run()
    assert mask_of(shown(app)).equals(fm.mask("causal_document(4, 3, 3)", 10))


def test_the_file_of_a_screen_needs_no_questions(dialog):
    app = dialog(shelf.screen_file(Screen(mask="causal & (k < 4)", seqlen_q=77)), "screen.json")
    assert "This is the small file of a screen." in words(app)
    assert shown(app) == Screen(mask="causal & (k < 4)", seqlen_q=77)


@pytest.mark.parametrize("name, data, message", [
    ("mask.npy", b"not at all", "wanted one row of numbers a line"),
    ("mask.npy", npy(np.full((4, 4), 0.5)), "row 0, column 0 is 0.5"),
    ("mask.csv", b"", "it is empty"),
    ("mask.npz", b"PK\x03\x04 nothing", "no readable .npz"),
])  # fmt: skip
def test_what_is_no_mask_is_refused_with_the_accepted_forms(dialog, name, data, message):
    app = dialog(data, name)
    assert message in html.unescape(html_of(app)) and not [b for b in app.button if b.key == "upload_show"]


def test_what_a_file_says_is_shown_as_it_stands(dialog):
    app = dialog(b"![x](http://example.org/x.png)<script>,b\n1,2\n", "data.csv")
    assert not app.error and "<script>" not in html_of(app)
    app.text_input(key="upload_column").set_value("c").run()
    assert "![x](http://example.org/x.png)&lt;script&gt;" in html_of(app) and not app.error


def test_heads_that_do_not_fit_are_told_apart_and_one_of_them_is_shown(dialog, open_app):
    fits = np.tril(np.ones((40, 40), bool))
    app = dialog(npy(np.stack([fits, CHECKERBOARD, CHECKERBOARD.T])[None].astype(int)))
    assert "2 of its planes, a batch entry and a mask head each, do not fit" in words(app)
    assert app.selectbox(key="upload_plane").options == ["batch 0, head 1", "batch 0, head 2"]
    assert not [b for b in app.button if b.key == "upload_show"]
    app.selectbox(key="upload_plane").set_value((0, 1)).run()
    assert not app.exception and "40 columns do not fit FlashMask" in words(app)
    screen = shown(app)
    np.testing.assert_array_equal(mask_of(screen).to_dense(), CHECKERBOARD)
    assert open_app(file=screen.file).button(key="way_wider"), "with its ways on"


def test_our_own_picture_gives_its_mask_back(dialog):
    mask = fm.mask("causal & document(300, 400)", 700)
    assert mask_of(shown(dialog(fm.export_mask(mask, "png"), "mask.png"))).equals(mask)


def test_passes_in_a_screens_file_are_checked():
    runs = fm.MaskedRuns.from_dense(CHECKERBOARD)
    record = shelf._record(runs)
    assert shelf._mask_of(record).equals(runs)
    for wrong in ([*record, 3], [*record, {**record[0], "seqlen_q": 41}], [{**record[0], "seqlen_k": "x"}],
                  [record[0]] * (shelf.MAX_PASS_COLUMNS // 40 + 1)):  # fmt: skip
        with pytest.raises(ValueError, match="the passes of one mask"):
            shelf._mask_of(wrong)


def test_row_numbers_without_their_flag_are_asked_for_it(dialog):
    app = dialog(npy(np.full((1, 1, 6, 2), 4)))
    assert "causal flag" in words(app) and "accepted are" not in words(app)
    app.button(key="upload_not causal").click().run()
    assert not app.exception and app.selectbox(key="upload_kind").value == "startend_row_indices"
    screen = shown(app)
    meant = fm.load_mask(np.full((1, 1, 6, 2), 4), kind="startend_row_indices", causal=False)
    assert mask_of(screen).equals(meant)


def test_what_is_wrong_is_told_in_the_words_of_the_dialog(dialog):
    told = words(dialog(npy(np.array([3, 4])), "lengths.npy"))
    assert "say which under “What it holds”" in told and "kind=" not in told
    two = io.BytesIO()
    np.savez(two, a=WINDOW, b=WINDOW)
    told = words(dialog(two.getvalue(), "two.npz"))
    assert "this file: say which under “Array”; it has a, b" in told
