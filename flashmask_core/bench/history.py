"""The local history of benchmark runs: one SQLite file, whoever measured, in whatever process.

    history = History()                  # $FLASHMASK_HISTORY, else the user's data folder; see `history_path`
    run_id = history.begin(title="causal, 8,192", command="…")
    history.add(run_id, row)             # a BenchRow as soon as it is final; what is written survives a crash
    history.end(run_id, "done")
    for run in history.runs(): ...       # newest first
    rows = history.rows(run_id)

A run is what one job measured: its rows, and once the device, driver, versions, commit and date of all of them. Every
method opens the file, does one transaction and closes it, so threads and processes need no agreement beyond SQLite's.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from .environment import utc_now
from .result import BenchRow, dumps

_MIGRATIONS = (
    # 1: runs and their rows. The columns of a row are what is asked for; `record` is all of it, as strict JSON.
    """
    CREATE TABLE runs (
        id TEXT PRIMARY KEY, title TEXT NOT NULL, state TEXT NOT NULL, reason TEXT, origin TEXT NOT NULL,
        begun_utc TEXT NOT NULL, ended_utc TEXT, device TEXT, driver TEXT, versions TEXT, commit_id TEXT
    );
    CREATE TABLE results (
        run_id TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE, number INTEGER NOT NULL, mask TEXT NOT NULL,
        seqlen_q INTEGER NOT NULL, seqlen_k INTEGER NOT NULL, provider TEXT NOT NULL, direction TEXT NOT NULL,
        status TEXT NOT NULL, median_ms REAL, record TEXT NOT NULL, PRIMARY KEY (run_id, number)
    );
    """,
    # 2: the newest first.
    "CREATE INDEX runs_by_date ON runs(begun_utc);",
)
SCHEMA = len(_MIGRATIONS)
_BUSY_S = 5.0  # to wait for another process's transaction


@dataclass(frozen=True)
class Run:
    """One run without its rows. origin: "here", or the name of the file it came from."""

    id: str
    title: str
    state: str  # "running", "done", "failed", "cancelled"; "running" for ever if the process was ended
    reason: str | None
    origin: str
    begun_utc: str
    ended_utc: str | None
    device: str | None
    driver: str | None
    commit: str | None
    mask: str | None  # text of its first row
    rows: int


def history_path() -> Path:
    """$FLASHMASK_HISTORY, else flashmask/history.sqlite in the user's data folder ($XDG_DATA_HOME, %LOCALAPPDATA%)."""
    if os.environ.get("FLASHMASK_HISTORY"):
        return Path(os.environ["FLASHMASK_HISTORY"]).expanduser()
    folder = os.environ.get("XDG_DATA_HOME") or os.environ.get("LOCALAPPDATA") or "~/.local/share"
    return Path(folder).expanduser() / "flashmask" / "history.sqlite"


