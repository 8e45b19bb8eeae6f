"""The page of the paper's tables: what is measured, what is not, and the findings as they are counted now."""

from dataclasses import replace

import numpy as np
import pytest
from page_tools import html_of

from flashmask_core.bench import recorded
from flashmask_core.bench.history import History, import_run
from flashmask_core.bench.reproduce import BLOCKS
from flashmask_core.bench.result import BenchRow, DeviceInfo
from flashmask_core.bench.tile_time import time_model
from flashmask_core.data import PAPER_MASKS, read
from pages.ui.link import Screen
from pages.ui.paper import facts, figures, tables
from pages.ui.paper.place import TIMES, PaperPlace
from pages.ui.theme import PALETTE


@pytest.fixture(autouse=True)
def own_history(monkeypatch, tmp_path):
    monkeypatch.setenv("FLASHMASK_HISTORY", str(tmp_path / "history.sqlite"))


def made(block, engine: str, direction: str, ms: float, **values) -> BenchRow:
    row = dict(
        mask="causal", mask_name="causal", provider=engine, direction=direction, status="ok",
        seqlen_q=block.seqlen, seqlen_k=block.seqlen, batch=block.batch, heads=block.heads, kv_heads=block.heads,
        head_dim=block.head_dim, dtype="bfloat16", backend="hopper", median_ms=ms, tflops_rho=1000 / ms, rho=0.5,
        density=0.5, mask_bytes=4 * block.seqlen, check="passed", where=DeviceInfo("NVIDIA H999"),
        lower_quartile_ms=ms, upper_quartile_ms=ms, tflops_density=900 / ms,
        date_utc="2026-01-01",
    )  # fmt: skip
    return BenchRow(**(row | values))


@pytest.mark.parametrize("table", BLOCKS)
@pytest.mark.parametrize("time", TIMES)
def test_every_table_is_shown_and_what_is_missing_is_said(open_app, table, time):
    app = open_app("paper", table=table, time=time)
    assert not app.exception
    page, block = html_of(app), BLOCKS[table]
    lines = facts.lines(block, time, facts.recorded()["H200, recorded"])
    missing = sum(line.here[engine] is None for line in lines for engine in facts.ENGINES)
    whole = sum(not any(line.here.values()) for line in lines)
    nothing = whole == len(PAPER_MASKS)
    assert page.count("not measured</span>") == (1 if nothing else missing - whole)
    assert ('rowspan="12"' in page) == nothing
    assert page.count('scope="row"') >= 12 and "0.9180" in page and "0.8994" in page
    assert "0.5245" in page and "0.5200" in page and "0.9199" in page and "0.5246" in page
    measured = [caption.value for caption in app.caption if "**Measured on" in caption.value]
    assert len(measured) == len(facts.sources(lines)) and bool(measured) == any(any(line.here.values()) for line in lines)
    split = next(line for line in lines if line.mask == "share_question")
    assert f"its row stands for ρ = {split.own_rho:.4f}" in app.caption[0].value and split.own_rho > split.rho


def test_the_numbers_are_those_of_the_rows(open_app):
    block = BLOCKS["32768x64"]
    rows = [
        made(block, "flashmask", "forward", 2.0),
        made(block, "flashmask", "backward", 6.0, tflops_rho=300.0),
        made(block, "flex", "forward", 4.0),
        made(block, "flashmask", "forward", 0.1, batch=1),  # another batch counts only where there is no better one
        made(block, "flashmask", "forward", 0.1, head_dim=128),
        made(block, "flashmask", "forward", 0.1, check="failed: dq is off"),
        made(block, "flex", "forward", 0.1, warning="this time cannot be right"),
    ]
    causal = next(line for line in facts.lines(block, "forward", rows) if line.mask == "causal")
    times = {"flashmask": facts.Times(2.0, 500.0, 4, "hopper"), "flex": facts.Times(4.0, 250.0, 4, "hopper")}
    assert causal.here == times
    assert causal.gain(causal.here) == 100
    total = next(line for line in facts.lines(block, "total", rows) if line.mask == "causal")
    assert total.here == {"flashmask": facts.Times(8.0, (2 * 500 + 6 * 300) / 8, 4, "hopper"), "flex": None}
    assert "not measured" in tables.comparison([total], "H999") and total.gain(total.here) is None
    assert causal.gain(causal.paper) > 0 and causal.paper_rho == 0.5
    scaled = next(line for line in facts.lines(block, "forward", rows[3:4]) if line.mask == "causal")
    assert scaled.here["flashmask"] == facts.Times(0.4, 10000.0, 1, "hopper")


