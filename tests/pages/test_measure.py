"""The Measure page as a machine with a GPU shows it, with a runner that measures nothing."""

import math
import sqlite3
from dataclasses import replace

import pytest

from flashmask_core.bench.config import BenchCase
from flashmask_core.bench.history import History, import_run
from flashmask_core.bench.recorded import recorded_results
from flashmask_core.bench.report import to_json
from flashmask_core.bench.result import BenchRow, DeviceInfo, Errors
from flashmask_core.bench.job_record import JobView
from flashmask_core.masks.language import mask as build
from flashmask_core.tiles.classify import classify_tiles
from pages.ui import recorded
from pages.ui.measure import results
from pages.ui.paper import facts
from pages.ui.words import plain

WHERE = DeviceInfo("NVIDIA Test", torch_version="2.11.0", triton_version="3.6.0", commit="0123456789")


class Runner:
    """Takes jobs and lets the test say how they are; rows go into the history, as the real one has them do."""

    def __init__(self):
        self.submitted, self.state, self.rows, self.reason, self.cancelled = [], "running", (), None, []

    def submit(self, job, watcher):
        self.submitted.append(job)
        job_id = f"job-{len(self.submitted)}"
        if job.kind == "bench":
            History().begin(job.title, job_id)
        return job_id

    def end(self, state, *rows, reason=None):
        """The last job ends so."""
        self.state, self.rows, self.reason = state, rows, reason
        History().add(f"job-{len(self.submitted)}", *rows)
        History().end(f"job-{len(self.submitted)}", state, reason)

    def watch(self, job_id, watcher):
        assert job_id in [job.id for job in self.jobs()] and watcher()

    def view(self, job_id):
        if not job_id.startswith("job-"):
            raise KeyError(job_id)
        job = self.submitted[int(job_id.split("-")[1]) - 1]
        return JobView(
            job_id,
            job,
            self.state,
            0 if self.state == "running" else None,
            0.4,
            "compiling",
            self.rows,
            self.reason,
            1.0,
            WHERE,
        )

    def jobs(self):
        return [self.view(f"job-{number + 1}") for number in range(len(self.submitted))]

    def cancel(self, job_id):
        self.cancelled.append(job_id)
        self.state = "cancelled"


@pytest.fixture
def runner(monkeypatch, tmp_path):
    monkeypatch.setenv("FLASHMASK_HISTORY", str(tmp_path / "history.sqlite"))
    runner = Runner()
    monkeypatch.setattr("pages.ui.jobs.device", lambda: WHERE)
    monkeypatch.setattr("pages.ui.jobs.get_runner", lambda: runner)
    return runner


def press(app, label):
    next(button for button in app.button if button.label == label).click().run()
    assert not app.exception


def row(case, provider, direction, **values):
    return BenchRow.of_case(case, provider, direction, where=WHERE, date_utc="2026-01-02T03:04:05+00:00", **values)


def test_run_takes_the_numbers_of_the_screen(open_app, runner):
    app = open_app("measure", mask="sliding_window(37)", n=384, heads=6)
    assert not app.exception and any("NVIDIA Test" in caption.value for caption in app.caption)
    app.number_input(key="m_kv_heads").set_value(2).run()
    app.number_input(key="m_batch").set_value(3).run()
    app.selectbox(key="m_head_dim").set_value(64).run()
    app.selectbox(key="m_dtype").set_value("float16").run()
    app.multiselect(key="m_engines").set_value(["flashmask", "flex"]).run()
    press(app, "Run")
    case = runner.submitted[0].cases[0]
    assert (case.mask, case.seqlen_q, case.batch, case.heads, case.kv_heads, case.head_dim) == (
        "sliding_window(37)",
        384,
        3,
        6,
        2,
        64,
    )
    assert (case.dtype, case.passes, case.providers) == ("float16", ("forward", "backward"), ("flashmask", "flex"))


