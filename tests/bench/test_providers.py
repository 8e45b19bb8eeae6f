"""What FlexAttention is told, and what providers are expected to need."""

import numpy as np
import pytest
import torch

import flashmask_core as fm
from flashmask_core.bench import providers
from flashmask_core.bench.apart import Calls, Inputs
from flashmask_core.bench.config import BenchCase
from flashmask_core.bench.estimate import dense_mask_bytes, estimate_bytes, too_large, vector_bytes
from flashmask_core.bench.flex_masks import NATURAL, flex_mask_mod
from flashmask_core.bench.providers import DEFAULT_PROVIDERS, PROVIDERS, check_provider_names
from flashmask_core.data import PAPER_MASKS, paper_mask_text


def dense_of(mask_mod, seqlen_q: int, seqlen_k: int, b: int = 0, h: int = 0) -> torch.Tensor:
    """bool [Sq, Sk] of a mask_mod, as FlexAttention's create_mask asks it: with index tensors."""
    q, k = torch.arange(seqlen_q)[:, None], torch.arange(seqlen_k)[None]
    return mask_mod(torch.tensor(b), torch.tensor(h), q, k).expand(seqlen_q, seqlen_k)


@pytest.mark.parametrize("name", PAPER_MASKS)
@pytest.mark.parametrize("seqlen", [160, 333])
def test_mask_mod_is_the_mask(name, seqlen):
    text = paper_mask_text(name, seqlen)
    mask = fm.mask(text, seqlen)
    mask_mod, written = flex_mask_mod(mask, text)
    assert torch.equal(dense_of(mask_mod, seqlen, seqlen), mask.to_dense()[0, 0])
    assert written.startswith("from the vectors" if name == "random_eviction" else "hand-written")
    from_vectors, written = flex_mask_mod(mask)
    assert written == "from the vectors"
    assert torch.equal(dense_of(from_vectors, seqlen, seqlen), mask.to_dense()[0, 0])


@pytest.mark.parametrize(
    "text, seqlen_q, seqlen_k",
    [
        ("causal & (k < 16) | sliding_window(9)", 64, 64),  # no single pattern
        ("causal_document(20, 30)", 64, 64),  # leaves padding
        ("causal", 40, 64),
        ("document(30, 34)", 64, 64),
        ("sliding_window(9)", 70, 50),
        ("qk_sparse((3, 20), (10, 30))", 64, 64),  # runs that overlap
        ("prefix_lm_document((0, 5), (7, 7), (0, 0), (2, 52))", 64, 64),
    ],
)
def test_mask_mod_of_other_masks(text, seqlen_q, seqlen_k):
    mask = fm.mask(text, seqlen_q, seqlen_k)
    mask_mod, _ = flex_mask_mod(mask, text)
    assert torch.equal(dense_of(mask_mod, seqlen_q, seqlen_k), mask.to_dense()[0, 0])


def test_mask_mod_of_a_mask_a_head_and_a_sample():
    n, heads = 48, 4
    rng = np.random.default_rng(0)
    visible = torch.from_numpy(np.sort(rng.integers(0, n, size=(2, 2, n, 4)), axis=-1))[..., [2, 3, 0, 1]].int()
    mask = fm.ColumnMask.from_startend_row_indices(visible.contiguous(), causal=False)
    mask_mod, _ = flex_mask_mod(mask, heads=heads)
    dense = mask.to_dense()
    for b in range(2):
        for h in range(heads):
            assert torch.equal(dense_of(mask_mod, n, n, b, h), dense[b, h // 2])


def test_every_natural_predicate_is_a_pattern_of_the_language():
    from flashmask_core.masks.patterns import PATTERNS

    assert set(NATURAL) <= set(PATTERNS)


def test_a_dense_mask_of_96000_tokens():
    case = BenchCase("causal", 96_000, heads=1, passes=("forward",))
    assert dense_mask_bytes(case) == 9_216_000_000
    assert vector_bytes(case) == 1_536_000
    assert PROVIDERS["sdpa_dense_efficient"].estimate(case, fm.mask("causal", 96_000)).mask == 9_216_000_000
    reason = too_large(case, "sdpa_dense_efficient", estimate_bytes(case, "dense"), 8 * 2**30)
    assert "9,216,000,000 for its mask" in reason and "8,589,934,592 are free" in reason
    assert "flashmask keeps the same mask in 1,536,000 bytes" in reason
    assert too_large(case, "flashmask", estimate_bytes(case, "vectors"), 8 * 2**30) is None


def test_estimates_grow_with_what_is_asked():
    case = BenchCase("causal", 4096, batch=2, heads=8, head_dim=64)
    forward = BenchCase("causal", 4096, batch=2, heads=8, head_dim=64, passes=("forward",))
    for style in ("vectors", "blocks", "none", "dense", "scores"):
        assert estimate_bytes(case, style).total > estimate_bytes(forward, style).total > 0
    assert estimate_bytes(case, "dense", 2, 8).mask == 16 * 4096**2
    assert estimate_bytes(case, "scores").work > 2 * 8 * 4096**2 * 4
    reason = too_large(case, "flashmask", estimate_bytes(case, "vectors"), 1000)
    assert "take a smaller N, batch or number of heads" in reason


def test_causal_sdpa_refuses_other_alignments():
    provider = PROVIDERS["sdpa_causal_cudnn"]
    assert "aligns top-left" in provider.refuses(BenchCase("causal", 64, 128), fm.mask("causal", 64, 128))
    assert provider.refuses(BenchCase("causal", 64), fm.mask("causal", 64)) is None


def test_provider_names():
    assert set(DEFAULT_PROVIDERS) <= set(PROVIDERS) and all(name == p.name for name, p in PROVIDERS.items())
    with pytest.raises(ValueError, match="providers: flax unknown; there are flashmask, .*flex"):
        check_provider_names(["flex", "flax"])


def test_flash_attention_4_alone_takes_the_masks_it_knows():
    refusal = lambda text: PROVIDERS["fa4"].refuses(BenchCase(text, 64), fm.mask(text, 64))  # noqa: E731
    assert "knows full, causal and sliding_window(w)" in refusal("prefix_lm(3)")
    for text in ("full", "causal", "sliding_window(16)"):
        assert refusal(text) is None or "not installed" in refusal(text)


def test_a_compiled_engine_may_run_its_backward_again():
    """The training step lets go of its graph and the timed backward keeps it: torch.compile would refuse the second."""
    providers.fresh_compiler()
    case = BenchCase("causal", 64, heads=2, head_dim=32, dtype="float32")
    compiled = torch.compile(lambda q, k, v: torch.sin(q @ k.transpose(-1, -2)).relu() @ v)
    calls = Calls(providers.Prepared(compiled, "inductor"), Inputs(case, "cpu").tensors)
    once = calls.training()
    out = calls.forward()
    for _ in range(2):
        assert all(torch.equal(a, b) for a, b in zip(once, calls.gradients(out, calls.inputs[3])))
