"""Every named pattern against brute force, the paper's ten-token figure, and the pair counts that users know."""

import itertools
import zlib

import mask_oracle
import numpy as np
import pytest

import flashmask_core as fm
from flashmask_core.masks.patterns import PATTERNS
from flashmask_core.masks.randomness import eviction_rows

NAMES = {
    "full", "causal", "sliding_window", "band", "document", "causal_document", "share_question", "global_tokens",
    "global_sliding_window", "causal_blockwise", "prefix_lm", "prefix_lm_document", "qk_sparse", "hash_sparse",
    "random_eviction", "padding", "rect", "frames", "chunk_causal", "block_diffusion",
}  # fmt: skip


def test_every_name_of_the_design_is_there_with_its_form():
    assert set(PATTERNS) == NAMES
    for name, pattern in PATTERNS.items():
        assert pattern.name == name and pattern.about.endswith(".") and pattern.rule
        assert pattern.signature.startswith(name)
    assert PATTERNS["band"].signature == "band(left, right)"
    assert PATTERNS["document"].signature == "document(length, …)"
    assert PATTERNS["share_question"].signature == "share_question((question, answer, …), …)"
    assert PATTERNS["frames"].signature == "frames(count, tokens, window, keyframes=())"


@pytest.mark.parametrize("name", sorted(NAMES))
def test_runs_and_predicate_match_brute_force(name):
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    pattern = PATTERNS[name]
    for seqlen_q, seqlen_k in itertools.product(mask_oracle.ODD_SIZES, mask_oracle.ODD_SIZES):
        for _ in range(3):
            arguments = mask_oracle.random_arguments(name, seqlen_k, rng)
            if arguments is None:
                continue
            wanted = mask_oracle.visible(name, arguments, seqlen_q, seqlen_k)
            q, k = mask_oracle.positions(seqlen_q, seqlen_k)
            got = pattern.build(seqlen_q, seqlen_k, *arguments).to_dense() & (q >= 0)
            np.testing.assert_array_equal(got, wanted, err_msg=f"{name}{arguments} {seqlen_q} x {seqlen_k}")
            by_predicate = pattern.visible(np.maximum(q, 0), k, seqlen_q, seqlen_k, *arguments) & (q >= 0)
            np.testing.assert_array_equal(by_predicate, wanted, err_msg=f"{name}{arguments} predicate")


@pytest.mark.parametrize("name", sorted(NAMES))
@pytest.mark.parametrize("tokens", [8, 10, 1000])
def test_examples_are_valid_texts(name, tokens):
    arguments = PATTERNS[name].example(tokens)
    text = _text(name, arguments)
    runs = fm.parse(text).runs(tokens)
    assert 0 < runs.visible_pairs() <= tokens * tokens
    assert PATTERNS[name].padding(tokens, *arguments) <= tokens % 2


def _text(name, arguments):
    return f"{name}({', '.join(map(str, arguments))})" if arguments else name


N = 10
FIGURE = [
    ("sliding_window(3)", dict(lts=[3, 4, 5, 6, 7, 8, 9, 10, 10, 10])),
    ("causal_document(4,3,3)", dict(lts=[4] * 4 + [7] * 3 + [10] * 3)),
    ("document(4,3,3)", dict(lts=[4] * 4 + [7] * 3 + [10] * 3, ute=[0] * 4 + [4] * 3 + [7] * 3)),
    ("share_question((4,3,3))", dict(lts=[10] * 4 + [7] * 3 + [10] * 3)),
    (
        "global_sliding_window(2,1,1)",
        dict(lts=[10, 10, 4, 5, 6, 7, 8, 9, 10, 10], lte=[10] * 10,
             uts=[0] * 4 + [2] * 6, ute=[0, 0, 0, 0, 3, 4, 5, 6, 7, 8]),
    ),
    ("causal_blockwise(4,3,3)", dict(lts=[4] * 4 + [10] * 6, lte=[7] * 4 + [10] * 6)),
    (
        "prefix_lm_document((2,3),(2,2),(2,5))",
        dict(lts=[3, 3, 3, 5, 5] + [10] * 5, ute=[0, 0, 2, 3, 3, 5, 5, 7, 8, 9]),
    ),
    ("prefix_lm(5)", dict(ute=[0] * 5 + [5, 6, 7, 8, 9])),
    (
        "qk_sparse((2,3),(6,2))",
        dict(lts=[10, 10, 2, 3, 4, 5, 6, 7, 10, 10], lte=[10, 10, 5, 5, 5, 5, 8, 8, 10, 10]),
    ),
]  # fmt: skip


