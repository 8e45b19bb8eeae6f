"""What pages draw from, without drawing: payload, thinning, cards, tables."""

import json

import numpy as np
import pytest

import flashmask_core as fm
from flashmask_core.bench.result import BenchRow, DeviceInfo, Errors
from pages.ui import canvas, theme
from pages.ui.measure import results
from pages.ui.figures import thinned, vector_curves
from pages.ui.words import bytes_text, percent_text, ratio_text


def read_payload(data: bytes):
    """(head, vectors), read as mask.js reads it."""
    length = int(np.frombuffer(data, "<u4", 1)[0])
    head, numbers = json.loads(data[4 : 4 + length]), np.frombuffer(data, "<i4", offset=4 + length)
    vectors = []
    for corners in head["corners"]:
        count = 2 * corners or head["seqlen_k"]
        said, numbers = numbers[:count], numbers[count:]
        if corners:
            columns, values = said.reshape(2, corners)
            assert np.array_equal(np.unique(columns), columns)
            said = np.rint(np.interp(np.arange(head["seqlen_k"]), columns, values))
        vectors.append(said)
    assert len(numbers) == 0
    return head, vectors


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("causal & document(30, 70)", ["lts"]),
        ("qk_sparse((20, 30))", ["lts", "lte"]),
        ("document(30, 70)", ["lts", "ute"]),
        ("global_sliding_window(5, 7, 9)", ["lts", "lte", "uts", "ute"]),
        ("random_eviction(50, 1)", ["lts"]),
        ("causal & document(repeat(1, 50), 50)", ["lts"]),
    ],
)
@pytest.mark.parametrize("n", [100, 101, 1000])
def test_the_payload_is_the_vectors_that_say_something(text, names, n):
    mask = fm.mask(text, n)
    data = canvas.payload(mask, identity="x", block=(16, 8), rule="exact", selection=(0, 0))
    head, vectors = read_payload(data)
    assert head["names"] == names and (head["block_m"], head["block_n"]) == (16, 8)
    for name, vector in zip(names, vectors, strict=True):
        assert np.array_equal(vector, getattr(mask, name)[0, 0].numpy())


@pytest.mark.parametrize(
    ("text", "most"), [("random_eviction(50, 1)", 405_000), ("global_sliding_window(5, 7, 9)", 1500)]
)
def test_the_payload_is_at_most_linear(text, most):
    mask = fm.mask(text, 100_000)
    assert len(canvas.payload(mask, identity="x", block=(128, 128), rule="exact", selection=(0, 0))) < most


@pytest.mark.parametrize("n", [1, 2, 3, 50])
def test_short_vectors_and_restless_ones_have_no_corners(n):
    assert canvas.corners_of(np.random.default_rng(n).integers(0, 99, n).astype("i4")) is None


@pytest.mark.parametrize("n", [1, 2, 1999, 2000, 2001, 4096, 50_001])
def test_thinning_keeps_every_bucket_extreme(n):
    values = np.random.default_rng(n).integers(0, 1000, n)
    if n > 3000:
        values[[1234, n - 2]] = [-5, 5000]  # two lone spikes
    x, y = thinned(values, 2000)
    assert len(x) <= 4002 and x[0] == 0 and x[-1] == n - 1
    assert np.all(np.diff(x) > 0) and np.array_equal(values[x], y)
    assert y.min() == values.min() and y.max() == values.max()


def test_curves_run_downwards_as_the_matrix_does():
    colors = {name: pair[0] for name, pair in theme.PALETTE.items()}
    figure = vector_curves({"lts": np.arange(10), "ute": np.arange(10)}, 10, colors, 3)
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]
    assert [trace.name for trace in figure.data] == ["LTS", "UTE"]
    assert len({trace.line.dash for trace in figure.data}) == 2


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (2**26, "64 MiB"), (2**40, "1 TiB")],
)
def test_bytes(count, text):
    assert bytes_text(count) == text


@pytest.mark.parametrize(("value", "text"), [(2048.0, "2,048"), (11.04, "11.0"), (1.5, "1.50")])
def test_ratios(value, text):
    assert ratio_text(value) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(851, 1000, "85.1"), (0, 7, "0.0"), (7, 7, "100.0"), (67_100_672, 67_108_864, "99.99"), (1, 2**20, "0.0001")],
)
def test_nearly_all_is_not_all(part, whole, text):
    assert percent_text(part, whole) == text


def test_text_colours_keep_contrast_in_both_themes():
    def luminance(color):
        parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        parts = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    for index in (0, 1):
        for ground in ("ground", "card", "empty"):
            for name in ("text", "dim", "lower", "upper"):
                a, b = sorted(luminance(theme.PALETTE[key][index]) for key in (name, ground))
                assert (b + 0.05) / (a + 0.05) >= 4.5, (name, ground, index)


def test_lines_and_kinds_are_told_apart_without_hue():
    def lightness(color):
        return sum(w * int(color[i : i + 2], 16) for w, i in ((0.2126, 1), (0.7152, 3), (0.0722, 5)))

    for index in (0, 1):
        empty, partial, full = sorted(lightness(theme.PALETTE[name][index]) for name in ("empty", "partial", "full"))
        assert partial - empty > 25 and full - partial > 25


def rows():
    where = DeviceInfo("NVIDIA Test", torch_version="2.11", commit="0123456789abcdef+changes")
    shape = dict(
        mask="causal", mask_name="", seqlen_q=8, seqlen_k=8, batch=1, heads=1, kv_heads=1, head_dim=8, dtype="float16"
    )
    good = dict(
        median_ms=2.0, errors={"out": Errors(0.01, 0.008, 1.0), "lse": Errors(None, 0.1, 1.0)}, backend="triton"
    )
    return [
        BenchRow(provider="flashmask", direction="forward", status="ok", where=where, **shape, **good),
        BenchRow(provider="flex", direction="forward", status="failed", reason="out of memory", where=where, **shape),
    ]


def test_a_failed_row_stays_in_the_table_with_its_reason():
    ours, flex = results.table_rows(rows())
    assert ours["Time, ms"] == 2.0 and ours["× FlashMask"] == 1.0 and ours["Largest error"].startswith("lse NaN or inf")
    assert (
        flex["Outcome"] == "failed"
        and flex["Reason"] == "out of memory"
        and flex["Time, ms"] is None
        and "Peak memory" not in flex
    )


def test_the_place_of_a_measurement():
    row = rows()[0]
    assert results.place(row.where, "2026-01-02T03:04:05+00:00") == (
        "NVIDIA Test · torch 2.11 · 2026-01-02 03:04:05 UTC · commit 0123456789+changes"
    )


def test_ranges_of_columns_and_what_many_of_them_become():
    assert canvas.ranges_of(np.array([], np.int64)) == []
    assert canvas.ranges_of(np.array([7])) == [[7, 8]]
    assert canvas.ranges_of(np.array([0, 1, 2, 5, 6, 9])) == [[0, 3], [5, 7], [9, 10]]
    columns = np.sort(np.random.default_rng(0).choice(100_000, 20_000, replace=False))
    ranges = canvas.ranges_of(columns)
    assert len(ranges) <= 512
    covered = np.concatenate([np.arange(*pair) for pair in ranges])
    assert np.isin(columns, covered).all() and (np.diff(covered) > 0).all()
