"""The real worker process: our kernel through the interpreter, and its end when the parent is gone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import flashmask_core as fm
from flashmask_core.bench import worker_process
from flashmask_core.bench.config import BenchJob, check_cases
from flashmask_core.bench.runner import WORKER_COMMAND, BenchRunner
from flashmask_core.kernels import launch

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(launch.interpreter_problem() is not None, reason=launch.interpreter_problem() or "")
def test_check_runs_our_kernel_in_the_interpreter():
    mask = fm.mask("causal & document(40, 30, 20)", 90)
    runner = BenchRunner()
    view = runner.wait(runner.submit(BenchJob("check", check_cases(mask, "three documents"))), 240)
    runner.close()
    assert view.state == "done", view.reason
    assert [(row.dtype, row.direction, row.check) for row in view.rows] == [
        (dtype, direction, "passed") for dtype in ("float16", "float32") for direction in ("forward", "backward")
    ]
    assert {row.backend for row in view.rows} == {"triton (interpreter)"}
    assert view.where.device == "CPU, Triton interpreter" and view.where.torch_version


def test_only_a_check_runs_in_the_interpreter(monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert "TRITON_INTERPRET" not in worker_process.worker_environment("bench")
    monkeypatch.delenv("TRITON_INTERPRET")
    assert worker_process.worker_environment("check")["TRITON_INTERPRET"] == "1"


def test_the_worker_ends_when_its_parent_is_gone():
    job = BenchJob("check", check_cases(fm.mask("causal", 256), "causal") * 50)
    worker = subprocess.Popen(
        WORKER_COMMAND, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TRITON_INTERPRET": "1"}, start_new_session=True,
    )  # fmt: skip
    worker.stdin.write(json.dumps(job.to_json()).encode() + b"\n")
    worker.stdin.close()
    try:
        assert worker.wait(60) == 1
    finally:
        if worker.poll() is None:
            worker.kill()


def test_a_worker_says_why_there_is_no_gpu():
    done = subprocess.run(
        [sys.executable, "-m", "flashmask_core.bench.worker"], input=json.dumps(BenchJob("device").to_json()) + "\n",
        capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip
    event = json.loads(done.stdout)
    assert done.returncode == 0 and event["event"] == "failed" and event["reason"].startswith("no CUDA GPU")