def test_the_headline_holds_at_the_length_it_names(open_app):
    found = facts.document_finding(32768)
    assert found.tells and found.paper[0] - 0.002 < found.shifted < found.paper[0] and found.document < found.paper[0] - 0.015
    others = facts.document_elsewhere(32768)
    assert [one.seqlen for one in others] == [8192, 131072] and not any(one.tells for one in others)
    counted = facts.document_finding(8192)
    assert (counted.document, counted.shifted) == pytest.approx((others[0].document, others[0].shifted), abs=5e-5)
    page = html_of(open_app("paper"))
    assert "At 32K the paper’s document rows are those of another mask." in page and "0.9190 to 0.9199" in page
    assert "8K (0.7409 against 0.7405, its rows 0.7455 to 0.7467)" in page
    assert "128K (0.9086 against 0.9099, its rows 0.9090 to 0.9107)" in page


@pytest.mark.parametrize("table", BLOCKS)
def test_ms_and_the_timed_rho_give_the_tflops(table):
    block = BLOCKS[table]
    for direction, products in (("forward", 4), ("backward", 10)):
        for line in facts.lines(block, direction, next(iter(facts.recorded().values()))):
            times = line.here["flashmask"]
            dense = products * block.batch * block.heads * block.seqlen**2 * block.head_dim
            assert times and times.tflops == pytest.approx(dense * (1 - line.timed_rho) / times.ms / 1e9, rel=1e-6)
            shown = f'title="ρ of the sample that is timed: {line.timed_rho:.4f}">{line.rho:.4f}<'
            assert shown in tables.comparison([line], "H200")


def test_the_gain_of_both_passes_is_the_papers():
    for block in BLOCKS.values():
        for line in facts.lines(block, "total", []):
            wanted = next(
                row["gain_percent"] for row in read("paper_kernel_tables.json")["rows"]
                if (row["seqlen"], row["head_dim"]) == (block.seqlen, block.head_dim) and row["rho"] == line.paper_rho
                and row["flex_ms"][2] == pytest.approx(line.paper["flex"].ms, abs=0.02)
            )  # fmt: skip
            assert line.gain(line.paper) == pytest.approx(wanted, abs=1.0), (block.name, line.mask)


def test_results_of_this_machine_are_offered_beside(open_app):
    history, block = History(), BLOCKS["8192x128"]
    run = history.begin("the paper's tables, 8192x128")
    history.add(run, made(block, "flashmask", "forward", 1.25), made(block, "flex", "forward", 2.5))
    history.end(run, "done")
    import_run(history, "theirs", [made(block, "flashmask", "forward", 9.0)], "theirs.json")
    bad = [dict(tflops_rho=None), dict(median_ms=-1.0), dict(check="failed: out is off"), dict(rho=7.0),
           dict(batch=0)]  # fmt: skip
    import_run(history, "bad", [made(block, "flashmask", "forward", 9.0, **values) for values in bad], "bad.json")
    app = open_app("paper")
    source = app.selectbox(key="p_source")
    assert source.options == ["H200, recorded", "NVIDIA H999, from theirs.json", "NVIDIA H999, this machine"]
    source.set_value("NVIDIA H999, this machine").run()
    page = html_of(app)
    assert "H999, TFLOP/s" in page and '<td class=fm-apart data-of="H999">800</td><td>400</td><td>+100 %</td>' in page
    assert page.count("not measured</span>") == 11


