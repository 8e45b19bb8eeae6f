"""Examples packed into sequences of one context length, their masks, and what the packing is worth."""

from __future__ import annotations

import io
from bisect import bisect_left, insort
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..checks import whole
from ..masks.column_mask import ColumnMask
from ..masks.expr import MAX_SEQLEN
from ..masks.language import mask as mask_of_text
from .examples import MAX_EXAMPLES, Example

POLICIES = {
    "in_order": "in order",
    "first_fit_decreasing": "first-fit decreasing",
    "best_fit": "best-fit decreasing",
}
TOO_LONG = ("refuse", "split", "drop")
MAX_TOKENS = 2**24  # of the arrays of all sequences together


@dataclass(frozen=True)
class Sequence:
    """One packed sequence: its examples one after another, and padding behind them that sees nothing."""

    examples: tuple[Example, ...]
    context: int

    @property
    def tokens(self) -> int:
        return sum(example.tokens for example in self.examples)

    @property
    def padding(self) -> int:
        return self.context - self.tokens

    @cached_property
    def text(self) -> str:
        """The mask in the mask language: causal documents, or answers that share their prompt and not each other."""
        if all(len(example.answers) < 2 for example in self.examples):
            return f"causal_document({', '.join(str(example.tokens) for example in self.examples)})"
        parts = (f"({', '.join(map(str, (e.prompt, *e.answers)))}{',' * (not e.answers)})" for e in self.examples)
        return f"share_question({', '.join(parts)})"

    @cached_property
    def mask(self) -> ColumnMask:
        return mask_of_text(self.text, self.context)

    def position_ids(self) -> np.ndarray:
        """int64 [context]: every example from 0, every answer from the end of its prompt; padding from 0."""
        parts = []
        for example in self.examples:
            parts.append(np.arange(example.prompt))
            parts += [np.arange(example.prompt, example.prompt + answer) for answer in example.answers]
        return np.concatenate([*parts, np.arange(self.padding)]).astype(np.int64)

    def cu_seqlens(self) -> np.ndarray:
        """int32 [examples + 1 or 2]: where every example begins and the last ends; padding is a document of its own."""
        lengths = [example.tokens for example in self.examples] + [self.padding] * (self.padding > 0)
        return np.cumsum([0, *lengths]).astype(np.int32)


@dataclass(frozen=True)
class Packing:
    """The sequences that a policy made; `dropped` examples were longer than the context."""

    sequences: tuple[Sequence, ...]
    context: int
    policy: str
    dropped: int = 0

    @property
    def waste(self) -> float:
        """The share of padding among all tokens, 0 to 1."""
        return sum(one.padding for one in self.sequences) / (len(self.sequences) * self.context)

    @cached_property
    def pairs(self) -> np.ndarray:
        """int64 [sequences]: visible pairs, which is what attention costs."""
        return np.array([sum(example.pairs for example in one.examples) for one in self.sequences], np.int64)

    @property
    def imbalance(self) -> float:
        """The most work of a sequence over the mean: what ranks that take one each wait for."""
        return float(self.pairs.max() / max(1.0, self.pairs.mean()))

    def arrays(self) -> dict[str, np.ndarray]:
        """position_ids [sequences, context], cu_seqlens of all sequences end to end, startend_row_indices
        int32 [sequences, 1, context, C] and their causal flag. Raises ValueError past MAX_TOKENS tokens."""
        total = len(self.sequences) * self.context
        if total > MAX_TOKENS:
            raise ValueError(f"{total:,} tokens in all are more than the {MAX_TOKENS:,} of one file; pack fewer examples")
        starts = [one.cu_seqlens()[:-1] + i * self.context for i, one in enumerate(self.sequences)]
        indices, causal = ColumnMask.stack([one.mask for one in self.sequences], "batch").to_startend_row_indices()
        return {
            "position_ids": np.stack([one.position_ids() for one in self.sequences]),
            "cu_seqlens": np.append(np.concatenate(starts), total).astype(np.int32),
            "startend_row_indices": indices.numpy(),
            "causal": np.array(causal),
        }

    def npz(self) -> bytes:
        """`arrays` as one .npz file."""
        out = io.BytesIO()
        np.savez_compressed(out, **self.arrays())
        return out.getvalue()


