"""What came out: a frozen BenchRow for each (case, provider, pass), and the device it ran on, as strict JSON."""

from __future__ import annotations

import json
import math
import types
import typing
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path

from .config import BenchCase

STATUSES = ("ok", "skipped", "failed")
PLACES = 64  # equal parts of the sequence for which a tensor's error is kept


def short_name(device: str) -> str:
    """What people call a device: "H200" of "NVIDIA H200"."""
    return device.removeprefix("NVIDIA ")


@dataclass(frozen=True)
class DeviceInfo:
    """Where and with what a row was measured; None where it could not be found out."""

    device: str  # "NVIDIA H200", or "CPU, Triton interpreter"
    compute_capability: str | None = None  # "9.0"
    total_memory_bytes: int | None = None
    driver: str | None = None
    cuda_version: str | None = None
    torch_version: str | None = None
    triton_version: str | None = None
    python_version: str | None = None
    library_version: str | None = None  # flashmask_core's
    commit: str | None = None  # of the checkout the library was imported from

    @property
    def short_name(self) -> str:
        """See `short_name`."""
        return short_name(self.device)


@dataclass(frozen=True)
class Errors:
    """Largest absolute differences from the fp32 reference, of one tensor."""

    max_error: float | None  # None: there is a NaN or an infinity in the tensor
    naive_max_error: float | None  # of plain torch in the same dtype, on the same inputs; None: NaN or infinity
    reference_max: float  # largest magnitude of the reference, for scale
    # The largest error in each of up to PLACES equal parts of the sequence, to 3 digits: None where nothing was
    # compared, -1 where there is a NaN or an infinity.
    places: tuple[float | None, ...] | None = None
    worst: tuple[int, int, int, int] | None = None  # (batch entry, head, position, channel) of the largest, or a NaN

    @property
    def passed(self) -> bool:
        """Finite, and no more than `limit`."""
        return self.max_error is not None and (self.limit is None or self.max_error <= self.limit)

    @property
    def limit(self) -> float | None:
        """Twice the naive error, and a little for rounding; None where plain torch itself gives no number."""
        return None if self.naive_max_error is None else 2 * self.naive_max_error + 1e-4 * self.reference_max


@dataclass(frozen=True)
class BenchRow:
    """One provider, one pass, one case. Times in ms, sizes in bytes; None is "not measured", never 0 or NaN.

    tflops_rho counts 4*B*H*Sq*Sk*D*(1-rho) FLOPs with rho of block x block tiles (128, as in the paper, unless the
    case says otherwise) by the exact rule; tflops_density counts 4*D for each visible pair. Both take 2.5 times that for
    the backward pass and 3.5 times for both.
    """

    mask: str
    mask_name: str
    provider: str
    direction: str  # "forward", "backward", or "both": a forward and its backward in one call
    status: str  # "ok", "skipped", "failed"
    seqlen_q: int
    seqlen_k: int
    batch: int
    heads: int
    kv_heads: int
    head_dim: int
    dtype: str
    block: int = 128  # side of the tiles that rho counts, and of FlexAttention's block mask
    reason: str | None = None  # why skipped or failed
    backend: str | None = None  # which kernel the provider ran
    computes: str | None = None  # "mask", or for the dense ceilings "full" or "causal"
    detail: str | None = None
    median_ms: float | None = None
    lower_quartile_ms: float | None = None
    upper_quartile_ms: float | None = None
    repetitions: int | None = None
    tflops_rho: float | None = None
    tflops_density: float | None = None
    rho: float | None = None  # EMPTY tiles / tiles of what the provider computes
    density: float | None = None  # visible pairs / pairs of what the provider computes
    peak_memory_bytes: int | None = None  # above q, k, v (and dout), in a process of its own; the mask is in it
    mask_bytes: int | None = None  # what the provider keeps on the device to know the mask
    dense_mask_bytes: int | None = None  # what a bool mask of a byte a pair would need
    vector_bytes: int | None = None  # what the four int32 vectors need
    mask_build_ms: float | None = None  # vectors on the device -> what the provider needs, compiled code at hand
    vectors_ms: float | None = None  # text -> the four vectors on the device
    compile_ms: float | None = None  # first build and first calls, which compile, less later ones; caches empty before
    check: str | None = None  # "passed", "failed: ...", "not run: ..."
    warning: str | None = None  # why this row's figures cannot be right
    errors: dict[str, Errors] | None = None  # "out", or "dq", "dk", "dv"
    where: DeviceInfo | None = None
    date_utc: str | None = None  # ISO 8601, seconds

    def __post_init__(self):
        if self.status not in STATUSES:
            raise ValueError(f"status: wanted one of {', '.join(STATUSES)}, got {self.status!r}")
        if self.status != "ok" and not self.reason:
            raise ValueError(f"reason: a {self.status} row needs one")

    @classmethod
    def of_case(cls, case: BenchCase, provider: str, direction: str, status: str = "ok", **values) -> "BenchRow":
        """A row that takes mask, shape and dtype from its case."""
        return cls(
            mask=case.mask, mask_name=case.mask_name, provider=provider, direction=direction, status=status,
            seqlen_q=case.seqlen_q, seqlen_k=case.seqlen_k, batch=case.batch, heads=case.heads, kv_heads=case.kv_heads,
            head_dim=case.head_dim, dtype=case.dtype, block=case.block, **values,
        )  # fmt: skip

    @property
    def key(self) -> tuple:
        """What makes two rows measurements of the same thing: the case, the provider, the direction."""
        block = () if self.block == 128 else (self.block,)
        return (self.mask, self.seqlen_q, self.seqlen_k, self.batch, self.heads, self.kv_heads, self.head_dim,
                self.dtype, *block, self.provider, self.direction)  # fmt: skip

    @property
    def wrong(self) -> bool:
        """Whether its result was compared with the reference and is not within the limits."""
        return (self.check or "").startswith("failed")

    @property
    def sound(self) -> bool:
        """Whether it has a time to show to others: measured, not found wrong, and nothing that speaks against it."""
        return self.status == "ok" and self.median_ms is not None and not self.wrong and not self.warning

    def to_json(self) -> dict:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: dict) -> "BenchRow":
        """The row written by `to_json`. ValueError, naming the field, if it is none."""
        return read_record(cls, record, "row")


