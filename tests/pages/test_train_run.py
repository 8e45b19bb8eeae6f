"""Training on the Train page: what is asked for, how a job goes, what rows show; with a runner that trains nothing."""

import csv
import io
import json
from dataclasses import replace

import pytest
from page_tools import html_of

from flashmask_core.bench.result import DeviceInfo
from flashmask_core.bench.job_record import JobView
from flashmask_core.training.kept import KeptRuns
from flashmask_core.training.result import TrainRow, to_csv, to_json
from pages.ui import theme
from pages.ui.link import Screen
from pages.ui.train import charts, results
from pages.ui.train.place import PackPlace
from pages.ui.train.run_place import TrainPlace

WHERE = DeviceInfo("NVIDIA Test", torch_version="2.11.0", commit="0123456789")


class Runner:
    """Takes jobs and lets the test say how they are."""

    def __init__(self):
        self.submitted, self.state, self.rows, self.reason, self.cancelled = [], "running", (), None, []

    def submit(self, job, watcher):
        self.submitted.append(job)
        return f"job-{len(self.submitted)}"

    def watch(self, job_id, watcher):
        assert watcher()

    def view(self, job_id):
        if not job_id.startswith("job-"):
            raise KeyError(job_id)
        job = self.submitted[int(job_id.split("-")[1]) - 1]
        return JobView(job_id, job, self.state, 0 if self.state == "running" else None, 0.4, "SFT, FlashMask: step 2 of 7",
                       self.rows, self.reason, 8.0, WHERE, 12.0)  # fmt: skip

    def jobs(self):
        return [self.view(f"job-{number + 1}") for number in range(len(self.submitted))]

    def cancel(self, job_id):
        self.cancelled.append(job_id)
        self.state, self.reason = "cancelled", "cancelled"


@pytest.fixture
def runner(monkeypatch, tmp_path):
    monkeypatch.setenv("FLASHMASK_HISTORY", str(tmp_path / "history.sqlite"))
    runner = Runner()
    monkeypatch.setattr("pages.ui.jobs.device", lambda: WHERE)
    monkeypatch.setattr("pages.ui.jobs.get_runner", lambda: runner)
    monkeypatch.setattr("pages.ui.train.run.recorded", lambda: [])
    return runner


def press(app, start: str):
    next(button for button in app.button if button.label.startswith(start)).click().run()
    assert not app.exception


def rows_of(job) -> list[TrainRow]:
    """A row for every case and engine: the dense mask runs out of memory at the last context."""
    made = []
    for case in job.cases:
        for engine, rate in (("flashmask", 300.0), ("dense", 100.0), ("flex", 250.0)):
            if engine == "dense" and case.context == job.cases[-1].context:
                made.append(TrainRow.of_case(case, engine, case.passes[0], "failed", reason="out of GPU memory: <b>", where=WHERE))
            else:
                made.append(TrainRow.of_case(case, engine, case.passes[0], tokens_per_s=rate, losses=(4.0, 3.0), rho=0.8,
                                             peak_memory_bytes=2**34, where=WHERE, at_least=case.longest))  # fmt: skip
    return made


def test_the_settings_and_the_lengths_of_the_page_are_what_is_trained(open_app, runner):
    app = open_app("train", pack_lengths="(400, 30, 20), (90, 9, 0)", pack_policy="best_fit", train_tasks="dpo,rm",
                   train_contexts="512, 1024", train_engines="flashmask,dense", train_steps=3, train_longest=1)  # fmt: skip
    app.selectbox(key="t_model").set_value("Llama 3.2 1B").run()
    app.toggle(key="t_exact").set_value(True).run()
    press(app, "Train, 12 rows")
    (job,) = runner.submitted
    assert job.kind == "train" and [(c.task, c.context, c.longest) for c in job.cases] == [
        ("dpo", 512, False), ("dpo", 1024, False), ("rm", 512, False), ("rm", 1024, False), ("dpo", 2**20, True), ("rm", 2**20, True),
    ]  # fmt: skip
    case = job.cases[0]
    assert (case.lengths, case.policy, case.engines, case.steps) == ("(400, 30, 20), (90, 9, 0)", "best_fit", ("flashmask", "dense"), 3)
    assert (case.model.layers, case.model.width, case.model.heads, case.model.kv_heads) == (16, 2048, 32, 8)
    assert case.deterministic and case.dtype == "float32"
    link = app.session_state["screen"].to_query(page="train")
    assert link["train_run"] == "job-1" and link["train_layers"] == "16"


