"""The usual mistakes, each made on purpose: it is named, with its numbers, and a sound mask is left in peace."""

import numpy as np
import pytest
import torch

import flashmask_core as fm
from flashmask_core.masks.compare import runs_of
from flashmask_core.masks.examples import EXAMPLES
from flashmask_core.masks.lint import _crossing


def told(mask, **options):
    return {finding.code: finding for finding in fm.lint(mask, **options)}


def from_numbers(columns, causal):
    return fm.ColumnMask.from_startend_row_indices(torch.tensor(columns).int()[None, None], causal=causal)


@pytest.mark.parametrize(
    "text",
    ["causal", "sliding_window(100)", "causal & document(300, 400, 324)", "share_question((400, 300, 200, 124))",
     "sliding_window(100) | causal & (k < 4)", "random_eviction(512, 0)", "causal_blockwise(300, 400, 324)"],
)  # fmt: skip
def test_sound_causal_masks_have_no_findings(text):
    assert fm.lint(fm.mask(text, 1024)) == []
    assert fm.lint(fm.mask(text, 1024), meant=text) == []


@pytest.mark.parametrize("text", ["full", "document(300, 400, 324)", "frames(8, 128, 1, (0, 4))", "band(50, 50)"])
def test_sound_masks_to_both_sides_are_only_said_not_to_be_causal(text):
    findings = fm.lint(fm.mask(text, 1024))
    assert [(f.code, f.level) for f in findings] == [("future", "note")] and "Not causal" in findings[0].message


def test_flipped_causal_flag():
    mask = from_numbers([[3, 5]] * 6, causal=False)
    assert (mask.visible_pairs().item(), from_numbers([[3, 5]] * 6, causal=True).visible_pairs().item()) == (0, 12)
    found = told(mask)["flag"]
    assert found.level == "error" and "causal=True show 12 pairs in place of 0" in found.message
    indices, causal = fm.mask("document(4, 3, 3)", 10).to_startend_row_indices()
    assert causal is False
    wrong = fm.ColumnMask.from_startend_row_indices(indices, causal=True)
    assert "causal=False show 34 pairs in place of 55" in told(wrong)["flag"].message


def test_ends_in_the_wrong_coordinates():
    found = told(from_numbers([[4]] * 4 + [[3]] * 6, causal=True), meant="causal & document(4, 3, 3)")
    assert "6 columns end before they begin: column 4 is hidden from row 3 on" in found["ends"].message
    assert found["ends"].at == (4, 4) and "The ends are lengths" in found["explained"].message
    assert "0 pairs are visible and should be hidden, 12 are hidden" in found["differs"].message
    found = told(from_numbers([[4, 0]] * 4 + [[3, 0]] * 6, causal=False), meant="document(4, 3, 3)")
    assert "The ends are lengths" in found["explained"].message


MEANT = [
    ("sliding_window(513)", "sliding_window(512)", "The 512 of the text reads as 513: the window is off by one"),
    ("causal & (q - k < 511)", "causal & (q - k < 512)", "The 512 of the text reads as 511: the window is off by one"),
    ("document(4, 3, 3)", "causal & document(4, 3, 3)", "The causal flag is missing"),
    ("document(4, 3, 3)", "causal_document(4, 3, 3)", "The causal flag is missing"),
    ("causal & document(4, 3, 3)", "document(4, 3, 3)", "The causal flag is set and should not be"),
    ("k < q", "causal", "blind to its own key"),
    ("q <= k", "causal", "Rows and columns are swapped"),
    ("q < k", "causal", "The polarity is turned around"),
    ("causal & document(30, 20, 14)", "causal & document(14, 30, 20)", "the length of the one behind it"),
    ("causal & document(41, 59)", "causal & document(40, 60)", None),
    ("causal & (q <= 40) & (k <= 40)", "causal & padding(40)", "reads as 41"),
]  # fmt: skip


@pytest.mark.parametrize("text, meant, words", MEANT, ids=[f"{a} for {b}" for a, b, _ in MEANT])
def test_the_mistake_that_explains_the_difference_is_named(text, meant, words):
    size = {"sliding_window(513)": 1024, "causal & (q - k < 511)": 1024}.get(text, 0)
    size = size or {"document": 10}.get(meant.partition("(")[0], 0) or (10 if "(4, 3, 3)" in text else 100)
    size = 64 if "14" in text else size
    findings = [f for f in fm.lint(fm.mask(text, size), meant=meant) if f.code == "explained"]
    if words is None:
        assert findings == []
    else:
        assert any(words in f.message for f in findings), findings


