"""One worker process from start to end: hand it a job, follow its events, stop it when it must, say how it ended.

The worker reads the job as one line of JSON on stdin and writes events as lines of JSON on stdout:

    {"event": "device", "where": {...}}                            a DeviceInfo; the worker is up
    {"event": "case", "case": 0}                                   the case begins
    {"event": "progress", "case": 0, "provider": "flex", "message": "...", "fraction": 0.25}
                                                                   a step begins, and with it its time limit
    {"event": "row", "case": 0, "row": {...}}                      a BenchRow
    {"event": "case_done", "case": 0}                              all its rows have been written
    {"event": "fatal", "reason": "..."}                            the provider at work broke the CUDA context
    {"event": "failed", "reason": "..."} or {"event": "done"}      its last word

Lines that are no such event (a library that prints) are passed over.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .config import INTERPRETED, BenchJob
from .environment import death
from .result import dumps


@dataclass(frozen=True)
class WorkerEnd:
    """How a worker ended. state None: it died or hung at `culprit`, (case, provider), and the job has more to do."""

    state: str | None  # "done", "failed", "cancelled"
    reason: str | None = None
    culprit: tuple[int, str] = (0, "")
    done: tuple[int, ...] = ()  # cases whose rows are all there


def visit_worker(
    command: tuple[str, ...],
    job: BenchJob,
    *,
    on_event: Callable[[dict], None],
    stopped: Callable[[], str | None],
    startup_limit_s: float,
    caches: str | None = None,
) -> WorkerEnd:
    """Run a job in a new process (and process group) and block until the whole group is gone.

    stopped: asked again and again, why the job is to be ended now, or None; caches: see `worker_environment`.
    """
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            start_new_session=True, env=worker_environment(job.kind, caches),
        )  # fmt: skip
        lines: queue.SimpleQueue = queue.SimpleQueue()
        threading.Thread(target=_feed, args=(process.stdin, dumps(job.to_json())), daemon=True).start()
        threading.Thread(target=_collect, args=(process.stdout, lines), daemon=True).start()
        follower = _Follower(job, on_event, startup_limit_s)
        try:
            follower.follow(lines, stopped)
        finally:
            return_code = _end_group(process, patience_s=0.0 if follower.stopped_early else 5.0)
        return follower.judge(return_code, log)


class _Follower:
    """What the events of one worker have said so far."""

    def __init__(self, job: BenchJob, on_event: Callable[[dict], None], startup_limit_s: float):
        self.job, self.on_event = job, on_event
        self.culprit: tuple[int, str] | None = None  # (case, provider) at work
        self.done = list(job.done)
        self.last_word: tuple[str, str | None] | None = None  # (state, reason)
        self.fatal: str | None = None
        self.cancelled: str | None = None  # why
        self.stopped_early = True
        self.limit_s = startup_limit_s
        self.deadline = time.monotonic() + startup_limit_s

    def follow(self, lines: queue.SimpleQueue, stopped: Callable[[], str | None]) -> None:
        """Take events until the worker's last word or its end, or until it is to be ended."""
        while self.last_word is None:
            self.cancelled = stopped()
            if self.cancelled or time.monotonic() > self.deadline:
                return
            try:
                line = lines.get(timeout=0.1)
            except queue.Empty:
                continue
            if line is None:  # stdout is closed: the worker is gone
                break
            self.take(line)
        self.stopped_early = False

    def take(self, line: bytes) -> None:
        try:
            event = json.loads(line)
            kind = event["event"]
        except (ValueError, TypeError, KeyError):
            return
        match kind:
            case "case" | "progress":
                self.limit_s = self.job.cases[event["case"]].time_limit_s
                self.deadline = time.monotonic() + self.limit_s
                if kind == "progress":
                    self.culprit = (event["case"], event["provider"])
            case "case_done":
                self.done.append(event["case"])
            case "fatal":
                self.fatal = event["reason"]
            case "failed":
                self.last_word = ("failed", event["reason"])
            case "done":
                self.last_word = ("done", None)
        self.on_event(event)

    def judge(self, return_code: int, log) -> WorkerEnd:
        if self.last_word is not None:
            return WorkerEnd(*self.last_word)
        if self.cancelled:
            return WorkerEnd("cancelled", self.cancelled)
        if self.stopped_early:
            reason = f"stopped at the time limit of {self.limit_s:g} s"
        else:
            reason = self.fatal or _death(return_code, log)
        if self.culprit is None or self.culprit[0] in self.done:
            return WorkerEnd("failed", reason)
        return WorkerEnd(None, reason, self.culprit, tuple(self.done))


def _feed(stdin, line: str) -> None:
    """Hand the job over. stdin then stays open: a worker that sees its end knows that its parent is gone."""
    try:
        stdin.write(line.encode() + b"\n")
        stdin.flush()
    except (BrokenPipeError, ValueError):
        pass  # it died first; its end says why


def _collect(stdout, lines: queue.SimpleQueue) -> None:
    with stdout:
        for line in stdout:
            lines.put(line)
    lines.put(None)


def _end_group(process: subprocess.Popen, patience_s: float) -> int:
    """See the worker out, kill what is left of its process group, and return its exit code (negative: a signal)."""
    until = time.monotonic() + patience_s
    gone = os.WEXITED | os.WNOWAIT  # leave it unreaped, so that its number cannot belong to somebody else yet
    exited = None
    while exited is None and time.monotonic() <= until:
        exited = os.waitid(os.P_PID, process.pid, gone | os.WNOHANG)
        if exited is None:
            time.sleep(0.02)
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    return_code = process.wait()
    try:
        process.stdin.close()
    except OSError:
        pass
    return return_code


def _death(return_code: int, log) -> str:
    how = f"the worker process {death(return_code)}"
    log.seek(0, os.SEEK_END)
    log.seek(max(0, log.tell() - 4096))
    tail = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    return how + (f": {tail[-1][:500]}" if tail and return_code >= 0 else "")


def worker_environment(kind: str, caches: str | None = None) -> dict[str, str]:
    """This process's environment, made fit for a job of a kind.

    caches: a folder in which compiled code is kept, so that a job whose folder is empty compiles anew; None: the user's.
    """
    root = str(Path(__file__).resolve().parents[2])
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")])))
    env["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # to ask for a GPU must not open it in a process that others fork from
    env.pop("TRITON_INTERPRET", None)
    if kind in INTERPRETED:  # Triton reads this when a kernel is decorated, so it has to be there from the start
        env.update(TRITON_INTERPRET="1", CUDA_VISIBLE_DEVICES="")
    if caches:
        env.update(TRITON_CACHE_DIR=f"{caches}/triton", TORCHINDUCTOR_CACHE_DIR=f"{caches}/inductor")
    return env