@pytest.mark.parametrize("text, vectors", FIGURE, ids=[text.split("(")[0] for text, _ in FIGURE])
def test_the_papers_ten_token_figure(text, vectors):
    mask = fm.mask(text, N)
    for name, wanted in vectors.items():
        assert getattr(mask, name)[0, 0].tolist() == wanted, name
    assert mask.causal == ("ute" not in vectors)
    assert mask.bounds == (4 if "uts" in vectors else 2 if "lte" in vectors or "ute" in vectors else 1)


@pytest.mark.parametrize(
    "text, seqlen_q, seqlen_k, pairs",
    [
        ("sliding_window(3)", 6, 6, 15),
        ("sliding_window(2048)", 4096, 4096, 6_292_480),
        ("sliding_window(37)", 300, 300, 10_434),
        ("causal & (q - k < 37)", 300, 300, 10_434),
        ("causal_document(333, 333, 334)", 1000, 1000, 167_167),
        ("share_question((4, 3, 2, 5))", 16, 16, 74),
        ("causal & document(64, 64)", 64, 128, 2080),
        ("causal", 5, 2, 3),
        ("causal", 2, 5, 9),
        ("causal", 128, 127, 8128),
        ("causal", 127, 128, 8255),
        ("causal & ~(128 <= k < 256)", 512, 512, 90_304),
        ("causal_document(4, 2, 4)", 10, 10, 23),
        ("causal_document(4, 0, 4)", 8, 8, 20),
        ("causal_document(4, 4)", 8, 8, 20),
        ("causal & document(3, 2)", 5, 5, 9),
        ("causal & document(2, 3)", 6, 6, 9),
        ("frames(8, 16, 1, (0, 4))", 128, 128, 8448),
        ("chunk_causal(2)", 200, 200, 20_200),
        ("block_diffusion(64, 4)", 128, 128, 4352),
        ("not (q < k)", 8, 8, 36),
        ("q >= k and q - k < 4", 8, 8, 26),
        ("full", 7, 9, 63),
        ("full", 9, 7, 49),
    ],
)
def test_known_pair_counts(text, seqlen_q, seqlen_k, pairs):
    assert fm.mask(text, seqlen_q, seqlen_k).visible_pairs().tolist() == [[pairs]]


def test_a_window_as_long_as_the_sequence_is_causal_bit_for_bit():
    causal = fm.mask("causal", 300)
    for window in (300, 301, 10**12):
        wide = fm.mask(f"sliding_window({window})", 300)
        assert (wide.causal, wide.bounds) == (True, 1)
        assert all(a.equal(b) for a, b in zip(wide.vectors, causal.vectors))
    assert fm.mask("sliding_window(3)", 6).lts[0, 0].tolist() == [3, 4, 5, 6, 6, 6]


@pytest.mark.parametrize(
    "text",
    [
        "sliding_window({})", "band({}, 1)", "band(1, {})", "band(-{}, {})", "global_tokens({})", "prefix_lm({})",
        "global_sliding_window(1, {}, {})", "padding({})", "rect(3, {}, 2, {})", "rect({}, {}, 2, 9)",
        "chunk_causal({})", "random_eviction({})", "frames(2, 8, {})", "frames(0, {}, 1)", "frames(2, 8, 0, {})",
        "block_diffusion(8, {})",
    ],
)  # fmt: skip
def test_the_largest_arguments_do_not_overflow(text):
    for seqlen_q in (5, 16, 40):
        largest, large = (fm.parse(text.format(n, n)).runs(seqlen_q, 16) for n in (1 << 60, 10_000))
        assert largest.equals(large)


