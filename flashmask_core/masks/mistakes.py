"""Which usual mistake turns the mask that was meant into the one that is there? Each is made and compared exactly."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from .compare import inside
from .errors import MaskSyntaxError
from .language import parse
from .outline import Outline
from .runs import MaskedRuns

_MAX_NUMBERS = 24  # of a text, of which each is tried one higher and one lower
_MAX_CELLS = 1 << 24  # of a mask that is turned over as a dense array


def explanations(runs: MaskedRuns, meant: MaskedRuns, text: str | None) -> Iterator[str]:
    """Sentences about mistakes that make exactly `runs` of `meant`; `text` is the meant mask's, where it has one."""
    for made, sentence in _mistakes(runs, meant, text):
        if made is not None and made.equals(runs):
            yield sentence


def _mistakes(runs: MaskedRuns, meant: MaskedRuns, text: str | None):
    shape = {"seqlen_q": runs.seqlen_q, "seqlen_k": runs.seqlen_k}
    shift = runs.seqlen_k - runs.seqlen_q
    own = np.arange(runs.seqlen_k) - shift
    causal = MaskedRuns.show(own, runs.seqlen_q, **shape)
    yield ~meant, "The polarity is turned around: what is visible should be hidden, and the other way round."
    yield meant & causal, "The causal flag is set and should not be: everything after the query's own token is hidden."
    if text and (without := _without_causal(text)):
        yield _runs(without, **shape), "The causal flag is missing: without it the future is visible."
    strict = MaskedRuns.show(own + 1, runs.seqlen_q, **shape)
    yield meant & strict, "A query is blind to its own key: k < q in place of k <= q."
    for rows, words in ((1, "one row too low"), (-1, "one row too high")):
        yield _moved(meant, rows), f"Every boundary lies {words}: an end counted off by one."
    if runs.seqlen_q != runs.seqlen_k and text:
        yield (
            _top_left(text, **shape),
            (f"It is aligned top-left, and {text[:60]} aligns bottom-right: the last query meets the last key."),
        )
    if runs.seqlen_q == runs.seqlen_k and runs.seqlen_q**2 <= _MAX_CELLS:
        yield MaskedRuns.from_dense(meant.to_dense().T.copy()), "Rows and columns are swapped: rows are queries."
    lengths = _as_lengths(meant)
    if lengths is not None:
        words = (
            "The ends are lengths: every document's end counts from its own start, and has to count from the start of"
        )
        yield lengths & causal if inside(meant, causal) else lengths, f"{words} the sequence."
    yield _next_length(meant, causal), "Every document has the length of the one behind it."
    if text:
        yield from _numbers_off_by_one(text, shape)


def _runs(text: str, seqlen_q: int, seqlen_k: int) -> MaskedRuns | None:
    try:
        return parse(text).runs(seqlen_q, seqlen_k)
    except (MaskSyntaxError, ValueError):
        return None


def _without_causal(text: str) -> str | None:
    """The text with the flag taken out of it: `causal & x` is x, causal_document is document."""
    canonical = str(parse(text))
    bare = canonical.replace("causal_document", "document").replace("causal & ", "").replace(" & causal", "")
    bare = re.sub(r"sliding_window\((\d+)\)", r"(q - k < \1)", bare)
    return bare if bare != canonical else ("full" if canonical == "causal" else None)


def _moved(meant: MaskedRuns, rows: int) -> MaskedRuns:
    """Every border a row lower or higher; the first and the last row keep what they hide."""
    starts = np.where(meant.starts == 0, 0, meant.starts + rows)
    ends = np.where(meant.ends == meant.seqlen_q, meant.seqlen_q, meant.ends + rows)
    return MaskedRuns.from_runs(meant.columns, starts, ends, seqlen_q=meant.seqlen_q, seqlen_k=meant.seqlen_k)


def _top_left(text: str, seqlen_q: int, seqlen_k: int) -> MaskedRuns | None:
    size = max(seqlen_q, seqlen_k)
    square = _runs(text, size, size)
    if square is None:
        return None
    part = square.part(0, seqlen_k)
    return MaskedRuns.from_runs(part.columns, part.starts, part.ends, seqlen_q=seqlen_q, seqlen_k=seqlen_k)


def documents_of(meant: MaskedRuns) -> list[int]:
    """The lengths of the documents of a square mask that fills its sequence with several; else an empty list."""
    lengths = Outline(meant).documents if meant.seqlen_q == meant.seqlen_k and meant.visible_pairs() else []
    return lengths if len(lengths) > 1 and sum(lengths) == meant.seqlen_k else []


def _as_lengths(meant: MaskedRuns) -> MaskedRuns | None:
    lengths = documents_of(meant)
    if not lengths:
        return None
    ends = np.repeat(lengths, lengths)
    return MaskedRuns.hide(ends, meant.seqlen_q, seqlen_q=meant.seqlen_q, seqlen_k=meant.seqlen_k)


def _next_length(meant: MaskedRuns, causal: MaskedRuns) -> MaskedRuns | None:
    lengths = documents_of(meant)
    if not lengths:
        return None
    moved = [*lengths[1:], lengths[0]]
    ends = np.repeat(np.cumsum(moved), moved)
    hidden = MaskedRuns.hide(ends, meant.seqlen_q, seqlen_q=meant.seqlen_q, seqlen_k=meant.seqlen_k)
    return hidden & causal


def _numbers_off_by_one(text: str, shape: dict):
    canonical = str(parse(text))
    for found in [*re.finditer(r"(?<![\w.])\d+", canonical)][:_MAX_NUMBERS]:
        number = int(found[0])
        for other in (number + 1, number - 1):
            changed = f"{canonical[: found.start()]}{other}{canonical[found.end() :]}"
            what = "the window is" if "window" in canonical[: found.start()][-24:] or "q - k" in canonical else "it is"
            yield (
                _runs(changed, **shape),
                f"The {number:,} of the text reads as {other:,}: {what} off by one"
                + (" (flash-attn's left and Paddle's window_size are w - 1)." if "window is" in what else "."),
            )
