"""What the runner knows of a job, and what it shows of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from .config import BenchJob
from .result import BenchRow, DeviceInfo

_SURE_AFTER = 0.04  # of a job, before the rest of it is estimated


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
class JobRecord:
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

    def view(self, position: int | None) -> JobView:
        """As it is now, at its place in the queue."""
        until = time.monotonic() if self.ended is None else self.ended
        elapsed_s = 0.0 if self.began is None else until - self.began
        remaining_s = None
        if self.state == "running" and self.fraction >= _SURE_AFTER:
            remaining_s = elapsed_s * (1 - self.fraction) / self.fraction
        return JobView(
            self.id, self.job, self.state, position, self.fraction, self.message, tuple(self.rows.values()), self.reason,
            elapsed_s, self.where, remaining_s, self.unkept,
        )  # fmt: skip

    def stopped(self, grace_s: float) -> str | None:
        """Why it is to be ended before its end, or None. grace_s: how long it goes on that nobody looks at."""
        if self.cancel:
            return "cancelled"
        now = time.monotonic()
        if not self.watchers or any(_answer(watcher) for watcher in self.watchers):
            self.seen = now
        if now - self.seen > grace_s:
            return f"cancelled: its page was closed, and nobody has looked for {grace_s:g} s"
        return None

    def end(self, state: str, reason: str | None = None) -> None:
        """It is over."""
        self.state, self.reason, self.ended = state, reason, time.monotonic()
        self.message = reason or state
        if state == "done":
            self.fraction = 1.0


def _answer(watcher: Callable[[], bool]) -> bool:
    try:
        return bool(watcher())
    except Exception:  # whoever cannot say any more is gone
        return False