def test_top_left_alignment_is_told_from_bottom_right():
    found = told(np.tril(np.ones((3, 5), bool)), meant="causal")
    assert "aligned top-left, and causal aligns bottom-right" in found["explained"].message
    assert (found["differs"].pairs, found["differs"].at) == (6, (0, 1))


def test_rows_that_see_nothing_and_keys_that_nobody_sees():
    found = told(fm.mask("causal & document(40, 50, 30)", 128))
    assert "8 queries see nothing (120…127)" in found["empty rows"].message
    assert "8 keys are seen by nobody (120…127)" in found["unseen keys"].message
    assert "empty rows" not in told(fm.mask("causal", 7, 4))  # queries before the first key cannot see
    assert "1 query sees nothing (1)" in told(fm.mask("document(4, 4) & ~(q == 1)", 8))["empty rows"].message


def test_documents_that_leak():
    mask = fm.mask("causal & document(65, 63)", 128)
    found = told(mask, documents=[64, 64])["leak"]
    assert (found.level, found.pairs, found.at) == ("error", 64, (64, 0))
    assert "64 pairs in 64 columns see across a border, first query 64 of document 2 sees key 0 of document 1" in (
        found.message
    )
    assert "leak" not in told(mask, documents=[65, 63])
    assert told(mask, meant="causal & document(64, 64)")["leak"] == found
    by_itself = told(fm.mask("causal & document(64, 64) | rect(64, 66, 60, 64)", 128))["leak"]
    assert by_itself.level == "warning" and "seems to end at token 64, and 8 pairs see across it" in by_itself.message
    with pytest.raises(ValueError, match="documents: wanted lengths of 0 or more that fit 128 keys, got 130"):
        fm.lint(mask, documents=[65, 65])


def test_future_and_own_key_off_by_one():
    found = told(fm.mask("k <= q + 1", 128))
    assert "visible by one token: 127 queries" in found["future by one"].message and found["future by one"].pairs == 127
    found = told(fm.mask("causal | rect(3, 4, 60, 62)", 128))["future"]
    assert found.level == "warning" and (found.pairs, found.at) == (2, (3, 60))
    found = told(fm.mask("k < q", 128))
    assert found["own key"].pairs == 127 and "k <= q, not k < q" in found["own key"].message


def test_examples_and_rectangles_are_left_in_peace():
    for example in EXAMPLES.values():
        assert [f for f in fm.lint(example.mask()) if f.level != "note"] == [], example.name
    assert {f.level for f in fm.lint(fm.mask("rect(50, 100, 10, 50)", 100)) if f.code == "own key"} == {"note"}


def test_a_window_beside_a_power_of_two_is_a_note():
    note = told(fm.mask("sliding_window(513)", 2048))["window"]
    assert note.level == "note" and "A window of 513" in note.message and "window_size of 512" in note.message
    assert "window" in told(fm.mask("sliding_window(511)", 2048))
    for text in ("sliding_window(512)", "sliding_window(500)", "causal"):
        assert "window" not in told(fm.mask(text, 2048))


def test_pairs_that_cross_each_border_match_brute_force():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(2, 12))
        visible = rng.random((n, n)) < 0.4
        q, k = np.nonzero(visible)
        wanted = [int(((np.minimum(q, k) < b) & (np.maximum(q, k) >= b)).sum()) for b in range(1, n)]
        assert _crossing(runs_of(visible)).tolist() == wanted


def test_odd_masks_have_sensible_findings():
    for shape in ((0, 0), (0, 3), (3, 0), (1, 1), (1, 9), (9, 1)):
        for value in (True, False):
            for finding in fm.lint(np.full(shape, value)):
                assert finding.message and finding.level in ("error", "warning", "note")
    findings = fm.lint(fm.mask("~full", 6))
    assert [f.code for f in findings] == ["empty rows", "unseen keys"]
    assert fm.lint(fm.mask("sliding_window(512)", 1 << 20)) == []
