"""The worked examples: their numbers, counted in another way, and what they are for, run through attention."""

import numpy as np
import pytest
import torch

import flashmask_core as fm
from flashmask_core.masks.examples import EXAMPLES
from tests.attention_tools import check, inputs, results

COUNTED = {
    "Packed fine-tuning": 333 * 334 // 2 * 2 + 334 * 335 // 2,
    "DPO with a shared prompt": 240 * 241 // 2 - 80 * 64 + 272 * 273 // 2 - 72 * 72,
    "Prefix-LM documents": sum(n * (n + 1) // 2 + p * (p - 1) // 2 for p, n in ((64, 160), (32, 96), (128, 256))),
    "Video frames": sum(256 for q in range(8) for k in range(8) if abs(q - k) <= 1 or k in (0, 4)),
    "Attention sink and window": sum(min(q + 1, 128) + min(4, max(0, q - 127)) for q in range(1024)),
    "Chunked causal": sum(2 * (q // 2 + 1) for q in range(200)),
    "Block diffusion": sum((4 + q // 4 * 4) + (q // 4 + 1) * 4 for q in range(64)),
    "Decoding": 265,
    "A chunk of prefill": 64 * 65 // 2,
}


def tree_visible():
    """Nodes in depth-first order with their parents: 48 of prompt, then branches of 4 with two leaves of 2 each."""
    parent = list(range(-1, 51))  # the prompt, and the first branch behind it
    parent += [51, 52, 51, 54]  # two leaves under its last node
    parent += [47, 56, 57, 58] + [59, 60, 59, 62]
    visible = np.zeros((64, 64), bool)
    for node in range(64):
        ancestor = node
        while ancestor >= 0:
            visible[node, ancestor] = True
            ancestor = parent[ancestor]
    return visible


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_numbers_are_right(name):
    example = EXAMPLES[name]
    pairs = COUNTED[name] if name in COUNTED else int(tree_visible().sum())
    assert example.pairs == pairs == example.mask().visible_pairs().item()
    assert example.name == name and example.about.endswith(".")


def test_tiles_of_packed_fine_tuning():
    empty, partial, full = fm.classify_tiles(EXAMPLES["Packed fine-tuning"].mask()).counts[0, 0].tolist()
    assert (empty, partial + full) == (44, 20)


def test_tree_decoding_fits_in_depth_first_order_alone():
    visible = tree_visible()
    assert fm.fit(visible).mask.equals(EXAMPLES["Tree decoding"].mask()) and fm.fit(visible).mask.bounds == 1
    depth = [len(np.flatnonzero(row)) for row in visible]
    breadth_first = np.argsort(depth, kind="stable")
    assert fm.fit(visible[np.ix_(breadth_first, breadth_first)]).max_runs > 2


@pytest.mark.parametrize("backend", ["reference", "triton"])
def test_changing_document_1_changes_document_2_by_exactly_0(backend, device):
    mask = fm.mask("causal & document(40, 56)", 96).to(device)
    q, k, v, dout = inputs(1, 96, 96, 2, 2, 16, torch.float32, device)

    def run(*qkv):
        attend = lambda q, k, v: fm.flashmask_attention(q, k, v, mask, return_lse=True, backend=backend)  # noqa: E731
        return results(attend, *qkv, dout)

    before = run(q, k, v)
    changed = [x.detach().clone() for x in (q, k, v)]
    for x in changed:
        x[:, :40] = torch.randn_like(x[:, :40])
    after = run(*(x.requires_grad_() for x in changed))
    for name in before:
        rows = (slice(None), slice(None), slice(40, None)) if name == "lse" else (slice(None), slice(40, None))
        assert torch.equal(before[name][rows], after[name][rows]), name
        assert not torch.equal(before[name], after[name])


@pytest.mark.parametrize("backend", ["reference", "triton"])
def test_decoding_with_a_growing_cache_gives_the_rows_of_the_whole(backend, device):
    text, size = "sliding_window(9) & document(12, 28) | causal & (k < 2)", 40
    q, k, v, _ = inputs(1, size, size, 4, 2, 16, torch.float32, device)
    whole = fm.attention_ref(q, k, v, fm.mask(text, size).to(device))[0]
    for seen in (1, 2, 12, 13, 27, 40):
        # The documents of a cache that holds no more than `seen` keys yet.
        lengths = f"document({min(seen, 12)}, {max(0, seen - 12)})"
        mask = fm.mask(text.replace("document(12, 28)", lengths), 1, seen).to(device)
        one = fm.flashmask_attention(q[:, seen - 1 : seen], k[:, :seen], v[:, :seen], mask, backend=backend)
        torch.testing.assert_close(one[:, 0], whole[:, seen - 1], rtol=2e-5, atol=2e-5)


def test_two_global_tokens_in_the_middle_run_in_passes(device):
    runs = fm.parse("causal & ((q - k < 8) | (k // 2 == 15) | (q // 2 == 15))").runs(64)
    passes = [one.to(device) for one in fm.fit(runs).passes]
    assert len(passes) == 2
    q, k, v, dout = inputs(1, 64, 64, 2, 1, 16, torch.float32, device)
    attend = lambda q, k, v: fm.flashmask_attention(q, k, v, passes, return_lse=True, backend="triton")  # noqa: E731
    check(results(attend, q, k, v, dout), q, k, v, dout, passes)
    dense = torch.from_numpy(runs.to_dense()).to(device)
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k.repeat_interleave(2, 2)) / 4
    p = scores.masked_fill(~dense, float("-inf")).softmax(-1)
    torch.testing.assert_close(
        attend(q, k, v)[0], torch.einsum("bhqk,bkhd->bqhd", p, v.repeat_interleave(2, 2)), rtol=2e-5, atol=2e-5
    )
