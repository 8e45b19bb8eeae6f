"""Deals against brute force on the dense mask."""

import pytest
import torch

import flashmask_core as fm
from flashmask_core.distributed import POLICIES, deal, loads, needed_chunks, rank_mask

from tests.attention_tools import random_mask

N = 111
MASKS = {
    **{kind: random_mask(kind, 2, 2, N, N, "cpu") for kind in ("causal", "full", "causal1", "causal2", "two", "four")},
    "window": fm.mask("sliding_window(13)", N),
    "documents": fm.mask("causal & document(50, 0, 3, 40)", N),
    "nothing": fm.mask("~full", N),
}


@pytest.mark.parametrize("policy", [*POLICIES, "auto"])
@pytest.mark.parametrize("ranks, chunk", [(1, 16), (2, 16), (3, 7), (7, 16), (4, 1)])
@pytest.mark.parametrize("name", MASKS)
def test_every_rank_has_its_rows_of_the_mask_and_the_chunks_it_sees(name, ranks, chunk, policy):
    mask = MASKS[name]
    dealt, dense = deal(mask, ranks, chunk=chunk, policy=policy), MASKS[name].to_dense()
    positions = [dealt.positions(rank) for rank in range(ranks)]
    assert torch.equal(torch.cat(positions).sort().values, torch.arange(N))
    assert dealt.lengths() == list(map(len, positions))
    counts = [len(chunks) for chunks in dealt.chunks]
    assert min(counts) >= 1 and max(counts) - min(counts) <= 1 or policy == "auto" or name == "nothing"
    for load in loads(mask, dealt):
        rows = dense[:, :, positions[load.rank]]
        mine = rank_mask(mask, dealt, load.rank)
        assert torch.equal(mine.to_dense(), rows)
        assert load.pairs == rows.sum()
        seen = torch.nn.functional.pad(rows.any(2).flatten(0, 1).any(0), (0, -N % chunk)).view(-1, chunk).any(1)
        assert torch.equal(needed_chunks(mine, chunk), seen)
        held = seen.repeat_interleave(chunk)[:N]
        assert load.received == tuple(
            0 if r == load.rank else int(held[positions[r]].sum()) for r in range(ranks)
        )


def test_the_balanced_deal_evens_out_what_zigzag_does_not():
    mask = fm.mask("causal & document(1000, 3000, 200, 2900, 1092)", 8192)
    spread = {}
    for policy in POLICIES:
        pairs = [load.pairs for load in loads(mask, deal(mask, 4, chunk=128, policy=policy))]
        spread[policy] = max(pairs) / (sum(pairs) / 4)
    assert spread["contiguous"] > 1.2 > spread["zigzag"] > spread["balanced"]
    assert spread["balanced"] < 1.01


def test_auto_weighs_the_work_against_the_keys_that_have_to_come():
    assert deal(fm.mask("sliding_window(512)", 16384), 4).policy == "contiguous"
    assert deal(fm.mask("causal", 131072), 4).policy in ("zigzag", "balanced")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(ranks=5, chunk=32), "ranks: 5 ranks are more than the 4 chunks of 32 tokens in a sequence of 111; use at most 4"),
        (dict(ranks=0), "ranks: wanted at least 1, got 0"),
        (dict(ranks=2, chunk=0), "chunk: wanted at least 1, got 0"),
        (dict(ranks=2, policy="best"), "policy: wanted one of contiguous, zigzag, balanced or auto, got 'best'"),
    ],
)
def test_what_cannot_be_dealt_is_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match="^" + message):
        deal(MASKS["window"], **arguments)
    with pytest.raises(ValueError, match="Sq = Sk, got Sq = 3, Sk = 5"):
        deal(fm.mask("causal", 3, 5), 2)
