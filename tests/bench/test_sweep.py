"""Sweeps: one case a value, each with a mask that is right at its length."""

from dataclasses import replace

import pytest

import flashmask_core as fm
from flashmask_core.bench.config import BenchCase, PackedMask
from flashmask_core.bench.sweep import AXES, MAX_CASES, scaled_text, sweep_cases
from flashmask_core.data import PAPER_MASKS, paper_mask_text

BASE = BenchCase("causal & document(500, 524)", 1024, head_dim=64)


@pytest.mark.parametrize("new", [512, 1000, 4096])
@pytest.mark.parametrize("name", PAPER_MASKS)
def test_a_mask_keeps_its_share_at_another_length(name, new):
    text = scaled_text(paper_mask_text(name, 8192), 8192, new)
    mask = fm.mask(text, new)
    assert not any("padding" in note for note in fm.parse(text).notes(new)), "its lists still fill the sequence"
    if "document" in name or name in ("share_question", "qk_sparse", "causal_blockwise"):
        before = fm.mask(paper_mask_text(name, 8192), 8192)
        assert mask.visible_pairs().item() / new**2 == pytest.approx(before.visible_pairs().item() / 8192**2, rel=0.03)


@pytest.mark.parametrize(
    "text, scaled",
    [
        ("sliding_window(64) | causal & (k < 4)", "sliding_window(64) | causal & (k < 4)"),
        ("causal & ~document(3, 5)", "causal & ~document(6, 10)"),
        ("share_question((2, 3, 3))", "share_question((4, 6, 6))"),
        ("prefix_lm_document((1, 4), (2, 4))", "prefix_lm_document((2, 8), (4, 8))"),
        ("frames(4, 2, 1, (0,))", "frames(4, 4, 1, (0,))"),
        ("block_diffusion(4, 2)", "block_diffusion(8, 2)"),
    ],
)
def test_what_lists_tokens_is_scaled_and_single_numbers_stay(text, scaled):
    assert scaled_text(text, 8, 16) == scaled


def test_the_axes():
    lengths = sweep_cases(BASE, "seqlen", (1024, 512, 1000))
    assert [(case.seqlen_q, case.seqlen_k) for case in lengths] == [(1024, 1024), (512, 512), (1000, 1000)]
    assert [case.build_mask().seqlen_k for case in lengths] == [1024, 512, 1000]
    halves = sweep_cases(replace(BASE, seqlen_q=512), "seqlen", (256,))[0]
    assert (halves.seqlen_q, halves.seqlen_k) == (256, 512)
    pairs = [case.build_mask().visible_pairs().item() for case in sweep_cases(BASE, "sparsity", (1, 2, 4, 1024))]
    assert pairs == [1024 * 1025 // 2, 512 * 513, 4 * 256 * 257 // 2, 1024]
    assert [case.head_dim for case in sweep_cases(BASE, "head_dim", (32, 64))] == [32, 64]
    assert [case.block for case in sweep_cases(BASE, "block", (64, 128))] == [64, 128]
    masks = sweep_cases(BASE, "mask", ("causal", "sliding_window", "document(1000, 24)"))
    assert [(case.mask_name, case.mask) for case in masks] == [
        ("causal", "causal"), ("sliding_window", "sliding_window(64)"), ("", "document(1000, 24)"),
    ]  # fmt: skip
    for axis, (_, values) in AXES.items():
        for case in sweep_cases(BASE, axis, values):
            case.build_mask()


@pytest.mark.parametrize(
    "axis, values, words",
    [
        ("tempo", (1,), "wanted one of seqlen, sparsity"),
        ("seqlen", (), "wanted 1 to 64 values, got 0"),
        ("seqlen", range(1, MAX_CASES + 2), "got 65"),
        ("seqlen", (0,), "wanted numbers of 1 or more, got 0"),
        ("seqlen", (2**21,), "at most 1,048,576 tokens"),
        ("sparsity", (2000,), "2,000 documents do not fit into 1,024"),
        ("head_dim", (512,), "head_dim: wanted at most 256"),
    ],
)
def test_a_sweep_that_cannot_be(axis, values, words):
    with pytest.raises(ValueError, match=words):
        sweep_cases(BASE, axis, values)


def test_an_uploaded_mask_has_one_length():
    packed = replace(BASE, packed=PackedMask.of(BASE.build_mask()))
    with pytest.raises(ValueError, match="an uploaded mask has one length"):
        sweep_cases(packed, "seqlen", (512,))
    assert sweep_cases(packed, "head_dim", (32,))[0].packed is packed.packed
