"""The tiled reference and its steps against the dense one."""

import pytest
import torch

import flashmask_core as fm
from flashmask_core.data import PAPER_MASKS, paper_mask_text
from flashmask_core.masks.patterns import PATTERNS
from flashmask_core.reference import (
    attention_ref,
    attention_tiled,
    attention_tiled_backward,
    dkdv_steps,
    dq_steps,
    forward_steps,
)
from flashmask_core.tiles.classify import TileKind
from flashmask_core.tiles.decide import TilePlan
from tests.attention_tools import inputs, random_mask, results


class Tiled(torch.autograd.Function):
    """The tiled pair as one differentiable function, so that it is judged like a kernel."""

    @staticmethod
    def forward(ctx, q, k, v, mask, options):
        ctx.save_for_backward(q, k, v)
        ctx.mask, ctx.options = mask, options
        out, lse = attention_tiled(q, k, v, mask, **options)
        ctx.mark_non_differentiable(lse)
        return out, lse

    @staticmethod
    def backward(ctx, dout, _):
        return *attention_tiled_backward(dout, *ctx.saved_tensors, ctx.mask, **ctx.options), None, None


def compare(mask, seqlen_q, seqlen_k, *, batch=1, heads=1, kv_heads=1, blocks=(8, 8), dtype=torch.float32, **options):
    q, k, v, dout = inputs(batch, seqlen_q, seqlen_k, heads, kv_heads, 4, dtype, "cpu", seed=seqlen_q)
    options |= {"block_m": blocks[0], "block_n": blocks[1], "dtype": dtype}
    got = results(lambda q, k, v: Tiled.apply(q, k, v, mask, options), q, k, v, dout)
    scale = options.get("softmax_scale")
    want = results(lambda q, k, v: attention_ref(q, k, v, mask, softmax_scale=scale, dtype=dtype), q, k, v, dout)
    for name, x in got.items():
        assert not x.isnan().any(), name
        limit = 128 * torch.finfo(dtype).eps  # sums of up to 64 products of numbers below 4
        torch.testing.assert_close(x, want[name], rtol=0, atol=limit, msg=lambda m, name=name: f"{name}: {m}")


def example(name, n):
    arguments = ", ".join(map(repr, PATTERNS[name].example(n)))
    return f"{name}({arguments})" if arguments else name


@pytest.mark.parametrize("name", PATTERNS)
def test_every_pattern_forward_and_backward(name):
    compare(fm.mask(example(name, 40), 40), 40, 40)


@pytest.mark.parametrize("name", PAPER_MASKS)
def test_the_paper_masks(name):
    compare(fm.mask(paper_mask_text(name, 64), 64), 64, 64, blocks=(16, 8))


@pytest.mark.parametrize("blocks", [(1, 1), (3, 5), (128, 128)])
@pytest.mark.parametrize("seqlen_q, seqlen_k", [(1, 1), (9, 21), (21, 9)])
def test_odd_lengths_and_tiles(seqlen_q, seqlen_k, blocks):
    for kind in ("full", "causal", "causal2", "two", "four"):
        compare(random_mask(kind, 1, 1, seqlen_q, seqlen_k, "cpu"), seqlen_q, seqlen_k, blocks=blocks)


def test_batches_heads_groups_scale_and_precision():
    mask = random_mask("four", 2, 2, 20, 30, "cpu")
    compare(mask, 20, 30, batch=2, heads=4, kv_heads=2, dtype=torch.float64, softmax_scale=0.3)


def test_a_query_that_sees_nothing():
    mask = fm.mask("~full", 10)
    q, k, v, dout = inputs(1, 10, 10, 1, 1, 4, torch.float32, "cpu")
    out, lse = attention_tiled(q, k, v, mask, block_m=4, block_n=4)
    assert not out.any() and (lse == float("-inf")).all()
    assert not any(x.any() for x in attention_tiled_backward(dout, q, k, v, mask, block_m=4, block_n=4))
    compare(fm.mask("causal & (q >= 5)", 10), 10, 10, blocks=(4, 4))


def test_steps_are_the_lines_in_the_order_of_the_kernels():
    """Row tile 4 of a packed mask: PARTIAL tiles alone; of plain causal: the diagonal tile, then the FULL ones."""
    q, k, v, dout = (x[0, :, 0].detach() for x in inputs(1, 64, 64, 1, 1, 4, torch.float32, "cpu"))
    mask = fm.mask("causal", 64)
    plan, visible = TilePlan(mask, 8, 8), mask.to_dense()[0, 0]
    steps = list(forward_steps(q, k, v, plan, visible, 2, 0.5))
    tile = ["scores", "max", "exp", "sum", "acc"]
    hide = ["scores", "hide", *tile[1:]]
    assert [s.line for s in steps] == [*["decide"] * 8, "load", *hide, *tile, *tile, "out"]
    assert [s.tile for s in steps if s.line == "acc"] == [2, 0, 1]
    kinds = [s.wrote["decision"].kind for s in steps[:8]]
    assert kinds == [TileKind.FULL, TileKind.FULL, TileKind.PARTIAL, *[TileKind.EMPTY] * 5]
    lse, delta = torch.zeros(64), torch.zeros(64)
    columns = list(dkdv_steps(q, k, v, dout, lse, delta, plan, visible, 6, 0.5))
    hide = ["scores", "hide", "exp", "dp", "dv", "ds", "dk"]
    assert [s.line for s in columns] == [*["decide"] * 8, "load", *hide, "scores", *hide[2:], "store"]
    rows = list(dq_steps(q, k, v, dout, lse, delta, plan, visible, 0, 0.5))
    assert [s.line for s in rows] == [*["decide"] * 8, "load", "scores", "hide", "exp", "dp", "ds", "dq", "store"]
    assert rows[-2].wrote["dq"].shape == (8, 4)
