"""The explained decisions: the same kinds as the kernels' metadata, and comparisons that are true and suffice."""

import operator

import numpy as np
import pytest
import torch

import flashmask_core as fm
from flashmask_core.data import PAPER_MASKS, paper_mask_text
from flashmask_core.tiles.classify import TileKind
from flashmask_core.tiles.decide import TilePlan
from flashmask_core.tiles.tile_runs import MAX_RUNS, Lines, build_tile_runs, padded_vectors
from tests.attention_tools import random_mask

KINDS = ["full", "causal", "causal1", "causal2", "two", "four"]
SIZES = [(40, 40), (33, 70), (70, 33), (9, 1)]


def visits(mask, block_m, block_n, column_lines):
    """What a kernel visits in every line, in its order: [(PARTIAL tiles, FULL tiles)] of every mask head."""
    (tiles,) = build_tile_runs(
        padded_vectors(mask.vectors, causal=mask.causal, bounds=mask.bounds), seqlen_q=mask.seqlen_q,
        seqlen_k=mask.seqlen_k, causal=mask.causal, bounds=mask.bounds, lines=[Lines(block_m, block_n, column_lines)],
    )  # fmt: skip
    planes = []
    for runs, counts in zip(tiles.runs.tolist(), tiles.counts.tolist()):
        lines = []
        for line, (partial, full) in zip(runs, counts):
            seen = []
            for first, end in line[: MAX_RUNS - 1]:
                if len(seen) == partial + full:
                    break
                seen += range(first, end)
            lines.append((seen[:partial], seen[partial:]))
        planes.append(lines)
    return planes


@pytest.mark.parametrize("seqlen_q, seqlen_k", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_loops_are_those_of_the_kernels(kind, seqlen_q, seqlen_k, device):
    mask = random_mask(kind, 1, 2, seqlen_q, seqlen_k, device, seed=seqlen_q)
    by_rows, by_columns = visits(mask, 8, 4, False), visits(mask, 8, 4, True)
    for head in range(2):
        plan = TilePlan(mask, 8, 4, head=head)
        for i, (partial, full) in enumerate(by_rows[head]):
            assert plan.row_loop(i) == partial + full, (i, [str(plan.decision(i, j)) for j in range(plan.shape[1])])
        for j, (partial, full) in enumerate(by_columns[head]):
            assert plan.column_loop(j) == partial + full
            assert all(plan.kinds[i, j] == TileKind.PARTIAL for i in partial)


@pytest.mark.parametrize("seqlen_q, seqlen_k", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_comparison_is_true_of_the_vectors(kind, seqlen_q, seqlen_k):
    mask = random_mask(kind, 1, 1, seqlen_q, seqlen_k, "cpu", seed=seqlen_k)
    plan = TilePlan(mask, 5, 3)
    relations, limits = {"≤": operator.le, ">": operator.gt}, {"min": torch.min, "max": torch.max}
    for i, j in np.ndindex(plan.shape):
        rows, columns = plan.rows(i), plan.columns(j)
        for c in plan.decision(i, j).because:
            if c.past_end:
                assert columns.stop - columns.start < 3
                continue
            assert relations[c.relation](c.value, c.row), str(c)
            assert c.row == {"first row": rows.start, "last row": rows.stop - 1}.get(c.against, c.row)
            if c.bound:
                start, end = (mask.lts, mask.lte) if c.vector in ("lts", "lte") else (mask.uts, mask.ute)
                reads_lte = mask.bounds == (2 if mask.causal else 4)
                there = (start < end)[0, 0, columns] | (c.vector == "lts" and not reads_lte)
                assert c.value == int(limits[c.bound](getattr(mask, c.vector)[0, 0, columns][there]))
            else:
                assert c.value + plan.offset in (columns.start, columns.stop - 1)
        if plan.kinds[i, j] == TileKind.EMPTY:
            assert not mask.to_dense(rows, columns).any() and plan.decision(i, j).because
        if plan.kinds[i, j] == TileKind.FULL:
            assert mask.to_dense(rows, columns).all()


def test_a_column_with_an_empty_interval_neither_touches_nor_hides():
    """Key 0 hides no row, the others rows 4 to 7: the numbers of the empty interval do not matter."""
    for row in (0, 2, 5, 8):
        indices = torch.tensor([[row, row, 0, 0], *[[4, 8, 0, 0]] * 3], dtype=torch.int32)[None, None]
        plan = TilePlan(fm.ColumnMask.from_startend_row_indices(indices, causal=False, seqlen_q=12), 4, 4)
        assert plan.kinds.tolist() == [[TileKind.FULL], [TileKind.PARTIAL], [TileKind.FULL]], row
        assert [str(plan.decision(i, 0)) for i in range(3)] == [
            "min LTS 4 > last row 3",
            "min LTS 4 ≤ last row 7 and max LTE 8 > first row 4",
            "max LTE 8 ≤ first row 8",
        ]
    nothing = fm.ColumnMask.from_startend_row_indices(torch.full((1, 1, 4, 4), 3), causal=False, seqlen_q=12)
    assert str(TilePlan(nothing, 4, 4).decision(0, 0)) == "no interval reaches its columns"


def test_the_words_of_a_packed_document_mask():
    plan = TilePlan(fm.mask("causal & document(21, 16, 27)", 64), 8, 8)
    says = [f"{plan.decision(4, j).kind.name}: {plan.decision(4, j)}" for j in range(8)]
    assert says == [
        "EMPTY: max LTS 21 ≤ first row 32",
        "EMPTY: max LTS 21 ≤ first row 32",
        "PARTIAL: min LTS 21 ≤ last row 39",
        "PARTIAL: min LTS 37 ≤ last row 39",
        "PARTIAL: diagonal 39 > first row 32 and min LTS 37 ≤ last row 39",
        "EMPTY: diagonal 40 > last row 39",
        "EMPTY: diagonal 48 > last row 39",
        "EMPTY: diagonal 56 > last row 39",
    ]
    full = TilePlan(fm.mask("causal", 64), 8, 8).decision(4, 1)
    assert str(full) == "diagonal 15 ≤ first row 32 and min LTS 64 > last row 39"
    assert "past the last key" in str(TilePlan(fm.mask("full", 10), 4, 4).decision(0, 2))


@pytest.mark.parametrize("name", PAPER_MASKS)
def test_the_paper_masks_are_decided_as_by_the_exact_rule_or_more_carefully(name):
    mask = fm.mask(paper_mask_text(name, 256), 256)
    kinds, exact = TilePlan(mask, 32, 32).kinds, fm.classify_tiles(mask, 32, 32).kinds[0, 0].numpy()
    assert ((kinds == exact) | (kinds == TileKind.PARTIAL)).all()


@pytest.mark.parametrize("seqlen_q, seqlen_k", [(0, 4), (4, 0), (3, 3)])
def test_small_and_empty_sequences(seqlen_q, seqlen_k):
    plan = TilePlan(fm.mask("full", seqlen_q, seqlen_k), 128, 128)
    assert plan.kinds.shape == plan.shape == (min(seqlen_q, 1), min(seqlen_k, 1))


def test_too_many_tiles_are_refused():
    with pytest.raises(ValueError, match="block_m, block_n: 1000 x 1000 tiles"):
        TilePlan(fm.mask("causal", 1000), 1, 1)