class History:
    """The file at a path, made when something is first written.

    Every method raises ValueError, naming the file, where it cannot be read or written or is of a later version.
    """

    def __init__(self, path: str | Path | None = None):
        self.path = Path(path) if path else history_path()

    def begin(self, title: str, run_id: str | None = None, origin: str = "here", begun_utc: str | None = None) -> str:
        """A new run without rows; returns its id, made up where none is given."""
        run_id = run_id or new_id()
        with self._open() as base:
            base.execute(
                "INSERT INTO runs (id, title, state, origin, begun_utc) VALUES (?, ?, 'running', ?, ?)",
                (run_id, title, origin, begun_utc or utc_now()),
            )
        return run_id

    def add(self, run_id: str, *rows: BenchRow) -> None:
        """Rows of a run, behind those it has; the device of the first one becomes the run's."""
        with self._open() as base:
            if not base.execute("SELECT 1 FROM runs WHERE id = ?", (run_id,)).fetchone():
                raise ValueError(f"the history {self.path} has no run {run_id} (any more): was the file moved or replaced?")
            (number,) = base.execute("SELECT COUNT(*) FROM results WHERE run_id = ?", (run_id,)).fetchone()
            for at, row in enumerate(rows, number):
                base.execute(
                    "INSERT INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (run_id, at, row.mask, row.seqlen_q, row.seqlen_k, row.provider, row.direction, row.status,
                     row.median_ms, dumps(row.to_json())),
                )  # fmt: skip
            where = next((row.where for row in rows if row.where), None)
            if where:
                base.execute(
                    "UPDATE runs SET device = ?, driver = ?, versions = ?, commit_id = ? WHERE id = ? AND device IS NULL",
                    (where.device, where.driver, dumps(asdict(where)), where.commit, run_id),
                )

    def end(self, run_id: str, state: str, reason: str | None = None, ended_utc: str | None = None) -> None:
        """Say how a run ended."""
        with self._open() as base:
            base.execute(
                "UPDATE runs SET state = ?, reason = ?, ended_utc = ? WHERE id = ?",
                (state, reason, ended_utc or utc_now(), run_id),
            )

    def runs(self, most: int = 200) -> list[Run]:
        """The latest runs that have rows, newest first; none where there is no file yet."""
        return self._runs("EXISTS (SELECT 1 FROM results WHERE run_id = id)", (most,))

    def run(self, run_id: str) -> Run | None:
        """One run, or None."""
        found = self._runs("id = ?", (run_id, 1))
        return found[0] if found else None

    def _runs(self, condition: str, values: tuple) -> list[Run]:
        if not self.path.exists():
            return []
        with self._open(write=False) as base:
            return [
                Run(*found) for found in base.execute(
                    "SELECT id, title, state, reason, origin, begun_utc, ended_utc, device, driver, commit_id, "
                    "(SELECT mask FROM results WHERE run_id = id AND number = 0), "
                    "(SELECT COUNT(*) FROM results WHERE run_id = id) FROM runs "
                    f"WHERE {condition} ORDER BY begun_utc DESC, rowid DESC LIMIT ?", values,
                )
            ]  # fmt: skip

    def rows(self, run_id: str) -> list[BenchRow]:
        """The rows of a run in the order they came; an empty list for a run that is not there. ValueError, naming the run,
        for one that cannot be read, such as one of a later version."""
        if not self.path.exists():
            return []
        with self._open(write=False) as base:
            found = base.execute("SELECT record FROM results WHERE run_id = ? ORDER BY number", (run_id,)).fetchall()
        try:
            return [BenchRow.from_json(json.loads(record)) for (record,) in found]
        except ValueError as error:
            raise ValueError(
                f"the run {run_id} of the history {self.path} cannot be read ({error}): was it kept by a later version? "
                f"`history remove {run_id}` forgets it"
            ) from None

    def remove(self, run_id: str) -> None:
        """Forget a run and its rows."""
        with self._open() as base:
            base.execute("DELETE FROM runs WHERE id = ?", (run_id,))

    @contextmanager
    def _open(self, write: bool = True) -> Iterator[sqlite3.Connection]:
        """A connection in one transaction, the schema brought up to date. Reading waits for no writer, and a file that
        cannot be written can still be read."""
        try:
            if write:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=_BUSY_S, isolation_level=None)) as base:
                base.execute("PRAGMA foreign_keys = ON")
                self._migrate(base)
                base.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                with base:  # commits, or rolls back on an exception
                    yield base
        except (sqlite3.Error, OSError) as error:
            raise ValueError(
                f"the history {self.path} cannot be used: {error}. Move the file away, or name another in FLASHMASK_HISTORY"
            ) from None

    def _migrate(self, base: sqlite3.Connection) -> None:
        (version,) = base.execute("PRAGMA user_version").fetchone()
        if version > SCHEMA:
            raise ValueError(
                f"the history {self.path} has schema {version}, of a later version of this program, which knows {SCHEMA}: "
                "update, or name another file in FLASHMASK_HISTORY"
            )
        if version == SCHEMA:
            return
        base.execute("BEGIN IMMEDIATE")
        with base:
            (version,) = base.execute("PRAGMA user_version").fetchone()  # another process may have been faster
            for number in range(version, SCHEMA):
                for statement in _MIGRATIONS[number].split(";"):
                    base.execute(statement)
            base.execute(f"PRAGMA user_version = {SCHEMA}")


def new_id() -> str:
    """A name for a run or a job that no other has, in this server or another."""
    return secrets.token_hex(6)


def import_run(history: History, title: str, rows: list[BenchRow], name: str) -> str:
    """Keep rows that somebody else measured, as a run from the file `name`; returns its id."""
    begun = min((row.date_utc for row in rows if row.date_utc), default=None)
    run_id = history.begin(title or name, origin=name, begun_utc=begun)
    history.add(run_id, *rows)
    history.end(run_id, "done", ended_utc=begun)
    return run_id
