"""Runs as files and beside each other: CSV, strict JSON that can be read back, and a comparison row by row."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, fields

from .config import PASSES
from .result import BenchRow, DeviceInfo, dumps, lines_of

FORMAT, VERSION = "flashmask-bench", 1
MAX_FILE_BYTES = 32 * 2**20
MAX_ROWS = 20_000

_NUMBERS = (
    "median_ms", "lower_quartile_ms", "upper_quartile_ms", "repetitions", "tflops_rho", "tflops_density", "rho", "density",
    "peak_memory_bytes", "mask_bytes", "dense_mask_bytes", "vector_bytes", "mask_build_ms", "vectors_ms", "compile_ms",
)  # fmt: skip
_CASE = (
    "mask", "mask_name", "seqlen_q", "seqlen_k", "batch", "heads", "kv_heads", "head_dim", "dtype", "block", "provider",
    "backend", "computes", "direction", "status", "reason", "check", "warning",
)  # fmt: skip
DEVICE = ("device", "driver", "cuda_version", "torch_version", "triton_version", "library_version", "commit")
_TENSORS = ("out", "dq", "dk", "dv")


def to_csv(rows) -> str:
    """A line a row, all numbers in full; empty where nothing was measured."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    errors = [f"{kind}_{name}" for name in _TENSORS for kind in ("max_error", "naive_max_error")]
    writer.writerow([*_CASE, *_NUMBERS, *errors, *DEVICE, "date_utc"])
    for row in rows:
        found = row.errors or {}
        numbers = [getattr(found.get(name), kind, None) for name in _TENSORS for kind in ("max_error", "naive_max_error")]
        device = [getattr(row.where, name, None) for name in DEVICE]
        cells = [getattr(row, name) for name in (*_CASE, *_NUMBERS)]
        writer.writerow([no_formula(cell) for cell in [*cells, *numbers, *device, row.date_utc]])
    return out.getvalue()


