"""What the Hopper backend has of its own, on a GPU of compute capability 9.0; the rest is in tests/test_attention.py."""

import pytest
import torch

import flashmask_core as fm
from tests.attention_tools import check, inputs, random_mask, results

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        torch.cuda.is_available() and torch.cuda.get_device_capability() != (9, 0), reason="needs capability 9.0"
    ),
]


def attend(mask, **kwargs):
    return lambda q, k, v: fm.flashmask_attention(q, k, v, mask, return_lse=True, backend="hopper", **kwargs)


@pytest.mark.parametrize("head_dim", [8, 24, 64, 72, 96, 128, 136, 160, 192, 200, 248, 256])
def test_head_dims(head_dim, device, poisoned):
    mask = random_mask("four", 1, 1, 300, 300, device)
    q, k, v, dout = inputs(2, 300, 300, 2, 1, head_dim, torch.bfloat16, device)
    dlse = torch.randn(2, 2, 300, device=device)
    check(results(attend(mask), q, k, v, dout, dlse), q, k, v, dout, mask, dlse)


@pytest.mark.parametrize("head_dim", [64, 128, 192])
def test_views_into_a_fused_projection(head_dim, device):
    qkv = torch.randn(2, 333, 3, 4, head_dim).to(device, torch.bfloat16)
    mask = random_mask("causal2", 2, 4, 333, 333, device)
    q, k, v = (x.detach().requires_grad_() for x in qkv.unbind(2))
    dout = torch.randn(2, 4, 333, head_dim).to(device, torch.bfloat16).transpose(1, 2)
    check(results(attend(mask), q, k, v, dout), q, k, v, dout, mask)


@pytest.mark.parametrize("seqlen_q, seqlen_k", [(1, 1), (1, 4096), (4096, 1), (127, 129), (640, 384)])
@pytest.mark.parametrize("head_dim", [64, 256])
def test_tile_counts_from_none_to_many(head_dim, seqlen_q, seqlen_k, device, poisoned):
    """Everything hidden, everything visible and causal: lists of no tile, of one, and of uneven lengths."""
    q, k, v, dout = inputs(1, seqlen_q, seqlen_k, 3, 3, head_dim, torch.float16, device)
    for text in ("~full", "full", "causal", "causal & ((k < 100) | (q - k < 70))"):
        mask = fm.mask(text, seqlen_q, seqlen_k).to(device)
        check(results(attend(mask), q, k, v, dout), q, k, v, dout, mask)


@pytest.mark.parametrize("head_dim", [128, 256])
def test_what_repeats_bit_for_bit(head_dim, device):
    mask = random_mask("causal2", 1, 1, 700, 700, device)
    q, k, v, dout = inputs(2, 700, 700, 8, 2, head_dim, torch.bfloat16, device)
    first, *others = (results(attend(mask), q, k, v, dout) for _ in range(4))
    for other in others:
        for name in ("out", "lse", "dk", "dv"):
            assert torch.equal(first[name], other[name]), name
    first, *others = (results(attend(mask, deterministic=True), q, k, v, dout) for _ in range(4))
    assert all(torch.equal(first[name], other[name]) for other in others for name in first)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
@pytest.mark.parametrize("size", [1e-3, 30.0])
@pytest.mark.parametrize("head_dim", [128, 256])
def test_very_small_and_very_large_scores(head_dim, size, dtype, device):
    """lse and delta go through three 16-bit terms: scores of thousands must survive that, and gradients near 0."""
    mask = fm.mask("causal & document(100, 156)", 256).to(device)
    q, k, v, dout = inputs(1, 256, 256, 2, 2, head_dim, dtype, device)
    q, dout = (size * q.detach()).requires_grad_(), dout * size
    check(results(attend(mask), q, k, v, dout), q, k, v, dout, mask)


def test_auto_takes_it(device):
    from flashmask_core.attention import _choose_backend

    q = torch.empty(1, 1, 1, 64, dtype=torch.bfloat16, device=device)
    assert _choose_backend("auto", q) == "hopper" and _choose_backend("auto", q.float()) == "triton"
