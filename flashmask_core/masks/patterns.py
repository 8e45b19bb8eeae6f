"""The named patterns of the mask language: masked runs in closed form, and a one-line predicate beside each.

`PATTERNS` is data: an app builds its gallery and forms from it, the parser its signatures, the tests their oracle.
Positions count in the key sequence: q = q_idx + Sk - Sq, so every pattern aligns bottom-right as causal does. What a
pattern says about a query before the first key (q < 0) does not matter, as the language hides those everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

from .errors import MaskSyntaxError
from .randomness import bucket_layout, eviction_rows
from .runs import MaskedRuns


@dataclass(frozen=True)
class Lengths:
    """The two sequence lengths a pattern is asked for."""

    seqlen_q: int
    seqlen_k: int

    @property
    def offset(self) -> int:
        """Sk - Sq: what has to be added to a row number to get its position q."""
        return self.seqlen_k - self.seqlen_q

    @property
    def k(self) -> np.ndarray:
        """int64 [Sk]: the key positions."""
        return np.arange(self.seqlen_k)

    def show(self, first, last) -> MaskedRuns:
        """Every key is seen by the queries at the positions first <= q < last; arrays [Sk] or numbers."""
        rows = (np.subtract(first, self.offset), np.subtract(last, self.offset))
        return MaskedRuns.show(*rows, seqlen_q=self.seqlen_q, seqlen_k=self.seqlen_k)

    def hide(self, first, last) -> MaskedRuns:
        """Every key is hidden from the queries at the positions first <= q < last."""
        return ~self.show(first, last)


@dataclass(frozen=True)
class Parameter:
    """One argument of a pattern.

    kind: "int"; "lengths", any number of token counts that follow one another; "tuples", any number of tuples of
    ints with `fields` (the last one repeats when `open_ended`); "ints", one tuple of ints.
    """

    name: str
    about: str
    kind: str = "int"
    minimum: int | None = 0
    default: Any = None  # None: must be given
    fields: tuple[str, ...] = ()
    open_ended: bool = False

    @property
    def variadic(self) -> bool:
        return self.kind in ("lengths", "tuples")


@dataclass(frozen=True)
class Pattern:
    """A named mask.

    Attributes:
        parameters: what stands between the parentheses.
        about: one sentence for a gallery. rule: visible(q, k) as a line of text.
        runs: (Lengths, *arguments) -> MaskedRuns, in closed form.
        predicate: (q, k, Lengths, *arguments) -> bool for integer arrays q >= 0 and k that broadcast; the oracle.
        example: (N >= 8) -> arguments that make a good picture for N tokens; often the paper's figure 1 for N = 10.
        used: (*arguments) -> the number of tokens that the arguments describe, or None where they list none. More
            than Sk is an error; fewer leave padding if `pads`.
        wrong: (*arguments) -> what is wrong with them beyond their number and sign, or None.
    """

    name: str
    parameters: tuple[Parameter, ...]
    about: str
    rule: str
    runs: Callable[..., MaskedRuns]
    predicate: Callable[..., np.ndarray]
    example: Callable[[int], tuple]
    used: Callable[..., int] | None = None
    pads: bool = True
    wrong: Callable[..., str | None] = lambda *arguments: None

    @property
    def signature(self) -> str:
        """As documentation writes it: "band(left, right)", "document(length, …)"."""
        shown = []
        for p in self.parameters:
            inner = f"({', '.join(p.fields)}{', …' if p.open_ended else ''})" if p.kind == "tuples" else p.name
            default = "" if p.default is None else f"={p.default}"
            shown.append(f"{inner}, …" if p.variadic else f"{p.name}{default}")
        return f"{self.name}({', '.join(shown)})" if shown else self.name

    def build(self, seqlen_q: int, seqlen_k: int, *arguments) -> MaskedRuns:
        """The masked runs; MaskSyntaxError if the arguments are wrong or describe more tokens than there are keys."""
        wrong = self.wrong(*arguments)
        if wrong:
            raise MaskSyntaxError(f"{self.name}: {wrong}")
        used = self.used(*arguments) if self.used else 0
        if used > seqlen_k:
            raise MaskSyntaxError(f"{self.name} describes {used:,} tokens, but the sequence has only {seqlen_k:,} keys")
        return self.runs(Lengths(seqlen_q, seqlen_k), *arguments)

    def visible(self, q, k, seqlen_q: int, seqlen_k: int, *arguments) -> np.ndarray:
        """The predicate for integer arrays of positions 0 <= q, k < Sk that broadcast."""
        return self.predicate(np.asarray(q), np.asarray(k), Lengths(seqlen_q, seqlen_k), *arguments)

    def padding(self, seqlen_k: int, *arguments) -> int:
        """How many keys at the end the lists leave out, so that they see nothing and are seen by nobody."""
        return seqlen_k - self.used(*arguments) if self.used and self.pads else 0


def _pieces(lengths, seqlen_k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(number, start, end), int64 [Sk] each: the piece that every position lies in, from a list of lengths.

    Positions behind the last piece have number -1 and start = end = 0: nobody sees them.
    """
    ends = np.cumsum(np.array([*lengths, 0], np.int64))  # the empty one at the end makes an empty list work
    number = np.searchsorted(ends, np.arange(seqlen_k), side="right")
    inside = number < len(ends)
    there = np.minimum(number, len(ends) - 1)
    start, end = ends[there] - np.array([*lengths, 0], np.int64)[there], ends[there]
    return (
        np.where(inside, number, -1),
        np.where(inside, start, 0),
        np.where(inside, end, 0),
    )


