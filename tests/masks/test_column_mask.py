"""ColumnMask: conversions there and back, and every number against its dense picture."""

import itertools

import mask_oracle
import numpy as np
import pytest
import torch

import flashmask_core as fm
from flashmask_core.masks.canonical import canonical_vectors

PACKINGS = [(True, 1), (True, 2), (False, 2), (False, 4)]


def brute_dense(indices, causal, seqlen_q):
    """What a tensor [B, Hm, Sk, C] says, value by value, from the definition."""
    indices = indices.numpy()
    seqlen_k, bounds = indices.shape[2:]
    row, key = np.arange(seqlen_q)[:, None], np.arange(seqlen_k)
    hidden = np.zeros((*indices.shape[:2], seqlen_q, seqlen_k), bool)
    for plane in np.ndindex(*indices.shape[:2]):
        vector = [indices[plane][:, n] for n in range(bounds)]
        if causal:
            hidden[plane] |= key > row + seqlen_k - seqlen_q
            hidden[plane] |= (row >= vector[0]) & ((row < vector[1]) if bounds == 2 else True)
        else:
            lower_end, upper_start = (vector[1], vector[2]) if bounds == 4 else (seqlen_q, 0)
            hidden[plane] |= (row >= vector[0]) & (row < lower_end)
            hidden[plane] |= (row >= upper_start) & (row < vector[-1])
    return ~hidden


@pytest.mark.parametrize("causal, bounds", PACKINGS)
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("batch, heads", [(1, 1), (2, 3)])
def test_random_vectors_mean_what_brute_force_says(causal, bounds, dtype, batch, heads):
    generator = torch.Generator().manual_seed(bounds + 10 * causal)
    for seqlen_q, seqlen_k in itertools.product((1, 2, 7, 33), (1, 2, 7, 33)):
        for _ in range(2):
            # Values beyond both ends and starts behind ends are as good as any other.
            shape = (batch, heads, seqlen_k, bounds)
            indices = torch.randint(-3, seqlen_q + 4, shape, generator=generator).to(dtype)
            mask = fm.ColumnMask.from_startend_row_indices(indices, causal=causal, seqlen_q=seqlen_q)
            wanted = torch.from_numpy(brute_dense(indices, causal, seqlen_q))
            assert (mask.batch, mask.heads, mask.seqlen_q, mask.seqlen_k) == (batch, heads, seqlen_q, seqlen_k)
            assert all(v.dtype == torch.int32 and v.shape == (batch, heads, seqlen_k) for v in mask.vectors)
            assert mask.to_dense().equal(wanted)
            assert mask.visible_pairs().equal(wanted.sum((-1, -2))) and mask.visible_pairs().dtype == torch.int64
            assert mask.empty_rows().equal(~wanted.any(-1))
            part = mask.to_dense(rows=slice(1, 5), columns=slice(2, 30, 3))
            assert part.equal(wanted[:, :, 1:5, 2:30:3])

            written, flag = mask.to_startend_row_indices()
            again = fm.ColumnMask.from_startend_row_indices(written, causal=flag, seqlen_q=seqlen_q)
            assert written.dtype == torch.int32 and again.to_dense().equal(wanted) and again.equals(mask)
            assert again.to_startend_row_indices()[0].equal(written)  # canonical already

            dense = fm.ColumnMask.from_dense(wanted)
            assert dense.to_dense().equal(wanted) and dense.equals(mask)
            assert dense.to_startend_row_indices()[1] == flag and dense.to_startend_row_indices()[0].equal(written)


