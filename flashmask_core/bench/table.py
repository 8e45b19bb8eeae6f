"""Benchmark rows as lines of text for a terminal."""

from __future__ import annotations

from .peaks import unknown_peak
from .report import Pair
from .result import BenchRow, DeviceInfo

_COLUMNS = (
    ("mask", -22), ("provider", -24), ("pass", -8), ("ms", 9), ("quartiles", 19), ("TFLOP/s", 8), ("by density", 10),
    ("peak MiB", 9), ("mask bytes", 13), ("build ms", 8), ("check", -6),
)  # fmt: skip

_PAIR_COLUMNS = (
    ("mask", -22), ("N", 9), ("D", 4), ("provider", -21), ("pass", -8), ("1, ms", 10), ("2, ms", 10), ("2 / 1", 7),
    ("difference", -22),
)  # fmt: skip

_LEGEND = (
    "TFLOP/s counts 4*B*H*Sq*Sk*D*(1-rho), rho of 128x128 tiles by the exact rule; 'by density' counts 4*D for each "
    "visible pair; backward 2.5 times that.\nPeak is above q, k, v (and dout), the mask in it. The ceilings "
    "(sdpa_full_*, sdpa_causal_*) compute full or causal attention, not the mask."
)


def legend(rows) -> str:
    """What the columns of rows count, and whose rates are held against no peak."""
    unknown = dict.fromkeys(unknown_peak(row.where) for row in rows if row.tflops_density is not None)
    return "\n".join([_LEGEND, *filter(None, unknown)])


def header() -> str:
    return _line([name for name, _ in _COLUMNS])


def row_line(row: BenchRow) -> str:
    """A row; one that was skipped or failed shows its reason in place of numbers."""
    provider = row.provider if row.backend is None or row.backend in row.provider else f"{row.provider} ({row.backend})"
    names = [row.mask_name or _short(row.mask, 22), provider, row.direction]
    if row.median_ms is None:
        reason = row.reason or row.check or row.status
        return f"{_line(names)}  {row.status}: {reason}" if row.status != "ok" else f"{_line(names)}  {reason}"
    line = _line(
        names
        + [
            f"{row.median_ms:.3f}", f"{row.lower_quartile_ms:.3f} - {row.upper_quartile_ms:.3f}",
            f"{row.tflops_rho:.1f}", f"{row.tflops_density:.1f}",
            "" if row.peak_memory_bytes is None else f"{row.peak_memory_bytes / 2**20:,.0f}",
            "" if row.mask_bytes is None else f"{row.mask_bytes:,}",
            "" if row.mask_build_ms is None else f"{row.mask_build_ms:.2f}",
            (row.check or "").split(":")[0],
        ]
    )  # fmt: skip
    return f"{line}  {row.check}" if row.wrong else line


def pair_header() -> str:
    return _line([name for name, _ in _PAIR_COLUMNS], _PAIR_COLUMNS)


def pair_line(pair: Pair) -> str:
    """The same measurement in two runs."""
    row = pair.first or pair.second
    times = ["" if one is None else one.status if one.median_ms is None else f"{one.median_ms:.3f}"
             for one in (pair.first, pair.second)]  # fmt: skip
    said = {True: "beyond the quartiles", False: "within the quartiles", None: ""}[pair.apart]
    if not (pair.first and pair.second):
        said = f"only in {1 if pair.first else 2}"
    names = [row.mask_name or _short(row.mask, 22), f"{row.seqlen_q:,}", str(row.head_dim), row.provider, row.direction]
    ratio = "" if pair.ratio is None else f"{pair.ratio:.3f}"
    return _line([*names, *times, ratio, said], _PAIR_COLUMNS)


def matrix_lines(rows, direction: str) -> list[str]:
    """A line a case, a column an engine: the median ms of a direction; what has none shows its status."""
    cases: dict[tuple, dict[str, BenchRow]] = {}
    for row in rows:
        if row.direction == direction:
            cases.setdefault(row.key[:-2], {})[row.provider] = row
    engines = list(dict.fromkeys(name for case in cases.values() for name in case))
    columns = (("mask", -22), ("N", 9), ("D", 4), *((name, max(9, len(name))) for name in engines))
    lines = [_line([f"{direction}, ms", "N", "D", *engines], columns)] if cases else []
    for case in cases.values():
        row = next(iter(case.values()))
        cells = [_short(row.mask_name or row.mask, 22), f"{row.seqlen_q:,}", str(row.head_dim)]
        for name in engines:
            one = case.get(name)
            cells.append("" if one is None else one.status if one.median_ms is None
                         else f"{one.median_ms:.3f}{'!' * one.wrong}")  # fmt: skip
        lines.append(_line(cells, columns))
    return lines


def where_line(where: DeviceInfo | None, date_utc: str | None = None) -> str:
    """Device, versions, commit and date on one line."""
    if where is None:
        return "device unknown"
    parts, (commit, *changes) = [where.device], (where.commit or "").split("+")
    for label, value in (
        ("driver", where.driver), ("CUDA", where.cuda_version), ("torch", where.torch_version),
        ("triton", where.triton_version), ("commit", "+".join([commit[:12], *changes])), ("", date_utc),
    ):  # fmt: skip
        if value:
            parts.append(f"{label} {value}".strip())
    return ", ".join(parts)


def duration_text(seconds: float) -> str:
    """ "8 s", "3 min", "1 h 20 min"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _line(cells: list[str], columns=_COLUMNS) -> str:
    padded = []
    for cell, (_, width) in zip(cells, columns):
        padded.append(cell.ljust(-width) if width < 0 else cell.rjust(width))
    return "  ".join(padded).rstrip()


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
