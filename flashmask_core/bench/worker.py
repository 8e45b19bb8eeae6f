"""The process that does a job: `python -m flashmask_core.bench.worker` with the job as one line of JSON on stdin.

It writes the events described in `worker_process` to stdout. GPU work happens here and nowhere else, so whatever goes
wrong on the GPU ends this process and gives all of its memory back.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, replace

import torch

from .config import BenchCase, BenchJob
from .environment import interpreter_device, utc_now
from .result import BenchRow, dumps

FATAL_EXIT = 4
AHEAD_SHARE = 0.5  # of a job, for what is compiled before anything is timed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m flashmask_core.bench.worker", description=__doc__.split("\n")[0])
    parser.add_argument("--with-parent", action="store_true", help="end when stdin is closed: the parent is gone")
    arguments = parser.parse_args()
    say = _events_on_stdout()
    job = BenchJob.from_json(json.loads(sys.stdin.buffer.readline()))
    if arguments.with_parent:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        if job.kind == "check":
            _check(job, say)
        elif job.kind in ("train", "train_check"):
            from ..training.job import run_job

            run_job(job, say)
        else:
            _bench(job, say)
    except ValueError as error:  # a mask or a case that cannot be
        say(event="failed", reason=str(error))
    return 0


def _bench(job: BenchJob, say: Callable) -> None:
    from .apart import get_ready
    from .providers import bench_device
    from .run_case import CaseRun, CudaFault

    if job.parallel > 1:
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # read by the processes that are forked; see _TriedAhead
    if job.cases:
        get_ready()
    device = bench_device()
    problem = device.problem()
    if problem:
        return say(event="failed", reason=problem)
    where = device.info()
    say(event="device", where=asdict(where))
    ahead = _TriedAhead(job, say) if job.parallel > 1 else None
    begun = AHEAD_SHARE if ahead else 0.0
    for number, case in enumerate(job.cases):
        if number in job.done:
            continue
        say(event="case", case=number)

        def on_row(row: BenchRow) -> None:
            say(event="row", case=number, row=row.to_json())

        def on_progress(provider: str, message: str, fraction: float) -> None:
            say(event="progress", case=number, provider=provider, message=f"{_name(case)}: {message}",
                fraction=begun + (1 - begun) * (number + fraction) / len(job.cases))  # fmt: skip

        excluded = {provider for at, provider, _ in job.excluded if at == number}
        try_provider = ahead and (lambda case, name: ahead.tried[number, name])
        try:
            CaseRun(case, where, on_row, on_progress, device, excluded, try_provider).run()
        except CudaFault as fault:
            say(event="fatal", reason=str(fault))
            os._exit(FATAL_EXIT)  # the ordinary way out would wait for the broken device
        device.release()
        say(event="case_done", case=number)
    say(event="done")


def _name(case: BenchCase) -> str:
    return f"{case.mask_name or case.mask[:40]}, {case.seqlen_q:,}"


class _TriedAhead:
    """Every engine of every case tried in a process of its own, several at once, before anything is timed.

    A loaded machine compiles more slowly, so the time that took is not told. Each process compiles in itself alone, as
    a pool of compilers for each of them would be more than the machine has.
    """

    def __init__(self, job: BenchJob, say: Callable):
        from concurrent.futures import ThreadPoolExecutor, as_completed

        from .apart import APART_LIMIT, try_apart

        left = {(at, name) for at, name, _ in job.excluded}
        todo = [(number, name) for number, case in enumerate(job.cases) for name in case.providers
                if number not in job.done and (number, name) not in left]  # fmt: skip
        self.tried = {}
        if todo:  # from here on it is the time limit of a step that counts, not that of the start
            self._progress(say, *todo[0], len(todo), job.parallel)
        with ThreadPoolExecutor(job.parallel) as pool:
            jobs = {
                pool.submit(try_apart, job.cases[number], name, APART_LIMIT * job.cases[number].time_limit_s): (number, name)
                for number, name in todo
            }  # fmt: skip
            for done in as_completed(jobs):
                number, name = jobs[done]
                self.tried[number, name] = replace(done.result(), compile_ms=None)
                self._progress(say, number, name, len(todo), job.parallel)

    def _progress(self, say: Callable, number: int, name: str, count: int, parallel: int) -> None:
        say(event="progress", case=number, provider=name, fraction=AHEAD_SHARE * len(self.tried) / count,
            message=f"{len(self.tried)} of {count} engines compiled and weighed, {parallel} at once")  # fmt: skip


def _check(job: BenchJob, say: Callable) -> None:
    """Our Triton kernel through the interpreter, forward and backward, against the reference."""
    from ..attention import flashmask_attention
    from .correctness import compare, make_reference, verdict
    from .apart import Inputs

    where = interpreter_device()
    say(event="device", where=asdict(where))
    for number, case in enumerate(job.cases):
        say(event="case", case=number)
        say(event="progress", case=number, provider="flashmask", fraction=number / len(job.cases),
            message=f"{case.mask_name or case.mask[:40]}: our Triton kernel in {case.dtype}")  # fmt: skip
        mask = case.build_mask()
        *qkv, _ = Inputs(case, "cpu").tensors
        reference = make_reference(case, mask, *qkv)
        out = flashmask_attention(*qkv, mask, backend="triton")
        gradients = torch.autograd.grad(out, qkv, reference.dout) if case.backward else None
        for direction, errors in compare(reference, out, gradients).items():
            if direction not in case.passes:
                continue
            row = BenchRow.of_case(
                case, "flashmask", direction, backend="triton (interpreter)", computes="mask", check=verdict(errors),
                errors=errors, where=where, date_utc=utc_now(),
            )  # fmt: skip
            say(event="row", case=number, row=row.to_json())
        say(event="case_done", case=number)
    say(event="done")


def _events_on_stdout() -> Callable:
    """A function that writes an event to what stdout was; from now on prints go to stderr."""
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")  # a duplicate that no child process inherits
    os.dup2(2, 1)
    lock = threading.Lock()

    def say(**event) -> None:
        with lock:
            events.write(dumps(event) + "\n")
            events.flush()

    return say


def _end_with_parent() -> None:
    while os.read(0, 4096):
        pass
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