def _number(lengths, n: Lengths, position) -> np.ndarray:
    """The piece that every position lies in, -1 behind the last one; for predicates."""
    return _pieces(lengths, n.seqlen_k)[0][position]


def _same(lengths, n: Lengths, q, k) -> np.ndarray:
    """q and k lie in the same piece; for predicates."""
    return (_number(lengths, n, q) == _number(lengths, n, k)) & (_number(lengths, n, k) >= 0)


def _document(n: Lengths, *lengths):
    _, start, end = _pieces(lengths, n.seqlen_k)
    return n.show(start, end)


def _causal_document(n: Lengths, *lengths):
    return n.show(n.k, _pieces(lengths, n.seqlen_k)[2])


def _in_question(examples, n: Lengths, k) -> np.ndarray:
    """k lies in the question (the first part) of its example."""
    parts = _pieces([length for example in examples for length in example], n.seqlen_k)[0]
    first = np.zeros(1 + sum(map(len, examples)), bool)  # the last one is for part -1, behind all examples
    first[np.cumsum([0, *map(len, examples)])[:-1]] = True
    return first[parts[k]]


def _share_question(n: Lengths, *examples):
    example_end = _pieces([sum(example) for example in examples], n.seqlen_k)[2]
    part_end = _pieces([length for example in examples for length in example], n.seqlen_k)[2]
    return n.show(n.k, np.where(_in_question(examples, n, n.k), example_end, part_end))


def _global_tokens(n: Lengths, count):
    return n.show(np.zeros(n.seqlen_k, np.int64), np.where(n.k < count, n.seqlen_k, min(count, n.seqlen_k)))


def _causal_blockwise(n: Lengths, *lengths):
    end = _pieces(lengths, n.seqlen_k)[2]
    total = sum(lengths)
    last = total - lengths[-1] if lengths else total
    return n.show(n.k, end) | n.show(np.where(n.k < total, np.maximum(n.k, last), total), total)


def _prefix_lm_document(n: Lengths, *documents):
    lengths, prefixes = [length for _, length in documents], [prefix for prefix, _ in documents]
    number, start, end = _pieces(lengths, n.seqlen_k)
    prefix = np.array([*prefixes, 0], np.int64)[number]
    return n.show(np.where(n.k < start + prefix, start, n.k), end)


def _long_prefix(*documents) -> str | None:
    for prefix, length in documents:
        if prefix > length:
            return f"the prefix of {prefix} is longer than its document of {length}; the order is (prefix, length)"
    return None


def _qk_sparse(n: Lengths, *spans):
    reach = np.zeros(n.seqlen_k, np.int64)  # how far the runs that start here go, then those that start before too
    inside = [(offset, length) for offset, length in spans if length]
    np.maximum.at(reach, [offset for offset, _ in inside], [offset + length for offset, length in inside])
    reach = np.maximum.accumulate(reach)
    return n.show(n.k, n.seqlen_k) & n.hide(n.k, np.maximum(reach, n.k))