def test_a_job_shows_progress_and_can_be_cancelled(open_app, runner):
    app = open_app("measure", mask="causal", n=384)
    press(app, "Run")
    assert next(button for button in app.button if button.label == "Run").disabled
    app.selectbox(key="m_shown").set_value("").run()  # what a browser may still hold from before the run was listed
    assert measure_link(app)["run"] == "job-1", "a job at work stays on its page"
    press(app, "Cancel")
    assert runner.cancelled == ["job-1"]
    assert any("Cancelled" in info.value for info in app.info)


def test_rows_stay_with_their_reasons(open_app, runner):
    app = open_app("measure", mask="causal", n=384)
    press(app, "Run")
    case = runner.submitted[0].cases[0]
    runner.end(
        "failed",
        row(case, "flashmask", "forward", median_ms=1.0, lower_quartile_ms=0.9, upper_quartile_ms=1.1, check="passed"),
        row(case, "sdpa_dense_cudnn", "forward", status="failed", reason="out of memory"),
        reason="the worker was killed",
    )
    app.run()
    assert not app.exception
    assert "the worker was killed" in app.error[0].value
    table = app.dataframe[0].value
    assert list(table["Outcome"]) == ["passed", "failed"] and table["Reason"][1] == "out of memory"
    assert any("SDPA, dense mask (cudnn): failed: out of memory" in c.value.replace("\\", "") for c in app.caption)
    assert any("2026-01-02 03:04:05 UTC" in caption.value for caption in app.caption)


def test_a_shape_that_cannot_be_is_one_message(open_app, runner):
    app = open_app("measure", mask="causal", n=384, heads=6)
    app.number_input(key="m_kv_heads").set_value(4).run()
    assert not app.exception and "kv_heads" in app.error[0].value
    assert not [button for button in app.button if button.label == "Run"]


def test_settings_survive_a_wrong_mask(open_app, runner):
    app = open_app("measure", mask="causal", n=384)
    app.number_input(key="m_batch").set_value(5).run()
    app.text_input(key="w_mask").set_value("causal &").run()
    assert not app.exception and app.number_input(key="m_batch").value == 5


def test_a_job_outlives_its_tab_and_another_takes_it_over(open_app, runner):
    press(open_app("measure", mask="causal", n=384), "Run")
    app = open_app("measure", mask="causal", n=384)
    assert any("another tab began" in caption.value for caption in app.caption)
    assert not [button for button in app.button if button.label == "Cancel"]
    press(app, "Take over")
    press(app, "Cancel")
    assert runner.cancelled == ["job-1"]
    assert any("Cancelled" in info.value for info in app.run().info)
    assert not any("another tab began" in caption.value for caption in open_app("measure").caption)


def test_what_plain_torch_cannot_do_either_has_no_limit_to_be_shown():
    case = BenchCase("causal", 384)
    nothing, something = Errors(None, None, 1.0), Errors(0.5, 0.25, 1.0)
    assert results.worst_error(row(case, "flex", "backward", errors={"dq": nothing, "dk": something})) == "dq NaN or inf"
    assert results.worst_error(row(case, "flex", "backward", errors={"dk": something})) == "dk 0.5 of 0.5 allowed"


def test_texts_of_a_run_are_shown_as_they_are_written():
    assert plain("a *b* [l](http://x.y) :red[z] 03:04 www.x.y") == (
        r"a \*b\* \[l\](http\://x.y) \:red\[z\] 03:04 www\.x.y"
    )


def measure_link(app) -> dict[str, str]:
    """The address of the Measure page, which alone says what is on it."""
    return app.session_state["screen"].to_query(page="measure")


def test_a_recorded_case_is_in_the_link_until_the_mask_changes(open_app):
    app = open_app("measure")
    nearest, options = app.selectbox(key="w_case").value, app.selectbox(key="w_case").options
    index = (app.selectbox(key="w_case").index + 1) % len(options)
    app.selectbox(key="w_case").select_index(index).run()
    link = measure_link(app)
    assert not app.exception and len(link["case"]) == 8
    again = open_app("measure", **link)
    assert again.selectbox(key="w_case").value == link["case"] != nearest
    assert again.selectbox(key="w_case").index == index
    again.text_input(key="w_mask").set_value("causal").run()
    assert "case" not in measure_link(again) and not again.warning
    assert "no recorded result" in open_app("measure", case="01234567").warning[0].value


