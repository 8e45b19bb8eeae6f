"""The named patterns in closed form: which queries see each key, worked out for all keys at once.

A function takes the positions and a pattern's arguments and gives masked runs. The helpers at the top serve the
predicates in `patterns` as well.
"""

from __future__ import annotations

import numpy as np

from .positions import Positions
from .randomness import bucket_layout, eviction_rows
from .runs import MaskedRuns


def pieces(lengths, seqlen_k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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


def piece_of(lengths, n: Positions, position) -> np.ndarray:
    """The piece that every position lies in, -1 behind the last one; for predicates."""
    return pieces(lengths, n.seqlen_k)[0][position]


def same_piece(lengths, n: Positions, q, k) -> np.ndarray:
    """q and k lie in the same piece; for predicates."""
    return (piece_of(lengths, n, q) == piece_of(lengths, n, k)) & (piece_of(lengths, n, k) >= 0)


def document(n: Positions, *lengths):
    _, start, end = pieces(lengths, n.seqlen_k)
    return n.show(start, end)


def causal_document(n: Positions, *lengths):
    return n.show(n.k, pieces(lengths, n.seqlen_k)[2])


def in_first_part(examples, n: Positions, k) -> np.ndarray:
    """k lies in the question (the first part) of its example."""
    parts = pieces([length for example in examples for length in example], n.seqlen_k)[0]
    first = np.zeros(1 + sum(map(len, examples)), bool)  # the last one is for part -1, behind all examples
    first[np.cumsum([0, *map(len, examples)])[:-1]] = True
    return first[parts[k]]


def share_question(n: Positions, *examples):
    example_end = pieces([sum(example) for example in examples], n.seqlen_k)[2]
    part_end = pieces([length for example in examples for length in example], n.seqlen_k)[2]
    return n.show(n.k, np.where(in_first_part(examples, n, n.k), example_end, part_end))


def global_tokens(n: Positions, count):
    return n.show(np.zeros(n.seqlen_k, np.int64), np.where(n.k < count, n.seqlen_k, min(count, n.seqlen_k)))


def causal_blockwise(n: Positions, *lengths):
    end = pieces(lengths, n.seqlen_k)[2]
    total = sum(lengths)
    last = total - lengths[-1] if lengths else total
    return n.show(n.k, end) | n.show(np.where(n.k < total, np.maximum(n.k, last), total), total)


def prefix_lm_document(n: Positions, *documents):
    lengths, prefixes = [length for _, length in documents], [prefix for prefix, _ in documents]
    number, start, end = pieces(lengths, n.seqlen_k)
    prefix = np.array([*prefixes, 0], np.int64)[number]
    return n.show(np.where(n.k < start + prefix, start, n.k), end)


def long_prefix(*documents) -> str | None:
    for prefix, length in documents:
        if prefix > length:
            return f"the prefix of {prefix} is longer than its document of {length}; the order is (prefix, length)"
    return None


def qk_sparse(n: Positions, *spans):
    reach = np.zeros(n.seqlen_k, np.int64)  # how far the runs that start here go, then those that start before too
    inside = [(offset, length) for offset, length in spans if length]
    np.maximum.at(reach, [offset for offset, _ in inside], [offset + length for offset, length in inside])
    reach = np.maximum.accumulate(reach)
    return n.show(n.k, n.seqlen_k) & n.hide(n.k, reach)


def hash_sparse(n: Positions, buckets, seed):
    (q_bucket, q_position), (k_bucket, k_position) = (bucket_layout(buckets, seed, s, n.seqlen_k) for s in (0, 1))
    first = np.searchsorted(q_bucket * n.seqlen_k + q_position, k_bucket * n.seqlen_k + k_position)
    return n.show(first, np.searchsorted(q_bucket, k_bucket, side="right"))


def hash_sparse_predicate(q, k, n: Positions, buckets, seed):
    (q_bucket, q_position), (k_bucket, k_position) = (bucket_layout(buckets, seed, s, n.seqlen_k) for s in (0, 1))
    return (q_bucket[q] == k_bucket[k]) & (k_position[k] <= q_position[q])


def random_eviction(n: Positions, start, seed):
    return n.show(n.k, eviction_rows(start, seed, n.seqlen_k))


def rect(n: Positions, r0, r1, c0, c1):
    inside = (n.k >= c0) & (n.k < c1)
    return MaskedRuns.show(
        np.where(inside, min(r0, n.seqlen_q), n.seqlen_q), min(r1, n.seqlen_q), seqlen_q=n.seqlen_q, seqlen_k=n.seqlen_k
    )


def frames(n: Positions, count, tokens, window, keyframes):
    frame, total = n.k // tokens, count * tokens
    first = np.maximum(frame - min(window, count), 0)
    last = np.minimum(frame + min(window, count) + 1, count)
    key = np.isin(frame, np.array(keyframes, np.int64))
    first, last = np.where(key, 0, first), np.where(key, count, last)
    return n.show(np.where(n.k < total, first * tokens, total), last * tokens)


def block_diffusion(n: Positions, half, block):
    clean = n.k >= half
    number = np.where(clean, n.k - half, n.k) // block
    start, end = number * block, np.minimum((number + 1) * block, half)  # of the column's block in its own copy
    in_noisy = n.show(np.where(clean, end, start), np.where(clean, half, end))
    in_clean = n.show(np.where(clean & (n.k < 2 * half), half + start, 2 * half), 2 * half)
    return in_noisy | in_clean


def block_diffusion_predicate(q, k, n: Positions, half, block):
    q_clean, k_clean, q_block, k_block = q >= half, k >= half, q % half // block, k % half // block
    within = (q_block == k_block) & ~q_clean & ~k_clean
    to_clean = np.where(q_clean, q_block >= k_block, q_block > k_block) & k_clean
    return (within | to_clean) & (q < 2 * half) & (k < 2 * half)