def fewest_bounds(visible):
    """(causal, C) of the packing DESIGN asks for, from one dense picture."""
    seqlen_q, seqlen_k = visible.shape
    row, key = np.arange(seqlen_q)[:, None], np.arange(seqlen_k)
    below = key <= row + seqlen_k - seqlen_q
    if not (visible & ~below).any():
        ones = [np.flatnonzero(~visible[:, j] & below[:, j]) for j in range(seqlen_k)]
        if all(len(rows) == 0 or rows[-1] - rows[0] + 1 == len(rows) for rows in ones):
            return True, 1 if all(len(rows) == 0 or rows[-1] == seqlen_q - 1 for rows in ones) else 2
    shown = [np.flatnonzero(visible[:, j]) for j in range(seqlen_k)]
    one_visible_run = all(len(rows) == 0 or rows[-1] - rows[0] + 1 == len(rows) for rows in shown)
    return False, 2 if one_visible_run else 4


def test_every_small_picture_round_trips_in_the_fewest_bounds():
    for seqlen_q, seqlen_k in [(1, 1), (2, 3), (3, 2), (3, 3), (4, 2), (5, 1), (1, 5)]:
        for cells in itertools.product([False, True], repeat=seqlen_q * seqlen_k):
            visible = np.array(cells).reshape(seqlen_q, seqlen_k)
            framed = np.vstack([np.ones((1, seqlen_k), bool), visible])
            runs = (framed[:-1] & ~framed[1:]).sum(0)
            if runs.max() > 2:
                with pytest.raises(fm.NotRepresentableError) as caught:
                    fm.ColumnMask.from_dense(visible)
                assert caught.value.columns == np.flatnonzero(runs > 2).tolist()
                assert caught.value.max_runs == runs.max()
                continue
            mask = fm.ColumnMask.from_dense(visible)
            assert mask.to_dense()[0, 0].numpy().tolist() == visible.tolist()
            indices, causal = mask.to_startend_row_indices()
            assert (causal, indices.shape[-1]) == fewest_bounds(visible), visible


@pytest.mark.parametrize(
    "lts, ute",
    [
        ([2, 2, 4, 5, 5, 8, 8, 9, 10, 10], [0, 0, 1, 3, 4, 4, 5, 7, 8, 9]),  # the figure's hash-sparse
        ([10, 4, 8, 6, 10, 7, 10, 9, 10, 10], None),  # and its random eviction
    ],
    ids=["hash_sparse", "random_eviction"],
)
def test_the_figures_random_masks_round_trip_as_vectors(lts, ute):
    vectors = [lts] if ute is None else [lts, ute]
    given = torch.tensor(vectors, dtype=torch.int32).T[None, None]
    mask = fm.ColumnMask.from_startend_row_indices(given, causal=ute is None)
    indices, causal = mask.to_startend_row_indices()
    dense = fm.ColumnMask.from_dense(mask.to_dense())
    assert dense.equals(mask) and dense.to_dense().equal(mask.to_dense())
    again = fm.ColumnMask.from_startend_row_indices(indices, causal=causal)
    assert again.to_dense().equal(torch.from_numpy(brute_dense(given, ute is None, 10)))
    assert mask.lts[0, 0].tolist() == lts
    if ute is None:
        assert (causal, indices.tolist()) == (True, given.tolist())


def test_two_bounds_mean_another_mask_under_the_other_flag():
    indices = torch.tensor([3, 5], dtype=torch.int32).expand(1, 1, 6, 2)
    pairs = [
        int(fm.ColumnMask.from_startend_row_indices(indices, causal=causal).visible_pairs()) for causal in (True, False)
    ]
    assert pairs == [12, 0]


def test_causal_written_as_vectors_is_canonically_the_flag():
    n = 130
    key = torch.arange(n)
    indices = torch.stack([torch.full((n,), n), key], -1).int()[None, None]
    as_vectors = fm.ColumnMask.from_startend_row_indices(indices, causal=False)
    assert not as_vectors.causal and as_vectors.equals(fm.mask("causal", n))
    written, causal = as_vectors.to_startend_row_indices()
    assert causal and written.shape == (1, 1, n, 1) and (written == n).all()
    alone = fm.ColumnMask.from_startend_row_indices((key + 1).int()[None, None, :, None], causal=True)
    assert alone.to_dense()[0, 0].equal(torch.eye(n, dtype=torch.bool))


