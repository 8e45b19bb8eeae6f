"""classify_tiles against brute force: every tile of thousands of small masks, under both rules."""

import time
import tracemalloc

import numpy as np
import pytest
import torch

import flashmask_core as fm
from flashmask_core import ColumnMask, TileKind, classify_tiles
from flashmask_core.tiles.classify import MAX_KINDS


def random_mask(rng: np.random.Generator) -> ColumnMask:
    """A mask of random packing and sizes; bounds repeat over neighbouring columns so that tiles fill up."""
    seqlen_q, seqlen_k = rng.integers(1, 41, size=2)
    batch, heads = rng.integers(1, 3, size=2)
    causal, bounds = [(True, 1), (True, 2), (False, 2), (False, 4)][rng.integers(4)]
    repeats = rng.integers(1, 9)
    indices = rng.integers(0, seqlen_q + 1, size=(batch, heads, -(-seqlen_k // repeats), bounds))
    if bounds in (2, 4) and rng.random() < 0.7:
        indices = np.sort(indices, axis=-1)
    if bounds == 4:  # the order of the vectors is lts, lte, uts, ute
        indices = indices[..., [2, 3, 0, 1]]
    snap = rng.choice([1, 4, 8])
    indices = np.minimum(-(-indices // snap) * snap, seqlen_q)
    indices = np.repeat(indices, repeats, axis=2)[:, :, :seqlen_k].astype(np.int32)
    return ColumnMask.from_startend_row_indices(torch.from_numpy(indices), causal=causal, seqlen_q=int(seqlen_q))


def dense_visible(mask: ColumnMask) -> np.ndarray:
    """bool [B, Hm, Sq, Sk] straight from the four vectors."""
    q = np.arange(mask.seqlen_q)[:, None]
    lts, lte, uts, ute = (v.numpy()[:, :, None, :] for v in mask.vectors)
    return ~(((q >= lts) & (q < lte)) | ((q >= uts) & (q < ute)))


def brute_force_exact(mask: ColumnMask, block_m: int, block_n: int) -> np.ndarray:
    visible = dense_visible(mask)
    batch, heads, sq, sk = visible.shape
    kinds = np.empty((batch, heads, -(-sq // block_m), -(-sk // block_n)), dtype=np.uint8)
    for b, h, i, j in np.ndindex(*kinds.shape):
        tile = visible[b, h, i * block_m : (i + 1) * block_m, j * block_n : (j + 1) * block_n]
        kinds[b, h, i, j] = 0 if not tile.any() else 2 if tile.all() else 1
    return kinds


def literal_equation_4(mask: ColumnMask, block_m: int, block_n: int) -> np.ndarray:
    """The rule as the paper's kernel runs it: min and max a block, then a loop over row tiles with a causal bound."""
    packed = mask.canonical()
    sq, sk, shift = packed.seqlen_q, packed.seqlen_k, packed.seqlen_k - packed.seqlen_q
    batch, heads = packed.batch, packed.heads
    kinds = np.empty((batch, heads, -(-sq // block_m), -(-sk // block_n)), dtype=np.uint8)
    for b, h, i, j in np.ndindex(*kinds.shape):
        r0, r1 = i * block_m, min((i + 1) * block_m, sq)
        c0, c1 = j * block_n, min((j + 1) * block_n, sk)
        lts, lte, uts, ute = (v[b, h, c0:c1].tolist() for v in packed.vectors)
        intervals = [(lts, lte)] if packed.causal else [(lts, lte), (uts, ute)]
        kind = 2
        if packed.causal and r1 - 1 + shift < c0:
            kind = 0
        elif packed.causal and r0 + shift < c1 - 1:
            kind = 1
        for start, end in intervals:
            if r0 >= max(start) and r1 <= min(end):
                kind = 0
            elif not (r0 >= max(end) or r1 <= min(start)):
                kind = min(kind, 1)
        kinds[b, h, i, j] = kind
    return kinds


@pytest.mark.parametrize("rule, oracle", [("exact", brute_force_exact), ("paper", literal_equation_4)])
@pytest.mark.parametrize("seed", range(8))
def test_every_tile_of_random_masks(rule, oracle, seed):
    rng = np.random.default_rng(seed)
    for case in range(150):
        mask = random_mask(rng)
        block_m, block_n = (int(x) for x in rng.choice([1, 2, 3, 4, 5, 7, 8, 16, 50], size=2))
        tiles = classify_tiles(mask, block_m, block_n, rule)
        expected = oracle(mask, block_m, block_n)
        where = f"seed {seed} case {case}: {mask}, tiles {block_m}x{block_n}"
        assert tiles.shape == expected.shape, where
        np.testing.assert_array_equal(tiles.kinds.numpy(), expected, err_msg=where)
        counts = np.stack([(expected == kind).sum((-2, -1)) for kind in range(3)], axis=-1)
        np.testing.assert_array_equal(tiles.counts.numpy(), counts, err_msg=where)
        np.testing.assert_array_equal(tiles.rho.numpy(), counts[..., 0] / expected[0, 0].size, err_msg=where)


def test_paper_rule_never_skips_a_visible_pair_and_exact_skips_no_less():
    rng = np.random.default_rng(99)
    for _ in range(200):
        mask = random_mask(rng)
        exact, paper = (classify_tiles(mask, 4, 4, rule).kinds.numpy() for rule in ("exact", "paper"))
        assert (exact[paper == TileKind.EMPTY] == TileKind.EMPTY).all()
        assert (exact[paper == TileKind.FULL] == TileKind.FULL).all()


def causal_indices(seqlen: int, lts, lte=None) -> ColumnMask:
    vectors = [torch.as_tensor(v) for v in ([lts] if lte is None else [lts, lte])]
    return ColumnMask.from_startend_row_indices(torch.stack(vectors, -1).int()[None, None], causal=True)


def live_and_skipped(mask: ColumnMask, block: int) -> tuple[int, int]:
    empty, partial, full = classify_tiles(mask, block, block).counts[0, 0].tolist()
    return partial + full, empty


def test_hidden_key_block():
    keys = torch.arange(512)
    hidden = (keys >= 128) & (keys < 256)
    mask = causal_indices(512, torch.where(hidden, 0, 512))
    assert live_and_skipped(mask, 128) == (7, 9)
    assert classify_tiles(mask).kinds[0, 0].tolist() == [[1, 0, 0, 0], [2, 0, 0, 0], [2, 0, 1, 0], [2, 0, 2, 1]]


def test_sliding_window_37():
    assert live_and_skipped(causal_indices(300, (torch.arange(300) + 37).clamp(max=300)), 64) == (9, 16)


def test_three_documents_of_a_thousand():
    ends = torch.tensor([333, 666, 1000]).repeat_interleave(torch.tensor([333, 333, 334]))
    assert live_and_skipped(causal_indices(1000, ends), 128) == (20, 44)


def test_ragged_edge_counts_existing_pairs_only():
    mask = ColumnMask.from_startend_row_indices(torch.tensor([[[[130, 0]] * 130]]), causal=False)
    assert classify_tiles(mask).kinds[0, 0].tolist() == [[2, 2], [2, 2]]


def test_no_rows_or_no_columns():
    no_rows = ColumnMask.from_startend_row_indices(torch.zeros(1, 1, 5, 1, dtype=torch.int32), causal=True, seqlen_q=0)
    no_keys = ColumnMask.from_startend_row_indices(torch.zeros(2, 1, 0, 1, dtype=torch.int32), causal=True, seqlen_q=9)
    for mask, shape in ((no_rows, (1, 1, 0, 1)), (no_keys, (2, 1, 1, 0))):
        for rule in ("exact", "paper"):
            tiles = classify_tiles(mask, rule=rule)
            assert tiles.shape == shape and tiles.counts.sum() == 0 and tiles.rho.tolist() == [[0.0]] * shape[0]
            assert tiles.kinds.shape == shape


def test_window_is_a_part_of_kinds():
    mask = random_mask(np.random.default_rng(5))
    tiles = classify_tiles(mask, 3, 2)
    assert torch.equal(tiles.window(slice(2, 7), slice(1, 9)), tiles.kinds[:, :, 2:7, 1:9])
    with pytest.raises(ValueError, match="step 1"):
        tiles.window(slice(0, 8, 2))


@pytest.mark.parametrize("rule", ["exact", "paper"])
def test_a_million_tokens_quickly_and_without_a_tile_map(rule):
    n = 2**20
    lts = (torch.arange(n) + 4096).clamp(max=n)
    tracemalloc.start()
    began = time.perf_counter()
    tiles = classify_tiles(causal_indices(n, lts), rule=rule)
    seconds = time.perf_counter() - began
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # 4096 = 32 tiles: row tile i sees column tiles max(0, i-32) .. i; the first and the last of a full row are partial.
    live = sum(min(i, 32) + 1 for i in range(8192))
    partial = 8192 + (8192 - 32)
    assert tiles.counts[0, 0].tolist() == [8192**2 - live, partial, live - partial]
    assert tiles.rho.item() == (8192**2 - live) / 8192**2
    assert seconds < 10 and peak_bytes < 400 * 2**20
    window = tiles.window(slice(100, 103), slice(66, 72))
    assert window[0, 0].tolist() == [[0, 0, 1, 2, 2, 2], [0, 0, 0, 1, 2, 2], [0, 0, 0, 0, 1, 2]]


def test_counts_at_tile_size_one_are_the_visible_pairs():
    n = 2**20
    tiles = classify_tiles(causal_indices(n, torch.full((n,), n)), 1, 1)
    assert tiles.counts[0, 0].tolist() == [n * (n - 1) // 2, 0, n * (n + 1) // 2]


def test_map_past_the_stated_size_is_refused_with_the_way_out():
    n = 2**20
    tiles = classify_tiles(causal_indices(n, torch.full((n,), n)), 64, 64)
    with pytest.raises(ValueError) as error:
        tiles.kinds
    message = str(error.value)
    assert f"{MAX_KINDS:,}" in message and "268,435,456" in message
    assert ".counts" in message and ".window" in message and "larger tiles" in message


@pytest.mark.parametrize(
    "arguments, kind, words",
    [
        ({"block_m": 0}, ValueError, "block_m: wanted 1 or more, got 0"),
        ({"block_n": 2.0}, TypeError, "block_n: wanted an int, got float"),
        ({"rule": "best"}, ValueError, "rule: wanted one of exact, paper, got 'best'"),
        ({"mask": "causal"}, TypeError, "mask: wanted a ColumnMask, got str"),
    ],
    ids=["zero block", "float block", "rule", "text as a mask"],
)
def test_wrong_arguments(arguments, kind, words):
    arguments = {"mask": causal_indices(8, [8] * 8), **arguments}
    with pytest.raises(kind, match=words):
        classify_tiles(**arguments)


@pytest.mark.parametrize("rule", ["exact", "paper"])
def test_tiles_of_any_size_are_at_most_the_sequence(rule):
    mask = fm.mask("sliding_window(3)", 10)
    huge, whole = (fm.classify_tiles(mask, size, size, rule) for size in (10**30, 10))
    assert huge.shape == (1, 1, 1, 1) and huge.block_m == 10**30
    assert huge.counts.equal(whole.counts) and huge.kinds.equal(whole.kinds)
