"""Errors of the mask language and the encoding; all are ValueErrors."""

from __future__ import annotations

import numpy as np


class MaskSyntaxError(ValueError):
    """A mask text that is not in the language. `.position` is the offending character's offset, or None."""

    def __init__(self, message: str, text: str = "", position: int | None = None):
        self.text, self.position = text, position
        super().__init__(message)

    def __reduce__(self):
        return type(self), (str(self), self.text, self.position)


def pointed_at(error: MaskSyntaxError, place: tuple[str, int] | None) -> MaskSyntaxError:
    """The error with the text below it and a caret under the character at `place` = (text, position)."""
    if place is None or error.position is not None:
        return error
    text, position = place
    position = min(position, len(text))
    first, last = max(0, position - 60), position + 60
    line = "".join(" " if c.isspace() else c for c in text[first:last])
    before, behind = "…" if first else "", "…" if last < len(text) else ""
    caret = " " * (position - first + len(before)) + "^"
    return MaskSyntaxError(f"{error}\n  {before}{line}{behind}\n  {caret}", text, position)


class NotRepresentableError(ValueError):
    """A mask with more than two masked runs in some column, so that four vectors cannot hold it.

    `.columns` lists every such column (of any batch entry or head), `.max_runs` the most runs of one column. `.runs` is
    the mask as MaskedRuns, for `flashmask_core.fit`, if it has one batch entry and head and not too many runs to keep;
    else None. `.planes` has the (batch entry, mask head) of those of several that do not fit, where that is known.
    """

    def __init__(self, columns: list[int], max_runs: int, runs=None, planes: tuple[tuple[int, int], ...] = ()):
        self.columns, self.max_runs, self.runs, self.planes = columns, max_runs, runs, planes
        shown = ", ".join(map(str, columns[:8])) + (", …" if len(columns) > 8 else "")
        super().__init__(
            f"{len(columns)} column{'s' if len(columns) != 1 else ''} ({shown}) need up to {max_runs} masked runs, "
            f"and FlashMask stores at most 2 a column. flashmask_core.fit(...) gives the nearest masks that fit and "
            f"the exact answer in several passes."
        )

    def __reduce__(self):  # an error crosses process borders
        return type(self), (self.columns, self.max_runs, None, self.planes)

    @classmethod
    def of(cls, *runs, planes: int = 1) -> "NotRepresentableError":
        """From the MaskedRuns that do not fit, of a mask with so many planes in all."""
        columns = np.unique(np.concatenate([np.flatnonzero(r.counts > 2) for r in runs]))
        return cls(columns.tolist(), int(max(r.counts.max() for r in runs)), runs[0] if planes == 1 else None)
