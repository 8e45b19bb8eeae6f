"""Results that were recorded on a GPU by our own bench command and are shipped with the library.

The file is strict JSON: {"schema": 1, "about": text, "where": [DeviceInfo, ...], "rows": [BenchRow with "where" an
index, ...]}, a row a line, so that two recordings can be compared by eye.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from .result import BenchRow, dumps, lines_of

RECORDED_PATH = Path(__file__).resolve().parents[1] / "data" / "h200_results.json"
SCHEMA = 1


def recorded_results(path: str | Path = RECORDED_PATH) -> list[BenchRow]:
    """The recorded rows; an empty list where nothing has been recorded yet. ValueError for a file that is no record."""
    path = Path(path)
    if not path.exists():
        return []
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["schema"] != SCHEMA:
            raise ValueError(f"wanted schema {SCHEMA}, got {record['schema']!r}")
        where = record["where"]
        return [BenchRow.from_json({**row, "where": where[row["where"]]}) for row in record["rows"]]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise ValueError(f"{path}: not a recording of ours ({type(error).__name__}: {error})") from None


def shipped_results() -> list[BenchRow]:
    """The shipped rows for what works without them too: none where the file cannot be read; `shipped_problem` says why."""
    return list(_shipped()[0])


def shipped_problem() -> str | None:
    """What is wrong with the file of the shipped results, or None."""
    return _shipped()[1]


def _shipped() -> tuple[tuple[BenchRow, ...], str | None]:
    return _read(RECORDED_PATH, RECORDED_PATH.stat().st_mtime_ns if RECORDED_PATH.exists() else 0)


@lru_cache(maxsize=1)
def _read(path: Path, changed: int) -> tuple[tuple[BenchRow, ...], str | None]:
    """(rows, what is wrong) of a file as it was when it last changed."""
    try:
        return tuple(recorded_results(path)), None
    except ValueError as error:
        return (), str(error)


def record_results(rows: list[BenchRow], path: str | Path = RECORDED_PATH) -> int:
    """Add rows to a recording, in place of older rows of the same measurement; returns how many it then holds."""
    merged = {row.key: row for row in [*recorded_results(path), *rows]}
    where, lines = lines_of(merged.values())
    about = "Recorded by `python -m flashmask_core bench ... --record`; times in ms, sizes in bytes, see BenchRow."
    head = f'{{"schema": {SCHEMA}, "about": {dumps(about)}, "where": {dumps(where)}, "rows": [\n'
    text = head + ",\n".join(lines) + "\n]}\n"
    draft = Path(f"{path}.draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
    return len(merged)
