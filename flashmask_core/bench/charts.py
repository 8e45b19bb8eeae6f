"""What a chart of benchmark rows shows, as plain numbers: a page draws it with its library, a report as SVG.

One chart a question: how long, how much memory, how far off. One case makes bars, several make curves over what differs
between them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from .providers import CEILINGS, PROVIDERS
from .result import PLACES, BenchRow

LONGEST = 2**20  # tokens of the memory chart
MOST_STRIPS = 48  # of the error chart
_SPARSITY_NAME = re.compile(r"\d+ documents?")
_WIDE = 30
_LONGEST_REASON = 400  # characters
BYTES_A_PAIR, BYTES_A_KEY = 1, 16  # a bool mask; four int32 vectors


@dataclass(frozen=True)
class Series:
    """A line, or a row of bars. role: whose colour it has ("ours", "flex", "fa4", "dense", "ceiling", "other").

    low and high: the quartiles. computed: not measured, drawn dashed and without marks.
    """

    name: str
    role: str
    x: tuple
    y: tuple
    low: tuple = ()
    high: tuple = ()
    computed: bool = False
    measured_only: bool = False  # marks without a line


@dataclass(frozen=True)
class Chart:
    """kind "bars" (x are names, a series is a direction), "lines" (x numbers, or names), or "strips" (y are names, a
    series is one strip, its y the values along the sequence: None not compared, -1 no number).

    levels: horizontal lines to mark, (value, name).
    """

    kind: str
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    x_log: bool = False
    y_log: bool = False
    levels: tuple[tuple[float, str], ...] = ()


def engine_label(row: BenchRow) -> str:
    """The engine as people call it, its backend with it."""
    provider = PROVIDERS.get(row.provider)
    name = provider.label if provider else row.provider
    return f"{name} [{row.backend}]" if row.backend and row.backend not in name else name


def role_of(provider: str) -> str:
    """Whose colour an engine has."""
    for start, role in (("flashmask", "ours"), ("flex_fa4", "fa4"), ("fa4", "fa4"), ("flex", "flex"),
                        ("sdpa_dense", "dense")):  # fmt: skip
        if provider.startswith(start):
            return role
    return "ceiling" if provider in CEILINGS else "other"


def ordered(rows) -> list[BenchRow]:
    """Case by case as they came, the engines of a case in the order in which they are offered: a row that failed before
    the others were timed stands among them."""
    rank = {name: at for at, name in enumerate(PROVIDERS)}
    return [row for case in cases_of(rows).values() for row in sorted(case, key=lambda r: rank.get(r.provider, len(rank)))]


def reasons(rows) -> list[str]:
    """What did not go as it should, a line for each different one."""
    found: dict[str, list[str]] = {}
    for row in rows:
        said = "; ".join(filter(None, (row.reason, row.check if row.wrong else None, row.warning)))
        said = said if len(said) <= _LONGEST_REASON else f"{said[:_LONGEST_REASON]} …"
        if said:
            found.setdefault(f"{row.status}: {said}" if row.status != "ok" else said, []).append(engine_label(row))
    return [f"{', '.join(dict.fromkeys(names))}: {said}" for said, names in found.items()]


def cases_of(rows) -> dict[tuple, list[BenchRow]]:
    """Rows by case, in the order they came."""
    found: dict[tuple, list[BenchRow]] = {}
    for row in rows:
        found.setdefault(row.key[:-2], []).append(row)
    return found


def swept(rows) -> str | None:
    """What differs between the cases of rows: an axis of `sweep`, or None for one case."""
    if len(cases_of(rows)) < 2:
        return None
    for axis, field in (("seqlen", "seqlen_q"), ("head_dim", "head_dim"), ("block", "block")):
        if len({getattr(row, field) for row in rows}) > 1:
            return axis
    return "sparsity" if all(_SPARSITY_NAME.fullmatch(row.mask_name) for row in rows) else "mask"


_X_LABELS = {
    "seqlen": "sequence length N", "head_dim": "head dim D", "block": "tile side", "mask": "",
    "sparsity": "share of tiles computed, 1 - ρ",
}  # fmt: skip


def _x_of(row: BenchRow, axis: str, own_rho: dict) -> float | str | None:
    match axis:
        case "seqlen":
            return row.seqlen_q
        case "mask":
            return row.mask_name or row.mask[:40]
        case "sparsity":
            rho = own_rho.get(row.key[:-2])
            return None if rho is None else round(1 - rho, 4)
    return getattr(row, axis)


def time_chart(rows, direction: str | None = None) -> Chart | None:
    """Median times with quartiles: bars of one case, or curves of one direction over what is swept, or None."""
    rows = [row for row in rows if row.median_ms is not None]
    if not rows:
        return None
    axis = swept(rows)
    if axis is None:
        series = []
        for name in dict.fromkeys(row.direction for row in rows):
            part = [row for row in rows if row.direction == name]
            series.append(Series(name, "ours", tuple(map(engine_label, part)), *_spread(part)))
        return Chart("bars", "Time of one call", "", "ms, median and quartiles", tuple(series))
    directions = list(dict.fromkeys(row.direction for row in rows))
    direction = direction if direction in directions else directions[0]
    own_rho = {row.key[:-2]: row.rho for row in rows if row.computes == "mask"}
    series = []
    for name, part in _by_engine(row for row in rows if row.direction == direction).items():
        part = [row for row in part if _x_of(row, axis, own_rho) is not None]
        if axis != "mask":
            part.sort(key=lambda row: _x_of(row, axis, own_rho))
        if part:
            xs = tuple(_x_of(row, axis, own_rho) for row in part)
            marks = axis == "mask" or len(set(xs)) < len(xs)  # where more differs than x, a line would join other cases
            series.append(Series(name, role_of(part[0].provider), xs, *_spread(part), measured_only=marks))
    heights = [y for one in series for y in one.y]
    wide = bool(heights) and max(heights) > _WIDE * min(heights)  # too wide for a scale that begins at 0
    logs = {"x_log": axis in ("seqlen", "head_dim", "block"), "y_log": wide}
    return Chart("lines", f"Time of one {'training step' if direction == 'both' else direction + ' pass'}",
                 _X_LABELS[axis], "ms, median", tuple(series), **logs)  # fmt: skip


def _by_engine(rows) -> dict[str, list[BenchRow]]:
    found: dict[str, list[BenchRow]] = {}
    for row in rows:
        found.setdefault(engine_label(row), []).append(row)
    return found


def _spread(rows) -> tuple[tuple, tuple, tuple]:
    """(medians, lower quartiles, upper quartiles)."""
    return (tuple(row.median_ms for row in rows), tuple(row.lower_quartile_ms or row.median_ms for row in rows),
            tuple(row.upper_quartile_ms or row.median_ms for row in rows))  # fmt: skip


def memory_chart(rows) -> Chart:
    """Bytes of a mask over N to a million tokens: computed for the dense mask and the four vectors, measured where rows
    say what an engine kept on the device. The card's memory is marked."""
    lengths = tuple(2**power for power in range(10, LONGEST.bit_length()))
    planes = max((row.vector_bytes // (BYTES_A_KEY * row.seqlen_k) for row in rows if row.vector_bytes), default=1) or 1
    series = [
        Series("dense mask, computed: N × N", "dense", lengths, tuple(planes * BYTES_A_PAIR * n * n for n in lengths),
               computed=True),
        Series("four int32 vectors, computed: 16 N", "ours", lengths, tuple(planes * BYTES_A_KEY * n for n in lengths),
               computed=True),
    ]  # fmt: skip
    known = [row for row in rows if row.mask_bytes and row.seqlen_q == row.seqlen_k]
    for name, part in _by_engine(known).items():
        points = sorted({(row.seqlen_k, row.mask_bytes) for row in part})
        xs, ys = map(tuple, zip(*points))
        series.append(Series(f"{name}, measured", role_of(part[0].provider), xs, ys, measured_only=True))
    where = next((row.where for row in rows if row.where and row.where.total_memory_bytes), None)
    levels = ((where.total_memory_bytes, f"all of the memory of the {where.device}"),) if where else ()
    return Chart("lines", "Memory of the mask", "sequence length N", "bytes", tuple(series), x_log=True, y_log=True,
                 levels=levels)  # fmt: skip


def peak_chart(rows) -> Chart | None:
    """Peak memory above the inputs: bars of one case, curves over what is swept; None where none was measured."""
    measured = [replace(row, median_ms=float(row.peak_memory_bytes), lower_quartile_ms=None, upper_quartile_ms=None)
                for row in rows if row.peak_memory_bytes]  # fmt: skip
    chart = time_chart(measured)
    if chart is None:
        return None
    about = f", {measured[0].direction}" if chart.kind == "lines" else ""
    return replace(chart, title=f"Peak memory above the inputs{about}", y_label="bytes")


def error_chart(rows) -> Chart | None:
    """Where along the sequence each tensor is off, as a share of what is allowed; None where nothing was compared."""
    series = []
    several = len(cases_of(rows)) > 1
    for row in rows:
        if row.direction == "both" and len({r.direction for r in rows if r.provider == row.provider}) > 1:
            continue  # the same tensors again
        for name, error in (row.errors or {}).items():
            if error.places is None:
                continue
            scale = error.limit or 1.0
            values = tuple(None if at is None else -1.0 if at < 0 else at / scale for at in error.places)
            case = f", {row.mask_name or row.mask[:24]} {row.seqlen_q:,}" if several else ""
            parts = tuple(range(len(values)))
            series.append(Series(f"{engine_label(row)} {name}{case}", role_of(row.provider), parts, values))
    if not series:
        return None
    title = "Where the error is"
    if len(series) > MOST_STRIPS:
        worst = sorted(series, key=_strain, reverse=True)[:MOST_STRIPS]
        title += f", the {MOST_STRIPS} of {len(series):,} tensors nearest to what is allowed"
        series = [one for one in series if one in worst]
    return Chart("strips", title, f"along the sequence, in up to {PLACES} equal parts",
                 "largest error / allowed error", tuple(series))  # fmt: skip


def _strain(strip: Series) -> float:
    """The largest share of what is allowed; what is no number is beyond any."""
    return max((float("inf") if share < 0 else share for share in strip.y if share is not None), default=0.0)
