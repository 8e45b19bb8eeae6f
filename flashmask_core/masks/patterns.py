"""The named patterns of the mask language: masked runs in closed form, and a one-line predicate beside each.

`PATTERNS` is data: an app builds its gallery and forms from it, the parser its signatures, the tests their oracle.
Positions count in the key sequence: q = q_idx + Sk - Sq, so every pattern aligns bottom-right as causal does. What a
pattern says about a query before the first key (q < 0) does not matter, as the language hides those everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

from . import closed_forms as forms
from .errors import MaskSyntaxError
from .positions import Positions
from .randomness import eviction_rows
from .runs import MaskedRuns


@dataclass(frozen=True)
class Parameter:
    """One argument of a pattern.

    kind: "int"; "lengths", any number of token counts that follow one another; "tuples", any number of tuples of
    ints with `fields` (the last one repeats when `open_ended`); "ints", one tuple of ints. within: the parameter that
    a larger number says no more than; "" for one that counts tokens.
    """

    name: str
    about: str
    kind: str = "int"
    minimum: int | None = 0
    default: Any = None  # None: must be given
    fields: tuple[str, ...] = ()
    open_ended: bool = False
    within: str = ""

    @property
    def variadic(self) -> bool:
        return self.kind in ("lengths", "tuples")


@dataclass(frozen=True)
class Pattern:
    """A named mask.

    Attributes:
        parameters: what stands between the parentheses.
        about: one sentence for a gallery. rule: visible(q, k) as a line of text.
        runs: (Positions, *arguments) -> MaskedRuns, in closed form.
        predicate: (q, k, Positions, *arguments) -> bool for integer arrays q >= 0 and k that broadcast; the oracle.
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
        return self.runs(Positions(seqlen_q, seqlen_k), *arguments)

    def visible(self, q, k, seqlen_q: int, seqlen_k: int, *arguments) -> np.ndarray:
        """The predicate for integer arrays of positions 0 <= q, k < Sk that broadcast."""
        return self.predicate(np.asarray(q), np.asarray(k), Positions(seqlen_q, seqlen_k), *arguments)

    def padding(self, seqlen_k: int, *arguments) -> int:
        """How many keys at the end the lists leave out, so that they see nothing and are seen by nobody."""
        return seqlen_k - self.used(*arguments) if self.used and self.pads else 0


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
            forms.document,
            lambda q, k, n, *lengths: forms.same_piece(lengths, n, q, k),
            _thirds, lambda *lengths: sum(lengths),
        ),
        Pattern(
            "causal_document", (_LENGTHS,), "Packed documents, causal in each.", "same document and k <= q",
            forms.causal_document,
            lambda q, k, n, *lengths: forms.same_piece(lengths, n, q, k) & (k <= q),
            _thirds, lambda *lengths: sum(lengths),
        ),
        Pattern(
            "share_question",
            (Parameter("examples", "a question and its answers", "tuples", fields=("question", "answer"),
                       open_ended=True),),
            "Several answers share one question and do not see each other (DPO, reward models).",
            "k <= q, same example, and k in the question or in q's own answer",
            forms.share_question,
            lambda q, k, n, *examples: (k <= q) & forms.same_piece([*map(sum, examples)], n, q, k)
            & (forms.in_first_part(examples, n, k) | forms.same_piece([part for e in examples for part in e], n, q, k)),
            lambda n: (_thirds(n),), lambda *examples: sum(map(sum, examples)),
        ),
        Pattern(
            "global_tokens", (Parameter("n", "global tokens at the start"),),
            "The first n tokens see everything and are seen by everyone, the future too.", "q < n or k < n",
            forms.global_tokens,
            lambda q, k, n, count: (q < count) | (k < count),
            lambda n: (n // 5,),
        ),
        Pattern(
            "global_sliding_window",
            (Parameter("n", "global tokens at the start"), Parameter("left", "keys before its own", minimum=None),
             Parameter("right", "keys behind its own", minimum=None)),
            "Global tokens, and a window to both sides for the others.", "global_tokens(n) or band(left, right)",
            lambda n, count, left, right: forms.global_tokens(n, count) | n.show(n.k - right, n.k + left + 1),
            lambda q, k, n, count, left, right: (q < count) | (k < count) | ((-right <= q - k) & (q - k <= left)),
            lambda n: (n // 5, n // 10, n // 10),
        ),
        Pattern(
            "causal_blockwise", (_LENGTHS,), "Causal in blocks; the last block sees all the blocks before it.",
            "k <= q, and the same block or q in the last listed block",
            forms.causal_blockwise,
            lambda q, k, n, *lengths: (k <= q) & (forms.piece_of(lengths, n, k) >= 0)
            & (forms.same_piece(lengths, n, q, k) | (forms.piece_of(lengths, n, q) == len(lengths) - 1)),
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
            forms.prefix_lm_document,
            lambda q, k, n, *documents: forms.same_piece([d[1] for d in documents], n, q, k)
            & ((k <= q) | forms.in_first_part([(p, length - p) for p, length in documents], n, k)),
            lambda n: tuple((length // 2, length) for length in _thirds(n)),
            lambda *documents: sum(length for _, length in documents),
            wrong=forms.long_prefix,
        ),
        Pattern(
            "qk_sparse",
            (Parameter("runs", "where a run of tokens starts, and how many it has", "tuples",
                       fields=("offset", "length")),),
            "Causal, but the tokens of a listed run do not see each other, nor themselves.",
            "k <= q, and not both in the same listed run",
            forms.qk_sparse,
            lambda q, k, n, *spans: (k <= q)
            & ~np.any([(o <= q) & (q < o + s) & (o <= k) & (k < o + s) for o, s in spans] or [False & (k > q)], axis=0),
            lambda n: ((n * 2 // 10, n * 3 // 10), (n * 6 // 10, n * 2 // 10)),
            lambda *spans: max((offset + length for offset, length in spans), default=0), pads=False,
        ),
        Pattern(
            "hash_sparse", (Parameter("buckets", "number of buckets", minimum=1), _SEED),
            "Queries and keys hashed to buckets and sorted by (bucket, position); causal in a bucket.",
            "same bucket, and the key's position not behind the query's",
            forms.hash_sparse, forms.hash_sparse_predicate,
            lambda n: (max(1, round(n**0.5)), 0),
            wrong=lambda buckets, seed: f"at most 2^32 buckets, not {buckets:,}" if buckets > 1 << 32 else None,
        ),
        Pattern(
            "random_eviction", (Parameter("start", "the first row that evicts"), _SEED),
            "Causal; from a row on every query drops one earlier key for itself and all behind it (a KV cache of "
            "fixed size).",
            "k <= q, and k not evicted by a query up to q",
            forms.random_eviction,
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
            forms.rect,
            lambda q, k, n, r0, r1, c0, c1: (r0 <= q - n.offset) & (q - n.offset < r1) & (c0 <= k) & (k < c1),
            lambda n: (n // 2, n, n // 10, n // 2),
        ),
        Pattern(
            "frames",
            (Parameter("count", "number of frames"), Parameter("tokens", "tokens of a frame", minimum=1),
             Parameter("window", "frames seen to either side", within="count"),
             Parameter("keyframes", "numbers of the frames that all see", "ints", default=())),
            "Video frames that see their neighbours, and key frames that everyone sees.",
            "abs(q // tokens - k // tokens) <= window, or k's frame in keyframes",
            forms.frames,
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
            forms.block_diffusion, forms.block_diffusion_predicate,
            lambda n: (n // 2, max(1, n // 8)), lambda half, block: 2 * half,
        ),
    )
}  # fmt: skip
