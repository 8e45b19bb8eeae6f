"""The usual mistakes in a mask: what looks wrong by itself, and what explains how it differs from the one meant.

for finding in lint(mask):
    print(finding.level, finding.message)

lint(mask, meant="sliding_window(512)")     # "every number 512 of the text reads as 513: the window is off by one"
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .column_mask import ColumnMask
from .compare import compare, first_pairs, keys_seen, runs_of
from .language import parse
from .mistakes import documents_of, explanations
from .outline import Outline
from .runs import MaskedRuns

LEVELS = ("error", "warning", "note")
_LISTED = 3  # places that a message names


@dataclass(frozen=True)
class Finding:
    """Something about a mask that somebody should look at.

    Attributes:
        code: "flag", "ends", "empty rows", "unseen keys", "future", "future by one", "own key", "leak", "window",
            "differs" or "explained".
        level: "error" (the numbers contradict themselves, or the meant mask), "warning" (rarely wanted) or "note".
        message: one or two sentences with the numbers.
        pairs: how many (query, key) pairs it is about; 0 where it is about none.
        at: one of them, (query row, key), to look at; None where there is none.
    """

    code: str
    level: str
    message: str
    pairs: int = 0
    at: tuple[int, int] | None = None


def lint(mask, *, meant=None, documents=None) -> list[Finding]:
    """What may be wrong with a mask, the worst first; an empty list if nothing was found.

    mask: a ColumnMask with B = Hm = 1 (its vectors are judged as they were given, so lint it before `canonical()`),
        MaskedRuns, or bool [Sq, Sk], True where the query may attend.
    meant: the mask that was meant: one of the same kinds, or a text. The difference is counted, and where one of the
        usual mistakes turns the meant mask into exactly this one, it is named.
    documents: lengths of the documents that must not see each other, in key order; what leaks is counted. None: those
        of the meant mask, if it has several.

    Raises TypeError or ValueError for what is no mask, or of other lengths, and MaskSyntaxError for a wrong text.
    """
    runs = runs_of(mask)
    if not runs.seqlen_q or not runs.seqlen_k:
        return []
    findings = _given_numbers(mask, runs) if isinstance(mask, ColumnMask) else []
    if meant is not None:
        text = meant if isinstance(meant, str) else None
        wanted = parse(text).runs(runs.seqlen_q, runs.seqlen_k) if text is not None else runs_of(meant, "meant")
        findings += _meant(runs, wanted, text)
        documents = documents_of(wanted) if documents is None else documents
    findings += [*_documents(runs, documents)] if documents is not None else []
    findings += [*_unseen(runs), *_diagonal(runs)]
    if not documents:
        findings += _near_documents(runs)
    findings += _window(runs)
    return sorted(findings, key=lambda finding: LEVELS.index(finding.level))


def _given_numbers(mask: ColumnMask, runs: MaskedRuns) -> list[Finding]:
    """What the vectors say as they were given: read under the other flag, or ends in the wrong coordinates."""
    lts, lte, uts, ute = (v[0, 0].cpu().numpy() for v in mask.vectors)
    columns, flipped = np.arange(mask.seqlen_k), None
    many = max(1, mask.seqlen_k // 4)  # columns; a few odd ones may be meant
    if mask.causal and mask.bounds == 2 and (wrong := lte < lts).sum() >= many:
        flipped = f"{wrong.sum():,} columns have LTE above LTS, which hides nothing"
        other = MaskedRuns.hide(lts, mask.seqlen_q, seqlen_q=mask.seqlen_q, seqlen_k=mask.seqlen_k)
        other = other & MaskedRuns.hide(0, lte, seqlen_q=mask.seqlen_q, seqlen_k=mask.seqlen_k)
    elif not mask.causal and mask.bounds == 2 and (wrong := (ute >= lts) & (lts < mask.seqlen_q)).sum() >= many:
        flipped = f"{wrong.sum():,} columns hide every row, because UTE is not above LTS"
        other = MaskedRuns.hide(lts, ute, seqlen_q=mask.seqlen_q, seqlen_k=mask.seqlen_k)
        shift = mask.seqlen_k - mask.seqlen_q
        other = other & MaskedRuns.hide(0, columns - shift, seqlen_q=mask.seqlen_q, seqlen_k=mask.seqlen_k)
    if flipped:
        at = int(np.flatnonzero(wrong)[0])
        return [Finding(
            "flag", "error",
            f"The causal flag looks flipped: {flipped}, column {at} first. The same numbers with "
            f"causal={not mask.causal} show {other.visible_pairs():,} pairs in place of {runs.visible_pairs():,}.",
            at=(min(at, mask.seqlen_q - 1), at),
        )]  # fmt: skip
    own = columns - (mask.seqlen_k - mask.seqlen_q)  # the row of a key's own query
    early = (lts < own) & (lte == mask.seqlen_q) & (lts > 0) & (lts < mask.seqlen_q)
    if mask.causal and early.any():
        at = int(np.flatnonzero(early)[0])
        return [Finding(
            "ends", "error",
            f"{early.sum():,} columns end before they begin: column {at} is hidden from row {lts[at]} on, above its "
            f"own row {own[at]}. Document ends count rows from the start of the sequence, not from the start of the "
            f"document, and are no lengths.",
            at=(int(own[at]), at),
        )]  # fmt: skip
    return []


def _meant(runs: MaskedRuns, meant: MaskedRuns, text: str | None):
    found = compare(runs, meant)
    if found.equal:
        return
    for explained in explanations(runs, meant, text):
        yield Finding("explained", "error", explained)
    places = [f"query {q}, key {k}" for q, k in (found.first_extra(1) or found.first_missing(1))]
    yield Finding(
        "differs", "error",
        f"Not the mask that was meant: {found.extra_pairs:,} pairs are visible and should be hidden, "
        f"{found.missing_pairs:,} are hidden and should be visible, {places[0]} first.",
        found.extra_pairs + found.missing_pairs, (found.first_extra(1) or found.first_missing(1))[0],
    )  # fmt: skip


def _documents(runs: MaskedRuns, lengths):
    """What crosses the borders of documents that are given."""
    lengths = [int(length) for length in lengths]
    if min(lengths, default=0) < 0 or sum(lengths) > runs.seqlen_k:
        raise ValueError(
            f"documents: wanted lengths of 0 or more that fit {runs.seqlen_k:,} keys, got {sum(lengths):,}"
        )
    ends = np.cumsum(lengths)
    at = np.arange(runs.seqlen_k)
    number = np.searchsorted(ends, at, side="right")
    start, end = np.append(0, ends)[number], np.append(ends, runs.seqlen_k)[number]
    shift = runs.seqlen_k - runs.seqlen_q
    inside = MaskedRuns.show(start - shift, end - shift, seqlen_q=runs.seqlen_q, seqlen_k=runs.seqlen_k)
    leak = runs & ~inside
    if (pairs := leak.visible_pairs()) == 0:
        return
    (q, k), *_ = first_pairs(leak, 1)
    yield Finding(
        "leak", "error",
        f"Documents leak: {pairs:,} pairs in {len(keys_seen(leak)):,} columns see across a border, first query {q} of "
        f"document {number[min(q + shift, runs.seqlen_k - 1)] + 1} sees key {k} of document {number[k] + 1}.",
        pairs, (q, k),
    )  # fmt: skip


def _unseen(runs: MaskedRuns):
    shift = runs.seqlen_k - runs.seqlen_q
    empty = np.flatnonzero(runs.empty_rows())
    unavoidable = int((empty < -shift).sum())
    if len(empty) > unavoidable:
        rows = empty[unavoidable:]
        yield Finding(
            "empty rows", "warning",
            f"{_counted(len(rows), 'query sees', 'queries see')} nothing ({_places(rows)}): the output is 0 there. "
            f"Fine for padding, and NaN in libraries that do not guard against it.",
            at=(int(rows[0]), max(0, min(runs.seqlen_k - 1, int(rows[0]) + shift))),
        )  # fmt: skip
    unseen = np.ones(runs.seqlen_k, bool)
    unseen[keys_seen(runs)] = False
    keys = np.flatnonzero(unseen)
    if len(keys):
        yield Finding(
            "unseen keys", "note",
            f"{_counted(len(keys), 'key is', 'keys are')} seen by nobody ({_places(keys)}); padding, or work for "
            f"nothing.",
            at=(0, int(keys[0])),
        )  # fmt: skip


def _diagonal(runs: MaskedRuns):
    """The future, and a query's own key."""
    shape = {"seqlen_q": runs.seqlen_q, "seqlen_k": runs.seqlen_k}
    shift = runs.seqlen_k - runs.seqlen_q
    own = np.arange(runs.seqlen_k) - shift
    pairs = runs.visible_pairs()
    future = runs & MaskedRuns.show(0, own, **shape)
    ahead = future.visible_pairs()
    if ahead and ahead < pairs:
        first = first_pairs(future, 1)[0]
        beyond = (runs & MaskedRuns.show(0, own - 1, **shape)).visible_pairs()
        where = f"query {first[0]} sees key {first[1]} first"
        if beyond == 0 and ahead * 10 >= 9 * (min(runs.seqlen_q, runs.seqlen_k) - 1):
            words = (
                f"The future is visible by one token: {ahead:,} queries see the key after their own, query {first[0]} "
            )
            words += "first. Causal is k <= q, not k <= q + 1."
            yield Finding("future by one", "warning", words, ahead, first)
        else:
            few = ahead * 20 < pairs and int((~future.empty_rows()).sum()) * 4 < runs.seqlen_q
            words = "The future is visible in a few places" if few else "Not causal"
            words += f": {ahead:,} of {pairs:,} visible pairs have their key after the query, {where}."
            yield Finding("future", "warning" if few else "note", words, ahead, first)
    diagonal = MaskedRuns.show(own, own + 1, **shape)
    lacking = diagonal & ~runs
    seen = ~runs.empty_rows()
    rows = keys_seen(lacking) - shift
    rows = rows[seen[rows]]
    if len(rows):
        before = runs & MaskedRuns.show(own + 1, own + 2, **shape)  # queries that see the key before their own
        everyone = len(rows) >= int(seen.sum()) - 1 and before.visible_pairs() * 10 >= 9 * (len(rows) - 1)
        yield Finding(
            "own key", "warning" if everyone else "note",
            f"{'Every query' if everyone else _counted(len(rows), 'query', 'queries')} that sees something is blind to "
            f"its own key" + (", so causal is off by one: it is k <= q, not k < q." if everyone and not ahead else
                              f" ({_places(rows)})."),
            len(rows), (int(rows[0]), int(rows[0]) + shift),
        )  # fmt: skip


