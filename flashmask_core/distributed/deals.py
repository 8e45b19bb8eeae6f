"""Dealing a sequence to ranks for context parallel attention: who holds which chunks, and what each must receive.

The sequence is cut into chunks; a rank holds the queries, keys and values of the chunks dealt to it, in rising order.
Its queries are then increasing rows of the whole mask, so an interval of hidden rows stays an interval: with f(x) = how
many of the rank's rows lie before row x, a column that hides [start, end) hides [f(start), f(end)) of them. That is how
a rank's mask is made in O(N), whatever chunks it holds.

Everything here is plain tensor work on the mask's device; nothing communicates.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch

from ..checks import whole
from ..masks.column_mask import ColumnMask

POLICIES = ("contiguous", "zigzag", "balanced")
RECEIVED_KEY_WORK = 256
"""What one received key costs, in visible pairs: its bytes over NVLink against the arithmetic of a pair (H = 4 Hk)."""
_ALIGNED = 128  # rows of a tile; chunks of whole tiles keep tiles whole
_CHUNKS_A_RANK = 16


@dataclass(frozen=True)
class Deal:
    """Which chunks every rank holds. chunks[r] are rank r's, rising; the last chunk of the sequence may be shorter."""

    seqlen: int
    chunk: int
    chunks: tuple[tuple[int, ...], ...]
    policy: str

    @property
    def ranks(self) -> int:
        return len(self.chunks)

    @cached_property
    def owner(self) -> torch.Tensor:
        """int64 [number of chunks]: the rank that holds each."""
        owner = torch.empty(chunk_count(self.seqlen, self.chunk), dtype=torch.int64)
        for rank, chunks in enumerate(self.chunks):
            owner[list(chunks)] = rank
        return owner

    def lengths(self) -> list[int]:
        """Tokens that every rank holds."""
        return [sum(min(self.chunk, self.seqlen - c * self.chunk) for c in chunks) for chunks in self.chunks]

    def positions(self, rank: int) -> torch.Tensor:
        """int64 [tokens]: where the rank's tokens stand in the whole sequence, rising."""
        return positions_of(self.chunks[rank], self.chunk, self.seqlen)


def positions_of(chunks, chunk: int, seqlen: int) -> torch.Tensor:
    """int64: the positions in the sequence of the tokens of some chunks."""
    at = torch.as_tensor(list(chunks), dtype=torch.int64)[:, None] * chunk + torch.arange(chunk)
    return at[at < seqlen]


