"""load_mask: every kind with a small input whose answer is known, and what is refused with which words."""

import io

import numpy as np
import pytest
import torch

import flashmask_core as fm
from flashmask_core.masks.mask_json import record_text

TRIL = np.tril(np.ones((8, 8), np.float32))
ADDITIVE = np.where(TRIL == 1, 0.0, -np.inf)


def pairs(mask):
    return mask.visible_pairs().flatten().tolist()


def npy(array, **options):
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    "kind, values, wanted",
    [
        ("position_ids", [0, 1, 2, 3, 0, 1, 0, 1, 2, 3], [23]),
        ("position_ids", [5, 6, 7, 0, 1], [9]),
        ("position_ids", [[0, 1, 2], [0, 1, 0]], [6, 4]),
        ("attention_mask", [1, 1, 2, 2, 2, 0], [9]),
        ("attention_mask", [[0, 0, 1], [0, 1, 1]], [1, 3]),
        ("attention_mask", [[1, 1, 0], [True, True, True]], [3, 6]),
        ("lengths", [4, 0, 4], [20]),
        ("lengths", (4, 4), [20]),
        ("lengths", [333, 333, 334], [167167]),
        ("cu_seqlens", [0, 4, 4, 8], [20]),
        ("cu_seqlens", torch.tensor([0, 4, 4, 8], dtype=torch.int32), [20]),
        ("attention_mask", np.array([1.0, 1.0, 0.0]), [3]),
    ],
)
def test_packed_sequences(kind, values, wanted):
    assert pairs(fm.load_mask(values, kind=kind)) == wanted


@pytest.mark.parametrize(
    "text, lengths, wanted",
    [
        ("sliding_window(3)", (6,), 15),
        ("sliding_window(2048)", (4096,), 6_292_480),
        ("causal & document(333, 333, 334)", (1000,), 167_167),
        ("share_question((4, 3, 2, 5))", (16,), 74),
        ("causal & document(64, 64)", (64, 128), 2_080),
        ("causal", (5, 2), 3),
        ("causal", (2, 5), 9),
        ("causal", (128, 127), 8_128),
        ("causal", (127, 128), 8_255),
        ("not (q < k)", (8,), 36),
        ("q >= k and q - k < 4", (8,), 26),
        ("document(4, 0, 4) & causal", (8,), 20),
        ("frames(8, 16, 1, (0, 4))", (128,), 8_448),
        ("block_diffusion(64, 4)", (128,), 4_352),
    ],
)
def test_known_masks_are_the_same_by_text_dense_rows_and_file(text, lengths, wanted):
    mask = fm.mask(text, *lengths)
    assert pairs(mask) == [wanted]
    indices, causal = mask.to_startend_row_indices()
    sources = [(record_text(mask), {}), (mask.to_dense(), {"polarity": "visible"})]
    sources.append((indices, {"kind": "startend_row_indices", "causal": causal, "seqlen_q": mask.seqlen_q}))
    for source, options in sources:
        assert fm.load_mask(source, **options).equals(mask)


def test_the_other_small_answers():
    assert fm.mask("sliding_window(3)", 6).lts[0, 0].tolist() == [3, 4, 5, 6, 6, 6]
    for window in (63, 64):
        indices, causal = fm.mask(f"sliding_window({window})", 63).to_startend_row_indices()
        assert causal and indices.equal(fm.mask("causal", 63).to_startend_row_indices()[0])
    counts = fm.classify_tiles(fm.load_mask([333, 333, 334], kind="lengths")).counts[0, 0].tolist()
    assert counts[0] == 44 and counts[1] + counts[2] == 20
    assert fm.mask("share_question((4, 3, 2, 5))", 16).empty_rows()[0, 0].nonzero().flatten().tolist() == [14, 15]
    assert any("7" in note for note in fm.parse("q + 1 <= k").notes(8))


def test_packed_sequences_in_both_directions_and_the_row_that_sees_nothing():
    assert pairs(fm.load_mask([4, 4], kind="lengths", causal=False)) == [32]
    mask = fm.load_mask([1, 1, 2, 2, 2, 0], kind="attention_mask")
    assert mask.empty_rows().tolist() == [[[False] * 5 + [True]]]
    assert fm.load_mask([4, 0, 4], kind="lengths").equals(fm.mask("causal_document(4, 4)", 8))
    assert fm.load_mask([3, 2], kind="lengths", causal=False).equals(fm.mask("document(3, 2)", 5))