def test_from_dense_names_every_column_of_every_plane_shortly():
    visible = torch.ones(2, 1, 7, 300, dtype=torch.bool)
    visible[0, 0, 1::2, 5:200] = False
    visible[1, 0, 1::2, 250] = False
    with pytest.raises(fm.NotRepresentableError) as caught:
        fm.ColumnMask.from_dense(visible)
    assert caught.value.columns == [*range(5, 200), 250] and caught.value.max_runs == 3
    assert len(str(caught.value)) < 600 and "196 columns (5, 6, 7, 8, 9, 10, 11, 12, …)" in str(caught.value)


def test_stack_joins_along_batch_and_head():
    texts = ["causal", "sliding_window(5)", "document(7, 10)", "global_sliding_window(2, 1, 1)"]
    masks = [fm.mask(text, 17) for text in texts]
    batch = fm.ColumnMask.stack(masks, dim="batch")
    heads = fm.ColumnMask.stack(masks, dim="head")
    assert (batch.batch, batch.heads, heads.batch, heads.heads) == (4, 1, 1, 4)
    both = fm.ColumnMask.stack([heads, heads], dim="batch")
    assert (both.batch, both.heads) == (2, 4)
    for n, mask in enumerate(masks):
        assert batch.to_dense()[n, 0].equal(mask.to_dense()[0, 0])
        assert heads.to_dense()[0, n].equal(mask.to_dense()[0, 0])
        assert both.to_dense()[1, n].equal(mask.to_dense()[0, 0])
    indices, causal = batch.to_startend_row_indices()
    assert (causal, indices.shape) == (False, (4, 1, 17, 4))
    assert fm.ColumnMask.from_startend_row_indices(indices, causal=causal).equals(batch)
    two = fm.ColumnMask.stack(masks[:2], dim="head")
    assert two.causal and two.bounds == 1
    assert fm.ColumnMask.stack([masks[0]], dim="head").equals(masks[0])


@pytest.mark.parametrize(
    "masks, dim, message",
    [
        ([], "batch", "masks: wanted at least one ColumnMask"),
        (["causal"], "heads", 'dim: wanted "batch" or "head", got \'heads\''),
        (["causal", "longer"], "head", r"masks\[1\]: .*Sq=9.* does not fit beside masks\[0\]: .*Sq=8"),
    ],
)
def test_stack_refuses(masks, dim, message):
    made = [fm.mask("causal", 9 if text == "longer" else 8) for text in masks]
    with pytest.raises(ValueError, match=message):
        fm.ColumnMask.stack(made, dim=dim)


def test_equals_compares_what_is_seen():
    window = fm.mask("causal & (q - k < 4)", 20)
    assert window.equals(fm.mask("sliding_window(4)", 20)) and not window.equals(fm.mask("sliding_window(5)", 20))
    assert not window.equals(fm.mask("sliding_window(4)", 21))
    assert not window.equals(fm.mask("sliding_window(4)", 20, 21))
    empty_runs = torch.tensor([20, 20, 3, 3], dtype=torch.int64).expand(1, 1, 20, 4)
    full = fm.ColumnMask.from_startend_row_indices(empty_runs, causal=False)
    assert full.equals(fm.mask("full", 20))
    assert fm.ColumnMask.stack([window, window], dim="head").equals(window)
    two, three = (fm.ColumnMask.stack([window] * n, dim="batch") for n in (2, 3))
    assert not two.equals(three)


