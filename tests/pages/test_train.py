"""The page that packs a dataset: numbers of the library, bad lengths, files, and the way to Compose."""

import io

import numpy as np
import pytest
from page_tools import html_of, link_of

import flashmask_core as fm
from flashmask_core.packing import pack, read_text
from pages.ui.link import Screen
from pages.ui.train.place import MAX_TEXT, PackPlace

SMALL = "300, (200, 100, 50), 40, 512"


def test_a_drawn_dataset_is_packed_at_once(open_app):
    app = open_app("train")
    page = html_of(app)
    assert not app.exception and "fm-error" not in page
    assert "best-fit decreasing" in page and "rank 3" in page and page.count('class="bar') >= 12


def test_typed_lengths_are_packed_and_shown_with_the_librarys_numbers(open_app):
    app = open_app("train", pack_lengths=SMALL, pack_context=512, pack_policy="best_fit", pack_ranks=2)
    packing = pack(read_text(SMALL), 512, "best_fit")
    page = html_of(app)
    assert f"{100 * packing.waste:.2f} %" in page and f"{packing.imbalance:.2f}×" in page
    app.selectbox(key="p_policy").set_value("in_order").run()
    assert link_of(app).get("pack_policy") is None and not app.exception
    assert f"{100 * pack(read_text(SMALL), 512).waste:.2f} %" in html_of(app)


@pytest.mark.parametrize(
    "query, message",
    [
        (dict(pack_lengths="3, x"), "&#x27;x&#x27; at character 4"),
        (dict(pack_lengths="600", pack_context=512), "more than the context of 512; split it, drop it"),
        (dict(pack_lengths="0"), "no example is left to pack"),
        (dict(pack_context=100), "context: wanted 256"),
        (dict(pack_lengths="40", pack_context=64, pack_ranks=64), ""),
        (dict(pack_lengths="(900, 0, 60), (0, 0)", pack_context=1000, pack_ranks=7), ""),
        (dict(pack_lengths="4", pack_context=4, pack_ranks=5), "ranks: 5 ranks are more than the 4 chunks"),
    ],
)
def test_what_cannot_be_is_one_message(open_app, query, message):
    app = open_app("train", **query)
    assert not app.exception
    assert message in html_of(app) if message else "fm-error" not in html_of(app)


def test_a_long_example_is_split_or_dropped_by_choice(open_app):
    app = open_app("train", pack_lengths="600, 20", pack_context=512, pack_long="split")
    assert "fm-error" not in html_of(app)
    app = open_app("train", pack_lengths="600, 20", pack_context=512, pack_long="drop")
    assert ">dropped<" in html_of(app)


def test_the_place_travels_in_the_link_and_a_damaged_link_says_so():
    place = PackPlace("3, (4, 5)", "rm", 4096, 3, 7, "best_fit", "drop", 2, 1)
    assert Screen.from_query(Screen(pack=place).to_query(page="train")) == (Screen(pack=place), [])
    assert not Screen(pack=place).to_query(page="compose")
    assert "pack_lengths" not in Screen(pack=PackPlace("1 " * MAX_TEXT)).to_query(page="train")
    screen, problems = Screen.from_query({"pack_form": "ppo", "pack_context": "0", "pack_ranks": "65"})
    assert screen == Screen() and len(problems) == 3


def test_a_file_of_lengths_becomes_the_list(open_app):
    app = open_app("train", pack_context=512)
    app.file_uploader(key="pack_file").upload("lengths.csv", b"prompt,a,b\n200,100,50\n512\n").run()
    next(b for b in app.button if b.label == "Pack these").click().run()
    assert not app.exception and app.text_area(key="p_lengths").value == "(200, 100, 50), 512"
    app.file_uploader(key="pack_file").upload("lengths.json", b"[-1]").run()
    next(b for b in app.button if b.label == "Pack these").click().run()
    assert "lengths[0]: wanted 0 to" in html_of(app) and app.text_area(key="p_lengths").value == "(200, 100, 50), 512"


def test_the_files_are_those_of_the_library():
    from pages.ui.train.packed import files_of

    packing = pack(read_text(SMALL), 512)
    made = files_of(packing)
    assert set(made) == {"packing.npz", "position_ids.npy", "cu_seqlens.npy", "startend_row_indices.npy"}
    indices = np.load(io.BytesIO(made["startend_row_indices.npy"]))
    mask = fm.load_mask(indices, kind="startend_row_indices", causal=True)
    assert mask.equals(fm.ColumnMask.stack([one.mask for one in packing.sequences], "batch"))


def test_a_length_typed_in_groups_of_digits_is_told_and_still_packed(open_app):
    app = open_app("train", pack_lengths="10 000, 300", pack_context=512)
    assert not app.exception and any("10 000 is read as 2 lengths, 10 and 000" in one.value for one in app.caption)
    app.text_area(key="p_lengths").set_value("128 256 512").run()
    assert not app.exception and not any("is read as" in one.value for one in app.caption)
