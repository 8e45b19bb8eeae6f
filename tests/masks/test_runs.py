"""The interval algebra against dense bool arrays."""

import numpy as np
import pytest
from mask_oracle import ODD_SIZES

import flashmask_core as fm
from flashmask_core.masks import runs as runs_module

SIZES = [(sq, sk) for sq in (0, *ODD_SIZES) for sk in (0, *ODD_SIZES)]


def random_dense(rng, seqlen_q, seqlen_k):
    """Blocks, single pairs and whole columns, so that runs touch each other and both ends."""
    kind = rng.integers(3)
    if kind == 0:
        return rng.random((seqlen_q, seqlen_k)) < rng.random()
    coarse = rng.random((seqlen_q // 4 + 1, seqlen_k)) < 0.5
    dense = np.repeat(coarse, 4, axis=0)[:seqlen_q]
    if kind == 2:
        dense[:, rng.random(seqlen_k) < 0.3] = rng.random() < 0.5
    return dense


def check_rules(runs):
    """What the class promises about its arrays."""
    assert runs.offsets.dtype == np.int64 and runs.starts.dtype == runs.ends.dtype == np.int32
    assert len(runs.offsets) == runs.seqlen_k + 1 and runs.offsets[0] == 0 and runs.offsets[-1] == len(runs.starts)
    assert (runs.starts < runs.ends).all() and (runs.starts >= 0).all() and (runs.ends <= runs.seqlen_q).all()
    same_column = np.diff(runs.columns) == 0
    assert (runs.starts[1:] > runs.ends[:-1])[same_column].all()
    if runs.shown is not None:
        first, last = runs.shown
        row = np.arange(runs.seqlen_q)[:, None]
        assert (((row >= first) & (row < last)) == runs.to_dense()).all()
        assert (first[first >= last] == runs.seqlen_q).all()


@pytest.mark.parametrize("seqlen_q, seqlen_k", SIZES)
def test_algebra_matches_dense(seqlen_q, seqlen_k):
    rng = np.random.default_rng(seqlen_q * 1000 + seqlen_k)
    for _ in range(4):
        denses = [random_dense(rng, seqlen_q, seqlen_k) for _ in range(3)]
        a, b, c = (fm.MaskedRuns.from_dense(dense) for dense in denses)
        x, y, z = denses
        for got, wanted in [
            (a, x), (~a, ~x), (a & b, x & y), (a | b, x | y), (a.hidden_union(b, c), x & y & z),
            (a.hidden_intersection(b, c), x | y | z), (~(a & ~b), ~(x & ~y)), (a.hidden_union(), x),
        ]:  # fmt: skip
            check_rules(got)
            np.testing.assert_array_equal(got.to_dense(), wanted)
            assert got.equals(fm.MaskedRuns.from_dense(wanted))
            assert got.visible_pairs() == wanted.sum()
            np.testing.assert_array_equal(got.empty_rows(), ~wanted.any(axis=1))
            framed = np.vstack([np.ones((1, seqlen_k), bool), wanted])
            np.testing.assert_array_equal(got.counts, (framed[:-1] & ~framed[1:]).sum(axis=0))
        assert a.equals(b) == np.array_equal(x, y)


@pytest.mark.parametrize("seqlen_q, seqlen_k", SIZES)
def test_one_interval_a_column_and_its_shortcuts(seqlen_q, seqlen_k):
    rng = np.random.default_rng(seqlen_q * 1000 + seqlen_k)
    row = np.arange(seqlen_q)[:, None]
    lengths = {"seqlen_q": seqlen_q, "seqlen_k": seqlen_k}
    for _ in range(6):
        # Values outside [0, Sq], and starts behind ends; every other round intervals that overlap.
        first, last = rng.integers(-5, seqlen_q + 6, (2, seqlen_k))
        first2, last2 = rng.integers(-5, seqlen_q + 6, (2, seqlen_k))
        if rng.random() < 0.5:
            first2, last2 = np.minimum(first, first2), np.maximum(first, last2)
        one, two = (row >= first) & (row < last), (row >= first2) & (row < last2)
        a, b = fm.MaskedRuns.show(first, last, **lengths), fm.MaskedRuns.show(first2, last2, **lengths)
        hidden = fm.MaskedRuns.hide(first, last, **lengths)
        nothing = np.zeros_like(one)
        for got, wanted in [(a, one), (hidden, ~one), (a & b, one & two), (a | b, one | two), (a & hidden, nothing)]:
            check_rules(got)
            np.testing.assert_array_equal(got.to_dense(), wanted)
            assert got.equals(fm.MaskedRuns.from_dense(wanted))
    assert fm.MaskedRuns.show_all(seqlen_q, seqlen_k).visible_pairs() == seqlen_q * seqlen_k
    assert fm.MaskedRuns.hide_all(seqlen_q, seqlen_k).visible_pairs() == 0


def test_from_runs_takes_any_order_overlaps_and_values_outside():
    rng = np.random.default_rng(5)
    for _ in range(200):
        seqlen_q, seqlen_k = rng.integers(1, 20, 2).tolist()
        count = int(rng.integers(0, 40))
        columns = rng.integers(0, seqlen_k, count)
        starts, ends = rng.integers(-4, seqlen_q + 5, (2, count))
        wanted = np.ones((seqlen_q, seqlen_k), bool)
        for column, start, end in zip(columns.tolist(), starts.tolist(), ends.tolist()):
            wanted[max(start, 0) : max(end, 0), column] = False
        got = fm.MaskedRuns.from_runs(columns, starts, ends, seqlen_q=seqlen_q, seqlen_k=seqlen_k)
        check_rules(got)
        np.testing.assert_array_equal(got.to_dense(), wanted)


def test_take_part_and_concatenate():
    rng = np.random.default_rng(3)
    dense = rng.random((17, 12)) < 0.5
    runs = fm.MaskedRuns.from_dense(dense)
    columns = rng.integers(0, 12, 40)
    taken = runs.take(columns)
    check_rules(taken)
    np.testing.assert_array_equal(taken.to_dense(), dense[:, columns])
    assert runs.take(np.zeros(0, int)).seqlen_k == 0
    np.testing.assert_array_equal(runs.part(3, 7).to_dense(), dense[:, 3:7])
    np.testing.assert_array_equal(runs.part(10, 99).to_dense(), dense[:, 10:])
    assert fm.MaskedRuns.concatenate([runs.part(0, 5), runs.part(5, 12)]).equals(runs)


def test_strips_do_not_change_the_result(monkeypatch):
    rng = np.random.default_rng(9)
    x, y = rng.random((2, 40, 50)) < 0.5
    monkeypatch.setattr(runs_module, "_STRIP_CELLS", 80)
    monkeypatch.setattr(runs_module, "_STRIP_COLUMNS", 7)
    a, b = fm.MaskedRuns.from_dense(x), fm.MaskedRuns.from_dense(y)
    np.testing.assert_array_equal(a.to_dense(), x)
    np.testing.assert_array_equal((a | b).to_dense(), x | y)
    check_rules(a & b)


def test_two_a_column():
    visible = np.array([[0, 1, 0, 1], [1, 1, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0]], bool)
    start1, end1, start2, end2 = fm.MaskedRuns.from_dense(visible).two_a_column()
    assert start1.tolist() == [0, 4, 0, 1] and end1.tolist() == [1, 4, 4, 4]
    assert start2.tolist() == [2, 4, 4, 4] and end2.tolist() == [3, 4, 4, 4]
    assert all(vector.dtype == np.int32 for vector in (start1, end1, start2, end2))
    with pytest.raises(ValueError, match="a column has 3 masked runs, wanted at most two"):
        fm.MaskedRuns.from_dense(np.array([[0], [1], [0], [1], [0]], bool)).two_a_column()


def test_wrong_input():
    with pytest.raises(TypeError, match=r"visible: wanted a bool array \[Sq, Sk\], got int64 \[2, 2\]"):
        fm.MaskedRuns.from_dense(np.ones((2, 2), np.int64))
    with pytest.raises(TypeError, match=r"got bool \[2, 2, 2\]"):
        fm.MaskedRuns.from_dense(np.ones((2, 2, 2), bool))
    with pytest.raises(ValueError, match="must have the same lengths"):
        fm.MaskedRuns.show_all(3, 4) & fm.MaskedRuns.show_all(4, 4)


def test_immutable():
    runs = fm.MaskedRuns.from_dense(np.eye(4, dtype=bool))
    with pytest.raises(ValueError, match="read-only"):
        runs.starts[0] = 3
    with pytest.raises(AttributeError):
        runs.seqlen_q = 3