def row_type(kind: str) -> type:
    """What the rows of a job of a kind are; all of them have a provider, a direction and a status."""
    if kind in ("train", "train_check"):
        from ..training.result import TrainRow

        return TrainRow
    return BenchRow


def read_record(cls, record, what: str):
    """A frozen dataclass from plain JSON values; every field's type is looked at. ValueError naming the field."""
    if not isinstance(record, dict):
        raise ValueError(f"{what}: wanted an object, got {type(record).__name__}")
    unknown = set(record) - {f.name for f in fields(cls)}
    if unknown:
        raise ValueError(f"{what}: unknown fields {', '.join(sorted(map(str, unknown)))[:200]}")
    wanted = _types_of(cls)
    values = {name: _value(value, wanted[name], name) for name, value in record.items()}
    try:
        return cls(**values)
    except TypeError as error:  # a field is missing
        raise ValueError(f"{what}: {error}") from None


@cache
def _types_of(cls) -> dict:
    return typing.get_type_hints(cls)


def _value(value, wanted, name: str):
    """The value of a field, converted from JSON; ValueError if it is of another type than `wanted`."""
    if isinstance(wanted, types.UnionType):
        if value is None:
            return None
        (wanted,) = (one for one in typing.get_args(wanted) if one is not types.NoneType)
    inner = typing.get_args(wanted)
    match typing.get_origin(wanted) or wanted:
        case kind if kind is tuple and isinstance(value, (list, tuple)) and len(value) <= PLACES:
            return tuple(_value(one, inner[0], name) for one in value)
        case kind if kind is dict and isinstance(value, dict):
            return {str(key): _value(one, inner[1], name) for key, one in value.items()}
        case kind if kind in (DeviceInfo, Errors):
            return read_record(kind, value, name)
        case kind if kind is float and type(value) in (int, float) and math.isfinite(value):
            return float(value)
        case kind if kind in (str, bool) and type(value) is kind:
            return value
        case kind if kind is int and type(value) is int and abs(value) < 2**63:
            return value
    raise ValueError(f"{name}: wanted {getattr(wanted, '__name__', wanted)}, got {str(value)[:60]!r}")


def dumps(record) -> str:
    """One line of strict JSON: no NaN, no Infinity (ValueError)."""
    return json.dumps(record, allow_nan=False, ensure_ascii=False)


def lines_of(rows) -> tuple[list[dict | None], list[str]]:
    """(devices, rows as lines of strict JSON) for a file: "where" of a row is the place of its device among them."""
    devices: list[dict | None] = []
    lines = []
    for row in rows:
        device = asdict(row.where) if row.where else None
        if device not in devices:
            devices.append(device)
        lines.append(dumps({**row.to_json(), "where": devices.index(device)}))
    return devices, lines


def read_rows(path: str | Path, row: type = BenchRow, what: str = "benchmark") -> list:
    """Rows of a JSON-lines file. A last line cut short is left out; another bad line is a ValueError that counts it."""
    rows = []
    lines = Path(path).read_text(encoding="utf-8", errors="replace").split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            rows.append(row.from_json(json.loads(line)))
        except ValueError as error:
            if number == len(lines) and isinstance(error, json.JSONDecodeError) and _begins_as(row, line):
                break
            raise ValueError(f"{path}, line {number}: no {what} row ({error})") from None
    return rows


def _begins_as(row: type, line: str) -> bool:
    """Whether a line can be the beginning of a row's: what else a file holds is somebody's and no row cut short."""
    start = f'{{"{fields(row)[0].name}": '
    return line.startswith(start) or start.startswith(line)


def resumed_rows(path: str | Path | None, row: type = BenchRow, what: str = "benchmark") -> list:
    """`read_rows` of a file that the next rows go to, if there is one: a line that was cut short is taken off it."""
    if path is None or not Path(path).exists():
        return []
    rows = read_rows(path, row, what)
    if not Path(path).read_bytes().endswith(b"\n"):
        Path(path).write_text("".join(dumps(one.to_json()) + "\n" for one in rows), encoding="utf-8")
    return rows