@pytest.mark.parametrize("text, n, head_dim", [
    ("sliding_window(1000)", 8192, 128),  # as much to do as causal_document, and none of the recorded windows has
    ("causal & document(5000, 5000)", 10000, 64),
    ("share_question((100, 50, 50), (200, 30, 30, 30))", 490, 128),
    ("q >= k + 900", 32768, 64),
])  # fmt: skip
def test_the_recorded_case_that_is_nearest_in_its_work_is_shown_and_how_near(open_app, text, n, head_dim):
    def shares(mask: str, length: int):
        empty, partial, full = classify_tiles(build(mask, length), 128, 128).counts[0, 0].tolist()
        return empty / (empty + partial + full), partial / (empty + partial + full)

    own, unlike = shares(text, n), {}
    for rows in recorded.cases().values():
        if rows[0].head_dim == head_dim:
            its = shares(rows[0].mask, rows[0].seqlen_k)
            unlike[recorded.name_of_case(rows)] = (math.dist(its, own) + abs(math.log2(rows[0].seqlen_k / n)) / 32, its, rows[0])
    name, (_, its, row) = min(unlike.items(), key=lambda item: item[1][0])
    app = open_app("measure", mask=text, n=n, dim=head_dim)
    assert app.selectbox(key="w_case").value == name
    [told] = [caption.value for caption in app.caption if "not recorded" in caption.value]
    wanted = (f"{row.mask_name}, ρ {its[0]:.3f} against {own[0]:.3f} here, {100 * its[1]:.1f} % of the tiles partial against "
              f"{100 * own[1]:.1f} %" + f", N {row.seqlen_k:,} against N {n:,}" * (row.seqlen_k != n))  # fmt: skip
    assert plain(wanted) in told


@pytest.mark.parametrize("head_dim", [64, 128])
def test_a_recorded_mask_is_shown_as_exactly_that_whatever_its_text(open_app, head_dim):
    app = open_app("measure", mask="causal & document(2481, 1388, 1978, 2345)", n=8192, dim=head_dim)
    [rows] = [rows for rows in recorded.cases().values() if recorded.name_of_case(rows) == app.selectbox(key="w_case").value]
    assert (rows[0].mask_name, rows[0].seqlen_k, rows[0].head_dim) == ("causal_document", 8192, head_dim)
    assert not any("not recorded" in caption.value for caption in app.caption)


def test_what_is_measured_is_in_the_link(open_app, runner):
    app = open_app("measure", mask="causal", n=384)
    app.number_input(key="m_batch").set_value(3).run()
    app.multiselect(key="m_engines").set_value(["flashmask"]).run()
    app.button_group(key="m_passes").set_value(["backward"]).run()
    app.number_input(key="m_limit").set_value(30).run()
    link = measure_link(app)
    assert link == {
        "mask": "causal", "n": "384", "batch": "3", "engines": "flashmask", "passes": "backward", "limit": "30",
    }  # fmt: skip
    again = open_app("measure", **link)
    press(again, "Run")
    case = runner.submitted[0].cases[0]
    assert (case.batch, case.providers, case.passes, case.time_limit_s) == (3, ("flashmask",), ("backward",), 30.0)
    assert "limit='2' is no number from 5 to 3,600" in open_app("measure", limit="2").warning[0].value
    assert app.session_state["screen"].to_query() == {"mask": "causal", "n": "384"}


def test_recorded_rows_of_two_runs_say_so(open_app, monkeypatch):
    """Only engines of one run were timed in turns; a case that was recorded in two says which is of which."""
    rows = next(rows for rows in recorded.cases().values() if rows[0].mask_name == "causal_document" and rows[0].seqlen_q == 8192)
    rows = [replace(row, date_utc="2026-10-09T08:07:06+00:00") if row.provider == "flex" else row for row in rows]
    monkeypatch.setattr("pages.ui.recorded.cases", lambda: {rows[0].key[:-2]: rows})
    app = open_app("measure", mask="causal & document(2481, 1388, 1978, 2345)", n=8192)
    runs = [caption.value for caption in app.caption if "commit" in caption.value]
    assert all("**Measured on 2026-1" in line for line in runs)
    assert len(runs) == 2 and "FlashMask" in runs[0] + runs[1]
    assert all("NVIDIA H200" in line for line in runs) and runs[0].split(":")[0] != runs[1].split(":")[0]


