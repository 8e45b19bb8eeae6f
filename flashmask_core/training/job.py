"""A "train" job in the worker process: every case with every engine, events as `bench.worker_process` describes them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict

import torch

from ..bench.config import BenchJob
from ..bench.run_case import CudaFault
from .case import CHECK_MAX_CONTEXT, TrainCase
from .longest import longest
from .names import ENGINE_LABELS, TASK_LABELS
from .throughput import measure, where

FATAL_EXIT = 4
_TRIALS = 7  # that a search takes at the most, about


def run_job(job: BenchJob, say: Callable) -> None:
    """Train every case that is not done, engine after engine. Raises ValueError for a case that cannot be."""
    device = "cpu" if job.kind == "train_check" else "cuda"
    problem = _problem(job, device)
    if problem:
        return say(event="failed", reason=problem)
    if any(case.deterministic for case in job.cases):
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when the first product is made
    # Of a graph's few kernels each is compiled in a second or two; a pool of compilers takes longer to start.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    say(event="device", where=asdict(where(device)))
    for case in job.cases:
        case.check()  # examples that do not fit are told before anything is trained
    whole = sum(case.worth for case in job.cases)
    for number, case in enumerate(job.cases):
        if number in job.done:
            continue
        say(event="case", case=number)
        ahead = sum(one.worth for one in job.cases[:number])
        out = {engine for at, engine, _ in job.excluded if at == number}
        for place, engine in enumerate(case.engines):
            if engine in out:
                continue

            def on_step(done: int, of: int) -> None:
                share = (place + min(1.0, done / of)) / len(case.engines)
                say(event="progress", case=number, provider=engine, message=_message(case, engine, done, of),
                    fraction=(ahead + share * case.worth) / whole)  # fmt: skip

            try:
                row = _trained(case, engine, device, on_step)
            except CudaFault as fault:
                if fault.best:
                    say(event="row", case=number, row=fault.best.to_json())
                say(event="fatal", reason=str(fault))
                os._exit(FATAL_EXIT)  # the ordinary way out would wait for the broken device
            say(event="row", case=number, row=row.to_json())
        say(event="case_done", case=number)
    say(event="done")


def _problem(job: BenchJob, device: str) -> str | None:
    if device == "cpu":
        long = next((case for case in job.cases if case.longest or case.context > CHECK_MAX_CONTEXT), None)
        return long and (
            f"context: on the CPU, through the interpreter, steps of at most {CHECK_MAX_CONTEXT} tokens are trained; "
            f"got {'the longest that fits' if long.longest else f'{long.context:,}'}"
        )
    if torch.version.cuda is None:
        return "no CUDA GPU: this build of PyTorch is for the CPU only"
    return None if torch.cuda.is_available() else "no CUDA GPU: PyTorch finds none"


def _trained(case: TrainCase, engine: str, device: str, on_step: Callable[[int, int], None]):
    if not case.longest:
        backend = "triton" if device == "cpu" else "auto"  # the kernel itself, through the interpreter
        return measure(case, engine, device=device, backend=backend, on_step=on_step)
    return longest(case, engine, device=device, on_trial=lambda tried, context: on_step(tried, _TRIALS))


def _message(case: TrainCase, engine: str, done: int, of: int) -> str:
    head = f"{TASK_LABELS[case.task]}, {ENGINE_LABELS[engine]}"
    if case.longest:
        return f"{head}: the longest context, trial {done + 1}"
    return f"{head}, {case.context:,} tokens: step {done + 1} of {of}"