def test_an_empty_document_changes_nothing():
    assert fm.mask("causal_document(4, 0, 4)", 8).equals(fm.mask("causal_document(4, 4)", 8))


def test_share_question_leaves_the_rows_of_the_padding_empty():
    assert fm.mask("share_question((4, 3, 2, 5))", 16).empty_rows()[0, 0].nonzero().flatten().tolist() == [14, 15]


@pytest.mark.parametrize("start", [0, 1, 5, 31, 63, 64, 90])
@pytest.mark.parametrize("seed", [0, 1, -7])
def test_random_eviction_drops_one_earlier_visible_key_a_row(start, seed):
    n = 64
    shown = fm.parse(f"random_eviction({start}, {seed})").runs(n).to_dense()
    for row in range(n):
        earlier = set(np.flatnonzero(shown[row - 1])) if row else set()
        gone = earlier - set(np.flatnonzero(shown[row]))
        assert shown[row, row]
        assert len(gone) == (row >= max(start, 1))
        assert set(np.flatnonzero(shown[row])) == (earlier - gone) | {row}


def test_random_eviction_is_even_and_depends_on_the_seed():
    first_gone = [int(np.argmin(eviction_rows(8, seed, 9))) for seed in range(800)]
    assert min(np.bincount(first_gone, minlength=9)[:8]) > 60 and max(first_gone) < 8
    assert not fm.mask("random_eviction(32, 1)", 64).equals(fm.mask("random_eviction(32, 2)", 64))


def test_the_hash_is_the_same_on_every_platform():
    assert fm.mask("random_eviction(5, 3)", 10).lts[0, 0].tolist() == mask_oracle.evictions(5, 3, 10).tolist()
    order = mask_oracle.bucket_order(3, 7, 1, 12)
    assert [bucket for bucket, _ in order] == sorted(bucket for bucket, _ in order)
    assert mask_oracle.splitmix(0) == 0xE220A8397B1DCDAF  # the first number of SplitMix64 with seed 0


@pytest.mark.parametrize(
    "text, tokens, message",
    [
        ("document(4, 4, 3)", 10, "document describes 11 tokens, but the sequence has only 10 keys"),
        ("causal & share_question((4, 3), (4, 3))", 10, "share_question describes 14 tokens"),
        ("frames(8, 16, 1)", 127, "frames describes 128 tokens"),
        ("block_diffusion(64, 4)", 127, "block_diffusion describes 128 tokens"),
        ("qk_sparse((2, 9))", 10, "qk_sparse describes 11 tokens"),
        ("hash_sparse(4294967297)", 10, "hash_sparse: at most 2.32 buckets, not 4,294,967,297"),
        ("prefix_lm_document((3, 2))", 10, "the prefix of 3 is longer than its document of 2"),
    ],
)
def test_arguments_that_do_not_go_with_the_length_are_refused(text, tokens, message):
    with pytest.raises(fm.MaskSyntaxError, match="(?s)" + message) as caught:
        fm.mask(text, tokens)
    assert caught.value.position == (9 if text.startswith("causal &") else 0)
    assert text in str(caught.value)


def test_a_million_tokens_take_no_dense_array_and_little_time():
    import time

    began = time.perf_counter()
    runs = fm.parse("causal & document(repeat(4096, 256)) & (q - k < 512) | causal & (k < 16)").runs(1 << 20)
    assert time.perf_counter() - began < 10  # some 0.3 s when the machine is idle
    assert runs.counts.max() == 2
    sink_or_window = 256 * (512 * 513 // 2 + (4096 - 512) * 512)
    assert sink_or_window < runs.visible_pairs() < sink_or_window + (16 << 20)