def test_attention_masks_with_holes_and_returning_numbers_against_the_definition():
    rng = np.random.default_rng(0)
    fitted = 0
    for _ in range(300):
        numbers, causal = rng.integers(0, 3, rng.integers(1, 9)), bool(rng.integers(2))
        visible = (numbers[:, None] == numbers) & (numbers > 0)
        if causal:
            visible &= np.tri(len(numbers), dtype=bool)
        try:
            mask = fm.load_mask(numbers, kind="attention_mask", causal=causal)
        except fm.NotRepresentableError as error:
            assert error.columns == fm.fit(visible).columns
            continue
        fitted += 1
        np.testing.assert_array_equal(mask.to_dense()[0, 0].numpy(), visible)
    assert fitted > 150


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.uint8, np.int64, ">i4"])
def test_zero_and_one_of_any_dtype(dtype):
    assert pairs(fm.load_mask(TRIL.astype(dtype))) == [36]
    assert pairs(fm.load_mask(npy(TRIL.astype(dtype)))) == [36]
    assert pairs(fm.load_mask(TRIL.astype(dtype), polarity="masked")) == [28]


@pytest.mark.parametrize("hidden", [-np.inf, -1e4, np.finfo(np.float32).min, -65504.0])
def test_additive_matrices(hidden):
    assert pairs(fm.load_mask(np.where(TRIL == 1, 0, hidden))) == [36]


def test_dense_shapes_and_libraries():
    visible = torch.rand(2, 3, 5, 7, generator=torch.Generator().manual_seed(0)) > 0.1
    visible = visible.cummin(-2).values  # one run a column
    mask = fm.load_mask(visible, polarity="visible")
    assert mask.to_dense().equal(visible)
    assert fm.load_mask((~visible).numpy(), polarity="masked").equals(mask)
    assert fm.load_mask(visible[:, 0].numpy(), kind="dense", polarity="visible").to_dense().equal(visible[:, :1])
    assert fm.load_mask(visible.to(torch.bfloat16)).equals(mask)
    assert fm.load_mask(visible[0, 0].tolist(), kind="dense", polarity="visible").to_dense()[0, 0].equal(visible[0, 0])
    assert fm.load_mask(visible[0, 0].float(), kind="dense").to_dense()[0, 0].equal(visible[0, 0])
    assert fm.load_mask(npy(np.asfortranarray(TRIL))).equals(fm.load_mask(TRIL))
    assert pairs(fm.load_mask(np.zeros((3, 3), np.uint8))) == [0]
    assert pairs(fm.load_mask(np.zeros((3, 3)), polarity="masked")) == [9]


def test_a_large_matrix_goes_in_strips(monkeypatch):
    from flashmask_core.masks.load import dense

    monkeypatch.setattr(dense, "_STRIP_CELLS", 100)
    wanted = fm.mask("causal & document(30, 33) | causal & (k < 4)", 63)
    visible = wanted.to_dense()[0, 0]
    assert fm.load_mask(visible, polarity="visible").equals(wanted)
    assert fm.load_mask(torch.where(visible, 0.0, -1e9)).equals(wanted)
    broken = visible.clone()
    broken[1::2, 40:] = False
    with pytest.raises(fm.NotRepresentableError) as caught:
        fm.load_mask(broken, polarity="visible")
    assert caught.value.columns == fm.fit(broken.numpy()).columns and caught.value.max_runs > 2


def test_startend_row_indices():
    indices = np.broadcast_to(np.int32([3, 5]), (1, 1, 6, 2))
    assert [pairs(fm.load_mask(indices, kind="startend_row_indices", causal=c))[0] for c in (True, False)] == [12, 0]
    assert pairs(fm.load_mask(indices.astype(np.uint8), causal=True)) == [12]  # 4-D, not 0/1: it can only be rows
    mask = fm.load_mask(torch.full((2, 1, 4, 1), 9), kind="startend_row_indices", causal=True, seqlen_q=9)
    assert (mask.batch, mask.seqlen_q, mask.seqlen_k) == (2, 9, 4)
    wrong = np.full((1, 2, 6, 2), 3)
    wrong[0, 1, 4, 1] = 7
    with pytest.raises(ValueError, match=r"column 4 \(batch 0, head 1\) has lte = 7, and rows go from 0 to Sq = 6"):
        fm.load_mask(wrong, causal=True)
    with pytest.raises(ValueError, match="causal=True with C=4"):
        fm.load_mask(np.full((1, 1, 6, 4), 3), kind="startend_row_indices", causal=True)
    with pytest.raises(ValueError, match=r"wanted \[B, Hm, Sk, C\] with Sk up to 1,048,576, got \[6, 2\]"):
        fm.load_mask(indices[0, 0], kind="startend_row_indices", causal=True)
    with pytest.raises(TypeError, match="seqlen_q: wanted an int, got str"):
        fm.load_mask(indices, causal=True, seqlen_q="6")
    with pytest.raises(ValueError, match="causal: startend_row_indices mean another mask under the other flag"):
        fm.load_mask(indices)