def _hash_sparse(n: Lengths, buckets, seed):
    (q_bucket, q_position), (k_bucket, k_position) = (bucket_layout(buckets, seed, s, n.seqlen_k) for s in (0, 1))
    first = np.searchsorted(q_bucket * n.seqlen_k + q_position, k_bucket * n.seqlen_k + k_position)
    return n.show(first, np.searchsorted(q_bucket, k_bucket, side="right"))


def _hash_sparse_predicate(q, k, n: Lengths, buckets, seed):
    (q_bucket, q_position), (k_bucket, k_position) = (bucket_layout(buckets, seed, s, n.seqlen_k) for s in (0, 1))
    return (q_bucket[q] == k_bucket[k]) & (k_position[k] <= q_position[q])


def _random_eviction(n: Lengths, start, seed):
    return n.show(n.k, eviction_rows(start, seed, n.seqlen_k))


def _rect(n: Lengths, r0, r1, c0, c1):
    inside = (n.k >= c0) & (n.k < c1)
    return MaskedRuns.show(
        np.where(inside, min(r0, n.seqlen_q), n.seqlen_q), min(r1, n.seqlen_q), seqlen_q=n.seqlen_q, seqlen_k=n.seqlen_k
    )


def _frames(n: Lengths, count, tokens, window, keyframes):
    frame, total = n.k // tokens, count * tokens
    first = np.maximum(frame - min(window, count), 0)
    last = np.minimum(frame + min(window, count) + 1, count)
    key = np.isin(frame, np.array(keyframes, np.int64))
    first, last = np.where(key, 0, first), np.where(key, count, last)
    return n.show(np.where(n.k < total, first * tokens, total), last * tokens)


def _block_diffusion(n: Lengths, half, block):
    clean = n.k >= half
    number = np.where(clean, n.k - half, n.k) // block
    start, end = number * block, np.minimum((number + 1) * block, half)  # of the column's block in its own copy
    in_noisy = n.show(np.where(clean, end, start), np.where(clean, half, end))
    in_clean = n.show(np.where(clean & (n.k < 2 * half), half + start, 2 * half), 2 * half)
    return n.show(np.zeros_like(n.k), np.where(n.k < 2 * half, 2 * half, 0)) & (in_noisy | in_clean)


def _block_diffusion_predicate(q, k, n: Lengths, half, block):
    q_clean, k_clean, q_block, k_block = q >= half, k >= half, q % half // block, k % half // block
    within = (q_block == k_block) & ~q_clean & ~k_clean
    to_clean = np.where(q_clean, q_block >= k_block, q_block > k_block) & k_clean
    return (within | to_clean) & (q < 2 * half) & (k < 2 * half)