def test_another_gpu_of_the_recording_is_a_choice_of_its_own(open_app, monkeypatch, tmp_path):
    shipped, path, block = recorded.recorded_results(), tmp_path / "r.json", BLOCKS["8192x128"]
    recorded.record_results([*shipped, made(block, "flashmask", "forward", 1.25)], path)
    before = html_of(open_app("paper"))
    monkeypatch.setattr(recorded, "RECORDED_PATH", path)
    app = open_app("paper")
    assert html_of(app) == before, "the H200's columns are the H200's"
    source = app.selectbox(key="p_source")
    assert source.options == ["H200, recorded", "H999, recorded"]
    source.set_value("H999, recorded").run()
    page = html_of(app)
    assert 'H999, TFLOP/s</th>' in page and 'data-of="H999">800</td>' in page and 'data-of="H200"' not in page
    assert page.count("not measured</span>") == 12 and not app.exception


def test_the_link_says_which_table(open_app):
    app = open_app("paper", table="32768x64", time="total")
    assert app.session_state["screen"].paper == PaperPlace("32768x64", "total")
    assert app.session_state["screen"].to_query(page="paper") == {"table": "32768x64", "time": "total"}
    assert "table" not in Screen(paper=PaperPlace("32768x64")).to_query(page="compose")
    damaged = open_app("paper", table="8kx128", time="sideways")
    assert len(damaged.warning) == 1 and damaged.session_state["screen"].paper == PaperPlace()


def test_figures_have_what_the_lines_have():
    colors = {name: pair[0] for name, pair in PALETTE.items()}
    block = BLOCKS["131072x64"]
    empty = facts.lines(block, "forward", [])
    bars = [bar.name for bar in figures.speed(empty, colors, "H999").data]
    assert bars == ["FlashMask, A100, paper", "FlexAttention, A100, paper"]
    alone = figures.latency(empty, colors, "H999")
    assert [title.text for title in alone.layout.annotations] == ["A100, the paper"] and len(alone.data) == 4
    assert [trace.name for trace in alone.data if trace.showlegend] == ["FlashMask", "FlexAttention"]
    some = facts.lines(block, "forward", [made(block, "flashmask", "forward", 2.0)])
    assert len(figures.speed(some, colors, "H999").data) == 3
    dense = next(curve for curve in figures.memory([], colors).data if curve.name == "dense, bool")
    assert list(dense.y) == [n * n for n in dense.x] and len(figures.memory([], colors).data) == 5
    assert len(figures.memory([made(block, "flashmask", "forward", 2.0)], colors).data) == 6


def test_the_errors_of_the_estimate_are_shown(open_app):
    page = html_of(open_app("paper"))
    for head_dim in (128, 64):
        for direction in ("forward", "backward"):
            model = time_model(head_dim, direction)
            assert f"{100 * model.worst_error:.1f} %" in page and f"{100 * model.mean_error:.1f} %" in page
    assert set(PAPER_MASKS) == {line.mask for line in facts.lines(BLOCKS["8192x64"], "forward", [])}
    assert replace(PaperPlace(), time="total").said() == {"table": "8192x128", "time": "total"}


def test_one_engine_far_off_does_not_bend_the_line():
    x = np.array([0.0, 0.4, 0.5, 0.5, 0.7, 0.9])
    y = 30 * (1 - x) + 2
    assert figures.straight(x, y) == pytest.approx((-30, 32))
    y[4] = 140
    assert figures.straight(x, y) == pytest.approx((-30, 32))
    assert figures.straight(np.array([0.5, 0.5, 0.5]), np.array([1.0, 2.0, 9.0])) == (0.0, 2.0)