@pytest.mark.parametrize(
    "values, options, words",
    [
        (TRIL - 0.5 * np.eye(8), {}, "row 0, column 0 is 0.5; wanted only 0 and 1"),
        (np.where(TRIL == 1, 0, -5.0), {}, "row 0, column 1 is -5.0"),
        (TRIL + np.where(np.eye(8) == 1, np.nan, 0), {}, "row 0, column 0 is nan"),
        (TRIL * 255, {}, "is 255.0"),
        (np.where(TRIL == 1, 1, -1e9), {}, "neither 0/1 nor additive"),
        (np.zeros((4, 4), np.float32), {}, "0 everywhere"),
        (TRIL == 1, {}, 'say "visible" or "masked"'),
        (ADDITIVE, {"polarity": "visible"}, "polarity: an additive matrix says it itself"),
        (TRIL, {"polarity": "keep"}, 'wanted "visible" or "masked", got \'keep\''),
        (TRIL, {"causal": True}, "causal: has no meaning for a dense source"),
        (TRIL, {"kind": "matrix"}, "kind: wanted one of auto, dense"),
        ([3, 2], {}, "can be several things; say which with kind="),
        ([[1, 1, 0], [1, 1, 1]], {}, "can be several things"),
        (np.ones((2, 1, 6, 2), int), {}, "can be several things"),
        ([[1], [1, 2]], {"kind": "lengths"}, "do not make an array"),
        ([], {"kind": "lengths"}, "wanted numbers in 1-D"),
        ([[1, 2]], {"kind": "lengths"}, r"lengths: wanted numbers in 1-D, got \[1, 2\]"),
        ([3, -2], {"kind": "lengths"}, "lengths: number 1 is -2"),
        ([2**20, 2**20], {"kind": "lengths"}, "2,097,152 tokens in all"),
        ([2**62, 2**62], {"kind": "lengths"}, "number 0 is 4611686018427387904"),
        ([1.5], {"kind": "lengths"}, "wanted whole numbers, got 1.5"),
        ([0, 4, 3], {"kind": "cu_seqlens"}, "number 2 is 3 after 4"),
        ([1, 4], {"kind": "cu_seqlens"}, "wanted a first value of 0, got 1"),
        ([0, 2**40], {"kind": "cu_seqlens"}, "1,099,511,627,776 tokens in all"),
        ([0, -1e9], {"kind": "attention_mask"}, "additive values are of kind dense"),
        (np.float64([[[[1.5]]]]), {"kind": "startend_row_indices", "causal": True}, "wanted integers, got float64"),
    ],
)
def test_refused_with_the_accepted_forms(values, options, words):
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        fm.load_mask(values, **options)
    if not {"polarity", "causal"} & set(options) and options.get("kind") != "matrix":
        assert "accepted are" in str(caught.value)


@pytest.mark.parametrize("source", [None, 3, {"lts": [1]}, np.array(["a"]), np.array([1j]), object()])
def test_things_that_are_no_source(source):
    with pytest.raises(TypeError, match="source: wanted"):
        fm.load_mask(source)


def test_a_block_mask_object_with_heads_and_a_ragged_end():
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    document = torch.tensor([0] * 50 + [1] * 90)

    def mask_mod(b, h, q, k):
        return (q >= k) & (document[q] == document[k]) & (q - k < 40 + 20 * h + b)

    block_mask = flex.create_block_mask(mask_mod, 2, 2, 140, 140, device="cpu", BLOCK_SIZE=32)
    q, k = torch.arange(140)[:, None], torch.arange(140)
    wanted = torch.stack([torch.stack([mask_mod(b, h, q, k) for h in range(2)]) for b in range(2)])
    mask = fm.load_mask(block_mask)
    assert mask.to_dense().equal(wanted)
    # Blocks that are listed without a mask_mod are visible as a whole, others not at all.
    counts, indices = torch.tensor([[[1, 2]]], dtype=torch.int32), torch.tensor([[[[0, 1], [1, 0]]]], dtype=torch.int32)
    listed = flex.BlockMask.from_kv_blocks(counts, indices, BLOCK_SIZE=32, seq_lengths=(64, 60))
    assert pairs(fm.load_mask(listed, kind="block_mask")) == [32 * 32 + 32 * 60]
    with pytest.raises(ValueError, match="asked for dense, and the source is a block_mask"):
        fm.load_mask(listed, kind="dense")
    with pytest.raises(TypeError, match="wanted a FlexAttention BlockMask object, got ndarray"):
        fm.load_mask(TRIL, kind="block_mask")