@pytest.mark.parametrize(
    "query, message",
    [
        (dict(pack_lengths="300, (200, 9)", train_tasks="dpo"), "lengths[0]: dpo wants 2 answers, chosen and rejected; 300 has none"),
        (dict(pack_lengths="600", train_tasks="sft", train_contexts="512"), "600 is 600 tokens, more than the context of 512"),
        (dict(train_heads="3"), "kv_heads: wanted a divisor of heads = 3, got 4"),
        (dict(train_width="100"), "width: wanted heads = 16 times an even head dim of at most 256, got 100"),
        (dict(train_contexts="8k"), "Contexts: wanted numbers such as 8192, 32768, got &#x27;8k&#x27;"),
        (dict(train_contexts="32768, 65 536"), "context: wanted 256 to 1,048,576, got 65"),
        (dict(train_contexts="256 000"), "got &#x27;000&#x27; after &#x27;256&#x27;; one number is written without spaces or commas"),
        (dict(train_contexts="100"), "context: wanted 256 to 1,048,576, got 100"),
        (dict(train_contexts="300,301,302,303,304,305,306,307,308"), "Contexts: wanted at most 8, got 9"),
        (dict(train_contexts=","), "Contexts: wanted at least one, or the longest"),
        (dict(train_tasks=","), "Tasks: choose at least one"),
    ],
)
def test_what_cannot_be_trained_is_one_message(open_app, runner, query, message):
    app = open_app("train", **query)
    assert not app.exception and message in html_of(app)
    assert not any(button.label.startswith("Train,") for button in app.button)


def test_a_job_shows_progress_is_found_by_its_link_and_keeps_what_is_done_when_cancelled(open_app, runner):
    app = open_app("train", train_tasks="sft")
    press(app, "Train, 6 rows")
    runner.rows = tuple(rows_of(runner.submitted[0])[:3])
    app = open_app("train", train_tasks="sft", train_run="job-1")
    assert next(button for button in app.button if button.label.startswith("Train,")).disabled
    assert len(app.dataframe[0].value) == 3
    press(app, "Cancel")
    app.run()
    assert runner.cancelled == ["job-1"] and any("Cancelled" in info.value for info in app.info)
    assert len(app.dataframe[0].value) == 3 and not app.exception


def test_a_run_is_found_again_after_the_server_was_started_anew(open_app, runner, tmp_path):
    for row in rows_of(_Job(TrainPlace(tasks=("sft",)))):
        KeptRuns().add("abc-123", row)
    app = open_app("train", train_run="abc-123")
    assert not app.exception and len(app.dataframe[0].value) == 6
    assert any(str(tmp_path / "training" / "abc-123.jsonl") in one.value for one in app.caption)
    app = open_app("train")
    app.selectbox(key="t_run").set_value("abc-123").run()
    assert app.session_state["screen"].pack.train.run == "abc-123" and len(app.dataframe[0].value) == 6
    app = open_app("train", train_run="abc-124")
    assert any("abc-124 of this link is not on this machine" in one.value for one in app.info)


def test_a_kept_run_that_cannot_be_read_hides_no_other(open_app, runner):
    KeptRuns().add("abc-123", rows_of(_Job(TrainPlace(tasks=("sft",))))[0])
    KeptRuns().path("abc-666").write_text('{"task": "sft"}\n')
    app = open_app("train", train_run="abc-666")
    assert not app.exception and "abc-666.jsonl, line 1: no training row" in app.warning[0].value
    assert [option[-4:] for option in app.selectbox(key="t_run").options] == ["none", "-123"]


