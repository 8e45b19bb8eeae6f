"""The paper's own packings: their mean rho by the paper's rule, and where the exact rule skips more."""

import numpy as np
import pytest

import flashmask_core as fm
from flashmask_core.data import (
    PAPER_LENGTHS,
    PAPER_MASKS,
    PaperSample,
    default_sample,
    paper_mask_text,
    paper_rho,
    paper_samples,
)

RHO = paper_rho()
WITH_RHO = [name for name in PAPER_MASKS if name in RHO]


def mean_rho(name: str, seqlen: int, rule: str) -> float:
    masks = [fm.mask(paper_mask_text(name, seqlen, sample), seqlen) for sample in paper_samples(seqlen)]
    return float(np.mean([fm.classify_tiles(mask, rule=rule).rho.item() for mask in masks]))


@pytest.mark.parametrize("seqlen", PAPER_LENGTHS)
@pytest.mark.parametrize("name", WITH_RHO)
def test_mean_rho_of_the_paper(name, seqlen):
    assert round(mean_rho(name, seqlen, "paper"), 4) == RHO[name][RHO["seqlen"].index(seqlen)]


@pytest.mark.parametrize("seqlen", [8192, 32768])
def test_exact_rule_skips_more_of_qk_sparse(seqlen):
    assert round(mean_rho("qk_sparse", seqlen, "exact"), 4) == RHO["exact_where_it_differs"]["qk_sparse"][str(seqlen)]


@pytest.mark.parametrize("name", sorted(set(WITH_RHO) - {"qk_sparse"}))
def test_both_rules_agree_on_the_other_masks(name):
    assert round(mean_rho(name, 8192, "exact"), 4) == RHO[name][0]


def test_masks_named_in_the_paper_have_rho_or_no_published_one():
    assert len(PAPER_MASKS) == 12
    assert set(PAPER_MASKS) - set(RHO) == {"full", "share_question", "random_eviction"}
    assert fm.classify_tiles(fm.mask("full", 8192)).rho.item() == 0


def test_samples():
    for seqlen in PAPER_LENGTHS:
        samples = paper_samples(seqlen)
        assert len(samples) == 5 and all(sample.seqlen == seqlen for sample in samples)
    assert default_sample(8192).document_lengths == (2481, 1388, 1978, 2345)
    assert default_sample(32768).document_lengths[:2] == (2427, 2802)
    assert default_sample(131072).document_lengths[:2] == (13561, 8279)
    with pytest.raises(ValueError, match="samples of 8192, 32768, 131072 tokens, not of 4096"):
        paper_samples(4096)


@pytest.mark.parametrize("seqlen", [63, 1000, 8191, 20000])
def test_scaled_samples_keep_their_total_and_make_masks(seqlen):
    sample = default_sample(seqlen)
    assert sample.seqlen == seqlen and len(sample.document_lengths) == 4
    assert all(0 <= p <= n for p, n in zip(sample.prefix_lengths, sample.document_lengths))
    for name in PAPER_MASKS:
        assert fm.mask(paper_mask_text(name, seqlen), seqlen).seqlen_k == seqlen


def test_share_question_splits_a_document_in_question_and_three_answers():
    sample = PaperSample((10, 7), (1, 1), (False, True))
    assert paper_mask_text("share_question", 17, sample) == "share_question((2, 2, 2, 4), (1, 2, 2, 2))"
    # token i past the question of a document of 10 belongs to answer 3 * i // 8
    assert [3 * i // 8 for i in range(8)] == [0, 0, 0, 1, 1, 1, 2, 2]
    assert paper_mask_text("qk_sparse", 17, sample) == "qk_sparse((10, 7))"
    assert paper_mask_text("qk_sparse", 17, PaperSample((17,), (1,), (False,))) == "causal"


def test_wrong_names_and_lengths():
    with pytest.raises(ValueError, match="name: wanted one of full, causal, .*got 'cuasal'"):
        paper_mask_text("cuasal", 8192)
    with pytest.raises(ValueError, match="8192 tokens together, not seqlen = 100"):
        paper_mask_text("causal", 100, paper_samples(8192)[0])
