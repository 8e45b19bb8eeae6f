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
from dataclasses import dataclass, field, replace

from .config import BenchJob
from .environment import utc_now
from .history import History, new_id
from .result import BenchRow, DeviceInfo, row_type
from .worker_process import visit_worker

STARTUP_LIMIT_S = 180.0  # from the start of a worker to its first word: imports, and the first CUDA context
KEPT_JOBS = 100  # ended jobs that view() still knows
GRACE_S = 20.0  # how long a job goes on that nobody looks at
_SURE_AFTER = 0.04  # of a job, before the rest of it is estimated

WORKER_COMMAND = (sys.executable, "-m", "flashmask_core.bench.worker", "--with-parent")


@dataclass(frozen=True)
class JobView:
    """A job as it is now."""

    id: str
    job: BenchJob
    state: str  # "queued", "running", "done", "failed", "cancelled"
    position: int | None  # 1 = next; 0 = running; None = ended
    fraction: float
    message: str
    rows: tuple[BenchRow, ...]  # TrainRows of a "train" job
    reason: str | None
    elapsed_s: float  # since it began to run
    where: DeviceInfo | None = None
    remaining_s: float | None = None
    unkept: str | None = None  # why its rows are not in the history

    @property
    def ended(self) -> bool:
        return self.state in ("done", "failed", "cancelled")


@dataclass
class _Record:
    """A job while the runner has it; guarded by the runner's lock."""

    id: str
    job: BenchJob
    state: str = "queued"
    fraction: float = 0.0
    message: str = ""
    reason: str | None = None
    rows: dict = field(default_factory=dict)  # (case index, provider, direction) -> BenchRow
    where: DeviceInfo | None = None
    cancel: bool = False
    watchers: list[Callable[[], bool]] = field(default_factory=list)
    seen: float = field(default_factory=time.monotonic)
    unkept: str | None = None
    began: float | None = None
    ended: float | None = None


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
        self._records: dict[str, _Record] = {}
        self._waiting: deque[_Record] = deque()
        self._running: _Record | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, job: BenchJob, watcher: Callable[[], bool] | None = None) -> str:
        """Put a job at the end of the queue; returns its id. RuntimeError after close().

        watcher: says whether somebody looks at the job; with None it goes on to its end.
        """
        with self._lock:
            if self._closed:
                raise RuntimeError("the benchmark runner is closed")
            record = _Record(new_id(), job, message="waiting", watchers=[watcher] if watcher else [])
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
            position = None
            if record.state == "running":
                position = 0
            elif record.state == "queued":
                position = self._waiting.index(record) + 1
            until = time.monotonic() if record.ended is None else record.ended
            elapsed_s = 0.0 if record.began is None else until - record.began
            remaining_s = None
            if record.state == "running" and record.fraction >= _SURE_AFTER:
                remaining_s = elapsed_s * (1 - record.fraction) / record.fraction
            return JobView(
                record.id, record.job, record.state, position, record.fraction, record.message,
                tuple(record.rows.values()), record.reason, elapsed_s, record.where, remaining_s, record.unkept,
            )  # fmt: skip

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

    def _keep(self, record: _Record, write: Callable[[History], object]) -> None:
        """Write into the history of its kind; a file that does not take it stops no measurement."""
        history = self._histories.get(record.job.kind)
        if history is None or record.unkept:
            return
        try:
            write(history)
        except ValueError as problem:
            record.unkept = str(problem)

    def _tick(self, running: _Record) -> str | None:
        """Give up places in the queue that nobody waits for; why the running job is to be ended, or None."""
        with self._lock:
            for record in list(self._waiting):
                reason = self._stopped(record)
                if reason:
                    self._waiting.remove(record)
                    self._end(record, "cancelled", reason)
        return self._stopped(running)

    def _stopped(self, record: _Record) -> str | None:
        """Why a job is to be ended before its end, or None."""
        if record.cancel:
            return "cancelled"
        now = time.monotonic()
        if not record.watchers or any(_answer(watcher) for watcher in record.watchers):
            record.seen = now
        if now - record.seen > self._grace_s:
            return f"cancelled: its page was closed, and nobody has looked for {self._grace_s:g} s"
        return None

    def _end(self, record: _Record, state: str, reason: str | None = None) -> None:
        record.state, record.reason, record.ended = state, reason, time.monotonic()
        record.message = reason or state
        if state == "done":
            record.fraction = 1.0
        self._lock.notify_all()

    def _run(self, record: _Record, caches: str | None) -> tuple[str, str | None]:
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

    def _take(self, record: _Record, event: dict) -> None:
        match event["event"]:
            case "device":
                record.where = DeviceInfo(**event["where"])
            case "progress":
                with self._lock:
                    record.message = event["message"]
                    record.fraction = max(record.fraction, min(1.0, float(event["fraction"])))
            case "row":
                self._take_row(record, event["case"], row_type(record.job.kind).from_json(event["row"]))

    def _take_row(self, record: _Record, number: int, row: BenchRow) -> None:
        key = (number, row.provider, row.direction)
        if key in record.rows and record.rows[key].status == "ok":
            return  # measured before the worker ended
        with self._lock:
            record.rows[key] = row
        self._keep(record, lambda history: history.add(record.id, row))


def _answer(watcher: Callable[[], bool]) -> bool:
    try:
        return bool(watcher())
    except Exception:  # whoever cannot say any more is gone
        return False
