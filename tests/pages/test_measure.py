"""The Measure page as a machine with a GPU shows it, with a runner that measures nothing."""

import pytest

from flashmask_core.bench.result import BenchRow, DeviceInfo
from flashmask_core.bench.runner import JobView

WHERE = DeviceInfo("NVIDIA Test", torch_version="2.11.0", triton_version="3.6.0", commit="0123456789")


class Runner:
    """Takes jobs and lets the test say how they are."""

    def __init__(self):
        self.submitted, self.state, self.rows, self.reason, self.cancelled = [], "running", (), None, []

    def submit(self, job):
        self.submitted.append(job)
        return f"job-{len(self.submitted)}"

    def view(self, job_id):
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
def runner(monkeypatch):
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
    press(app, "Cancel")
    assert runner.cancelled == ["job-1"]
    assert any("Cancelled" in info.value for info in app.info)


def test_rows_stay_with_their_reasons(open_app, runner):
    app = open_app("measure", mask="causal", n=384)
    press(app, "Run")
    case = runner.submitted[0].cases[0]
    runner.state, runner.reason = "failed", "the worker was killed"
    runner.rows = (
        row(case, "flashmask", "forward", median_ms=1.0, lower_quartile_ms=0.9, upper_quartile_ms=1.1, check="passed"),
        row(case, "sdpa_dense_cudnn", "forward", status="failed", reason="out of memory"),
    )
    app.run()
    assert not app.exception
    assert "the worker was killed" in app.error[0].value
    table = app.dataframe[0].value
    assert list(table["Outcome"]) == ["passed", "failed"] and table["Reason"][1] == "out of memory"
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


def test_what_is_measured_is_in_the_link(open_app, runner):
    app = open_app("measure", mask="causal", n=384)
    app.number_input(key="m_batch").set_value(3).run()
    app.multiselect(key="m_engines").set_value(["flashmask"]).run()
    app.button_group(key="m_passes").set_value(["backward"]).run()
    link = measure_link(app)
    assert link == {"mask": "causal", "n": "384", "batch": "3", "engines": "flashmask", "passes": "backward"}
    again = open_app("measure", **link)
    press(again, "Run")
    case = runner.submitted[0].cases[0]
    assert (case.batch, case.providers, case.passes) == (3, ("flashmask",), ("backward",))
    assert app.session_state["screen"].to_query() == {"mask": "causal", "n": "384"}


def test_recorded_rows_of_two_runs_say_so(open_app):
    """Only engines of one run were timed in turns; a case that was recorded in two says which is of which."""
    app = open_app("measure", mask="causal & document(2481, 1388, 1978, 2345)", n=8192)
    runs = [caption.value for caption in app.caption if "commit" in caption.value]
    assert len(runs) == 2 and "FlashMask" in runs[0] + runs[1]
    assert all("NVIDIA H200" in line for line in runs) and runs[0].split(":")[0] != runs[1].split(":")[0]