def _thirds(n: int) -> tuple[int, int, int]:
    return n - 2 * (n // 3), n // 3, n // 3


def _frame_count(n: int) -> int:
    """Up to 8 frames that n tokens divide into evenly."""
    return max(count for count in range(1, 9) if n % count == 0)


_LENGTHS = Parameter("length", "tokens of every document, in order", "lengths")
_SEED = Parameter("seed", "another seed, another draw", minimum=None, default=0)

PATTERNS: dict[str, Pattern] = {
    pattern.name: pattern
    for pattern in (
        Pattern(
            "full", (), "Every query sees every key.", "always",
            lambda n: n.show(0, n.seqlen_k),
            lambda q, k, n: (q >= 0) & (k >= 0),
            lambda n: (),
        ),
        Pattern(
            "causal", (), "A query sees its own key and those before it.", "k <= q",
            lambda n: n.show(n.k, n.seqlen_k),
            lambda q, k, n: k <= q,
            lambda n: (),
        ),
        Pattern(
            "sliding_window", (Parameter("w", "keys a query sees, its own among them"),),
            "Causal, the last w keys only.", "0 <= q - k < w",
            lambda n, w: n.show(n.k, n.k + w),
            lambda q, k, n, w: (0 <= q - k) & (q - k < w),
            lambda n: (max(1, n // 3),),
        ),
        Pattern(
            "band",
            (Parameter("left", "keys before its own", minimum=None),
             Parameter("right", "keys behind its own", minimum=None)),
            "A window to both sides.", "-right <= q - k <= left",
            lambda n, left, right: n.show(n.k - right, n.k + left + 1),
            lambda q, k, n, left, right: (-right <= q - k) & (q - k <= left),
            lambda n: (n // 10, n // 10),
        ),
        Pattern(
            "document", (_LENGTHS,), "Documents packed one behind the other, each seen by itself alone.",
            "q and k in the same document",
            _document,
            lambda q, k, n, *lengths: _same(lengths, n, q, k),
            _thirds, lambda *lengths: sum(lengths),
        ),
        Pattern(
            "causal_document", (_LENGTHS,), "Packed documents, causal in each.", "same document and k <= q",
            _causal_document,
            lambda q, k, n, *lengths: _same(lengths, n, q, k) & (k <= q),
            _thirds, lambda *lengths: sum(lengths),
        ),
        Pattern(
            "share_question",
            (Parameter("examples", "a question and its answers", "tuples", fields=("question", "answer"),
                       open_ended=True),),
            "Several answers share one question and do not see each other (DPO, reward models).",
            "k <= q, same example, and k in the question or in q's own answer",
            _share_question,
            lambda q, k, n, *examples: (k <= q) & _same([*map(sum, examples)], n, q, k)
            & (_in_question(examples, n, k) | _same([part for e in examples for part in e], n, q, k)),
            lambda n: (_thirds(n),), lambda *examples: sum(map(sum, examples)),
        ),
        Pattern(
            "global_tokens", (Parameter("n", "global tokens at the start"),),
            "The first n tokens see everything and are seen by everyone, the future too.", "q < n or k < n",
            _global_tokens,
            lambda q, k, n, count: (q < count) | (k < count),
            lambda n: (n // 5,),
        ),
        Pattern(
            "global_sliding_window",
            (Parameter("n", "global tokens at the start"), Parameter("left", "keys before its own", minimum=None),
             Parameter("right", "keys behind its own", minimum=None)),
            "Global tokens, and a window to both sides for the others.", "global_tokens(n) or band(left, right)",
            lambda n, count, left, right: _global_tokens(n, count) | n.show(n.k - right, n.k + left + 1),
            lambda q, k, n, count, left, right: (q < count) | (k < count) | ((-right <= q - k) & (q - k <= left)),
            lambda n: (n // 5, n // 10, n // 10),
        ),
        Pattern(
            "causal_blockwise", (_LENGTHS,), "Causal in blocks; the last block sees all the blocks before it.",
            "k <= q, and the same block or q in the last listed block",
            _causal_blockwise,
            lambda q, k, n, *lengths: (k <= q) & (_number(lengths, n, k) >= 0)
            & (_same(lengths, n, q, k) | (_number(lengths, n, q) == len(lengths) - 1)),
            _thirds, lambda *lengths: sum(lengths),
        ),
        Pattern(
            "prefix_lm", (Parameter("p", "tokens of the prefix"),),
            "A prefix that everyone sees in both directions, causal behind it.", "k <= q or k < p",
            lambda n, p: n.show(np.where(n.k < p, 0, n.k), n.seqlen_k),
            lambda q, k, n, p: (k <= q) | (k < p),
            lambda n: (n // 2,),
        ),
        Pattern(
            "prefix_lm_document",
            (Parameter("documents", "tokens of the prefix and of the document with it", "tuples",
                       fields=("prefix", "length")),),
            "Packed documents, each with a prefix that is seen in both directions.",
            "same document, and k <= q or k in that document's prefix",
            _prefix_lm_document,
            lambda q, k, n, *documents: _same([d[1] for d in documents], n, q, k)
            & ((k <= q) | _in_question([(p, length - p) for p, length in documents], n, k)),
            lambda n: tuple((length // 2, length) for length in _thirds(n)),
            lambda *documents: sum(length for _, length in documents),
            wrong=_long_prefix,
        ),
        Pattern(
            "qk_sparse",
            (Parameter("runs", "where a run of tokens starts, and how many it has", "tuples",
                       fields=("offset", "length")),),
            "Causal, but the tokens of a listed run do not see each other, nor themselves.",
            "k <= q, and not both in the same listed run",
            _qk_sparse,
            lambda q, k, n, *spans: (k <= q)
            & ~np.any([(o <= q) & (q < o + s) & (o <= k) & (k < o + s) for o, s in spans] or [False & (k > q)], axis=0),
            lambda n: ((n * 2 // 10, n * 3 // 10), (n * 6 // 10, n * 2 // 10)),
            lambda *spans: max((offset + length for offset, length in spans), default=0), pads=False,
        ),
        Pattern(
            "hash_sparse", (Parameter("buckets", "number of buckets", minimum=1), _SEED),
            "Queries and keys hashed to buckets and sorted by (bucket, position); causal in a bucket.",
            "same bucket, and the key's position not behind the query's",
            _hash_sparse, _hash_sparse_predicate,
            lambda n: (max(1, round(n**0.5)), 0),
        ),
        Pattern(
            "random_eviction", (Parameter("start", "the first row that evicts"), _SEED),
            "Causal; from a row on every query drops one earlier key for itself and all behind it (a KV cache of "
            "fixed size).",
            "k <= q, and k not evicted by a query up to q",
            _random_eviction,
            lambda q, k, n, start, seed: (k <= q) & (q < eviction_rows(start, seed, n.seqlen_k)[k]),
            lambda n: (n // 2, 0),
        ),
        Pattern(
            "padding", (Parameter("real", "tokens that are no padding"),),
            "The tokens behind the real ones see nothing and are seen by nobody.", "q < real and k < real",
            lambda n, real: n.show(0, np.where(n.k < real, min(real, n.seqlen_k), 0)),
            lambda q, k, n, real: (q < real) & (k < real),
            lambda n: (n - n // 5,),
        ),
        Pattern(
            "rect",
            (Parameter("r0", "first row"), Parameter("r1", "row behind the last"),
             Parameter("c0", "first column"), Parameter("c1", "column behind the last")),
            "A rectangle of rows and columns, as it is painted.", "r0 <= q_idx < r1 and c0 <= k < c1",
            _rect,
            lambda q, k, n, r0, r1, c0, c1: (r0 <= q - n.offset) & (q - n.offset < r1) & (c0 <= k) & (k < c1),
            lambda n: (n // 2, n, n // 10, n // 2),
        ),
        Pattern(
            "frames",
            (Parameter("count", "number of frames"), Parameter("tokens", "tokens of a frame", minimum=1),
             Parameter("window", "frames seen to either side"),
             Parameter("keyframes", "numbers of the frames that all see", "ints", default=())),
            "Video frames that see their neighbours, and key frames that everyone sees.",
            "abs(q // tokens - k // tokens) <= window, or k's frame in keyframes",
            _frames,
            lambda q, k, n, count, tokens, window, keyframes: (q < count * tokens) & (k < count * tokens)
            & ((abs(q // tokens - k // tokens) <= window) | np.isin(k // tokens, keyframes)),
            lambda n: (_frame_count(n), n // _frame_count(n), 1, (0,)),
            lambda count, tokens, *_: count * tokens,
        ),
        Pattern(
            "chunk_causal", (Parameter("c", "tokens of a chunk", minimum=1),),
            "Causal chunk by chunk, both directions inside a chunk.", "k // c <= q // c",
            lambda n, c: n.show(n.k // c * c, n.seqlen_k),
            lambda q, k, n, c: k // c <= q // c,
            lambda n: (max(1, n // 5),),
        ),
        Pattern(
            "block_diffusion",
            (Parameter("n", "tokens of one copy", minimum=1), Parameter("block", "tokens of a block", minimum=1)),
            "2n tokens, noisy copy first: a noisy block sees itself and the clean blocks before it, the clean copy is "
            "causal by blocks (BD3-LM, arXiv 2503.09573).",
            "same noisy block, or k clean and its block before q's (or q's own if q is clean)",
            _block_diffusion, _block_diffusion_predicate,
            lambda n: (n // 2, max(1, n // 8)), lambda half, block: 2 * half,
        ),
    )
}  # fmt: skip
