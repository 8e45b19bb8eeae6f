"""The other way round: a mask's text is found, and what is called exact gives the mask bit for bit."""

import mask_oracle
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from test_language_random import EXAMPLES, lengths, masks

import flashmask_core as fm
from flashmask_core.masks.outline import Outline
from flashmask_core.masks.patterns import PATTERNS

FOUND = [
    ("causal & document(100, 56, 100) & (q - k < 20) | causal & (k < 4)",
     "sliding_window(20) & document(100, 56, 100) | causal & (k < 4)"),
    ("causal & (q - k < 32) & document(100, 100, 56)", "sliding_window(32) & document(100, 100, 56)"),
    ("causal & document(100, 100, 56) & ((q - k < 20) | (k < 7))",
     "causal & document(100, 100, 56) & (sliding_window(20) | (k < 7))"),
    ("causal & document(repeat(4, 64))", "causal & document(repeat(4, 64))"),
    ("causal & ~rect(50, 100, 20, 30)", "causal & ~rect(50, 100, 20, 30)"),
    ("causal & padding(200)", "causal & padding(200)"),
    ("share_question((40, 30, 20, 50), (60, 20, 20))", "share_question((40, 30, 20, 50), (60, 20, 20))"),
    ("frames(8, 16, 1, (0, 4))", "frames(8, 16, 1, (0, 4))"),
    ("(q + k) % 2 == 0", "(q - k) % 2 == 0"),
    ("not causal", "q < k"),
    ("q >= k + 1", "k < q"),
    ("rect(3, 90, 7, 8) | rect(200, 256, 3, 4)", "rect(200, 256, 3, 4) | rect(3, 90, 7, 8)"),
    ("q < q", "~full"),
]  # fmt: skip


@pytest.mark.parametrize("text, found", FOUND, ids=[text[:40] for text, _ in FOUND])
def test_combinations_are_found_as_one_would_write_them(text, found):
    runs = fm.parse(text).runs(256)
    got = fm.recognise(runs)
    assert got.exact and got.text == found and got.changed_pairs == 0


@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_every_pattern_is_found_by_its_own_name_or_a_shorter_text(name):
    arguments = PATTERNS[name].example(240)
    text = f"{name}({', '.join(map(str, arguments))})" if arguments else name
    mask = fm.mask(text, 240)
    got = fm.recognise(mask)
    assert got.exact and fm.mask(got.text, 240).equals(mask)
    assert name in got.text or len(got.text) <= len(text) + 4


@settings(max_examples=EXAMPLES, deadline=None, database=None)
@given(masks, lengths)
def test_what_is_recognised_is_the_mask(mask, sizes):
    text, meaning = mask
    seqlen_q, seqlen_k = sizes
    runs = fm.parse(text).runs(seqlen_q, seqlen_k)
    found = fm.recognise(runs, nearest=True)
    again = fm.parse(found.text).runs(seqlen_q, seqlen_k)
    assert found.exact == again.equals(runs)
    assert found.changed_pairs == int((again.to_dense() != runs.to_dense()).sum())
    assert (fm.recognise(runs) is not None) == found.exact


