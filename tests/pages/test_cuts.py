"""Boundaries of documents that are dragged: the two lengths beside one change, and nothing else does."""

import random
from dataclasses import astuple

import numpy as np
import pytest

import flashmask_core as fm
from pages.ui.cuts import cuts_of, moved
from pages.ui.layers import layers_of


@pytest.mark.parametrize(
    ("text", "part", "by", "meant"),
    [
        ("causal & document(60, 40)", 0, 15, "causal & document(75, 25)"),
        ("document(30, 30, 40) & ~rect(0, 9, 0, 9)", 1, -29, "document(30, 1, 69) & ~rect(0, 9, 0, 9)"),
        ("~causal_document(20, 30)", 1, 49, "~causal_document(20, 79)"),  # the last one takes from the padding
        ("document(repeat(20, 3), 40)", 1, 5, "document(20, 25, 15, 40)"),
        ("causal_blockwise(50, 50)", 0, -1, "causal_blockwise(49, 51)"),
        ("share_question((20, 10, 10), (40, 20))", 0, 4, "share_question((24, 6, 10), (40, 20))"),
        ("share_question((20, 10, 10), (40, 20))", 2, 9, "share_question((20, 10, 19), (31, 20))"),
        ("prefix_lm_document((10, 30), (20, 70))", 0, -20, "prefix_lm_document((10, 10), (20, 90))"),
        ("prefix_lm_document((10, 30), (20, 70))", 0, 50, "prefix_lm_document((10, 80), (20, 20))"),
    ],
)
def test_a_boundary_moves_between_its_two_neighbours(text, part, by, meant):
    [cut] = [cut for cut in cuts_of(text, 100) if cut.part == part]
    assert moved(text, 100, cut.layer, part, cut.at, by) == meant
    [after] = [other for other in cuts_of(meant, 100) if other.part == part]
    assert (after.start, after.at, after.end) == (cut.start, cut.at + by, cut.end)
    for beyond in (cut.low - 1, cut.high + 1):
        with pytest.raises(ValueError, match="no such boundary"):
            moved(text, 100, cut.layer, part, cut.at, beyond - cut.at)


@pytest.mark.parametrize("seed", range(4))
def test_wherever_it_goes_the_mask_is_one_and_its_edges_are_there(seed):
    dice = random.Random(seed)
    text, keys = "document(9, 1, 12, 8) & (q - k < 20) | share_question((5, 4, 3), (6, 2))", 40
    for _ in range(30):
        cut = dice.choice(cuts_of(text, keys))
        before = [layer.text for layer in layers_of(text)]
        text = moved(text, keys, cut.layer, cut.part, cut.at, dice.randint(cut.low, cut.high) - cut.at)
        after = [layer.text for layer in layers_of(text)]
        assert before[: cut.layer] == after[: cut.layer] and before[cut.layer + 1 :] == after[cut.layer + 1 :]
    row, column = np.arange(40)[:, None], np.arange(40)
    for cut in cuts_of("causal & document(9, 1, 12, 8)", keys):
        shown = fm.parse("causal & document(9, 1, 12, 8)").visible(row, column, 40, 40)
        assert shown[cut.at - 1, cut.at - 1] and not shown[cut.at, cut.at - 1]


def test_what_has_no_lengths_or_too_many_or_is_off_has_no_boundaries():
    for text in ("causal", "causal & (full | document(4, 6))", "qk_sparse((1, 3))", "document(repeat(1, 600))", "document(100)"):
        assert cuts_of(text, 100) == ()
    assert [astuple(cut) for cut in cuts_of("causal & document(0, 60)", 100)] == [(1, 1, 0, 60, 100, 1, 100)]
