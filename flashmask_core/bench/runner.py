"""The queue of benchmark jobs: each in a worker process of its own, one at a time, never blocking who asks.

How a page uses it (one runner for the whole server, whoever is looking):

    runner = get_runner()             # of `server`
    job_id = runner.submit(BenchJob("bench", (case,), title="causal, 8192"))
    view = runner.view(job_id)        # at once, from any thread: call it in each rerun or fragment tick
    view.state                        # "queued", "running", "done", "failed", "cancelled"
    view.position                     # 1 = next in the queue; 0 = running; None = ended
    view.fraction, view.message       # 0.0 to 1.0, and what it is doing
    view.remaining_s                  # about how long it will take; None until that can be said
    view.rows                         # BenchRows so far, failed and skipped ones with their reason among them
    view.reason                       # why a job failed as a whole
    runner.cancel(job_id)             # ends the process and everything it started; rows stay

    runner.submit(BenchJob("check", check_cases(mask, name)))   # our kernel in the Triton interpreter: no GPU needed

A job goes on when nobody asks for it, unless it was submitted with a watcher: a function that says whether somebody
still looks. When all of its watchers have said no for a while, it is cancelled. The id of a job is the id of its run in
the history.

This process never touches CUDA. A provider that brings its worker down (a CUDA fault, the system's memory killer) or
outlasts its case's time limit becomes a failed row, and a new worker goes on with what is left of the job.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from .config import BenchJob
from .environment import utc_now
from .history import History, new_id
from .job_record import JobRecord, JobView
from .result import BenchRow, DeviceInfo, row_type
from .worker_process import visit_worker

STARTUP_LIMIT_S = 180.0  # from the start of a worker to its first word: imports, and the first CUDA context
KEPT_JOBS = 100  # ended jobs that view() still knows
GRACE_S = 20.0  # how long a job goes on that nobody looks at

WORKER_COMMAND = (sys.executable, "-m", "flashmask_core.bench.worker", "--with-parent")


class BenchRunner:
    """One worker process at a time, and a queue in front of it. All methods return at once and may be called anywhere.

    Args:
        command: what to start as the worker; it reads one job as a line of JSON on stdin and writes events as lines of
            JSON on stdout (see `worker`).
        startup_limit_s: how long a worker may stay silent after its start.
        history: where the rows of "bench" jobs are kept; None: nowhere. trained: the same for "train" jobs.
        grace_s: how long a job goes on that nobody looks at.
    """

    def __init__(self, command: tuple[str, ...] = WORKER_COMMAND, startup_limit_s: float = STARTUP_LIMIT_S,
                 history: History | None = None, grace_s: float = GRACE_S, trained=None):  # fmt: skip
        self._command, self._startup_limit_s = command, startup_limit_s
        self._histories, self._grace_s = {"bench": history, "train": trained}, grace_s
        self._lock = threading.Condition()
        self._records: dict[str, JobRecord] = {}
        self._waiting: deque[JobRecord] = deque()
        self._running: JobRecord | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, job: BenchJob, watcher: Callable[[], bool] | None = None) -> str:
        """Put a job at the end of the queue; returns its id. RuntimeError after close().

        watcher: says whether somebody looks at the job; with None it goes on to its end.
        """
        with self._lock:
            if self._closed:
                raise RuntimeError("the benchmark runner is closed")
            record = JobRecord(new_id(), job, message="waiting", watchers=[watcher] if watcher else [])
            self._records[record.id] = record
            self._waiting.append(record)
            ended = [r.id for r in self._records.values() if r.ended is not None]
            for old in ended[: max(0, len(ended) - KEPT_JOBS)]:
                del self._records[old]
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="flashmask-bench", daemon=True)
                self._thread.start()
            self._lock.notify_all()
            return record.id

    def watch(self, job_id: str, watcher: Callable[[], bool]) -> None:
        """One more who looks at a job that is watched."""
        with self._lock:
            record = self._records[job_id]
            if record.watchers and watcher not in record.watchers:
                record.watchers.append(watcher)

    def view(self, job_id: str) -> JobView:
        """The job as it is now; KeyError for an id this runner does not know (any more)."""
        with self._lock:
            record = self._records[job_id]
            position = self._waiting.index(record) + 1 if record.state == "queued" else None
            return record.view(0 if record.state == "running" else position)

    def jobs(self) -> list[JobView]:
        """Every job the runner knows, oldest first."""
        with self._lock:
            return [self.view(job_id) for job_id in self._records]

    def wait(self, job_id: str, timeout_s: float | None = None) -> JobView:
        """Block until the job has ended or the time is over; for scripts and tests."""
        with self._lock:
            self._lock.wait_for(lambda: self._records[job_id].ended is not None, timeout_s)
            return self.view(job_id)

    def cancel(self, job_id: str) -> None:
        """End a job: taken from the queue, or its worker killed with all it started. Rows it has stay."""
        with self._lock:
            record = self._records[job_id]
            record.cancel = True
            if record.state == "queued":
                self._waiting.remove(record)
                self._end(record, "cancelled")
            self._lock.notify_all()

    def close(self) -> None:
        """Cancel everything and wait until the worker is gone."""
        with self._lock:
            self._closed = True
            for record in list(self._records.values()):
                if record.ended is None:
                    self.cancel(record.id)
            self._lock.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(timeout=10)

    # ---- the serving thread ------------------------------------------------------------------------------------

    def _serve(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
                record = self._running = self._waiting.popleft()
                record.state, record.message, record.began = "running", "starting the worker", time.monotonic()
            self._keep(record, lambda history: history.begin(record.job.title, record.id))
            cold = record.job.kind == "bench" and record.job.cold
            try:
                with tempfile.TemporaryDirectory(prefix="flashmask-", ignore_cleanup_errors=True) as caches:
                    state, reason = self._run(record, caches if cold else None)
            except Exception as error:  # a fault of ours must not end the queue
                state, reason = "failed", f"{type(error).__name__}: {error}"
            self._keep(record, lambda history: history.end(record.id, state, reason))
            with self._lock:
                self._running = None
                self._end(record, state, reason)

    def _keep(self, record: JobRecord, write: Callable[[History], object]) -> None:
        """Write into the history of its kind; a file that does not take it stops no measurement."""
        history = self._histories.get(record.job.kind)
        if history is None or record.unkept:
            return
        try:
            write(history)
        except ValueError as problem:
            record.unkept = str(problem)

    def _tick(self, running: JobRecord) -> str | None:
        """Give up places in the queue that nobody waits for; why the running job is to be ended, or None."""
        with self._lock:
            for record in list(self._waiting):
                reason = record.stopped(self._grace_s)
                if reason:
                    self._waiting.remove(record)
                    self._end(record, "cancelled", reason)
        return running.stopped(self._grace_s)

    def _end(self, record: JobRecord, state: str, reason: str | None = None) -> None:
        record.end(state, reason)
        self._lock.notify_all()

    def _run(self, record: JobRecord, caches: str | None) -> tuple[str, str | None]:
        """Run a job, in as many workers as it takes; (final state, reason)."""
        job = record.job
        while True:
            end = visit_worker(
                self._command, job, on_event=lambda event: self._take(record, event),
                stopped=lambda: self._tick(record), startup_limit_s=self._startup_limit_s, caches=caches,
            )  # fmt: skip
            if end.state is not None:
                return end.state, end.reason
            # The worker is gone and the job is not over: what it was doing becomes failed rows, the rest goes on.
            number, culprit = end.culprit
            case = job.cases[number]
            left = [p for p in case.providers if (number, p) not in {(n, p) for n, p, _ in job.excluded}]
            if culprit in left:
                blamed = [culprit]
            elif culprit == "reference" and not any(entry[:2] == end.culprit for entry in job.excluded):
                blamed = []  # the next worker does without the comparison
            else:
                blamed = left
            for provider in blamed:
                for direction in case.passes:
                    self._take_row(record, number, row_type(job.kind).of_case(
                        case, provider, direction, "failed", reason=end.reason, where=record.where, date_utc=utc_now(),
                    ))  # fmt: skip
            over = end.done + ((number,) if blamed == left else ())
            excluded = tuple((number, name, end.reason) for name in blamed or [culprit])
            job = replace(job, excluded=job.excluded + excluded, done=over)
            if len(set(over)) == len(job.cases):
                return "done", None

    def _take(self, record: JobRecord, event: dict) -> None:
        match event["event"]:
            case "device":
                record.where = DeviceInfo(**event["where"])
            case "progress":
                with self._lock:
                    record.message = event["message"]
                    record.fraction = max(record.fraction, min(1.0, float(event["fraction"])))
            case "row":
                self._take_row(record, event["case"], row_type(record.job.kind).from_json(event["row"]))

    def _take_row(self, record: JobRecord, number: int, row: BenchRow) -> None:
        key = (number, row.provider, row.direction)
        if key in record.rows and record.rows[key].status == "ok":
            return  # measured before the worker ended
        with self._lock:
            record.rows[key] = row
        self._keep(record, lambda history: history.add(record.id, row))
