"""Real jobs in real worker processes with engines that misbehave: on the GPU where there is one, else on a stand-in."""

import itertools
import os
import re
import subprocess
import time
from pathlib import Path

import pytest
import torch

from flashmask_core.bench import apart
from flashmask_core.bench.config import BenchCase, BenchJob
from flashmask_core.bench.history import History
from flashmask_core.bench.runner import BenchRunner

HERE = Path(__file__).parent
ON_GPU = torch.cuda.is_available()


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    return History(tmp_path_factory.mktemp("history") / "history.sqlite")


@pytest.fixture(scope="module")
def runner(history):
    patch = pytest.MonkeyPatch()
    patch.setenv("FLASHMASK_ENGINES", "stand_ins" if ON_GPU else "cpu_stand_ins")
    patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")])))
    runner = BenchRunner(history=history)
    yield runner
    runner.close()
    patch.undo()


def measured(runner, *providers, passes=("forward", "backward"), **settings):
    case = BenchCase(
        "causal_document(100, 156)", 256, heads=2, head_dim=32, dtype="float16", providers=providers, passes=passes,
        repeat_ms=20, warmup_ms=5, **settings,
    )  # fmt: skip
    return runner.wait(runner.submit(BenchJob("bench", (case,), title=" ".join(providers))), 120)


def used_memory() -> int:
    """MiB in use on the GPU that the jobs get, by whatever process."""
    gpu = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    said = subprocess.run(["nvidia-smi", "-i", gpu, "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                          capture_output=True, text=True, check=True).stdout  # fmt: skip
    return int(said.splitlines()[0])


def test_memory_does_not_depend_on_the_order(runner):
    """One engine keeps memory for ever; in whatever order they come, every engine's peak is the same."""
    found = [
        {(row.provider, row.direction): row.peak_memory_bytes for row in measured(runner, *order).rows}
        for order in itertools.islice(itertools.permutations(("leaky", "right", "right_bhsd")), 0, 6, 2 if ON_GPU else 5)
    ]
    assert all(one == found[0] for one in found) and len(found) > 1 and all(found[0].values())
    assert found[0]["leaky", "forward"] - found[0]["right", "forward"] >= 32 * 2**20


# Without a GPU those that go another way than the others; the rest of them is in test_run_case and test_runner.
ALL_BAD = ("full", "fault", "hang", "killed", "turns_fault", "turns_killed")
FEW_BAD = ("fault", "hang", "turns_killed")


@pytest.mark.parametrize("bad", ALL_BAD if ON_GPU else FEW_BAD)
def test_an_engine_that_breaks_ends_itself_alone_and_the_next_job_works(runner, history, bad):
    words = {
        "full": "out of GPU memory: .*Take a smaller N",
        "fault": "illegal memory access" if ON_GPU else "its process was ended by SIGSEGV",
        "hang": r"stopped at the time limit of \d+ s, in a process of its own",
        "killed": "its process was ended by SIGKILL .usually the system's memory killer",
        "turns_fault": "illegal memory access",
        "turns_killed": "the worker process was ended by SIGKILL",
    }[bad]
    before = used_memory() if ON_GPU else 0
    view = measured(runner, "right", bad, "right_bhsd", time_limit_s=20.0 if bad == "hang" else 120.0)
    assert view.state == "done", view.reason
    by_name = {row.provider: row for row in view.rows}
    status = {name: row.status for name, row in by_name.items()}
    assert status == {"right": "ok", bad: "failed", "right_bhsd": "ok"}, [row.reason for row in view.rows]
    assert re.search(words, by_name[bad].reason), by_name[bad].reason
    print(f"\n{bad}: {by_name[bad].reason}")
    assert {row.key: row for row in history.rows(view.id)} == {row.key: row for row in view.rows}
    if ON_GPU:  # elsewhere the next one of these is the next job
        after = measured(runner, "right", passes=("forward",))
        assert [row.check for row in after.rows] == ["passed"], "the next job works"
        until = time.monotonic() + 60
        while used_memory() > before + 64 and time.monotonic() < until:
            time.sleep(0.2)
        assert used_memory() <= before + 64, "the memory is back"


def test_what_broke_the_device_is_told_where_its_consequence_was_raised(monkeypatch):
    class Broken:
        OutOfMemory = MemoryError

        def synchronize(self):
            raise RuntimeError("CUDA error: an illegal memory access was encountered\nCompile with ...")

    def engine_breaks(case, provider, device):
        raise RuntimeError("CUBLAS_STATUS_INTERNAL_ERROR when calling cublasCreate")

    monkeypatch.setattr(apart, "bench_device", Broken)
    monkeypatch.setattr(apart, "try_here", engine_breaks)
    tried = apart._tried(BenchCase("causal", 128), "flashmask")
    assert tried.status == "failed" and tried.reason == (
        "RuntimeError: CUBLAS_STATUS_INTERNAL_ERROR when calling cublasCreate "
        "(after it: CUDA error: an illegal memory access was encountered)"
    )


def test_queued_work_and_compile_times_of_a_real_job(runner):
    view = measured(runner, "late", "right", passes=("forward", "backward", "both"), rounds=2)
    assert view.state == "done", view.reason
    rows = {(row.provider, row.direction): row for row in view.rows}
    assert len(rows) == 6 and all(row.check == "passed" and row.peak_memory_bytes > 0 for row in rows.values())
    assert rows["late", "forward"].median_ms >= 45 and rows["late", "both"].median_ms >= 45
    if ON_GPU:  # whose clock does not tell how busy the processor is
        assert rows["right", "forward"].median_ms < rows["late", "forward"].median_ms
        assert rows["late", "backward"].median_ms < rows["late", "both"].median_ms, "the work is in its forward pass"
    assert rows["right", "forward"].compile_ms is not None
    print("\n", {key: row.median_ms for key, row in rows.items()})


def test_engines_tried_at_once_before_anything_is_timed(runner):
    case = BenchCase("causal", 128, heads=2, head_dim=32, dtype="float16", providers=("right", "killed"), repeat_ms=5)
    view = runner.wait(runner.submit(BenchJob("bench", (case,), parallel=4)), 120)
    assert view.state == "done", view.reason
    assert [(row.provider, row.status) for row in view.rows if row.direction == "forward"] == [
        ("killed", "failed"), ("right", "ok"),
    ]  # fmt: skip
    assert {row.compile_ms for row in view.rows} == {None}, "compiled on a loaded machine"


def test_what_others_fork_from_has_asked_for_no_gpu():
    """After its imports, the process that engines are forked from has not opened the driver."""
    code = """
import torch
names = ("is_available", "device_count", "current_device", "get_device_properties", "get_device_capability", "_lazy_init")
def refuse(*args, **kwargs):
    raise AssertionError("a GPU was asked for")
for name in names:
    setattr(torch.cuda, name, refuse)
import flashmask_core.bench.apart, flashmask_core.attention, flashmask_core.kernels.operator
import triton
assert triton.runtime.driver._active is None
"""
    done = subprocess.run([os.sys.executable, "-c", code], capture_output=True, text=True, cwd=HERE.parents[1],
                          env={k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"})  # fmt: skip
    assert done.returncode == 0, done.stderr
