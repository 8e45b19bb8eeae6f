"""What leaves a run and comes back: CSV, strict JSON, charts, the HTML report, and two runs beside each other."""

import csv
import io
import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from flashmask_core.bench.charts import MOST_STRIPS, error_chart, memory_chart, peak_chart, swept, time_chart
from flashmask_core.bench.config import BenchCase
from flashmask_core.bench.html_report import charts_of, html_report
from flashmask_core.bench.recorded import recorded_results
from flashmask_core.bench.report import MAX_ROWS, compare, from_json, to_csv, to_json
from flashmask_core.bench.result import BenchRow, DeviceInfo, Errors, dumps
from flashmask_core.bench.svg_chart import svg_chart
from flashmask_core.bench.sweep import sweep_cases

WHERE = DeviceInfo("NVIDIA <H200>", total_memory_bytes=150_000_000_000, driver="580")
BASE = BenchCase("causal & document(500, 524)", 1024)


def a_row(case=BASE, provider="flashmask", direction="forward", ms=1.0, **values) -> BenchRow:
    values = dict(
        median_ms=ms, lower_quartile_ms=0.9 * ms, upper_quartile_ms=1.2 * ms, repetitions=9, tflops_rho=5.0, rho=0.5,
        tflops_density=4.0, peak_memory_bytes=2**33 + 1, mask_bytes=1000, vector_bytes=16 * case.seqlen_k,
        dense_mask_bytes=case.seqlen_k**2, computes="mask", check="passed", where=WHERE, date_utc="2026-01-02T03:04:05",
        errors={"out": Errors(0.01, 0.01, 1.0, (0.001, None, -1.0, 0.05), (0, 1, 2, 3))},
    ) | values  # fmt: skip
    return BenchRow.of_case(case, provider, direction, **values)


def failed(case=BASE, provider="flex") -> BenchRow:
    return BenchRow.of_case(case, provider, "forward", "failed", reason="out of memory", where=WHERE)


def test_json_comes_back_the_same_with_plain_ints_and_no_nan():
    rows = [a_row(), failed(), *recorded_results()]
    text = to_json(rows, "mine")
    assert from_json(text.encode()) == ("mine", rows)
    record = json.loads(text, parse_constant=pytest.fail)
    assert record["rows"][0]["peak_memory_bytes"] == 8589934593 and '"peak_memory_bytes": 8589934593' in text
    lines = "\n".join(dumps(row.to_json()) for row in rows)
    assert from_json(lines.encode()) == ("", rows), "lines of the command line are read too"
    odd = a_row(detail="one\u2028line\x85only")
    assert from_json(f"{dumps(odd.to_json())}\n{dumps(odd.to_json())}\n".encode()) == ("", [odd, odd])


@pytest.mark.parametrize(
    "content, words",
    [
        (b"", "wanted 1 to 20,000 rows"),
        (b"\xff\xfe", "UTF-8"),
        (b"{}", "row 1: .*missing"),
        (b"[]", "row 1: row: wanted an object, got list"),
        (b"[" * 100_000, "nested too deeply|no JSON"),
        (b'{"rows": []}', "wanted .format.: .flashmask-bench."),
        (b'{"format": "flashmask-bench", "version": 9, "rows": [1]}', "wanted .format."),
        (b'{"format": "flashmask-bench", "version": 1, "rows": {}}', "wanted 1 to 20,000 rows"),
        (b'{"format": "flashmask-bench", "version": 1, "rows": [{"where": 7}]}', "row 1"),
        (b'{"median_ms": Infinity}', "holds Infinity"),
        (("[0]\n" * (MAX_ROWS + 1)).encode(), "wanted 1 to 20,000 rows"),
        (b" " * (32 * 2**20 + 1), "wanted at most 33,554,432 bytes"),
    ],
)
def test_a_file_that_is_no_run_is_refused_with_the_place(content, words):
    with pytest.raises(ValueError, match=words):
        from_json(content)


@pytest.mark.parametrize("name, value", [
    ("median_ms", 0), ("seqlen_k", -4), ("seqlen_q", 10**30), ("median_ms", "1e3"), ("peak_memory_bytes", -1), ("rho", 1.5),
    ("vector_bytes", 0), ("tflops_rho", -2.0), ("median_ms", 1e300), ("direction", "sideways"), ("provider", "x" * 201), ("mask", "x" * 2**17),
    ("errors", {"dz": {"max_error": 1.0, "naive_max_error": 1.0, "reference_max": 1.0}}),
    ("errors", {"dq": {"max_error": -1.0, "naive_max_error": 1.0, "reference_max": 1.0}}),
])  # fmt: skip
def test_a_number_that_cannot_be_is_refused_by_its_name(name, value):
    record = {**a_row().to_json(), name: value}
    with pytest.raises(ValueError, match=f"row 1: .*{name}"):
        from_json(json.dumps(record).encode())


def test_csv_holds_every_number_and_no_formula():
    rows = list(csv.DictReader(io.StringIO(to_csv([a_row(replace(BASE, mask_name="=1+1")), failed()]))))
    assert rows[0]["mask_name"] == "'=1+1" and rows[0]["peak_memory_bytes"] == "8589934593"
    assert (rows[0]["max_error_out"], rows[0]["max_error_dq"], rows[0]["device"]) == ("0.01", "", "NVIDIA <H200>")
    assert (rows[1]["status"], rows[1]["reason"], rows[1]["median_ms"]) == ("failed", "out of memory", "")


