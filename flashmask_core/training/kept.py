"""Training runs kept on this machine: a file of JSON lines a run, beside the history of benchmarks."""

from __future__ import annotations

import re
from pathlib import Path

from ..bench.history import history_path
from ..bench.result import dumps
from .result import TrainRow, read_lines


class KeptRuns:
    """Runs in a folder, made when something is first written; it takes what the job runner gives a history.

    Every method raises ValueError, naming the file, where it cannot be read or written.
    """

    def __init__(self, folder: str | Path | None = None):
        self.folder = Path(folder) if folder else history_path().with_name("training")

    def path(self, run_id: str) -> Path:
        if not re.fullmatch(r"[0-9a-z-]{1,32}", run_id):
            raise ValueError(f"run: {run_id[:40]!r} is no name of a run")
        return self.folder / f"{run_id}.jsonl"

    def begin(self, title: str, run_id: str) -> None:
        self._append(run_id, "")

    def add(self, run_id: str, row: TrainRow) -> None:
        self._append(run_id, dumps(row.to_json()) + "\n")

    def end(self, run_id: str, state: str, reason: str | None = None) -> None:
        """Rows are there as they came; how a run ended is not kept."""

    def rows(self, run_id: str) -> list[TrainRow]:
        """The rows of a run, the last of each measurement; an empty list for a run that is not there."""
        path = self.path(run_id)
        try:
            return list({row.key: row for row in read_lines(path)}.values()) if path.exists() else []
        except OSError as error:
            raise ValueError(f"{path} cannot be read: {error}") from None

    def runs(self, most: int = 20) -> list[str]:
        """The latest runs that have rows, newest first."""
        try:
            found = [(path.stat().st_mtime, path.stem) for path in self.folder.glob("*.jsonl") if path.stat().st_size]
        except OSError as error:
            raise ValueError(f"{self.folder} cannot be read: {error}") from None
        return [name for _, name in sorted(found, reverse=True)[:most]]

    def _append(self, run_id: str, text: str) -> None:
        path = self.path(run_id)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with open(path, "a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise ValueError(f"{path} cannot be written: {error}") from None