def test_rows_are_shown_with_reasons_beside_the_papers_figure(open_app, runner):
    app = open_app("train", train_tasks="sft,dpo", train_longest=1)
    press(app, "Train, 18 rows")
    runner.state, runner.rows = "done", tuple(rows_of(runner.submitted[0]))
    app.run()
    assert not app.exception
    page, words = html_of(app), " ".join(one.value for one in [*app.markdown, *app.caption])
    assert "Training throughput on NVIDIA Test" in words and "1.65× to 3.22×" in words and "2410.01359" in words
    assert "3.00× dense" in page and "at least <b>1,048,576</b>" in page and "out of GPU memory: &lt;b&gt;" in page
    table = app.dataframe[0].value
    assert list(table["Outcome"]).count("out of GPU memory: <b>") == 2 and "× dense" in table


def test_the_figures_say_what_rows_say():
    case_rows = [row for row in rows_of(_Job(TrainPlace(tasks=("sft",))))]
    colors = {name: pair[0] for name, pair in theme.PALETTE.items()}
    rates = charts.bars(case_rows, "sft", "rate", colors, False)
    assert {trace.name: (list(trace.x), list(trace.y)) for trace in rates.data} == {
        "FlashMask": (["8K", "32K"], [300, 300]), "SDPA, dense mask": (["8K", "32K"], [100, 0]), "FlexAttention": (["8K", "32K"], [250, 250]),
    }  # fmt: skip
    assert rates.data[1].text[1] == "out of<br>memory"
    assert "5 steps timed after 2;" in results.setting_text(case_rows)
    untimed = [replace(row, tokens_per_s=None) for row in case_rows]
    assert " 7 steps;" in results.setting_text(untimed) and "timed" not in results.setting_text(untimed)
    gains = charts.bars(case_rows, "sft", "speedup", colors, False)
    assert [trace.y[0] for trace in gains.data] == [3.0, 2.5] and gains.layout.shapes[0].y1 == 3.22
    assert [trace.text[1] for trace in gains.data] == ["dense:<br>out of<br>memory"] * 2
    figure, context = charts.curves(case_rows, "sft", colors, False)
    assert context == 8192 and len(figure.data) == 3 and charts.bars([], "sft", "rate", colors, False) is None
    assert len(results.table_rows(case_rows)) == 6 and "at most 0.0e+00" in results.agreement(case_rows)
    rows = list(csv.DictReader(io.StringIO(to_csv(case_rows))))
    assert rows[0]["speedup_over_dense"] == "3.0" and json.loads(to_json(case_rows))["rows"][4]["reason"]


def test_rows_of_other_models_and_precisions_stand_in_charts_of_their_own():
    usual = rows_of(_Job(TrainPlace(tasks=("sft",))))
    exact = [replace(row, dtype="float32", deterministic=True, tokens_per_s=1.0, losses=(1.0,)) for row in usual[:3]]
    small = [replace(row, model={**row.model, "layers": 2}, longest=True) for row in usual[:3]]
    rows = [*exact, *usual, *small]
    assert charts.in_one_chart(rows, timed=True) == usual and charts.in_one_chart(rows, timed=False) == exact
    table = results.table_rows(rows)
    assert {line["Layers"] for line in table} == {2, 4} and {line["Dtype"] for line in table} == {"float32", "bfloat16"}
    assert "Layers" not in results.table_rows(usual)[0] and charts.in_one_chart([], timed=True) == []


