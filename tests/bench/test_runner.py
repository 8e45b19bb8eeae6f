"""The queue and the worker's ends, against a stand-in worker that can crash, hang, be killed and print rubbish."""

import re
import sys
import time
from pathlib import Path

import pytest
import torch

from flashmask_core.bench.config import BenchCase, BenchJob
from flashmask_core.bench.history import History
from flashmask_core.bench.runner import BenchRunner

FAKE = (sys.executable, str(Path(__file__).parent / "fake_worker.py"))


def a_case(*providers: str, **settings) -> BenchCase:
    return BenchCase("causal", 256, providers=providers or ("flashmask",), **settings)


@pytest.fixture
def runner():
    runner = BenchRunner(FAKE, startup_limit_s=20)
    yield runner
    runner.close()


def run(runner: BenchRunner, title: str, *cases: BenchCase):
    return runner.wait(runner.submit(BenchJob("bench", cases or (a_case(),), title)), 30)


def outcome(view) -> list[tuple[str, str, str]]:
    return [(row.provider, row.direction, row.status) for row in view.rows]


def gone(pid: int, within_s: float = 5) -> bool:
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        try:
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


def test_a_job_from_queue_to_rows(runner):
    view = run(runner, "", a_case("flashmask", "flex"), a_case(mask_name="second"))
    assert (view.state, view.fraction, view.position, view.reason) == ("done", 1.0, None, None) and view.ended
    assert outcome(view) == [
        (p, d, "ok") for p in ("flashmask", "flex") for d in ("forward", "backward")
    ] + [("flashmask", "forward", "ok"), ("flashmask", "backward", "ok")]  # fmt: skip
    assert view.where.device == "stand-in" and view.elapsed_s > 0


@pytest.mark.parametrize(
    "act, words",
    [
        ("crash", "exit code 3: RuntimeError: something broke"),
        ("fatal", "CUDA error: an illegal memory access"),
        ("kill", r"ended by SIGKILL \(usually the system's memory killer"),
    ],
)
def test_a_provider_that_ends_its_worker_is_a_failed_row_and_the_others_go_on(runner, act, words):
    view = run(runner, f"flex={act}", a_case("flashmask", "flex", "sdpa"), a_case())
    assert view.state == "done"
    failed = [row for row in view.rows if row.status == "failed"]
    assert [(row.provider, row.direction) for row in failed] == [("flex", "forward"), ("flex", "backward")]
    assert all(row.where.device == "stand-in" and row.date_utc for row in failed)
    assert re.search(words, failed[0].reason)
    assert sum(row.status == "ok" for row in view.rows) == 6


def test_every_provider_breaks(runner):
    view = run(runner, "flex=crash flashmask=kill", a_case("flashmask", "flex", passes=("forward",)))
    assert view.state == "done" and outcome(view) == [
        ("flashmask", "forward", "failed"),
        ("flex", "forward", "failed"),
    ]


def test_a_hang_ends_at_the_time_limit_with_all_it_started(runner, tmp_path):
    view = run(runner, f"flex=hang pidfile={tmp_path}/pids", a_case("flex", "flashmask", time_limit_s=1.0))
    assert view.state == "done"
    assert "time limit of 1 s" in view.rows[0].reason and view.rows[0].status == "failed"
    assert outcome(view)[-1] == ("flashmask", "backward", "ok")
    assert all(gone(int(pid)) for pid in (tmp_path / "pids").read_text().split())


def test_garbage_on_stdout_is_passed_over(runner):
    view = run(runner, "flashmask=garbage")
    assert view.state == "done" and len(view.rows) == 2


def test_a_worker_that_cannot_start(runner):
    view = run(runner, "start=die")
    assert view.state == "failed" and "exit code 7: ImportError: no such library" in view.reason
    assert run(runner, "start=refuse").reason == "no CUDA GPU here"
    assert run(runner, "").state == "done", "the next job works"


def test_a_worker_that_never_says_anything():
    runner = BenchRunner(FAKE, startup_limit_s=0.5)
    view = run(runner, "start=hang")
    assert view.state == "failed" and "time limit of 0.5 s" in view.reason
    runner.close()


def test_a_command_that_does_not_exist():
    runner = BenchRunner(("/no/such/worker",))
    view = run(runner, "")
    assert view.state == "failed" and "FileNotFoundError" in view.reason
    runner.close()


def wait_for(condition, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.02)


def wait_for_processes(folder) -> None:
    """Until the worker that hangs has written its number and its child's."""
    wait_for(lambda: (folder / "pids").exists() and len((folder / "pids").read_text().split()) == 2)


def test_two_jobs_wait_their_turn_and_cancel_ends_them(runner, tmp_path):
    case = a_case("flashmask", "flex")
    first = runner.submit(BenchJob("bench", (case,), f"flex=hang pidfile={tmp_path}/pids"))
    second = runner.submit(BenchJob("bench", (case,)))
    third = runner.submit(BenchJob("bench", (case,)))
    wait_for_processes(tmp_path)
    wait_for(lambda: runner.view(first).message == "timing flex")
    assert [runner.view(job).position for job in (first, second, third)] == [0, 1, 2]
    view = runner.view(first)
    assert (view.state, view.message, view.fraction) == ("running", "timing flex", 0.5)

    runner.cancel(second)
    assert runner.view(second).state == "cancelled" and runner.view(third).position == 1
    began = time.monotonic()
    runner.cancel(first)
    assert time.monotonic() - began < 5, "cancelling does not wait for the end"
    assert runner.wait(first, 60).state == "cancelled"
    assert all(gone(int(pid)) for pid in (tmp_path / "pids").read_text().split())
    assert runner.wait(third, 60).state == "done"
    assert [view.state for view in runner.jobs()] == ["cancelled", "cancelled", "done"]


