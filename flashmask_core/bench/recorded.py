"""Results that were recorded on GPUs by our own bench command and are shipped with the library.

The file is strict JSON: {"schema": 1, "about": text, "where": [DeviceInfo, ...], "rows": [BenchRow with "where" an
index, ...]}, a row a line, so that two recordings can be compared by eye. It keeps the rows of every device beside each
other; what is told without the name of a device is RECORDED_DEVICE's.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from .result import BenchRow, dumps, lines_of
from .row_check import RowCheck

try:
    import fcntl
except ImportError:  # Windows: two at once may lose each other's rows
    fcntl = None

RECORDED_PATH = Path(__file__).resolve().parents[1] / "data" / "h200_results.json"
RECORDED_DEVICE = "NVIDIA H200"
SCHEMA = 1


def recorded_results(path: str | Path = RECORDED_PATH) -> list[BenchRow]:
    """The recorded rows of every device; an empty list where nothing has been recorded yet.

    ValueError, with what is wrong and the way out, for a file that is no recording or has a row that cannot be right.
    """
    path = Path(path)
    if not path.exists():
        return []
    try:
        return _rows(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        wrong = f"no JSON from line {error.lineno} on"
    except (UnicodeDecodeError, RecursionError):
        wrong = "no text of ours"
    except OSError as error:
        wrong = f"it cannot be read ({error.strerror})"
    except ValueError as error:
        wrong = str(error)
    again = "Restore it with git or install again, or delete it and measure anew with bench --reproduce."
    if path != RECORDED_PATH:
        again = "Delete it and record again."
    raise ValueError(f"{path} is damaged: {wrong}. {again}")


def _rows(text: str) -> list[BenchRow]:
    """The rows of a recording's text; ValueError naming the row and the field."""
    record = json.loads(text)
    if not isinstance(record, dict):
        raise ValueError(f"wanted an object, got {type(record).__name__}")
    if record.get("schema") != SCHEMA:
        raise ValueError(f"schema: wanted {SCHEMA}, got {str(record.get('schema'))[:40]}")
    for name in ("where", "rows"):
        if not isinstance(record.get(name), list):
            raise ValueError(f"{name}: wanted a list, got {type(record.get(name)).__name__}")
    rows, check, where = [], RowCheck(), record["where"]
    for number, row in enumerate(record["rows"], 1):
        try:
            if not isinstance(row, dict):
                raise ValueError(f"wanted an object, got {type(row).__name__}")
            place = row.get("where")
            if type(place) is not int or not 0 <= place < len(where):
                raise ValueError(f"where: wanted 0 to {len(where) - 1}, got {str(place)[:40]}")
            rows.append(BenchRow.from_json({**row, "where": where[place]}))
            check(rows[-1])
        except ValueError as error:
            raise ValueError(f"row {number}: {error}") from None
    return rows


def rows_of(rows: Iterable[BenchRow], device: str = RECORDED_DEVICE) -> list[BenchRow]:
    """The rows of a device that have a sound time."""
    return [row for row in rows if row.sound and row.where and row.where.device == device]


def shipped_results(device: str = RECORDED_DEVICE) -> list[BenchRow]:
    """The shipped rows of a device with a sound time, for what works without them too: none where the file cannot be
    read; `shipped_problem` says why."""
    return rows_of(_shipped()[0], device)


def shipped_devices() -> list[str]:
    """The devices that the shipped results have rows of, as DeviceInfo names them."""
    return list(dict.fromkeys(row.where.device for row in _shipped()[0] if row.sound and row.where))


def shipped_problem() -> str | None:
    """What is wrong with the file of the shipped results, and the way out; or None."""
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


def record_results(rows: Iterable[BenchRow], path: str | Path = RECORDED_PATH) -> int:
    """Add the rows that have a sound time to a recording, in place of older rows of the same measurement on the same
    device; returns how many it then holds. Several processes may do so at once.

    ValueError for a row that cannot be right, and for a recording that is damaged; the file is then as it was.
    """
    path, sound, check = Path(path), [row for row in rows if row.sound], RowCheck()
    for row in sound:
        try:
            check(row)
        except ValueError as error:
            raise ValueError(f"not recorded: {row.mask[:40]!r}, {row.provider}, {row.direction}: {error}") from None
    try:
        return _merge(sound, path)
    except OSError as error:
        raise ValueError(f"{path}: cannot be written ({error.strerror})") from None


def _merge(sound: list[BenchRow], path: Path) -> int:
    with _alone(path):
        merged = {(row.where and row.where.device, row.key): row for row in [*recorded_results(path), *sound]}
        where, lines = lines_of(merged.values())
        about = "Recorded by `python -m flashmask_core bench ... --record`; times in ms, sizes in bytes, see BenchRow."
        head = f'{{"schema": {SCHEMA}, "about": {dumps(about)}, "where": {dumps(where)}, "rows": [\n'
        draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.draft")
        try:
            draft.write_text(head + ",\n".join(lines) + "\n]}\n", encoding="utf-8")
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    return len(merged)


@contextmanager
def _alone(path: Path):
    """No other process is in here for the same file meanwhile; the lock file beside it is gone afterwards."""
    if fcntl is None:
        yield
        return
    name = path.with_name(f".{path.name}.lock")
    while True:
        lock = open(name, "w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        if name.exists() and os.path.samestat(os.fstat(lock.fileno()), name.stat()):
            break
        lock.close()  # whoever held it has taken this one away
    try:
        yield
    finally:
        name.unlink(missing_ok=True)
        lock.close()
