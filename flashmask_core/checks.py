"""Checks of plain arguments, with messages that name them."""

from __future__ import annotations

from numbers import Integral


def whole(name: str, value, low: int, high: int | None = None) -> int:
    """The value as an int from `low` to `high`; TypeError or ValueError naming it otherwise."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name}: wanted a whole number, got {value!r}")
    if value < low or (high is not None and value > high):
        wanted = f"at least {low:,}" if high is None else f"{low:,} to {high:,}"
        raise ValueError(f"{name}: wanted {wanted}, got {value:,}")
    return int(value)