def test_two_runs_row_by_row():
    first = [a_row(ms=1.0), a_row(provider="flex", ms=2.0), a_row(direction="backward")]
    second = [a_row(ms=1.1), a_row(provider="flex", ms=4.0), failed(provider="fa4")]
    pairs = compare(first, second)
    assert [(pair.ratio, pair.apart) for pair in pairs] == [(1.1, False), (2.0, True), (None, None), (None, None)]
    assert pairs[2].second is None and pairs[3].first is None


def test_memory_to_a_million_tokens():
    rows = [a_row(case, provider, mask_bytes=bytes_ * case.seqlen_k)
            for case in sweep_cases(BASE, "seqlen", (1024, 4096)) for provider, bytes_ in (("flashmask", 20), ("flex", 2))]  # fmt: skip
    chart = memory_chart([*rows, failed()])
    dense, vectors, ours, flex = chart.series
    assert dense.computed and dense.x[-1] == 2**20 and dense.y[-1] == 2**40 and dense.y[0] == 2**20
    assert vectors.computed and vectors.y[-1] == 16 * 2**20
    assert not ours.computed and (ours.x, ours.y) == ((1024, 4096), (20_480, 81_920)) and "measured" in ours.name
    assert flex.y == (2048, 8192) and chart.levels == ((150_000_000_000, "all of the memory of the NVIDIA <H200>"),)
    assert len(memory_chart([]).series) == 2, "the computed ones need no run"


@pytest.mark.parametrize(
    "axis, values, xs",
    [
        ("seqlen", (512, 1024), (512, 1024)),
        ("head_dim", (64, 32), (32, 64)),
        ("block", (64, 128), (64, 128)),
        ("mask", ("full", "causal"), ("full", "causal")),
        ("sparsity", (4, 1), (0.25, 0.75)),
    ],
)
def test_a_sweep_is_a_curve_over_what_differs(axis, values, xs):
    cases = sweep_cases(BASE, axis, values)
    rows = [a_row(case, rho=rho) for case, rho in zip(cases, (0.75, 0.25))]
    chart = time_chart([*rows, failed(cases[0])])
    assert swept(rows) == axis and chart.kind == "lines" and [series.x for series in chart.series] == [xs]
    assert peak_chart(rows).series[0].y == (2**33 + 1,) * 2
    assert swept(rows[:1]) is None and time_chart(rows[:1]).kind == "bars" and time_chart([failed()]) is None


def test_no_line_joins_cases_that_differ_in_more_than_the_axis():
    cases = [replace(case, batch=batch) for case in sweep_cases(BASE, "seqlen", (1024, 4096)) for batch in (2, 4)]
    mixed = time_chart([a_row(case, ms=float(at + 1)) for at, case in enumerate(cases)])
    assert mixed.series[0].x == (1024, 1024, 4096, 4096) and mixed.series[0].measured_only
    assert not time_chart([a_row(case) for case in cases[::2]]).series[0].measured_only


def test_of_very_many_errors_the_worst_are_drawn():
    rows = [a_row(replace(BASE, batch=b), errors={"out": Errors(0.01, 0.01, 1.0, (0.0001 * b,))}) for b in range(1, 60)]
    rows[3] = a_row(replace(BASE, batch=4), errors={"out": Errors(None, 0.01, 1.0, (0.0, -1.0))})
    chart = error_chart(rows)
    assert len(chart.series) == MOST_STRIPS and chart.series[0].y[1] == -1.0
    assert "48 of 59 tensors" in chart.title and error_chart(rows[:9]).title == "Where the error is"


def test_the_place_of_an_error():
    chart = error_chart([a_row()])
    assert chart.series[0].y == pytest.approx((0.001 / 0.0201, None, -1.0, 0.05 / 0.0201))
    assert error_chart([failed()]) is None
    no_naive = Errors(None, None, 1.0, (0.1,))  # plain torch gives NaN too
    assert error_chart([a_row(errors={"dq": no_naive})]).series[0].y == (0.1,)


def test_the_report_is_one_file_that_asks_for_nothing():
    rows = [a_row(replace(BASE, mask_name="<b>bold</b>")), a_row(provider="flex", ms=70.0), failed(provider="fa4")]
    page = html_report(rows, "A <title>")
    assert not re.search(r"<script|(?<!xmlns=.)https?://|<link|@import|url\(", page)
    assert "A &lt;title&gt;" in page and "<b>bold" not in page and "NVIDIA &lt;H200&gt;" in page
    assert "failed: out of memory" in page and page.count("<svg") == 2 * len(charts_of(rows)) == 8
    for chart in charts_of(rows):
        for theme in ("light", "dark"):
            ElementTree.fromstring(svg_chart(chart, theme, "a foot & more"))
    for masks in ([], [failed()]):
        assert "</html>" in html_report(masks, "empty")


def test_recorded_results_can_be_drawn():
    assert [chart.kind for chart in charts_of(recorded_results())]