def measured(runner, app, *rows):
    """Press Run and let the job end with rows; the page as it then is."""
    press(app, "Run")
    runner.end("done", *rows)
    return app.run()


def both_rows(case, ms):
    return [
        row(case, name, "forward", backend="b", computes="mask", median_ms=ms * factor, lower_quartile_ms=0.99 * ms * factor,
            upper_quartile_ms=1.01 * ms * factor, mask_bytes=100, peak_memory_bytes=5_000, dense_mask_bytes=147_456,
            vector_bytes=6_144, mask_build_ms=0.5, compile_ms=900.0, check="passed",
            errors={"out": Errors(0.01, 0.02, 1.0, (0.01, None, -1.0), (0, 1, 300, 7))})
        for name, factor in (("flashmask", 1), ("flex", 2))
    ]  # fmt: skip


def test_a_run_has_a_tab_a_question_and_a_reload_finds_it(open_app, runner):
    app = open_app("measure", mask="causal", n=384)
    press(app, "Run")
    link = measure_link(app)
    assert link["run"] == "job-1"
    again = open_app("measure", **link)
    assert [button.label for button in again.button if button.label == "Cancel"], "found while it runs"
    runner.end("done", *both_rows(runner.submitted[0].cases[0], 1.0))
    app = open_app("measure", **link)
    assert not app.exception and list(app.dataframe[0].value["Time, ms"]) == [1.0, 2.0]
    steps = app.dataframe[1].value
    assert [tuple(line) for line in steps[["Step", "ms"]].to_numpy()][:3] == [
        ("compile", 900.0), ("mask building", 0.5), ("kernel, forward", 1.0),
    ]  # fmt: skip
    app.session_state["tabs_job-1"] = "Memory"
    app.run()
    memory = app.dataframe[0].value
    assert memory["Dense mask would need"][0].startswith("147,456 (") and memory["Peak above inputs"][0].startswith("5,000")
    app.session_state["tabs_job-1"] = "Error"
    app.run()
    assert app.dataframe[0].value["Largest at"][0] == "batch 0, head 1, position 300, channel 7"


def test_downloads_measure_nothing_again(open_app, runner):
    app = open_app("measure", mask="causal", n=384)
    app = measured(runner, app, *both_rows(BenchCase("causal", 384), 1.0))
    app.session_state["export"] = True
    app.run()
    assert not app.exception
    labels = [button.label for button in app.get("download_button")]
    assert labels == ["Rows, .csv", "Run, .json", "Report, .html"]
    assert {button.proto.ignore_rerun for button in app.get("download_button")} == {True}, "the page is not run again"
    assert len(runner.submitted) == 1 and len(app.dataframe) == 2, "and what was measured is still there"


def test_two_runs_beside_each_other(open_app, runner):
    app = open_app("measure", mask="causal", n=384)
    measured(runner, app, *both_rows(BenchCase("causal", 384), 1.0))
    app = measured(runner, app, *both_rows(BenchCase("causal", 384), 1.5))
    options = app.selectbox(key="m_beside").options
    assert len(options) == 4 and "causal, N = 384" in options[1] and "shipped" in options[3]
    app.selectbox(key="m_beside").set_value("job-1").run()
    assert not app.exception and measure_link(app)["beside"] == "job-1"
    table = app.dataframe[0].value
    assert list(table["Shown, ms"]) == [1.5, 3.0] and list(table["Beside, ms"]) == [1.0, 2.0]
    assert list(table["Difference"]) == ["beyond the quartiles"] * 2
    assert any("slower in 0, faster in 2" in caption.value for caption in app.caption)


