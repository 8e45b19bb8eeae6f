"""What the outline of a mask gives away: where each column begins and ends, where documents part, which patterns it may
be. Everything here is a guess from O(Sk) numbers that `recognise` then holds against the mask itself.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from .pieces import list_text
from .positions import Positions
from .randomness import eviction_rows
from .runs import MaskedRuns

MAX_LISTED = 1 << 17  # documents, or items of another list, that a guess may have
MAX_TEXT = 1 << 14
_SEEDS = range(4)
_MAX_HASHED = 1 << 14


class Outline:
    """The hull of every column of a mask, in key coordinates (q = row + Sk - Sq).

    first, behind: int64 [Sk], the first query that sees the key and the one behind the last that does (first = behind
    where nobody sees it). seen: bool [Sk].
    """

    def __init__(self, runs: MaskedRuns):
        self.runs, self.at = runs, Positions(runs.seqlen_q, runs.seqlen_k)
        self.k = self.at.k
        top, bottom = np.zeros(runs.seqlen_k, np.int64), np.full(runs.seqlen_k, runs.seqlen_q, np.int64)
        some = np.flatnonzero(runs.counts)
        upper, lower = runs.offsets[some], runs.offsets[some + 1] - 1
        top[some] = np.where(runs.starts[upper] == 0, runs.ends[upper], 0)
        bottom[some] = np.where(runs.ends[lower] == runs.seqlen_q, runs.starts[lower], runs.seqlen_q)
        self.seen = top < bottom
        self.first = top + self.at.offset
        self.behind = np.where(self.seen, bottom + self.at.offset, self.first)

    @cached_property
    def nearest(self) -> int:
        """The smallest q - k of a visible pair; there has to be one."""
        return int((self.first - self.k)[self.seen].min())

    @cached_property
    def farthest(self) -> int:
        """The largest q - k of a visible pair; there has to be one."""
        return int((self.behind - 1 - self.k)[self.seen].max())

    @cached_property
    def documents(self) -> list[int]:
        """The most pieces of the sequence across whose borders nobody sees; tokens at the end that neither see nor are
        seen are left out."""
        size, k, seen = self.runs.seqlen_k, self.k, self.seen
        low = np.minimum(k, np.maximum(self.first, 0))[seen]
        high = np.maximum(k, self.behind - 1)[seen]
        spans = np.bincount(low + 1, minlength=size + 2) - np.bincount(high + 1, minlength=size + 2)
        ends = np.append(np.flatnonzero(np.cumsum(spans)[1:size] == 0) + 1, size)
        used = int(high.max(initial=-1)) + 1
        ends = ends[: int(np.searchsorted(ends, used)) + 1] if used else ends[:0]
        return np.diff(ends, prepend=0).tolist()

    @cached_property
    def merged_documents(self) -> list[int]:
        """`documents`, with tokens that neither see nor are seen added to the document behind them."""
        lengths, waiting, start = [], 0, 0
        for length in self.documents:
            alone = length == 1 and not self.seen[start]
            start += length
            waiting += length
            if not alone:
                lengths.append(waiting)
                waiting = 0
        return lengths

    @cached_property
    def stride(self) -> tuple[int, int] | None:
        """(m, r) if q - k is r modulo m in the column with the most runs and in the last one that is seen."""
        column = int(self.runs.counts.argmax())
        part = ~self.runs.part(column, column + 1)
        if len(part.starts) < 3 or (part.ends - part.starts).max() > 1:
            return None
        step = np.unique(np.diff(part.starts))
        return (int(step[0]), int(part.starts[0] + self.at.offset - column) % int(step[0])) if len(step) == 1 else None

    @cached_property
    def seen_by_all(self) -> int:
        """How many of the first keys every query sees."""
        return _leading(self.runs.counts == 0)

    @cached_property
    def seen_causally(self) -> int:
        """How many of the first keys every query from their own on sees."""
        last = np.zeros(self.runs.seqlen_k, np.int64)
        some = np.flatnonzero(self.runs.counts)
        last[some] = self.runs.ends[self.runs.offsets[some + 1] - 1]
        return _leading(last <= np.maximum(self.k - self.at.offset, 0))

    @cached_property
    def stretches(self) -> list[tuple[int, int, int]]:
        """(start, end, behind) of stretches of columns with equal `behind`; empty if they are too many."""
        starts = np.flatnonzero(np.diff(self.behind, prepend=-1))
        if len(starts) > MAX_LISTED:
            return []
        ends = [*starts[1:].tolist(), len(self.behind)]
        return list(zip(starts.tolist(), ends, self.behind[starts].tolist()))


def _leading(good: np.ndarray) -> int:
    return len(good) if good.all() else int(good.argmin())


def bounds(o: Outline) -> list[str]:
    """Texts of simple masks that show everything the mask shows, each as tight as it gets."""
    size, first_q = o.runs.seqlen_k, o.at.first_q
    texts = ["causal"] if o.nearest >= 0 else []
    if o.nearest == 0 and o.farthest < size - 1:
        texts.append(f"sliding_window({o.farthest + 1})")
    elif o.farthest < size - 1 and o.nearest < 0 and o.nearest > 1 - size:
        texts.append(f"band({o.farthest}, {-o.nearest})")
    elif o.farthest < size - 1:
        texts.append({-1: "(q < k)", 0: "(q <= k)"}.get(o.farthest, f"(q - k < {o.farthest + 1})"))
    elif 1 - size < o.nearest < 0:
        texts.append(f"(k - q <= {-o.nearest})")
    if o.nearest > 0:
        texts.append("(k < q)" if o.nearest == 1 else f"(q - k >= {o.nearest})")
    for lengths in (o.documents, o.merged_documents):
        if (len(lengths) > 1 or sum(lengths) < size) and len(text := f"document({list_text(lengths)})") <= MAX_TEXT:
            texts.append(text)
    if o.nearest != o.farthest and (stride := o.stride):
        texts.append(f"((q - k) % {stride[0]} == {stride[1]})")
    real, q_behind = sum(o.documents), int(o.behind.max())
    if real < size:
        texts.append(f"padding({real})")
    keys = np.flatnonzero(o.seen)
    columns, rows = (int(keys[0]), int(keys[-1]) + 1), (int(o.first[o.seen].min()), q_behind)
    texts += [*_range("k", *columns, 0, size), *_range("q", *rows, first_q, size)]
    if columns != (0, size) and rows != (first_q, size):
        texts.append(f"rect({rows[0] - o.at.offset}, {rows[1] - o.at.offset}, {columns[0]}, {columns[1]})")
    return list(dict.fromkeys(texts))


def _range(name: str, low: int, high: int, least: int, most: int):
    if low > least and high < most:
        yield f"({low} <= {name} < {high})"
    elif low > least:
        yield f"({name} >= {low})"
    elif high < most:
        yield f"({name} < {high})"


def patterns(o: Outline) -> list[str]:
    """Texts of named patterns that the mask may be."""
    makers = (_prefix_lm, _share_question, _prefix_lm_document, _blockwise, _qk_sparse, _chunks, _frames, _diffusion,
              _eviction, _hashed)  # fmt: skip
    return [text for make in makers for text in make(o)]


def _prefix_lm(o):
    if 1 < o.seen_by_all < o.runs.seqlen_k:
        yield f"prefix_lm({o.seen_by_all})"


def _share_question(o):
    if o.nearest < 0 or not 0 < len(o.documents) <= MAX_LISTED:
        return
    ends = np.cumsum(o.documents).tolist()
    examples, of_document = [], iter(o.stretches)
    stretch = next(of_document, None)
    for end in ends:
        parts, closed = [], False
        while stretch and stretch[0] < end:
            parts.append(min(stretch[1], end) - stretch[0])
            closed = closed or stretch[2] == end
            stretch = next(of_document, None) if stretch[1] <= end else (end, *stretch[1:])
        examples.append(tuple(parts))
    if any(len(parts) > 2 for parts in examples):
        yield f"share_question({list_text(examples)})"


def _prefix_lm_document(o):
    if not 0 < len(o.documents) <= MAX_LISTED:
        return
    ends = np.cumsum(o.documents)
    starts = ends - o.documents
    start = np.repeat(starts, o.documents)
    inside = o.first[: len(start)] <= start
    pairs = []
    for first, end in zip(starts.tolist(), ends.tolist()):
        prefix = _leading(inside[first:end])
        pairs.append((prefix if prefix > 1 else 0, end - first))
    if any(prefix for prefix, _ in pairs):
        yield f"prefix_lm_document({list_text(pairs)})"


def _blockwise(o):
    runs = o.runs
    if o.nearest < 0 or len(runs.starts) == 0:
        return
    last = runs.offsets[1:] - 1  # the last hidden run of a column; below the diagonal, if it is no part of the triangle
    below = (runs.counts > 0) & (runs.starts[last] + o.at.offset > o.k)
    gap = np.where(below, runs.starts[last] + o.at.offset, runs.seqlen_k)
    ends = np.flatnonzero(np.bincount(gap[below]))  # in order, each once
    if not below.any() or len(ends) > MAX_LISTED:
        return
    resumed = int(runs.ends[last[below]].max()) + o.at.offset
    borders = [0, *[end for end in ends.tolist() if end < resumed], resumed, runs.seqlen_k]
    if len(borders) > 3 and resumed < runs.seqlen_k:
        yield f"causal_blockwise({list_text(np.diff(borders).tolist())})"


def _qk_sparse(o):
    late = (o.first > o.k) & o.seen & (o.first > o.at.first_q)
    if o.nearest < 0 or not late.any():
        return
    starts = np.flatnonzero(late & (np.diff(np.where(late, o.first, -1), prepend=-1) != 0))
    if len(starts) <= MAX_LISTED:
        spans = [(k, int(o.first[k]) - k) for k in starts.tolist()]
        yield f"qk_sparse({list_text(spans)})"


def _chunks(o):
    size = _leading(o.first <= max(o.first[0], 0))
    if 1 < size < o.runs.seqlen_k:
        yield f"chunk_causal({size})"


def _frames(o):
    total = int(o.behind[o.seen].max())
    first, behind = np.maximum(o.first[:total], 0), o.behind[:total]
    tokens = int(np.gcd.reduce(np.concatenate([first, behind, np.flatnonzero(np.diff(behind)) + 1, [total]])))
    frames = total // tokens if tokens > 1 else 0
    if not 2 < frames <= MAX_LISTED or o.at.offset:
        return
    first, last, number = first[::tokens] // tokens, behind[::tokens] // tokens - 1, np.arange(frames)
    key = (first <= 0) & (last == frames - 1)
    reach = int(np.maximum(number - first, last - number)[~key].max(initial=0))
    keys = [f for f in number[key].tolist() if f - reach > 0 or f + reach < frames - 1]
    if reach:
        yield f"frames({frames}, {tokens}, {reach}{f', ({list_text(keys)},)' if keys else ''})"


def _diffusion(o):
    half, block = int(o.behind.max()) // 2, int(o.behind[0])
    if 0 < block < half and o.at.offset == 0:
        yield f"block_diffusion({half}, {block})"


def _eviction(o):
    evicted = o.behind[o.seen & (o.behind < o.runs.seqlen_k)]
    if o.nearest == 0 and (np.diff(o.behind) < 0).any() and len(evicted) == o.runs.seqlen_k - evicted.min():
        start = int(evicted.min())
        for seed in _SEEDS:
            if np.array_equal(eviction_rows(start, seed, o.runs.seqlen_k), o.behind):
                yield f"random_eviction({start}, {seed})"


def _hashed(o):
    """Buckets lie on the diagonal as documents do, with the keys' and the queries' numbers in them slightly apart."""
    if not o.runs.seqlen_k <= _MAX_HASHED or o.runs.seqlen_q != o.runs.seqlen_k:
        return
    distinct = len(np.unique(o.behind[o.seen]))
    for buckets in dict.fromkeys((distinct, distinct + 1, round(o.runs.seqlen_k**0.5))):
        for seed in _SEEDS if 1 < buckets < o.runs.seqlen_k // 2 else ():
            yield f"hash_sparse({buckets}, {seed})"
