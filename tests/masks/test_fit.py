"""Nearest masks that fit, and passes, against brute force over everything that fits."""

import itertools

import numpy as np
import pytest
import torch

import flashmask_core as fm
from flashmask_core.masks import fit as fit_module


def columns_that_fit(rows):
    """Every bool column [rows] of at most two masked runs, as an array [count, rows] of what is visible."""
    every = np.array(list(itertools.product([False, True], repeat=rows)))
    framed = np.concatenate([np.ones((len(every), 1), bool), every], axis=1)
    return every[(framed[:, :-1] & ~framed[:, 1:]).sum(1) <= 2]


def dense(mask):
    assert (mask.batch, mask.heads) == (1, 1)
    return mask.to_dense()[0, 0].numpy()


@pytest.mark.parametrize("rows", [1, 2, 5, 7, 9])
def test_nearest_masks_are_nearest_and_passes_are_exact_and_few(rows):
    every = np.array(list(itertools.product([False, True], repeat=rows))).T  # all columns there are
    fit = fm.fit(every)
    fitting = columns_that_fit(rows)
    representable = (every.T[:, None] == fitting).all(-1).any(1)
    assert fit.columns == np.flatnonzero(~representable).tolist()
    assert (fit.mask is None) == (not representable.all())
    wider, narrower = dense(fit.wider), dense(fit.narrower)
    assert (every <= wider).all() and (narrower <= every).all()
    for column in range(every.shape[1]):
        shown = every[:, column]
        least_shown = min((c & ~shown).sum() for c in fitting if (shown <= c).all())
        least_hidden = min((shown & ~c).sum() for c in fitting if (c <= shown).all())
        assert (wider[:, column] & ~shown).sum() == least_shown
        assert (shown & ~narrower[:, column]).sum() == least_hidden
    assert (fit.wider_pairs, fit.narrower_pairs) == ((wider & ~every).sum(), (every & ~narrower).sum())
    passes = [dense(one) for one in fit.passes]
    np.testing.assert_array_equal(np.sum(passes, axis=0), every.astype(int))  # disjoint, and all of it
    assert len(passes) == fit.pass_count == max(1, fit.max_runs - 1)
    assert fit.passes[0].equals(fit.narrower)


def test_no_fewer_passes_would_do():
    """Columns of which every one needs its number of passes, found by trying all ways to share what is visible."""
    fitting = {tuple(column) for column in columns_that_fit(7).tolist()}
    for shown in itertools.product([False, True], repeat=7):
        fit = fm.fit(np.array(shown)[:, None])
        if fit.pass_count == 1:
            assert shown in fitting
            continue
        rows = [row for row in range(7) if shown[row]]
        for owner in itertools.product(range(fit.pass_count - 1), repeat=len(rows)):
            parts = [
                tuple(row in rows and owner[rows.index(row)] == part for row in range(7))
                for part in range(fit.pass_count - 1)
            ]
            assert not all(part in fitting for part in parts)


def test_random_masks_change_only_in_broken_columns():
    rng = np.random.default_rng(1)
    for _ in range(80):
        seqlen_q, seqlen_k = rng.integers(1, 30, 2)
        visible = np.repeat(rng.random((seqlen_q, seqlen_k)) < 0.5, rng.integers(1, 4), axis=0)
        fit = fm.fit(visible)
        fine = np.setdiff1d(np.arange(seqlen_k), fit.columns)
        assert (np.delete(fit.runs.counts, fit.columns) <= 2).all() and (fit.runs.counts[fit.columns] > 2).all()
        for near in (fit.wider, fit.narrower):
            np.testing.assert_array_equal(dense(near)[:, fine], visible[:, fine])
        np.testing.assert_array_equal(np.sum([dense(one) for one in fit.passes], axis=0), visible.astype(int))


def test_a_mask_that_fits_is_its_own_nearest_and_its_only_pass():
    fit = fm.fit(fm.parse("causal & document(4, 3, 3)").runs(10))
    wanted = fm.mask("causal & document(4, 3, 3)", 10)
    assert fit.columns == [] and fit.max_runs == 2
    assert len(fit.passes) == 1
    for mask in (fit.mask, fit.wider, fit.narrower, fit.passes[0]):
        assert mask.equals(wanted) and mask.causal and mask.bounds == 1
    assert (fit.wider_pairs, fit.narrower_pairs) == (0, 0)


def test_checkerboard_and_a_global_token_in_the_middle():
    checkerboard = fm.fit(fm.parse("(q + k) % 2 == 0").runs(64))
    assert checkerboard.mask is None and len(checkerboard.columns) == 64
    assert checkerboard.pass_count == len(checkerboard.passes) == 31
    assert sum(int(one.visible_pairs()) for one in checkerboard.passes) == 64 * 32
    middle = fm.fit(fm.parse("causal & ((q - k < 8) | (k == 30) | (k == 31) | (q == 30) | (q == 31))").runs(64))
    assert middle.pass_count == 2 and middle.columns == list(range(1, 22))
    assert middle.narrower_pairs == 21 * 2 and middle.wider_pairs == sum(min(22 - k, k) for k in range(22))


def test_bool_tensor_and_array_are_the_same():
    visible = np.random.default_rng(0).random((9, 7)) < 0.5
    assert fm.fit(torch.from_numpy(visible)).runs.equals(fm.fit(visible).runs)


@pytest.mark.parametrize(
    "given, got",
    [
        (np.ones((2, 3)), r"float64 \[2, 3\]"),
        (np.ones((1, 1, 2, 3), bool), r"bool \[1, 1, 2, 3\]"),
        ("causal", "str"),
        (torch.ones(2, 2), r"float32 \[2, 2\]"),
    ],
)
def test_wrong_input(given, got):
    with pytest.raises(TypeError, match=r"mask: wanted a ColumnMask, MaskedRuns or bool \[Sq, Sk\].*got " + got):
        fm.fit(given)


def test_too_many_passes_are_refused_before_they_are_made(monkeypatch):
    monkeypatch.setattr(fit_module, "MAX_PASS_COLUMNS", 500)
    fit = fm.fit(fm.parse("(q + k) % 2 == 0").runs(64))
    with pytest.raises(ValueError, match="31 passes over 64 columns are over the limit of 500 columns in all"):
        fit.passes
    assert fit.pass_count == 31 and fit.narrower.visible_pairs() > 0


def test_a_mask_without_rows_fits():
    fit = fm.fit(np.zeros((0, 3), bool))
    assert fit.columns == [] and fit.narrower.equals(fit.mask) and fit.wider.equals(fit.mask) and len(fit.passes) == 1
