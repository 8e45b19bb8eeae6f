"""A counter-based integer hash: the same numbers for the same seed on every platform, in any order."""

from __future__ import annotations

import numpy as np


def hashed(seed: int, stream: int, counters) -> np.ndarray:
    """uint64 hashes of an integer array of counters; `stream` tells independent uses of one seed apart.

    The mixing function is that of SplitMix64 (Steele, Lea, Flood 2014), applied to seed, stream and counter in turn.
    """
    state = _mixed(np.array([seed % 2**64], np.uint64)) + np.uint64(stream)
    return _mixed(_mixed(state) + np.asarray(counters, np.int64).astype(np.uint64))


def _mixed(x: np.ndarray) -> np.ndarray:
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def bucket_layout(buckets: int, seed: int, stream: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """(bucket, position), int64 [length] each: `length` tokens hashed to buckets and sorted by (bucket, position)."""
    bucket = (hashed(seed, stream, np.arange(length)) % np.uint64(buckets)).astype(np.int64)
    position = np.argsort(bucket, kind="stable")
    return bucket[position], position


def eviction_rows(start: int, seed: int, length: int) -> np.ndarray:
    """int64 [length]: the query that evicts every key, or `length` for a key that stays to the end.

    A cache has `start` slots, filled with the keys 0 ... start - 1. Every later query draws a slot, evicts the key in
    it and puts its own key there, so each time one of the earlier keys that are still visible goes, all equally
    likely. A key therefore goes with the next draw of its slot, which sorting the draws by slot finds at once.
    With start = 0 the first eviction is at query 1, the first that has an earlier key.
    """
    slots = max(1, min(start, length))
    drawn = np.arange(length)  # the keys that fill the cache come into slot 0, 1, ...
    drawn[slots:] = hashed(seed, 0, drawn[slots:]) % np.uint64(slots)
    order = np.argsort(drawn, kind="stable")
    evicted = np.full(length, length)
    again = drawn[order[1:]] == drawn[order[:-1]]
    evicted[order[:-1][again]] = order[1:][again]
    return evicted