def _near_documents(runs: MaskedRuns):
    """Places where the sequence nearly falls apart: documents that a few pairs still tie together."""
    if runs.visible_pairs() == 0 or runs.seqlen_q != runs.seqlen_k or (runs.counts > 2).any():
        return
    crossing = _crossing(runs)
    inner = crossing[1:-1]
    dips = np.flatnonzero((inner < crossing[:-2]) & (inner < crossing[2:]) & (inner > 0)) + 1
    for border in dips[:64].tolist():
        reach = slice(max(0, border - 64), border), slice(border + 1, border + 65)
        if crossing[border] * 50 < min(crossing[side].max() for side in reach):
            yield Finding(
                "leak", "warning",
                f"A document seems to end at token {border + 1}, and {crossing[border]:,} pairs see across it.",
                int(crossing[border]), None,
            )  # fmt: skip


def _crossing(runs: MaskedRuns) -> np.ndarray:
    """int64 [N - 1]: how many visible pairs have one of query and key before token b + 1 and the other not."""
    size = runs.seqlen_k
    visible = ~runs
    k, start, end = visible.columns, visible.starts.astype(np.int64), visible.ends.astype(np.int64)
    second = np.zeros(size + 3, np.int64)  # second differences of the count by border
    below, above = np.maximum(start, k + 1), np.minimum(end, k)
    # A query q > k crosses the borders k + 1 ... q, one q < k the borders q + 1 ... k.
    low = below < end
    np.add.at(second, k[low] + 1, (end - below)[low])
    slope = np.zeros(size + 3, np.int64)
    np.add.at(slope, below[low] + 1, -1)
    np.add.at(slope, end[low] + 1, 1)
    high = start < above
    np.add.at(slope, start[high] + 1, 1)
    np.add.at(slope, above[high] + 1, -1)
    np.add.at(second, k[high] + 1, -(above - start)[high])
    return np.cumsum(np.cumsum(slope) + second)[1:size]


