"""Whether a row can be right at all: its case, times and shares, before it is kept for others or shown to them."""

from __future__ import annotations

from datetime import datetime

from ..masks.expr import MAX_SEQLEN
from ..masks.language import parse
from .config import PASSES, BenchCase
from .result import BenchRow

_SIZES = ("seqlen_q", "seqlen_k", "batch", "heads", "kv_heads", "head_dim", "block")
_OF_A_TIME = ("median_ms", "lower_quartile_ms", "upper_quartile_ms", "tflops_rho", "tflops_density", "rho", "density")
_ABOVE_0 = ("median_ms", "lower_quartile_ms", "upper_quartile_ms", "repetitions")
_NOT_BELOW_0 = (
    "tflops_rho", "tflops_density", "peak_memory_bytes", "mask_bytes", "dense_mask_bytes", "vector_bytes",
    "mask_build_ms", "vectors_ms", "compile_ms",
)  # fmt: skip


class RowCheck:
    """Looks at one row after another; each distinct mask is built once."""

    def __init__(self):
        self._built: dict[tuple[str, int, int], str | None] = {}

    def __call__(self, row: BenchRow) -> None:
        """ValueError, naming the field, for a row that cannot be right."""
        check_row(row)
        mask = row.mask, row.seqlen_q, row.seqlen_k
        if mask not in self._built:
            self._built[mask] = _problem(*mask)
        if self._built[mask]:
            raise ValueError(f"mask: {self._built[mask]}")


def check_row(row: BenchRow) -> None:
    """ValueError, naming the field, for a row that cannot be right whatever its mask is."""
    for name in _SIZES:
        if getattr(row, name) > MAX_SEQLEN:
            raise ValueError(f"{name}: wanted at most {MAX_SEQLEN:,}, got {getattr(row, name):,}")
    if row.direction not in PASSES:
        raise ValueError(f"direction: wanted one of {', '.join(PASSES)}, got {row.direction[:40]!r}")
    BenchCase(
        row.mask, row.seqlen_q, row.seqlen_k, row.batch, row.heads, row.kv_heads, row.head_dim, row.dtype,
        block=row.block, providers=(row.provider,),
    )  # fmt: skip
    _check_numbers(row)
    if row.date_utc is not None:
        _check_date(row.date_utc)


def _check_numbers(row: BenchRow) -> None:
    for name in _OF_A_TIME if row.status == "ok" else ():
        if getattr(row, name) is None:
            raise ValueError(f"{name}: wanted a number in a row that is ok, got null")
    for names, fits, wanted in (
        (_ABOVE_0, lambda x: x > 0, "more than 0"), (_NOT_BELOW_0, lambda x: x >= 0, "0 or more"),
        (("rho", "density"), lambda x: 0 <= x <= 1, "0 to 1"),
    ):  # fmt: skip
        for name in names:
            value = getattr(row, name)
            if value is not None and not fits(value):
                raise ValueError(f"{name}: wanted {wanted}, got {value:g}")
    if row.status == "ok" and not row.lower_quartile_ms <= row.median_ms <= row.upper_quartile_ms:
        raise ValueError(f"median_ms: wanted between its quartiles, got {row.median_ms:g}")


def _check_date(text: str) -> None:
    try:
        datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"date_utc: wanted a date such as 2026-01-31T12:00:00+00:00, got {text[:40]!r}") from None


def _problem(text: str, seqlen_q: int, seqlen_k: int) -> str | None:
    """Why a mask cannot be built, on one line; None where it can."""
    try:
        parse(text).runs(seqlen_q, seqlen_k)
    except ValueError as error:
        return f"{text[:60]!r}: {str(error).splitlines()[0][:120]}"
    return None