def chunk_count(seqlen: int, chunk: int) -> int:
    return -(-seqlen // chunk)


def usual_chunk(seqlen: int, ranks: int) -> int:
    """Tokens of a chunk if nothing else is said: about 16 chunks a rank, of whole 128-token tiles where that goes."""
    per_rank = seqlen / (ranks * _CHUNKS_A_RANK)
    return max(_ALIGNED, int(per_rank) // _ALIGNED * _ALIGNED) if seqlen >= ranks * _ALIGNED else max(1, seqlen // ranks)


def chunk_work(mask: ColumnMask, chunk: int) -> torch.Tensor:
    """int64 [number of chunks]: pairs that the queries of every chunk see, over batch entries and mask heads."""
    rows = mask.visible_keys().sum((0, 1))
    return torch.nn.functional.pad(rows, (0, -len(rows) % chunk)).view(-1, chunk).sum(1).cpu()


def deal(mask: ColumnMask, ranks: int, *, chunk: int | None = None, policy: str = "auto") -> Deal:
    """Deal the chunks of a mask's sequence to `ranks`.

    policy: "contiguous" gives neighbours to a rank; "zigzag" deals forth and back, so that rank 0 gets the first and
    the last chunk of every 2 x ranks; "balanced" gives the heaviest chunk left to the rank with the least visible work
    that still has room (every rank holds the same number of chunks, give or take one); "auto" takes that of the three
    whose slowest rank has the least to do, its pairs and RECEIVED_KEY_WORK for every key that it must receive.

    Raises TypeError or ValueError for a mask with Sq != Sk, no ranks, a chunk below 1, and more ranks than chunks.
    """
    if not isinstance(mask, ColumnMask):
        raise TypeError(f"mask: wanted a ColumnMask, got {type(mask).__name__}")
    if mask.seqlen_q != mask.seqlen_k:
        raise ValueError(f"mask: context parallel wants Sq = Sk, got Sq = {mask.seqlen_q}, Sk = {mask.seqlen_k}")
    ranks = whole("ranks", ranks, 1)
    chunk = usual_chunk(mask.seqlen_q, ranks) if chunk is None else whole("chunk", chunk, 1)
    if policy not in (*POLICIES, "auto"):
        raise ValueError(f"policy: wanted one of {', '.join(POLICIES)} or auto, got {policy!r}")
    count = chunk_count(mask.seqlen_q, chunk)
    if ranks > count:
        raise ValueError(
            f"ranks: {ranks} ranks are more than the {count} chunks of {chunk} tokens in a sequence of "
            f"{mask.seqlen_q}; use at most {count} ranks or a chunk of at most {max(1, mask.seqlen_q // ranks)} tokens"
        )
    if policy != "auto":
        return Deal(mask.seqlen_q, chunk, _dealt(policy, ranks, count, mask, chunk), policy)
    deals = [Deal(mask.seqlen_q, chunk, _dealt(one, ranks, count, mask, chunk), one) for one in POLICIES]
    return min(deals, key=lambda one: max(load.cost for load in loads(mask, one)))


def _dealt(policy: str, ranks: int, count: int, mask: ColumnMask, chunk: int) -> tuple[tuple[int, ...], ...]:
    if policy == "contiguous":
        ends = [count * (rank + 1) // ranks for rank in range(ranks)]
        return tuple(tuple(range(start, end)) for start, end in zip([0, *ends], ends))
    held: list[list[int]] = [[] for _ in range(ranks)]
    if policy == "zigzag":
        for c in range(count):
            turn, at = divmod(c, ranks)
            held[at if turn % 2 == 0 else ranks - 1 - at].append(c)
    else:
        work = chunk_work(mask, chunk).tolist()
        room, load = -(-count // ranks), [0] * ranks
        for c in sorted(range(count), key=lambda c: -work[c]):
            rank = min((r for r in range(ranks) if len(held[r]) < room), key=lambda r: (load[r], len(held[r])))
            held[rank].append(c)
            load[rank] += work[c]
        _fill_empty(held)
    return tuple(tuple(sorted(chunks)) for chunks in held)


def _fill_empty(held: list[list[int]]) -> None:
    """Everybody holds something: chunks without work go to whoever has least work, and could leave a rank bare."""
    for chunks in held:
        if not chunks:
            chunks.append(max(held, key=len).pop())


def rank_mask(mask: ColumnMask, deal: Deal, rank: int) -> ColumnMask:
    """The rank's queries against all keys: a ColumnMask with Sq = the tokens it holds, made in O(N)."""
    mine = torch.zeros(deal.seqlen + 1, dtype=torch.int32)
    mine[deal.positions(rank) + 1] = 1
    before = mine.cumsum(0, dtype=torch.int32).to(mask.device)  # [N + 1]: how many of the rank's rows lie before a row
    lts, lte, uts, ute = (before[v.clamp(0, deal.seqlen).long()] for v in mask.vectors)
    # The causal triangle is one interval of rows a column like any other; the flag would mean bottom-right.
    bounds = 2 if (mask.causal, mask.bounds) in ((True, 1), (False, 2)) else 4
    return ColumnMask(lts, lte, uts, ute, seqlen_q=deal.lengths()[rank], causal=False, bounds=bounds)


def needed_chunks(mask: ColumnMask, chunk: int) -> torch.Tensor:
    """bool [number of chunks of keys]: those of which some query of `mask` sees a key."""
    lts, lte, uts, ute = mask.vectors
    rows = mask.seqlen_q
    lower, upper = (lte - lts).clamp(min=0), (ute - uts).clamp(min=0)
    both = (torch.minimum(lte, ute) - torch.maximum(lts, uts)).clamp(min=0) * ((lower > 0) & (upper > 0))
    seen = (lower + upper - both < rows).flatten(0, 1).any(0)  # [Sk]
    return torch.nn.functional.pad(seen, (0, -len(seen) % chunk)).view(-1, chunk).any(1).cpu()


@dataclass(frozen=True)
class RankLoad:
    """What one rank has to do: tokens it holds, pairs its queries see, keys it must receive from every other rank."""

    rank: int
    tokens: int
    pairs: int
    received: tuple[int, ...]  # key tokens, by the rank that sends them; 0 from itself

    @property
    def received_keys(self) -> int:
        return sum(self.received)

    @property
    def cost(self) -> int:
        """In visible pairs; a received key counts as RECEIVED_KEY_WORK of them."""
        return self.pairs + RECEIVED_KEY_WORK * self.received_keys


def loads(mask: ColumnMask, deal: Deal) -> list[RankLoad]:
    """Every rank's load under a deal, exactly."""
    work, lengths = chunk_work(mask, deal.chunk), deal.lengths()
    result = []
    for rank, chunks in enumerate(deal.chunks):
        received = [0] * deal.ranks
        for c in needed_chunks(rank_mask(mask, deal, rank), deal.chunk).nonzero()[:, 0].tolist():
            if (owner := int(deal.owner[c])) != rank:
                received[owner] += min(deal.chunk, deal.seqlen - c * deal.chunk)
        result.append(RankLoad(rank, lengths[rank], int(work[list(chunks)].sum()), tuple(received)))
    return result