def no_formula(cell):
    """A text that a spreadsheet would compute gets a quote before it."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@") else cell


def to_json(rows, title: str) -> str:
    """A run as strict JSON: plain ints, no NaN, a row a line; each device once."""
    devices, lines = lines_of(rows)
    head = {"format": FORMAT, "version": VERSION, "title": title, "devices": devices}
    return dumps(head)[:-1] + ', "rows": [\n' + ",\n".join(lines) + "\n]}\n"


def from_json(content: bytes) -> tuple[str, list[BenchRow]]:
    """(title, rows) of what `to_json` wrote, or of rows as lines of JSON, which have no title.

    ValueError, with the place, for anything else: a file that is too large, NaN, a field of another type.
    """
    if len(content) > MAX_FILE_BYTES:
        raise ValueError(f"wanted at most {MAX_FILE_BYTES:,} bytes, got {len(content):,}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("wanted JSON as UTF-8 text") from None
    try:
        record = _strict(text)
        records = record["rows"] if isinstance(record, dict) and "rows" in record else [record]
    except json.JSONDecodeError:
        record, records = None, [_line(line, at) for at, line in enumerate(text.split("\n"), 1) if line.strip()]
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if isinstance(record, dict) and "rows" in record:
        if record.get("format") != FORMAT or record.get("version") != VERSION:
            raise ValueError(f'wanted "format": "{FORMAT}" and "version": {VERSION}, as Export, JSON writes them')
    if not isinstance(records, list) or not 0 < len(records) <= MAX_ROWS:
        raise ValueError(f"wanted 1 to {MAX_ROWS:,} rows")
    devices = record.get("devices") if isinstance(record, dict) else None
    rows = []
    for number, one in enumerate(records, 1):
        try:
            if isinstance(one, dict) and type(one.get("where")) is int:
                one = {**one, "where": devices[one["where"]]}
            rows.append(_sensible(BenchRow.from_json(one)))
        except (ValueError, TypeError, IndexError) as error:
            raise ValueError(f"row {number}: {error}") from None
    title = record.get("title") if isinstance(record, dict) else None
    return (title if isinstance(title, str) else "")[:200], rows


_POSITIVE = (
    "seqlen_q", "seqlen_k", "batch", "heads", "kv_heads", "head_dim", "block", "median_ms", "lower_quartile_ms",
    "upper_quartile_ms", "repetitions", "peak_memory_bytes", "dense_mask_bytes", "vector_bytes",
)  # fmt: skip
_NOT_NEGATIVE = ("mask_bytes", "tflops_rho", "tflops_density", "rho", "density", "mask_build_ms", "vectors_ms", "compile_ms")
_DAY_MS = 86_400_000
_LONGEST = {"mask": 2**16, "reason": 2**12, "detail": 2**12, "check": 2**12, "warning": 2**12}  # characters; else 200


def _sensible(row: BenchRow) -> BenchRow:
    """The row, if its numbers and texts can be those of a measurement; ValueError naming the field."""
    for name in (*_POSITIVE, *_NOT_NEGATIVE):
        value = getattr(row, name)
        if value is not None and (value < 0 or value == 0 and name in _POSITIVE):
            raise ValueError(f"{name}: wanted {'more than 0' if name in _POSITIVE else '0 or more'}, got {value}")
        if value is not None and name.endswith("_ms") and value > _DAY_MS:
            raise ValueError(f"{name}: wanted at most a day, {_DAY_MS:,} ms, got {value}")
    if row.direction not in PASSES:
        raise ValueError(f"direction: wanted one of {', '.join(PASSES)}, got {row.direction[:40]!r}")
    for name in ("rho", "density"):
        if (getattr(row, name) or 0) > 1:
            raise ValueError(f"{name}: wanted at most 1, got {getattr(row, name)}")
    for holder in filter(None, (row, row.where)):
        for one in (field.name for field in fields(holder)):
            text, most = getattr(holder, one), _LONGEST.get(one, 200)
            if isinstance(text, str) and len(text) > most:
                raise ValueError(f"{one}: wanted at most {most:,} characters, got {len(text):,}")
    for name, error in (row.errors or {}).items():
        if name not in _TENSORS:
            raise ValueError(f"errors: wanted some of {', '.join(_TENSORS)}, got {name[:40]!r}")
        if min(error.max_error or 0, error.naive_max_error or 0, error.reference_max) < 0:
            raise ValueError(f"errors: wanted differences of 0 or more for {name}")
    return row


def _strict(text: str):
    def refused(name: str):
        raise ValueError(f"it holds {name}, which is no JSON")

    return json.loads(text, parse_constant=refused)


def _line(line: str, number: int):
    try:
        return _strict(line)
    except (json.JSONDecodeError, RecursionError):
        raise ValueError(f"line {number} is no JSON") from None


@dataclass(frozen=True)
class Pair:
    """The same measurement in two runs; None where a run lacks it."""

    key: tuple
    first: BenchRow | None
    second: BenchRow | None

    @property
    def ratio(self) -> float | None:
        """Second median over first; None where one of them was not timed."""
        if not (self.first and self.second and self.first.median_ms and self.second.median_ms):
            return None
        return self.second.median_ms / self.first.median_ms

    @property
    def apart(self) -> bool | None:
        """Whether the quartiles do not overlap, so that the difference is more than the spread of either."""
        if self.ratio is None:
            return None
        first, second = (
            (row.lower_quartile_ms or row.median_ms, row.upper_quartile_ms or row.median_ms)
            for row in (self.first, self.second)
        )
        return first[1] < second[0] or second[1] < first[0]


def compare(first, second) -> list[Pair]:
    """Rows of two runs side by side by what they measure (`BenchRow.key`), in the first one's order."""
    firsts, seconds = ({row.key: row for row in rows} for rows in (first, second))
    return [Pair(key, firsts.get(key), seconds.get(key)) for key in dict.fromkeys([*firsts, *seconds])]


def devices_of(rows) -> list[DeviceInfo]:
    """The different devices and versions of rows, in order."""
    return list(dict.fromkeys(row.where for row in rows if row.where))
