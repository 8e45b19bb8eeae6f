"""What came out of training: a frozen TrainRow a task, engine and context, what rows say together, and rows as files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ..bench.report import DEVICE, no_formula
from ..bench.result import STATUSES, DeviceInfo, dumps, lines_of, read_record, read_rows
from .case import TrainCase

RECORDED_PATH = Path(__file__).resolve().parents[1] / "data" / "training_results.json"
FORMAT, VERSION = "flashmask-training", 1


@dataclass(frozen=True)
class TrainRow:
    """One task, one engine, one context. None is "not measured", never 0 or NaN.

    tokens_per_s is the median of the timed steps; it counts the tokens of examples, not padding, and the time of making
    the mask and the batch and of the optimizer's step; None on a CPU, where our kernels are interpreted. With longest,
    context is the longest of which a step fits (at_least: the search ended there, not the memory), else the one that was
    asked for. Sizes in bytes, times in seconds.
    """

    task: str
    engine: str
    context: int
    status: str  # "ok", "skipped", "failed"
    longest: bool = False
    at_least: bool = False
    reason: str | None = None  # why skipped or failed
    tokens_per_s: float | None = None
    step_s: tuple[float, ...] = ()  # of every timed step
    peak_memory_bytes: int | None = None  # of the whole training step: weights, optimizer, activations, mask
    losses: tuple[float, ...] = ()  # of every step from the first, warm-up included
    rho: float | None = None  # EMPTY tiles / tiles of 128 x 128, mean over the timed sequences
    adapters: str | None = None  # of LoRA: "peft" or "plain"
    data: str = ""
    model: dict[str, int] = field(default_factory=dict)
    dtype: str = "bfloat16"
    deterministic: bool = False
    steps: int = 0
    warmup: int = 0
    where: DeviceInfo | None = None
    date_utc: str | None = None

    def __post_init__(self):
        if self.status not in STATUSES:
            raise ValueError(f"status: wanted one of {', '.join(STATUSES)}, got {self.status!r}")
        if self.status != "ok" and not self.reason:
            raise ValueError(f"reason: a {self.status} row needs one")

    @classmethod
    def of_case(cls, case: TrainCase, engine: str, direction: str, status: str = "ok", **values) -> "TrainRow":
        """A row that takes what was trained from its case; direction is "step" or "longest"."""
        model = {name: int(value) for name, value in asdict(case.model).items()}
        of_case = dict(
            context=case.context, data=case.data, model=model, dtype=case.dtype, deterministic=case.deterministic,
            steps=case.steps, warmup=case.warmup,
        )  # fmt: skip
        return cls(task=case.task, engine=engine, status=status, longest=direction == "longest", **{**of_case, **values})

    @property
    def provider(self) -> str:
        return self.engine

    @property
    def direction(self) -> str:
        return "longest" if self.longest else "step"

    @property
    def setting(self) -> tuple:
        """What has to be the same for two rows to be held against each other: all but engine, context and device."""
        return self.task, *self.setup

    @property
    def setup(self) -> tuple:
        """What rows that stand in one chart share: examples, model and precision."""
        return self.data, *sorted(self.model.items()), self.dtype, self.deterministic

    @property
    def key(self) -> tuple:
        """What makes two rows measurements of the same thing."""
        at = ("longest",) if self.longest else (self.context, self.steps, self.warmup)
        return (*self.setting, self.engine, *at)

    def to_json(self) -> dict:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: dict) -> "TrainRow":
        """The row written by `to_json`. ValueError, naming the field, if it is none."""
        return read_record(cls, record, "row")


def beside(row: TrainRow, rows: Iterable[TrainRow], engine: str) -> TrainRow | None:
    """The row of another engine on the same batches and device, or None."""
    for other in rows:
        same = other.setting == row.setting and (other.where and other.where.device) == (row.where and row.where.device)
        if same and other.engine == engine and not other.longest and not row.longest and other.context == row.context:
            return other
    return None


def speedup(row: TrainRow, rows: Iterable[TrainRow], engine: str = "dense") -> float | None:
    """Tokens a second over those of another engine; None where one of the two has none."""
    other = beside(row, rows, engine)
    return row.tokens_per_s / other.tokens_per_s if other and row.tokens_per_s and other.tokens_per_s else None


def losses_apart(row: TrainRow, rows: Iterable[TrainRow], engine: str = "dense") -> float | None:
    """The largest difference of the loss from another engine's on the same step, as a share of it."""
    other = beside(row, rows, engine)
    if other is None or other is row or not row.losses or not other.losses:
        return None
    return max(abs(a - b) / max(abs(b), 1e-12) for a, b in zip(row.losses, other.losses))


_CELLS = (
    "task", "engine", "context", "longest", "at_least", "status", "reason", "tokens_per_s", "peak_memory_bytes", "rho",
    "adapters", "data", "dtype", "deterministic", "steps", "warmup",
)  # fmt: skip


def to_csv(rows: Iterable[TrainRow]) -> str:
    """A line a row, all numbers in full; empty where nothing was measured, steps and losses split by spaces."""
    rows = list(rows)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    model = list(dict.fromkeys(name for row in rows for name in row.model))
    writer.writerow([*_CELLS, "speedup_over_dense", *model, "step_s", "losses", *DEVICE, "date_utc"])
    for row in rows:
        several = (" ".join(map(str, values)) for values in (row.step_s, row.losses))
        device = (getattr(row.where, name, None) for name in DEVICE)
        cells = [*(getattr(row, name) for name in _CELLS), speedup(row, rows), *(row.model.get(name) for name in model)]
        writer.writerow([no_formula(cell) for cell in [*cells, *several, *device, row.date_utc]])
    return out.getvalue()


def to_json(rows: Iterable[TrainRow]) -> str:
    """Rows as one strict JSON object, a row a line, each device once."""
    devices, lines = lines_of(rows)
    head = {"format": FORMAT, "version": VERSION, "devices": devices}
    return dumps(head)[:-1] + ', "rows": [\n' + ",\n".join(lines) + "\n]}\n"


def read_lines(path: str | Path) -> list[TrainRow]:
    """As `read_rows` of the benchmark."""
    return read_rows(path, TrainRow, "training")


def recorded(path: str | Path = RECORDED_PATH) -> list[TrainRow]:
    """The recorded rows; an empty list where nothing has been recorded yet. ValueError for a file that is no record."""
    path = Path(path)
    if not path.exists():
        return []
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if (record["format"], record["version"]) != (FORMAT, VERSION):
            raise ValueError(f"wanted format {FORMAT}, version {VERSION}")
        devices = record["devices"]
        return [TrainRow.from_json({**row, "where": devices[row["where"]]}) for row in record["rows"]]
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise ValueError(f"{path}: not a recording of training ({type(error).__name__}: {error})") from None


def record(rows: Iterable[TrainRow], path: str | Path = RECORDED_PATH) -> int:
    """Add rows to a recording, in place of older rows of the same measurement; returns how many it then holds."""
    merged = {row.key: row for row in [*recorded(path), *rows]}
    draft = Path(f"{path}.draft")
    draft.write_text(to_json(merged.values()), encoding="utf-8")
    draft.replace(path)
    return len(merged)