def pack(examples: list[Example], context: int, policy: str = "in_order", too_long: str = "refuse") -> Packing:
    """Pack examples into sequences of `context` tokens.

    policy: "in_order" starts a new sequence when the next example does not fit; "first_fit_decreasing" and "best_fit"
    take the longest first, into the first sequence with room, or into the one with the least room left.
    too_long: what becomes of an example longer than the context: "refuse" raises, "split" cuts it into documents of at
    most `context` tokens (examples with up to one answer alone), "drop" leaves it out and counts it.

    Raises TypeError or ValueError naming what cannot be. Empty examples are left out.
    """
    context = whole("context", context, 1, MAX_SEQLEN)
    for name, value, allowed in (("policy", policy, POLICIES), ("too_long", too_long, TOO_LONG)):
        if value not in allowed:
            raise ValueError(f"{name}: wanted one of {', '.join(allowed)}, got {value!r}")
    fitting: list[Example] = []
    dropped = 0
    for i, example in enumerate(examples):
        if example.tokens <= context:
            fitting += [example] * (example.tokens > 0)
        elif too_long == "split":
            fitting += _split(example, context, i)
            if len(fitting) > MAX_EXAMPLES:
                raise ValueError(
                    f"lengths[{i}]: split at a context of {context:,} the examples are more than {MAX_EXAMPLES:,}; take a "
                    "longer context"
                )
        elif too_long == "drop":
            dropped += 1
        else:
            raise ValueError(
                f"lengths[{i}]: {example} is {example.tokens:,} tokens, more than the context of {context:,}; "
                f"{'' if len(example.answers) > 1 else 'split it, '}drop it, or take a longer context"
            )
    if not fitting:
        raise ValueError("lengths: no example is left to pack")
    lengths = [example.tokens for example in fitting]
    bins = _in_order(lengths, context) if policy == "in_order" else _decreasing(lengths, context, policy == "best_fit")
    sequences = tuple(Sequence(tuple(fitting[i] for i in chosen), context) for chosen in bins)
    return Packing(sequences, context, policy, dropped)


def _split(example: Example, context: int, number: int) -> list[Example]:
    if len(example.answers) > 1:
        raise ValueError(
            f"lengths[{number}]: {example} has {len(example.answers)} answers to one prompt and {example.tokens:,} "
            f"tokens, more than the context of {context:,}; it cannot be split, only dropped"
        )
    if example.tokens > MAX_EXAMPLES * context:
        raise ValueError(f"lengths[{number}]: split at a context of {context:,} it is more than {MAX_EXAMPLES:,} pieces; "
                         "take a longer context")  # fmt: skip
    pieces, at = [], 0
    while at < example.tokens:
        size = min(context, example.tokens - at)
        prompt = min(size, max(0, example.prompt - at))
        pieces.append(Example(prompt, (size - prompt,) if example.answers else ()))
        at += size
    return pieces


def _in_order(lengths: list[int], context: int) -> list[list[int]]:
    bins, room = [], 0
    for i, length in enumerate(lengths):
        if not bins or length > room:
            bins.append([])
            room = context
        bins[-1].append(i)
        room -= length
    return bins


def _decreasing(lengths: list[int], context: int, best: bool) -> list[list[int]]:
    bins: list[list[int]] = []
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    by_room: list[tuple[int, int]] = []  # (room, bin), rising; best fit takes the first with enough
    first = None if best else _FirstRoom(len(lengths), context)
    for i in order:
        if best:
            at = bisect_left(by_room, (lengths[i], -1))
            room, target = by_room.pop(at) if at < len(by_room) else (context, len(bins))
            insort(by_room, (room - lengths[i], target))
        else:
            target = first.take(lengths[i])
        if target == len(bins):
            bins.append([])
        bins[target].append(i)
    return bins


class _FirstRoom:
    """The first of many bins with room for a length, in O(log n): a tree of the most room below every node."""

    def __init__(self, count: int, room: int):
        self.leaves = 1 << max(0, (count - 1).bit_length())
        self.most = [room] * (2 * self.leaves)

    def take(self, length: int) -> int:
        at = 1
        while at < self.leaves:
            at = 2 * at if self.most[2 * at] >= length else 2 * at + 1
        found = at - self.leaves
        self.most[at] -= length
        while at > 1:
            at //= 2
            self.most[at] = max(self.most[2 * at], self.most[2 * at + 1])
        return found