def test_somebody_elses_run_stands_beside_ones_own(open_app, runner):
    app = open_app("measure", mask="causal", n=384)
    measured(runner, app, *both_rows(BenchCase("causal", 384), 1.0))
    theirs = to_json(both_rows(BenchCase("causal", 384), 4.0), "their <run>").encode()
    app.file_uploader(key="m_import").upload("theirs.json", theirs).run()
    assert not app.exception
    assert list(app.dataframe[0].value["Beside, ms"]) == [4.0, 8.0]
    assert [run.origin for run in History().runs()].count("theirs.json") == 1
    app.run()
    assert len(History().runs()) == 2, "brought in once"
    for content, words in ((b"{}", "row 1"), (b"[1", "line 1 is no JSON"), (b'{"median_ms": NaN}', "NaN")):
        app.file_uploader(key="m_import").upload("bad.json", content).run()
        assert not app.exception and words in app.error[0].value and len(History().runs()) == 2


def test_a_sweep_is_one_job_of_many_cases(open_app, runner):
    app = open_app("measure", mask="causal & document(200, 184)", n=384, sweep="seqlen", values="128, 256")
    press(app, "Run 2 cases")
    assert [(case.seqlen_q, case.mask) for case in runner.submitted[0].cases] == [
        (128, "causal & document(66, 62)"), (256, "causal & document(133, 123)"),
    ]  # fmt: skip
    assert "over N" in runner.submitted[0].title
    app = open_app("measure", mask="causal", n=384, sweep="head_dim", values="64, many")
    assert not app.exception and "got 'many'" in app.error[0].value
    app = open_app("measure", mask="causal", n=384, sweep="seqlen", values="8192, 16 000")
    assert not app.exception and "got '000' after '16'; one number is written without spaces" in app.error[0].value
    app.selectbox(key="m_sweep").set_value("mask").run()
    assert [button.label for button in app.button if button.label.startswith("Run")] == ["Run 12 cases"]
    assert measure_link(app) == {"mask": "causal", "n": "384", "sweep": "mask"}


def test_a_history_that_cannot_be_read_is_named(open_app, monkeypatch, tmp_path):
    (tmp_path / "bad.sqlite").write_text("no database " * 99)
    monkeypatch.setenv("FLASHMASK_HISTORY", str(tmp_path / "bad.sqlite"))
    app = open_app("measure", mask="causal", n=384)
    assert not app.exception and "bad.sqlite cannot be used" in app.warning[0].value
    monkeypatch.setenv("FLASHMASK_HISTORY", str(tmp_path / "none.sqlite"))
    assert "is not in the history" in " ".join(info.value for info in open_app("measure", run="abc").info)


def test_a_run_that_cannot_be_read_leaves_the_others_to_choose(open_app, monkeypatch, tmp_path):
    monkeypatch.setenv("FLASHMASK_HISTORY", str(tmp_path / "history.sqlite"))
    history, row = History(), recorded_results()[0]
    mine, later = (import_run(history, title, [row], "a.json") for title in ("mine", "of a later version"))
    with sqlite3.connect(history.path) as base:
        base.execute("UPDATE results SET record = '{}' WHERE run_id = ?", (later,))
    app = open_app("measure", mask="causal", n=384, run=later)
    assert not app.exception and f"the run {later} of the history" in app.warning[0].value
    app.selectbox(key="m_shown").set_value(mine).run()
    assert not app.warning and len(app.dataframe[0].value) == 1
    assert [len(rows) for rows in facts.local().values()] == [1], "the page of the paper reads the others too"


def test_the_recorded_results_stand_beside_a_run(open_app, runner):
    """Of the recording only what the run has measured too."""
    recorded = [row for row in recorded_results() if row.mask_name == "causal" and row.seqlen_q == 8192][:2]
    app = open_app("measure", mask="causal", n=384)
    app = measured(runner, app, *(replace(row, median_ms=2 * row.median_ms) for row in recorded))
    app.selectbox(key="m_beside").set_value("recorded").run()
    assert not app.exception and measure_link(app)["beside"] == "recorded"
    table = app.dataframe[0].value
    assert list(table["Beside / shown"]) == [0.5, 0.5] and "Only in" not in table
    assert any("shipped with this program" in caption.value for caption in app.caption) and not app.info