def test_a_task_of_which_only_the_longest_was_sought_has_no_panel_of_speed(open_app, monkeypatch):
    sft = rows_of(_Job(TrainPlace(tasks=("sft",))))
    dpo = [replace(row, longest=True) for row in rows_of(_Job(TrainPlace(tasks=("dpo",))))[:3]]
    monkeypatch.setattr("pages.ui.train.run.recorded", lambda: [*sft, *dpo])
    page = html_of(app := open_app("train"))
    assert '<p class="fm-panel"><b>SFT</b> ' in page and '<p class="fm-panel"><b>DPO</b> </p>' not in page
    assert not any("Nothing to show" in caption.value for caption in app.caption)
    assert any(results.LONGEST in caption.value for caption in app.caption)


class _Job:
    def __init__(self, train: TrainPlace):
        from pages.ui.train.run import cases_of

        self.cases = cases_of(PackPlace(train=train))


def test_without_a_gpu_a_tiny_model_is_trained_and_nothing_is_said_of_speed(open_app, runner, monkeypatch):
    monkeypatch.setattr("pages.ui.jobs.device", lambda: "no CUDA GPU: this build of PyTorch is for the CPU only")
    app = open_app("train", train_tasks="lora")
    assert any("Throughput cannot be measured on this machine: no CUDA GPU" in info.value for info in app.info)
    press(app, "Train a tiny model here")
    (job,) = runner.submitted
    assert job.kind == "train_check" and job.cases[0].context == 256 and job.cases[0].task == "lora"
    runner.state = "done"
    runner.rows = tuple(TrainRow.of_case(job.cases[0], engine, "step", losses=(4.0, 3.9), where=WHERE) for engine in ("flashmask", "dense"))
    app.run()
    assert not app.exception and "Tokens a second" not in app.dataframe[0].value
    assert any("at most 0.0e+00 of their value apart" in one.value for one in app.caption)


def test_the_place_of_training_travels_in_the_link():
    train = TrainPlace(("sft",), ("flashmask", "flex"), 2, 1024, 8, 8, "4096", 3, True, True, "abc-1")
    screen = Screen(pack=PackPlace(train=train))
    assert Screen.from_query(screen.to_query(page="train")) == (screen, [])
    assert "train_run" not in Screen(pack=PackPlace(train=train)).to_query(page="compose")
    wrong = {"train_tasks": "sft,ppo", "train_layers": "0", "train_longest": "2", "train_run": "../x"}
    screen, problems = Screen.from_query(wrong)
    assert screen.pack.train == TrainPlace(tasks=("sft",)) and len(problems) == 4


def test_each_device_and_commit_says_which_rows_it_stands_for():
    def made(task: str, engine: str, context: int, commit: str, **values) -> TrainRow:
        where = replace(WHERE, commit=commit)
        return TrainRow(task, engine, context, "ok", where=where, date_utc="2026-01-02T03:04:05+00:00", **values)

    first = [made(task, engine, 8192, "a" * 40) for task in ("sft", "lora") for engine in ("flashmask", "dense")]
    assert results.sources(first) == ["NVIDIA Test · torch 2.11.0 · 2026-01-02 · commit aaaaaaaaaa"]
    longest = made("dpo", "flashmask", 2**18, "b" * 40, longest=True)
    one, other = results.sources([*first, longest])
    assert one.startswith("**SFT, LoRA: 8,192 tokens** · NVIDIA Test") and one.endswith("aaaaaaaaaa")
    assert other.startswith("**DPO: the longest context** · NVIDIA Test") and other.endswith("bbbbbbbbbb")
    again = made("sft", "flex", 8192, "b" * 40)
    one, other = results.sources([*first, longest, again])
    assert one.startswith("**SFT with FlashMask and SDPA, dense mask: 8,192 tokens; LoRA: 8,192 tokens** · ")
    assert other.startswith("**DPO: the longest context; SFT with FlexAttention: 8,192 tokens** · ")
    exact = made("lora", "dense", 8192, "b" * 40, dtype="float32")
    one, other = results.sources([*first, exact])
    assert one.startswith("**SFT, LoRA: 8,192 tokens, bfloat16** · ") and other.startswith("**LoRA: 8,192 tokens, float32** · ")