def test_random_dense_masks_differ_from_their_nearest_text_as_told():
    rng = np.random.default_rng(11)
    for _ in range(EXAMPLES // 2):
        visible = rng.random(rng.integers(1, 24, 2)) < rng.random()
        visible = np.repeat(np.repeat(visible, rng.integers(1, 4), axis=0), rng.integers(1, 4), axis=1)
        found = fm.recognise(visible, nearest=True)
        again = fm.parse(found.text).runs(*visible.shape).to_dense()
        assert found.changed_pairs == (again != visible).sum() and found.exact == (again == visible).all()
        assert all(finding.message for finding in fm.lint(visible))


def test_nearest_is_the_text_that_was_damaged():
    for text in ("causal", "sliding_window(40)", "band(20, 9)", "causal & document(60, 30, 110)", "prefix_lm(50)"):
        visible = fm.mask(text, 200).to_dense()[0, 0].clone()
        damaged = [(20, 3), (107, 5), (190, 51)]
        for q, k in damaged:
            visible[q, k] = ~visible[q, k]
        got = fm.recognise(visible, nearest=True)
        if not got.exact:
            assert fm.mask(got.text, 200).equals(fm.mask(text, 200)) and got.changed_pairs == 3
        else:  # a few rectangles more say it exactly
            assert len(got.text) > len(text)


def test_documents_are_the_most_pieces_that_do_not_see_each_other():
    rng = np.random.default_rng(3)
    for _ in range(200):
        n = int(rng.integers(1, 12))
        visible = rng.random((n, n)) < 0.15
        q, k = np.nonzero(visible)
        low, high = np.minimum(q, k), np.maximum(q, k)
        used = int(high.max(initial=-1)) + 1
        ends = [b for b in range(1, used + 1) if not ((low < b) & (high >= b)).any()]
        outline = Outline(fm.MaskedRuns.from_dense(visible))
        assert outline.documents == np.diff([0, *ends]).tolist()
        assert sum(outline.merged_documents) <= used


def test_long_masks_are_recognised():
    size = 1 << 17
    for text in (
        "sliding_window(512)",
        f"causal & document({size // 4}, {size // 4}, {size // 2})",
        f"share_question(repeat((40, 30, 20, 38), {size // 128}))",
        f"document(repeat(1, {size}))",
    ):
        assert fm.mask(fm.recognise(fm.mask(text, size)).text, size).equals(fm.mask(text, size))
    assert fm.recognise(fm.parse("q * k % (q + 7) == 1").runs(300)) is None


def test_a_tensor_and_rectangular_masks_and_what_is_no_mask():
    assert fm.recognise(torch.ones(4, 9, dtype=torch.bool).tril(5)).text == "causal"
    assert fm.recognise(fm.mask("causal & document(64, 64)", 64, 128)).text == "causal & (k >= 64)"
    before = np.ones((9, 2), bool)  # queries before the first key see nothing in a text
    before[2:] = False
    for visible in (np.ones((5, 2), bool), before):
        assert fm.recognise(visible) is None
        assert fm.recognise(visible, nearest=True).changed_pairs == visible[: len(visible) - 2].sum()
    for given_, message in (
        ("causal", "got str"),
        (np.ones((2, 2)), "got float64"),
        (np.ones((1, 2, 2), bool), "bool"),
    ):
        with pytest.raises(TypeError, match=f"mask: wanted a ColumnMask, MaskedRuns or bool.*{message}"):
            fm.recognise(given_)
    two = fm.ColumnMask.stack([fm.mask("causal", 4)] * 2, "batch")
    with pytest.raises(ValueError, match="wanted one plane, B = Hm = 1, got B = 2"):
        fm.recognise(two)


def test_compare_counts_and_places():
    rng = np.random.default_rng(5)
    for _ in range(50):
        one, two = rng.random((2, 7, 9)) < 0.5
        got = fm.compare(one, two)
        assert (got.extra_pairs, got.missing_pairs) == ((one & ~two).sum(), (two & ~one).sum())
        np.testing.assert_array_equal(got.extra.to_dense(), one & ~two)
        for q, k in got.first_extra(9):
            assert (one & ~two)[q, k] and not (one & ~two)[:q, k].any()
        assert [k for _, k in got.first_missing(9)] == np.flatnonzero((two & ~one).any(0)).tolist()
    assert fm.compare(fm.mask("causal", 6), fm.mask("causal", 6).to_dense()[0, 0]).equal
    with pytest.raises(ValueError, match=r"meant: wanted the mask's lengths \(Sq, Sk\) = \(4, 4\), got \(5, 5\)"):
        fm.compare(fm.mask("causal", 4), fm.mask("causal", 5))
    q, k = mask_oracle.positions(5, 5)
    assert fm.compare(k <= q, k < q).first_extra() == [(0, 0), (1, 1), (2, 2)]
