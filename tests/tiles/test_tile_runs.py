"""Tile metadata of the kernels against brute force; through Triton's interpreter where there is no GPU."""

from itertools import groupby

import pytest
import torch

import flashmask_core as fm
from flashmask_core.data import PAPER_MASKS, paper_mask_text
from flashmask_core.tiles.tile_runs import GROUP, MAX_RUNS, PADDING, Lines, TileRuns, build_tile_runs, padded_vectors
from tests.attention_tools import random_mask

pytestmark = pytest.mark.usefixtures("poisoned")

EMPTY, PARTIAL, FULL = 0, 1, 2
KEPT_RUNS = MAX_RUNS - 2
DIRECTIONS = pytest.mark.parametrize("column_lines", [False, True], ids=["row tiles", "column tiles"])


def runs_of(mask: fm.ColumnMask, *lines: Lines) -> list[TileRuns]:
    packing = dict(causal=mask.causal, bounds=mask.bounds)
    vectors = padded_vectors(mask.vectors, **packing)
    return build_tile_runs(vectors, seqlen_q=mask.seqlen_q, seqlen_k=mask.seqlen_k, **packing, lines=lines)


def kinds_by_bounds(mask: fm.ColumnMask, block_m: int, block_n: int) -> torch.Tensor:
    """Kinds [planes, Tm, Tn] by the rule of the kernels, one tile at a time and one row after the other."""
    rows, columns = torch.arange(mask.seqlen_q), torch.arange(mask.seqlen_k)
    lts, lte, uts, ute = (v.cpu().flatten(0, 1).long() for v in mask.vectors)
    if mask.causal:
        uts, ute = torch.zeros_like(lts), (columns - (mask.seqlen_k - mask.seqlen_q)).expand_as(lts)
    kinds = torch.full((len(lts), -(-mask.seqlen_q // block_m), -(-mask.seqlen_k // block_n)), FULL, dtype=torch.uint8)
    for plane in range(len(lts)):
        for j, here in enumerate(columns.split(block_n)):
            hides = touches = torch.zeros(mask.seqlen_q, dtype=torch.bool)  # of every row
            for start, end in ((lts, lte), (uts, ute)):
                start, end = start[plane, here], end[plane, here]
                there = start < end
                if there.all():
                    hides = hides | (rows >= start.max()) & (rows < end.min())
                if there.any():
                    touches = touches | (rows >= start[there].min()) & (rows < end[there].max())
            touches = touches | (len(here) < block_n)  # by the columns that are not there
            for i, those in enumerate(rows.split(block_m)):
                if hides[those].all():
                    kinds[plane, i, j] = EMPTY
                elif touches[those].any():
                    kinds[plane, i, j] = PARTIAL
    return kinds


def runs_by_hand(kinds: list[int]) -> tuple[list, list]:
    """(runs, counts) of a line of kinds."""
    runs = []
    for kind, same in groupby(enumerate(kinds), key=lambda x: x[1]):
        tiles = [u for u, _ in same]
        if kind != EMPTY:
            runs.append((kind, [tiles[0], tiles[-1] + 1]))
    kept, rest = runs[:KEPT_RUNS], runs[KEPT_RUNS:]
    partial, full = ([run for k, run in kept if k == kind] for kind in (PARTIAL, FULL))
    if rest:
        partial.append([rest[0][1][0], rest[-1][1][1]])
    return partial + full, [sum(end - first for first, end in part) for part in (partial, full)]


def exactly(mask: fm.ColumnMask, tiles: TileRuns, line: Lines) -> torch.Tensor:
    """Hold the metadata of one direction against runs made one tile at a time, equal to the last number."""
    kinds = kinds_by_bounds(mask, line.block_m, line.block_n)
    lines = kinds.transpose(1, 2) if line.by_columns else kinds
    assert tiles.runs.shape == (*lines.shape[:2], MAX_RUNS, 2) and tiles.counts.shape == (*lines.shape[:2], 2)
    assert all(x.dtype == torch.int32 for x in tiles.tensors)
    for plane, (all_runs, all_counts) in enumerate(zip(tiles.runs.tolist(), tiles.counts.tolist())):
        for number, (got, counts) in enumerate(zip(all_runs, all_counts)):
            runs, want = runs_by_hand(lines[plane, number].tolist())
            runs = runs or [[0, 1]]  # what a kernel takes that asks for no count
            assert (got[: len(runs)], counts) == (runs, want), f"plane {plane}, line {number} of {line}"
    work = tiles.counts.cpu() @ torch.tensor([9, 8], dtype=torch.int32)
    assert torch.equal(tiles.order.cpu().long(), work.argsort(dim=-1, descending=True, stable=True)), "heaviest first"
    return kinds


def brute_force(mask: fm.ColumnMask, block_m: int, block_n: int) -> torch.Tensor:
    """Kinds [planes, Tm, Tn], judged on the pairs that exist."""
    visible = mask.to_dense().cpu().flatten(0, 1)
    kinds = [
        [[int(tile.any()) + int(tile.all()) for tile in rows.split(block_n, 1)] for rows in plane.split(block_m)]
        for plane in visible
    ]
    return torch.tensor(kinds, dtype=torch.uint8)


def walk(runs: list, num_partial: int, num_full: int) -> tuple[list, list]:
    """The tiles that a kernel visits in one line, (with the element test, without), as `first_tile` and `next_tile`."""
    tiles, run = [], 0
    tile, end = runs[0]
    for _ in range(num_partial + num_full):
        tiles.append(tile)
        tile += 1
        if tile == end:
            run += 1
            tile = runs[run][0]
        end = runs[run][1]
    return tiles[:num_partial], tiles[num_partial:]


def walked_kinds(tiles: TileRuns, mask: fm.ColumnMask, block_m: int, block_n: int, column_lines: bool):
    """(kinds [planes, Tm, Tn] as the kernels see them, bool [planes, lines]: too many runs). Every tile once."""
    num_m, num_n = -(-mask.seqlen_q // block_m), -(-mask.seqlen_k // block_n)
    num_lines, num_u = (num_n, num_m) if column_lines else (num_m, num_n)
    planes = mask.batch * mask.heads
    assert tiles.runs.shape == (planes, num_lines, MAX_RUNS, 2) and tiles.runs.dtype == torch.int32
    assert tiles.counts.shape == (planes, num_lines, 2) and tiles.order.shape == (planes, num_lines)
    kinds = torch.zeros(planes, num_lines, num_u, dtype=torch.uint8)
    runs, counts = tiles.runs.tolist(), tiles.counts.tolist()
    for plane in range(planes):
        for line in range(num_lines):
            partial, full = walk(runs[plane][line], *counts[plane][line])
            visited = partial + full
            assert len(set(visited)) == len(visited), f"plane {plane} line {line}: a tile twice in {visited}"
            assert all(0 <= u < num_u for u in visited), f"plane {plane} line {line}: {visited} of {num_u} tiles"
            kinds[plane, line, partial], kinds[plane, line, full] = PARTIAL, FULL
    return kinds.transpose(1, 2) if column_lines else kinds


def check(mask: fm.ColumnMask, block_m: int, block_n: int, column_lines: bool) -> torch.Tensor:
    """Hold the metadata against brute force; returns the kinds that the kernels see."""
    line = Lines(block_m, block_n, column_lines)
    (tiles,) = runs_of(mask, line)
    kinds = walked_kinds(tiles, mask, block_m, block_n, column_lines)
    exact = brute_force(mask, block_m, block_n)
    exactly(mask, tiles, line)
    assert not ((kinds == EMPTY) & (exact != EMPTY)).any(), "a tile with a visible pair is skipped"
    assert not ((kinds == FULL) & (exact != FULL)).any(), "a tile with a hidden pair is not tested"
    if mask.seqlen_k % block_n:
        assert not (kinds[:, :, -1] == FULL).any(), "the edge tile's missing columns are not tested"
    return kinds


@DIRECTIONS
@pytest.mark.parametrize("kind", ["full", "causal", "causal1", "causal2", "two", "four"])
@pytest.mark.parametrize(
    "batch, heads, seqlen_q, seqlen_k, line_block, block",
    [(1, 1, 128, 128, 64, 32), (2, 2, 111, 63, 64, 16), (1, 1, 65, 129, 32, 16), (1, 1, 150, 201, 64, 32)],
)
def test_random_masks(kind, batch, heads, seqlen_q, seqlen_k, line_block, block, column_lines, device):
    """Few lines of many tiles: the interpreter takes a tenth of a second a line, whatever its length."""
    block_m, block_n = (block, line_block) if column_lines else (line_block, block)
    check(random_mask(kind, batch, heads, seqlen_q, seqlen_k, device, seqlen_k), block_m, block_n, column_lines)


@DIRECTIONS
@pytest.mark.parametrize("seqlen_q, seqlen_k", [(1, 129), (65, 1)])
def test_one_query_or_one_key(seqlen_q, seqlen_k, column_lines, device):
    check(random_mask("four", 1, 1, seqlen_q, seqlen_k, device), 32, 32, column_lines)


def wild_mask(packing: str, seqlen_q: int, seqlen_k: int, device, seed: int) -> fm.ColumnMask:
    """Blocks of equal columns with starts behind ends, empty runs and whole columns among them."""
    g = torch.Generator().manual_seed(seed)
    bounds = {"causal1": 1, "causal2": 2, "two": 2, "four": 4}[packing]
    rows = torch.randint(0, seqlen_q + 1, (1, 1, -(-seqlen_k // 8), bounds), generator=g)
    edge = torch.rand(rows.shape, generator=g)
    rows = torch.where(edge < 0.2, 0, torch.where(edge > 0.8, seqlen_q, rows))
    rows = rows.repeat_interleave(int(torch.randint(1, 9, (), generator=g)), dim=2)
    rows = torch.cat([rows] * 8, dim=2)[:, :, :seqlen_k].to(device)
    return fm.ColumnMask.from_startend_row_indices(rows, causal=packing.startswith("causal"), seqlen_q=seqlen_q)


@DIRECTIONS
@pytest.mark.parametrize("packing", ["causal1", "causal2", "two", "four"])
def test_wild_masks(packing, column_lines, device):
    for seed in range(3):
        check(wild_mask(packing, 96 + 9 * seed, 128 - 15 * seed, device, seed), 16 << seed, 64 >> seed, column_lines)


@DIRECTIONS
@pytest.mark.parametrize(
    "causal, rows",
    [
        # In rows 0..31 and columns 16..31 the triangle hides rows 0..15 of every column, an interval the others.
        (True, [16]),
        (True, [16, 32]),
        # The same by two intervals, in either order.
        (False, [16, 16]),
        (False, [16, 32, 0, 16]),
        (False, [0, 16, 16, 32]),
    ],
    ids=["causal1", "causal2", "two", "four", "four, lower first"],
)
def test_two_intervals_hide_a_tile_together(causal, rows, column_lines, device):
    indices = torch.tensor(rows, dtype=torch.int32, device=device).expand(1, 1, 64, len(rows))
    mask = fm.ColumnMask.from_startend_row_indices(indices, causal=causal)
    kinds = check(mask, 32, 16, column_lines)
    assert kinds[0, 0, 1] == EMPTY
    assert torch.equal(kinds, brute_force(mask, 32, 16))


@DIRECTIONS
def test_tiles_hidden_by_other_intervals_in_other_columns_are_visited(column_lines, device):
    """What only the exact rule knows: the first column hidden by the lower interval, the second by the upper one."""
    indices = torch.tensor([[0, 16, 0, 0], [0, 0, 0, 16]], dtype=torch.int32, device=device).repeat(8, 1)[None, None]
    kinds = check(fm.ColumnMask.from_startend_row_indices(indices, causal=False), 16, 16, column_lines)
    assert kinds.item() == PARTIAL


def alternating(tiles: int, spot: int, device) -> fm.ColumnMask:
    """One row tile of 16 queries over `tiles` column tiles of 16 keys: every second one hidden, the others visible.

    In every `spot`-th tile (0: none) the first query does not see the first key.
    """
    col = torch.arange(tiles * 16, device=device)
    end = torch.where(col // 16 % 2 == 1, 16, 0)
    if spot:
        end = torch.where(col % (spot * 16) == 0, 1, end)
    rows = torch.stack([torch.full_like(col, 16), end], -1)  # lts, ute
    return fm.ColumnMask.from_startend_row_indices(rows[None, None], causal=False, seqlen_q=16)


@pytest.mark.parametrize("live, spot", [(KEPT_RUNS, 0), (KEPT_RUNS, 4), (KEPT_RUNS + 1, 4), (2 * MAX_RUNS, 0), (2 * MAX_RUNS, 4)])
def test_more_runs_than_fit(live, spot, device):
    """The first KEPT_RUNS runs are kept, what is behind them becomes one PARTIAL run that hides nothing visible."""
    mask = alternating(2 * live, spot, device)
    seen, exact = check(mask, 16, 16, False), brute_force(mask, 16, 16)
    kept = 2 * KEPT_RUNS
    assert torch.equal(seen[:, :, :kept], exact[:, :, :kept])
    assert (seen[:, :, kept : 2 * live - 1] == PARTIAL).all()
    assert (seen[:, :, 2 * live - 1] == EMPTY).all()


@DIRECTIONS
@pytest.mark.parametrize("hides", [True, False], ids=["hidden inside", "hidden outside"])
def test_runs_that_end_at_begin_at_and_cross_the_end_of_a_group(hides, column_lines, device):
    """A line of 1,100 tiles, more than there are in the groups that are judged at once; most groups are of one kind."""
    once, tiles = GROUP * GROUP, 1100
    for start, end in [
        (once, once + 16), (once - 1, once), (GROUP, 3 * GROUP), (GROUP - 1, 5 * GROUP + 1), (once - 0.5, once + 0.5),
    ]:  # fmt: skip
        visible = torch.full((16 * tiles, 16), hides, device=device)
        visible[int(16 * start) : int(16 * end)] = not hides
        mask = fm.ColumnMask.from_dense(visible if column_lines else visible.T)
        check(mask, 16, 16, column_lines)


@pytest.mark.parametrize("packing", ["causal1", "causal2", "two", "four"])
def test_several_lines_at_once_are_the_same_as_one_by_one(packing, device):
    """Tiles of two widths, two directions of one width, and twice the same direction of it."""
    mask = wild_mask(packing, 150, 77, device, 5)
    lines = [Lines(64, 32, False), Lines(16, 64, True), Lines(32, 32, True), Lines(128, 32, False)]
    for line, tiles in zip(lines, runs_of(mask, *lines)):
        exactly(mask, tiles, line)


def test_columns_with_empty_intervals_are_left_out(device):
    """Half of the columns hide rows 16 to 31, the others none by numbers anywhere: what is beside is FULL."""
    rows = torch.tensor([[16, 32], [0, 0], [16, 32], [48, 40], [16, 32], [64, 64], [16, 32], [8, 3]]).repeat(4, 1)
    for indices in (torch.cat([rows, 0 * rows], 1), torch.cat([0 * rows, rows], 1)):
        indices = indices.to(device, torch.int32)[None, None]
        mask = fm.ColumnMask.from_startend_row_indices(indices, causal=False, seqlen_q=64)
        kinds = check(mask, 16, 16, False)
        assert kinds[0, :, 0].tolist() == [FULL, PARTIAL, FULL, FULL]
        assert torch.equal(kinds, fm.classify_tiles(mask, 16, 16).kinds[0])


@pytest.mark.parametrize("seqlen_q, seqlen_k", [(0, 40), (40, 0)])
@DIRECTIONS
def test_no_rows_or_no_columns(seqlen_q, seqlen_k, column_lines, device):
    (tiles,) = runs_of(fm.mask("full", seqlen_q, seqlen_k).to(device), Lines(16, 16, column_lines))
    assert tiles.counts.sum() == 0


@pytest.mark.parametrize("name", PAPER_MASKS)
def test_paper_masks_as_the_exact_rule_has_them(name, device):
    """Eleven of the twelve exactly: in one tile of qk_sparse, on the diagonal at the start of a run, some columns are
    hidden by the triangle alone, others by both intervals.
    """
    mask = fm.mask(paper_mask_text(name, 256), 256).to(device)
    kinds, exact = check(mask, 32, 32, False), fm.classify_tiles(mask, 32, 32).kinds[0]
    visited_in_vain = int(((kinds != EMPTY) & (exact == EMPTY)).sum())
    tested_in_vain = int(((kinds == PARTIAL) & (exact == FULL)).sum())
    assert (visited_in_vain, tested_in_vain) == {"qk_sparse": (1, 0)}.get(name, (0, 0))


def test_what_lies_behind_the_vectors_does_not_matter(device):
    """Vectors that are the front of longer ones, as a caller's slice is; the padding is hidden from every row."""
    for kind in ("causal1", "causal2", "two", "four"):
        mask = random_mask(kind, 1, 2, 40, 100, device)
        packing = dict(causal=mask.causal, bounds=mask.bounds)
        clean = padded_vectors(mask.vectors, **packing)
        for garbage in (-(2**31), 2**31 - 1):
            behind = [torch.full((1, 2, 300), garbage, dtype=torch.int32, device=device) for _ in range(4)]
            for x, vector in zip(behind, mask.vectors):
                x[..., :100] = vector
            padded = padded_vectors([x[..., :100] for x in behind], **packing)
            for name, got, want in zip(("lts", "lte", "uts", "ute"), padded, clean):
                if want.shape[-1] == PADDING:  # a vector that this packing reads
                    assert torch.equal(got, want) and got.is_contiguous(), (kind, name)
        hidden_to = 40 + PADDING  # more rows than a kernel's last tile has
        lts, lte, uts, ute = (x[..., 100:] for x in clean)
        assert (lts == 0).all()
        if mask.bounds == 4 or kind == "causal2":
            assert (lte >= hidden_to).all()
        if not mask.causal:
            assert (ute >= hidden_to).all() and (mask.bounds == 2 or (uts == 0).all())


def test_vectors_of_whole_tiles_are_not_copied(device):
    mask = random_mask("four", 1, 1, 40, 2 * PADDING, device)
    padded = padded_vectors(mask.vectors, causal=False, bounds=4)
    assert [x.data_ptr() for x in padded] == [x.data_ptr() for x in mask.vectors]


@pytest.mark.parametrize("kind, names", [("causal1", "lts"), ("causal2", "lts lte"), ("two", "lts ute"), ("four", "lts lte uts ute")])
def test_the_vectors_behind_one_another(kind, names, device):
    """What the Hopper kernels read; a packing of one vector is read where it is."""
    from flashmask_core.kernels.hopper_launch import packed_vectors

    mask = random_mask(kind, 2, 3, 40, PADDING, device)
    packed = packed_vectors(mask.vectors, causal=mask.causal, bounds=mask.bounds)
    assert torch.equal(packed, torch.stack([getattr(mask, name) for name in names.split()])) and packed.is_contiguous()
    assert (packed.data_ptr() == mask.lts.data_ptr()) == (kind == "causal1")


@pytest.mark.parametrize("seqlen", [131072, 2**20])
@pytest.mark.parametrize("table, most", [("large", 13), ("small", 42), ("fp32", 51)])
def test_bytes_a_token(table, most, seqlen):
    """Metadata of forward and backward together: linear, at most `most` bytes a query and mask head (shapes alone).

    268 bytes a line, so what counts is the smallest block: 64 tokens on Hopper, 16 on small GPUs at head dim 256.
    """
    from flashmask_core.kernels.configs import all_configs
    from flashmask_core.kernels.operator import _tile_runs_op

    vectors = [torch.empty(1, 2, seqlen, dtype=torch.int32, device="meta") for _ in range(4)]
    for packings in all_configs()[table].values():
        for configs in packings.values():
            total = 0
            for config, column_lines in ((configs.forward, False), (configs.dkdv, True), (configs.dq, False)):
                plan = _tile_runs_op(vectors, seqlen, seqlen, True, 1, [config.block_m, config.block_n, column_lines])
                total += TileRuns(*plan).nbytes
            assert total <= most * 2 * seqlen


def test_fake_operator_has_the_shapes_of_the_real_one(device):
    from flashmask_core.kernels.operator import _tile_runs_op

    vectors = padded_vectors(random_mask("four", 1, 2, 70, 130, device).vectors, causal=False, bounds=4)
    arguments = (70, 130, False, 4, [32, 64, True, 64, 32, False])
    real = _tile_runs_op(list(vectors), *arguments)
    fake = _tile_runs_op([x.to("meta") for x in vectors], *arguments)
    assert [(x.shape, x.dtype) for x in real] == [(x.shape, x.dtype) for x in fake]
