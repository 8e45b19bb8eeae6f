"""Brute force that judges the masks: what DESIGN's table says, pair by pair, sharing no code with the library."""

import numpy as np

ODD_SIZES = (1, 2, 5, 17, 63, 64, 111)


def positions(seqlen_q, seqlen_k):
    """(q [Sq, 1], k [1, Sk]) in key coordinates."""
    return np.arange(seqlen_q)[:, None] + seqlen_k - seqlen_q, np.arange(seqlen_k)[None, :]


def pieces(lengths, seqlen_k):
    """The number of the piece every position lies in, -1 for padding."""
    numbers = [number for number, length in enumerate(lengths) for _ in range(length)]
    return np.array(numbers + [-1] * (seqlen_k - len(numbers)), int)


def splitmix(x):
    x = (x + 0x9E3779B97F4A7C15) % 2**64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % 2**64
    return x ^ (x >> 31)


def hashed(seed, stream, counter):
    return splitmix((splitmix((splitmix(seed % 2**64) + stream) % 2**64) + counter) % 2**64)


def bucket_order(buckets, seed, stream, length):
    return sorted((hashed(seed, stream, position) % buckets, position) for position in range(length))


def evictions(start, seed, length):
    """evicted_by[key]: simulate the cache query by query."""
    slots = max(1, min(start, length))
    cache, evicted_by = list(range(slots)), [length] * length
    for query in range(slots, length):
        slot = hashed(seed, 0, query) % slots
        evicted_by[cache[slot]] = query
        cache[slot] = query
    return np.array(evicted_by, int)


def visible(name, arguments, seqlen_q, seqlen_k):
    """bool [Sq, Sk] of a named pattern; rows before the first key see nothing."""
    q, k = positions(seqlen_q, seqlen_k)
    row = np.maximum(q, 0)[:, 0]  # index into tables by position
    a = arguments
    if name == "full":
        shown = (q == q) & (k == k)
    elif name == "causal":
        shown = k <= q
    elif name == "sliding_window":
        shown = (q - k >= 0) & (q - k < a[0])
    elif name == "band":
        shown = (q - k >= -a[1]) & (q - k <= a[0])
    elif name in ("document", "causal_document", "causal_blockwise"):
        number = pieces(a, seqlen_k)
        shown = (number[row][:, None] == number) & (number >= 0)
        if name == "causal_blockwise":
            shown |= (number[row] == len(a) - 1)[:, None] & (number >= 0)
        if name != "document":
            shown = shown & (k <= q)
    elif name == "share_question":
        example = pieces([sum(e) for e in a], seqlen_k)
        part = np.array([p for e in a for p, length in enumerate(e) for _ in range(length)], int)
        part = np.concatenate([part, np.full(seqlen_k - len(part), -1)])
        shown = (example[row][:, None] == example) & (example >= 0) & (k <= q)
        shown &= (part == 0) | (part[row][:, None] == part)
    elif name == "global_tokens":
        shown = (q < a[0]) | (k < a[0])
    elif name == "global_sliding_window":
        shown = (q < a[0]) | (k < a[0]) | ((q - k >= -a[2]) & (q - k <= a[1]))
    elif name == "prefix_lm":
        shown = (k <= q) | (k < a[0])
    elif name == "prefix_lm_document":
        number = pieces([length for _, length in a], seqlen_k)
        in_prefix = [place < prefix for prefix, length in a for place in range(length)]
        in_prefix = np.array(in_prefix + [False] * (seqlen_k - len(in_prefix)), bool)
        shown = (number[row][:, None] == number) & (number >= 0) & ((k <= q) | in_prefix)
    elif name == "qk_sparse":
        shown = k <= q
        for offset, length in a:
            shown = shown & ~((offset <= q) & (q < offset + length) & (offset <= k) & (k < offset + length))
    elif name == "hash_sparse":
        queries, keys = (np.array(bucket_order(*a, stream, seqlen_k), int) for stream in (0, 1))
        shown = (queries[row, 0][:, None] == keys[:, 0]) & (keys[:, 1] <= queries[row, 1][:, None])
    elif name == "random_eviction":
        shown = (k <= q) & (q < evictions(*a, seqlen_k))
    elif name == "padding":
        shown = (q < a[0]) & (k < a[0])
    elif name == "rect":
        index = np.arange(seqlen_q)[:, None]
        shown = (a[0] <= index) & (index < a[1]) & (a[2] <= k) & (k < a[3])
    elif name == "frames":
        count, tokens, window, keyframes = a
        number = pieces([tokens] * count, seqlen_k)
        shown = (abs(number[row][:, None] - number) <= window) | np.array([f in keyframes for f in number.tolist()])
        shown &= (number[row] >= 0)[:, None] & (number >= 0)
    elif name == "chunk_causal":
        shown = k // a[0] <= q // a[0]
    elif name == "block_diffusion":
        half, block = a
        shown = np.zeros((seqlen_q, seqlen_k), bool)
        for i, position in enumerate(q[:, 0].tolist()):
            for key in range(min(seqlen_k, 2 * half)):
                if 0 <= position < 2 * half:
                    q_block, k_block = position % half // block, key % half // block
                    if position < half:  # noisy: its own noisy block, and clean blocks before it
                        shown[i, key] = q_block == k_block if key < half else k_block < q_block
                    else:
                        shown[i, key] = key >= half and k_block <= q_block
    else:
        raise KeyError(name)
    return shown & (q >= 0)


def random_arguments(name, n, rng):
    """Arguments of a pattern that go with n keys, degenerate ones among them; None if there are none."""

    def up_to(highest):
        return int(rng.integers(0, highest + 1))

    def lengths():
        found, left = [], n
        for _ in range(up_to(5) + 1):
            found.append(up_to(left))
            left -= found[-1]
        return found

    if name in ("document", "causal_document", "causal_blockwise"):
        return tuple(lengths())
    if name == "share_question":
        parts, examples = lengths(), []
        while parts:
            size = up_to(3) + 1
            examples.append(tuple(parts[:size]))
            parts = parts[size:]
        return tuple(examples)
    if name == "prefix_lm_document":
        return tuple((up_to(length), length) for length in lengths())
    if name == "qk_sparse":
        offsets = [up_to(n) for _ in range(up_to(3) + 1)]
        return tuple((offset, up_to(n - offset)) for offset in offsets)
    if name == "frames":
        tokens = up_to(n // 2) + 1
        count = up_to(n // tokens)
        return count, tokens, up_to(2), tuple(up_to(count + 1) for _ in range(up_to(2)))
    if name == "block_diffusion":
        return (up_to(n // 2 - 1) + 1, up_to(5) + 1) if n > 1 else None
    if name == "band":
        return up_to(2 * n) - n, up_to(2 * n) - n
    if name == "global_sliding_window":
        return up_to(n), up_to(2 * n) - n, up_to(2 * n) - n
    if name == "hash_sparse":
        return up_to(8) + 1, up_to(100) - 50
    if name == "random_eviction":
        return up_to(n + 2), up_to(100)
    if name == "chunk_causal":
        return (up_to(n + 1) + 1,)
    if name == "rect":
        return tuple(up_to(n + 3) for _ in range(4))
    counts = {"full": 0, "causal": 0, "sliding_window": 1, "global_tokens": 1, "prefix_lm": 1, "padding": 1}
    return tuple(up_to(n + 2) for _ in range(counts[name]))