def _window(runs: MaskedRuns):
    """A window that is one more or one less than a power of two."""
    if runs.visible_pairs() == 0:
        return
    outline = Outline(runs)
    if outline.nearest < 0 or outline.farthest >= runs.seqlen_k - 1:
        return
    window = outline.farthest + 1
    for right in (window - 1, window + 1):
        if right >= 32 and right & (right - 1) == 0 and _looks_like_a_window(outline, window):
            yield Finding(
                "window", "note",
                f"A window of {window:,} counts the query's own key. If flash-attn's left or Paddle's window_size of "
                f"{right:,} was meant, it is {right + 1:,}; if a window of {right:,} was, it is off by one.",
                0, None,
            )  # fmt: skip


def _looks_like_a_window(outline: Outline, window: int) -> bool:
    full = outline.behind - outline.k == window
    return int(full.sum()) * 4 > outline.runs.seqlen_k


def _counted(count: int, one: str, many: str) -> str:
    return f"1 {one}" if count == 1 else f"{count:,} {many}"


def _places(numbers: np.ndarray) -> str:
    """3, 7…9 and 12 more"""
    breaks = np.flatnonzero(np.diff(numbers) > 1)
    firsts, lasts = numbers[np.r_[0, breaks + 1]], numbers[np.r_[breaks, len(numbers) - 1]]
    shown = [f"{a}" if a == b else f"{a}…{b}" for a, b in zip(firsts[:_LISTED].tolist(), lasts[:_LISTED].tolist())]
    left = int((lasts[_LISTED:] - firsts[_LISTED:] + 1).sum())
    return ", ".join(shown) + (f" and {left:,} more" if left else "")