@pytest.mark.parametrize(
    "indices, causal, error, message",
    [
        (torch.zeros(1, 1, 4, 1), True, TypeError, "wanted int32 or int64, got torch.float32"),
        (torch.zeros(1, 4, 1, dtype=torch.int32), True, ValueError, r"wanted \[B, Hm, Sk, C\], got \(1, 4, 1\)"),
        (torch.zeros(1, 1, 4, 3, dtype=torch.int32), True, ValueError, "causal=True with C=3 bounds a column is no"),
        (torch.zeros(1, 1, 4, 1, dtype=torch.int32), False, ValueError, r"allowed are causal=True with C=1 \(lts\)"),
        (torch.zeros(1, 1, 4, 4, dtype=torch.int32), True, ValueError, "causal=True with C=4"),
    ],
)
def test_from_startend_row_indices_refuses(indices, causal, error, message):
    with pytest.raises(error, match=message):
        fm.ColumnMask.from_startend_row_indices(indices, causal=causal)


def test_wrong_dense_input():
    with pytest.raises(TypeError, match="visible: wanted bool"):
        fm.ColumnMask.from_dense(torch.ones(3, 3))
    with pytest.raises(ValueError, match=r"visible: wanted \[Sq, Sk\] or \[B, Hm, Sq, Sk\], got \(2, 3, 3\)"):
        fm.ColumnMask.from_dense(torch.ones(2, 3, 3, dtype=torch.bool))
    with pytest.raises(TypeError, match="seqlen_q: wanted an int, got float"):
        fm.ColumnMask.from_startend_row_indices(torch.zeros(1, 1, 4, 1, dtype=torch.int32), causal=True, seqlen_q=4.0)


@pytest.mark.parametrize("seqlen_q, seqlen_k", [(0, 0), (0, 5), (5, 0)])
def test_lengths_of_zero(seqlen_q, seqlen_k):
    mask = fm.mask("causal | ~full", seqlen_q, seqlen_k)
    assert mask.to_dense().shape == (1, 1, seqlen_q, seqlen_k) and mask.visible_pairs().tolist() == [[0]]
    assert mask.empty_rows().tolist() == [[[True] * seqlen_q]]
    assert mask.equals(mask.canonical())


def test_the_canonical_packing_is_packed_already():
    rng = np.random.default_rng(7)
    for _ in range(500):
        seqlen_q, seqlen_k = rng.integers(1, 20, size=2)
        causal, bounds = [(True, 1), (True, 2), (False, 2), (False, 4)][rng.integers(4)]
        indices = torch.from_numpy(rng.integers(0, seqlen_q + 1, size=(1, 1, seqlen_k, bounds)))
        mask = fm.ColumnMask.from_startend_row_indices(indices, causal=causal, seqlen_q=int(seqlen_q)).canonical()
        vectors, causal, bounds = canonical_vectors(*mask.vectors, seqlen_q=mask.seqlen_q)
        assert (causal, bounds) == (mask.causal, mask.bounds) and all(map(torch.equal, vectors, mask.vectors))
    assert (mask := fm.mask("sliding_window(3) | (k < 2)", 9)).canonical() is mask


def test_visible_pairs_past_32_bits():
    n = 1 << 17
    assert fm.mask("causal", n).visible_pairs().item() == n * (n + 1) // 2
    assert fm.mask("full", 1 << 16, n).visible_pairs().item() == 1 << 33


def test_random_texts_give_the_same_mask_as_their_picture():
    rng = np.random.default_rng(2)
    names = ["document", "share_question", "prefix_lm_document", "qk_sparse", "frames", "rect", "hash_sparse"]
    for name, (seqlen_q, seqlen_k) in itertools.product(names, [(17, 17), (5, 17), (33, 17), (64, 63)]):
        arguments = mask_oracle.random_arguments(name, seqlen_k, rng)
        wanted = mask_oracle.visible(name, arguments, seqlen_q, seqlen_k)
        text = f"{name}({', '.join(map(str, arguments))})"
        try:
            mask = fm.mask(text, seqlen_q, seqlen_k)
        except fm.NotRepresentableError as error:
            assert error.columns == fm.fit(wanted).columns
            continue
        np.testing.assert_array_equal(mask.to_dense()[0, 0].numpy(), wanted)
        assert mask.equals(fm.ColumnMask.from_dense(wanted))
