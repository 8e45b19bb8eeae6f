"""Context parallel attention over gloo processes: forward and backward are those of one process."""

import pytest
import torch
import torch.distributed as dist

import flashmask_core as fm
from flashmask_core.distributed import ContextParallel

from tests.attention_tools import inputs, random_mask
from tests.distributed.ranks import run_ranks

CASES = {  # mask, B, N, H, Hk, chunk
    "causal": ("causal", 1, 111, 2, 2, 16),
    "documents, grouped heads": ("causal & document(50, 21, 40)", 2, 111, 4, 2, 7),
    "window": ("sliding_window(9)", 1, 63, 2, 1, 8),
    "a mask a head": (("four", 4), 2, 63, 4, 2, 8),
    "a mask a key head": (("causal2", 2), 2, 65, 4, 2, 8),
    "nothing visible": ("~full", 1, 20, 2, 1, 4),
}


def compare(name: str, policy: str) -> None:
    text, batch, n, heads, kv_heads, chunk = CASES[name]
    mask = fm.mask(text, n) if isinstance(text, str) else random_mask(text[0], batch, text[1], n, n, "cpu")
    q, k, v, dout = inputs(batch, n, n, heads, kv_heads, 16, torch.float32, "cpu")
    want = fm.flashmask_attention(q, k, v, mask)
    want_grads = torch.autograd.grad(want, (q, k, v), dout)
    cp = ContextParallel(mask, chunk=chunk, policy=policy)
    for waves in (1, 2):
        local = [cp.shard(x).detach().requires_grad_() for x in (q, k, v)]
        out = cp.attention(*local, waves=waves)
        grads = torch.autograd.grad(out, local, cp.shard(dout))
        for got, whole in zip((out, *grads), (want, *want_grads)):
            torch.testing.assert_close(cp.gather(got), whole.detach(), rtol=1e-5, atol=1e-5)


def compare_all(policy: str) -> None:
    for name in CASES:
        compare(name, policy)


@pytest.mark.parametrize("ranks, policy", [(1, "auto"), (2, "contiguous"), (2, "balanced"), (3, "zigzag")])
def test_equals_one_process(ranks, policy):
    run_ranks(ranks, compare_all, policy)


def through_the_kernels() -> None:
    """Every wave reads its keys in place from what was received, and the backward kernel runs on its own."""
    from flashmask_core.kernels import launch

    if launch.interpreter_problem():
        return
    mask = fm.mask("causal & document(20, 25)", 45)
    q, k, v, dout = inputs(2, 45, 45, 4, 2, 16, torch.float32, "cpu")
    cp = ContextParallel(mask, chunk=8, policy="zigzag")
    local = [cp.shard(x).detach().requires_grad_() for x in (q, k, v)]
    grads = {}
    for backend in ("reference", "triton"):
        out = cp.attention(*local, waves=2, backend=backend)
        grads[backend] = (out, *torch.autograd.grad(out, local, cp.shard(dout)))
    for got, want in zip(grads["triton"], grads["reference"]):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def only_what_is_seen_is_sent() -> None:
    cp = ContextParallel(fm.mask("document(32, 32)", 64), chunk=8, policy="contiguous")
    assert cp.receive_counts == [32 * (r == cp.rank) for r in range(2)]


def bad_input() -> None:
    with pytest.raises(ValueError, match="ranks: 2 ranks are more than the 1 chunks of 64 tokens"):
        ContextParallel(fm.mask("causal", 64), chunk=64)
    cp = ContextParallel(fm.mask("causal", 64), chunk=8)
    x = torch.zeros(1, 64, 2, 8)
    with pytest.raises(ValueError, match="q: wanted this rank's 32 tokens, got"):
        cp.attention(x, x, x)
    half = cp.shard(x)
    with pytest.raises(ValueError, match="softmax_scale: wanted a number above 0, got -1"):
        cp.attention(half, half, half, softmax_scale=-1.0)
    with pytest.raises(ValueError, match="v: wanted k's head dim D = 8, got 4; head dims that differ"):
        cp.attention(half, half, half[..., :4])
    with pytest.raises(ValueError, match="x: wanted 64 tokens along dim 1"):
        cp.shard(half)
    dist.barrier()


@pytest.mark.parametrize("work", [through_the_kernels, only_what_is_seen_is_sent, bad_input])
def test_two_ranks(work):
    run_ranks(2, work)


def test_without_a_process_group_it_says_how_to_start():
    with pytest.raises(RuntimeError, match="start with torchrun"):
        ContextParallel(fm.mask("causal", 64))
