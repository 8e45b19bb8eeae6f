"""A job followed on a terminal, and the file of rows that lets the same command go on where it stopped."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from .config import BenchCase, BenchJob
from .history import History
from .job_record import JobView
from .result import BenchRow, dumps, resumed_rows
from .runner import BenchRunner
from .table import duration_text, header, row_line


def known_rows(path: Path | None) -> dict[tuple, BenchRow]:
    """Rows of an --out file that need no repetition, by key: those with a sound time, and what was skipped.

    A line that was cut short is taken off the file.
    """
    return {row.key: row for row in resumed_rows(path) if row.sound or row.status == "skipped"}


def check_target(option: str, path: Path | None) -> None:
    """ValueError where a file cannot be written, told before hours of measuring; nothing is left behind."""
    if path is None:
        return
    if path.is_dir():
        raise ValueError(f"{option}: {path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise ValueError(f"{option}: {path} cannot be written, there is no folder {path.parent}")
    there = path.exists()
    try:
        open(path, "a").close()
    except OSError as error:
        raise ValueError(f"{option}: {path} cannot be written ({error.strerror})") from None
    if not there:
        path.unlink()


def without_known(case: BenchCase, known: dict) -> BenchCase | None:
    """The case with the providers that the file lacks, or None if it lacks none."""
    left = tuple(
        p for p in case.providers
        if not all(BenchRow.of_case(case, p, direction).key in known for direction in case.passes)
    )  # fmt: skip
    return replace(case, providers=left) if left else None


def follow(job: BenchJob, *, out: Path | None, as_json: bool, keep: bool) -> tuple[JobView, list[BenchRow]]:
    """Run the job: rows are printed, and appended to `out`, as they come; progress goes to stderr. Ctrl-C cancels it.

    as_json: print lines of strict JSON in place of a table; keep: in the local history too.
    """
    runner = BenchRunner(history=History() if keep else None)
    progress = _Progress()
    shown: list[BenchRow] = []
    try:
        job_id = runner.submit(job)
        while True:
            view = runner.wait(job_id, 0.25)
            for row in view.rows[len(shown) :]:
                progress.clear()
                if not as_json and not shown:
                    print(header())
                print(dumps(row.to_json()) if as_json else row_line(row), flush=True)
                if out:
                    with open(out, "a", encoding="utf-8") as file:
                        file.write(dumps(row.to_json()) + "\n")
                shown.append(row)
            if view.ended:
                progress.clear()
                if view.unkept:
                    print(f"flashmask_core bench: {view.unkept}", file=sys.stderr)
                return view, shown
            left = "" if view.remaining_s is None else f"  about {duration_text(view.remaining_s)} left"
            progress.show(f"{view.fraction:4.0%}{left if progress.terminal else ''}  {view.message}")
    except KeyboardInterrupt:
        runner.cancel(job_id)
        return runner.wait(job_id, 10), shown
    finally:
        runner.close()


class _Progress:
    """One changing line on a terminal's stderr; elsewhere a line for every new message."""

    def __init__(self):
        self.terminal, self.last = sys.stderr.isatty(), ""

    def show(self, message: str) -> None:
        if message != self.last:
            end = "" if self.terminal else "\n"
            print(f"\r\x1b[K{message}" if self.terminal else message, end=end, file=sys.stderr, flush=True)
            self.last = message

    def clear(self) -> None:
        if self.terminal and self.last:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self.last = ""