def test_close_ends_the_running_job(tmp_path):
    runner = BenchRunner(FAKE)
    job = runner.submit(BenchJob("bench", (a_case(),), f"flashmask=hang pidfile={tmp_path}/pids"))
    wait_for_processes(tmp_path)
    runner.close()
    assert runner.view(job).state == "cancelled"
    assert all(gone(int(pid)) for pid in (tmp_path / "pids").read_text().split())
    with pytest.raises(RuntimeError, match="closed"):
        runner.submit(BenchJob("bench", (a_case(),)))


def test_unknown_job(runner):
    with pytest.raises(KeyError):
        runner.view("job-99")


def test_the_parent_has_no_cuda_context(runner):
    before = torch.cuda.is_initialized()  # on a GPU machine a test before this one may have
    run(runner, "")
    assert torch.cuda.is_initialized() == before


def test_the_reference_is_left_out_where_it_ends_the_worker(runner):
    view = run(runner, "reference=kill", a_case("flashmask"))
    assert view.state == "done" and outcome(view) == [("flashmask", "forward", "ok"), ("flashmask", "backward", "ok")]


def test_a_case_that_never_gets_to_its_providers_fails_and_the_next_goes_on(runner):
    view = run(runner, "mask=crash", a_case("flashmask", "flex", passes=("forward",)), a_case())
    assert view.state == "done"
    assert {row.status for row in view.rows} == {"failed"} and len(view.rows) == 4


def test_a_job_that_nobody_looks_at_any_more_is_cancelled(tmp_path):
    runner = BenchRunner(FAKE, history=History(tmp_path / "history.sqlite"), grace_s=0.5)
    looking = {"first": True, "second": False}
    job = runner.submit(BenchJob("bench", (a_case("flex"),) * 9, "flex=slow"), lambda: looking["first"])
    waiting = runner.submit(BenchJob("bench", (a_case(),)), lambda: False)
    free = runner.submit(BenchJob("bench", (a_case(),)))
    time.sleep(1.0)
    assert runner.view(job).state == "running", "somebody looks"
    assert [runner.view(one).position for one in (waiting, free)] == [None, 1], "a place that nobody waits for is given up"
    runner.watch(job, lambda: looking["second"])
    looking.update(first=False, second=True)
    time.sleep(0.8)
    assert runner.view(job).state == "running", "another tab looks"
    looking["second"] = False
    view = runner.wait(job, 60)
    assert view.state == "cancelled" and "nobody has looked for 0.5 s" in view.reason
    assert runner.wait(free, 60).state == "done", "who has no watcher goes on"
    runner.close()


def test_rows_are_in_the_history_as_they_come(tmp_path):
    history = History(tmp_path / "history.sqlite")
    runner = BenchRunner(FAKE, history=history)
    job = runner.submit(BenchJob("bench", (a_case("flashmask"), a_case("flex", time_limit_s=60)), "flex=hang"))
    wait_for(lambda: history.rows(job))
    assert [row.provider for row in history.rows(job)][:1] == ["flashmask"] and history.run(job).state == "running"
    runner.cancel(job)
    view = runner.wait(job, 60)
    assert (view.state, history.run(job).state, history.rows(job)) == ("cancelled", "cancelled", list(view.rows))
    assert len(view.rows) == 2 and view.unkept is None, "cancelled, and what was done is kept"
    runner.close()


def test_a_history_that_cannot_be_written_stops_no_measurement(tmp_path):
    (tmp_path / "file").write_text("")
    runner = BenchRunner(FAKE, history=History(tmp_path / "file" / "history.sqlite"))
    view = run(runner, "")
    assert view.state == "done" and len(view.rows) == 2 and "cannot be used" in view.unkept
    runner.close()


def test_the_rest_is_estimated_from_what_is_done(runner):
    cases = [a_case("flex") for _ in range(4)]
    job = runner.submit(BenchJob("bench", tuple(cases), "flex=slow"))
    until, told = time.monotonic() + 60, []
    while not (view := runner.view(job)).ended and time.monotonic() < until:
        told.append((view.fraction, view.remaining_s))
        time.sleep(0.05)
    assert runner.view(job).remaining_s is None and told[0] == (0.0, None)
    later = [remaining for fraction, remaining in told if fraction >= 0.5]
    assert later and 0.2 < later[-1] < 8


def test_every_job_compiles_anew_unless_it_is_told_not_to(runner, tmp_path):
    def caches(**settings):
        case = a_case("flex")
        view = runner.wait(runner.submit(BenchJob("bench", (case,), "flex=caches", **settings)), 30)
        return view.rows[0].reason

    assert "caches=/" in caches() and caches() != caches(), "a folder of its own"
    folder = caches().split("=")[1]
    assert not Path(folder).exists(), "and gone with the job"
    assert "caches=none" in caches(cold=False)