def test_rows_may_be_keys():
    visible = np.arange(12).reshape(3, 4) % 5 > 1
    assert fm.load_mask(visible.T, polarity="visible", rows="keys").equals(fm.ColumnMask.from_dense(visible))
    assert fm.load_mask(visible, polarity="visible", rows="queries").equals(fm.ColumnMask.from_dense(visible))
    heads = np.stack([visible, ~visible])[None]
    assert fm.load_mask(heads.swapaxes(2, 3), polarity="visible", rows="keys").equals(fm.ColumnMask.from_dense(heads))
    with pytest.raises(ValueError, match="rows: wanted .queries. or .keys., got 'q'"):
        fm.load_mask(visible, polarity="visible", rows="q")
    with pytest.raises(ValueError, match="rows: has no meaning for a lengths source"):
        fm.load_mask([3, 4], kind="lengths", rows="keys")


def test_a_mask_that_does_not_fit_brings_its_runs():
    visible = np.add.outer(np.arange(12), np.arange(12)) % 2 == 0
    for broken in (lambda: fm.load_mask(visible.astype(int)), lambda: fm.ColumnMask.from_dense(visible),
                   lambda: fm.mask("(q + k) % 2 == 0", 12)):  # fmt: skip
        with pytest.raises(fm.NotRepresentableError) as caught:
            broken()
        fit = fm.fit(caught.value.runs)
        assert fit.columns == caught.value.columns and fit.max_runs == caught.value.max_runs
        np.testing.assert_array_equal(fit.runs.to_dense(), visible)
    with pytest.raises(fm.NotRepresentableError) as caught:
        fm.load_mask(np.stack([visible, visible])[None].astype(int))
    assert caught.value.runs is None


HUGE = np.broadcast_to(np.array([True]), (2**20, 2**20))
OF_MASKS = [fm.fit, fm.recognise, fm.lint, lambda a: fm.compare(a, "causal"), fm.ColumnMask.from_dense]


@pytest.mark.parametrize("take", OF_MASKS, ids=["fit", "recognise", "lint", "compare", "from_dense"])
def test_every_function_that_takes_a_dense_mask_refuses_what_it_cannot_read(take):
    for huge in (HUGE, torch.from_numpy(np.ones((1, 1), bool)).expand(2**20, 2**20)):
        with pytest.raises(ValueError, match="1,099,511,627,776 pairs, more than"):
            take(huge)
    for empty in (torch.ones(4, 4, dtype=torch.bool, device="meta"), torch.ones(4, 4).bool().to_sparse()):
        with pytest.raises(TypeError, match="(mask|visible): wanted a"):
            take(empty)
    with torch._subclasses.FakeTensorMode():
        fake = torch.ones(4, 4, dtype=torch.bool)
    for load in (take, lambda a: fm.load_mask(a, polarity="visible")):
        with pytest.raises(TypeError, match="wanted a"):
            load(fake)


def test_a_tensor_without_numbers_and_options_that_say_nothing_are_refused():
    for source in (torch.ones(4, 4, device="meta"), torch.ones(4, 4).to_sparse()):
        with pytest.raises(TypeError, match="source: wanted a"):
            fm.load_mask(source)
    for causal in ("no", 0, 1):
        with pytest.raises(TypeError, match="causal: wanted True, False or None"):
            fm.load_mask([3, 4], kind="lengths", causal=causal)
    for option in ({"array": "a"}, {"column": 0}):
        with pytest.raises(ValueError, match="chooses in a file, and the source is a list"):
            fm.load_mask([3, 4], kind="lengths", **option)
    for column in (-1, True, 1.5):
        with pytest.raises(ValueError, match="column: wanted a name, or a number from 0"):
            fm.load_mask(b"id,length\n0,333\n", kind="lengths", column=column)


def test_compare_and_lint_take_the_meant_mask_as_a_text():
    visible = np.tri(9, dtype=bool)
    assert fm.compare(visible, "causal").equal and fm.compare(visible, "full").missing_pairs == 36
    for judge in (fm.compare, lambda mask, meant: fm.lint(mask, meant=meant)):
        with pytest.raises(fm.MaskSyntaxError):
            judge(visible, "")
