"""The time model: what it says of recorded runs, and of masks of families that it has not seen."""

import numpy as np
import pytest

import flashmask_core as fm
from flashmask_core.bench.paper import count_tiles, paper_rows, paper_tiles, shifted_document
from flashmask_core.bench.recorded import recorded_results
from flashmask_core.bench.tile_time import dense_ms, merge_ms, time_model
from flashmask_core.bench.tile_work import Work, kept_bytes
from flashmask_core.data import PAPER_LENGTHS, PAPER_MASKS, PaperSample

MODELS = [(gpu, d, direction) for gpu in ("H200", "A100") for d in (128, 64) for direction in ("forward", "backward")]


def least_squares(amounts, times, test):
    """Another solver of the same problem: every set of rates that may be zero is tried, the best without a negative."""
    share = np.array(amounts) / np.array(times)[:, None]
    known = np.array([1, -1 - test, 0, 0, 0]) * share[:, 1].max() / test
    matrix, wanted = np.vstack([share, known]), np.r_[np.ones(len(share)), 0.0]
    best = None
    for used in ([0, 1, 2, *more] for more in ([], [3], [4], [3, 4])):
        found = np.linalg.pinv(matrix[:, used]) @ wanted
        off = float(((matrix[:, used] @ found - wanted) ** 2).sum())
        if found.min() >= 0 and (best is None or off < best[0]):
            best = off, dict(zip(used, found))
    return np.array([best[1].get(i, 0.0) for i in range(5)])


@pytest.mark.parametrize("head_dim, direction", [(d, direction) for gpu, d, direction in MODELS if gpu == "H200"])
def test_the_errors_it_tells_are_those_of_families_left_out_of_the_recording(head_dim, direction):
    model = time_model(head_dim, direction)
    rows = [
        row for row in recorded_results()
        if row.provider.startswith("flashmask") and row.head_dim == head_dim
        and (row.direction, row.backend) == (direction, model.backend)
    ]  # fmt: skip
    commits = {commit: [row for row in rows if row.where.commit == commit] for commit in {r.where.commit for r in rows}}
    rows = max(commits.values(), key=lambda some: (len(some) >= 8, max(row.date_utc for row in some)))
    amounts = []
    for row in rows:
        mask, tile = fm.mask(row.mask, row.seqlen_q), 192 if (head_dim, direction) == (64, "forward") else 128
        _, partial, full = (tile / 128 * count for count in fm.classify_tiles(mask, tile, 128).counts[0, 0].tolist())
        vectors = 0 if row.mask in ("full", "causal") else mask.canonical().bounds
        amounts.append([partial, full, -(-row.seqlen_q // 128), vectors * (partial + full), 0])
    amounts = np.array(amounts, float) * np.array([[row.batch * row.heads] for row in rows])
    times = np.array([row.median_ms for row in rows])
    test, worst = {("forward", 128): 0.15, ("backward", 128): 0.06, ("forward", 64): 0.3, ("backward", 64): 0.12}, {}
    for name in {row.mask_name for row in rows}:
        out = np.array([row.mask_name == name for row in rows])
        told = amounts[out] @ least_squares(amounts[~out], times[~out], test[direction, head_dim])
        worst[name] = float(abs(told / times[out] - 1).max())
    assert worst == pytest.approx(model.held_out, abs=1e-6)
    assert max(model.held_out.values()) < 0.1 and model.mean_error < 0.045
    told = amounts @ np.array(model.rates)
    assert abs(told / times - 1).max() < 0.1
    assert model.lengths == PAPER_LENGTHS and len(times) == 36


@pytest.mark.parametrize("head_dim, direction", [(d, direction) for gpu, d, direction in MODELS if gpu == "A100"])
def test_the_papers_tables_are_told_too(head_dim, direction):
    """On kinds that the fit had not seen within 10 %, and the error bar covers the lengths that it had not seen."""
    model = time_model(head_dim, direction, "A100")
    assert set(model.held_out) == set(PAPER_MASKS) and len(model.fit_errors) == 36
    assert max(model.held_out.values()) < 0.085 and model.mean_error < 0.05
    assert list(model.held_out_lengths) == [8192, 32768, 131072]
    assert max(model.held_out_lengths.values()) < (0.14 if (head_dim, direction) == (64, "forward") else 0.07)
    assert model.worst_error == max(*model.held_out.values(), *model.held_out_lengths.values())
    assert max(map(abs, model.fit_errors)) < 0.075


@pytest.mark.parametrize("head_dim, direction, most", [(128, "forward", 0.11), (128, "backward", 0.1),
                                                       (64, "forward", 0.28), (64, "backward", 0.14)])  # fmt: skip
def test_flex_attention_has_a_model_with_an_error_of_its_own(head_dim, direction, most):
    model = time_model(head_dim, direction, engine="flex")
    rows = [row for row in recorded_results()
            if (row.provider, row.head_dim, row.direction) == ("flex", head_dim, direction)]  # fmt: skip
    assert len(rows) == 36 and set(model.held_out) == set(PAPER_MASKS) and list(model.held_out_lengths) == list(PAPER_LENGTHS)
    for row in rows:
        told = model.ms(Work.of(fm.mask(row.mask, row.seqlen_q)), row.batch * row.heads)
        assert told == pytest.approx(row.median_ms, rel=model.worst_error)
    assert model.worst_error < most and model.mean_error < 0.09
    assert model.rates != time_model(head_dim, direction).rates
    assert model.covers(8192, 131072) and not model.covers(8192, 131073) and not model.covers(1, 8192)


def test_a_dense_mask_takes_what_was_recorded_scaled_by_the_pairs():
    best = min(row.median_ms for row in recorded_results()
               if row.provider.startswith("sdpa_dense") and row.direction == "forward")  # fmt: skip
    assert dense_ms(8192, 8192, 32) == pytest.approx(best / 16)
    assert dense_ms(16384, 32768, 64) == pytest.approx(best)
    assert dense_ms(131072, 131072, 32) and dense_ms(1 << 20, 1 << 20, 32) is None
    assert dense_ms(32768, 32768, 64, planes=64) is None  # a mask for every head


def test_what_the_kernels_keep_is_what_was_recorded():
    rows = [row for row in recorded_results() if row.provider == "flashmask" and row.seqlen_q <= 32768]
    assert {row.head_dim for row in rows} == {64, 128} and len(rows) == 96
    for row in rows:
        assert kept_bytes(fm.mask(row.mask, row.seqlen_q), 192 if row.head_dim == 64 else 128) == row.mask_bytes


@pytest.mark.parametrize("text", ["causal", "causal_blockwise(500, 500)", "document(500, 500)", "global_sliding_window(64, 100, 100)"])
def test_what_the_kernels_keep_of_a_ragged_mask(text):
    pytest.importorskip("triton")
    from flashmask_core.kernels.hopper_launch import packed_vectors
    from flashmask_core.tiles.tile_runs import TileRuns, padded_vectors

    mask = fm.mask(text, 1000)
    packing = dict(causal=mask.causal, bounds=mask.bounds)
    vectors = padded_vectors(mask.vectors, **packing)
    tensors = {x.data_ptr(): x for x in (*vectors, packed_vectors(vectors, **packing))}
    own = {x.data_ptr() for x in mask.vectors}
    copies = sum(x.nbytes for at, x in tensors.items() if at not in own)
    lists = 2 * TileRuns.empty(1, 8, mask.device).nbytes
    assert kept_bytes(mask) == mask.nbytes + copies + lists


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_rates_of_8K_tell_32K_of_another_kernel_on_the_same_gpu(direction):
    """FlexAttention was recorded at both lengths: the sum over tiles carries over, whatever is fitted to it."""
    rows = {}
    for row in recorded_results():
        if (row.provider, row.direction, row.head_dim) == ("flex", direction, 128):
            work = Work.of(fm.mask(row.mask, row.seqlen_q))
            amounts = [*work.amounts[:4], 0]
            rows.setdefault(row.seqlen_q, []).append((row.batch * row.heads * np.array(amounts), row.median_ms))
    amounts, times = (np.array(values) for values in zip(*rows[8192]))
    rates = least_squares(amounts, times, 0.15 if direction == "forward" else 0.06)
    amounts, times = (np.array(values) for values in zip(*rows[32768]))
    assert len(times) == 12 and abs(amounts @ rates / times - 1).max() < 0.12


def test_what_work_a_mask_is():
    work = Work.of(fm.mask("causal", 1000))
    assert work == Work(8, 28, 8, 0, 0, (8, 8))
    work = Work.of(fm.mask("causal & document(500, 500)", 1000))
    assert (work.row_blocks, work.vectors, work.partial + work.full + work.skipped) == (8, 1, 36)
    assert Work.of(fm.mask("document(512, 512)", 1024)) == Work(0, 32, 8, 32, 2, (4, 4))
    assert Work.of(fm.mask("document(512, 512)", 1024), 256) == Work(0, 32, 8, 32, 2, (8, 4))
    assert Work.of(fm.mask("document(128, 128)", 256), 256) == Work(4, 0, 2, 0, 2, (4, 2))
    assert Work.of(fm.mask("causal", 128, 1024)) == Work(1, 7, 1, 0, 0, (8, 1))
    both = fm.ColumnMask.stack([fm.mask("causal", 1024), fm.mask("full", 1024)], "head")
    assert (Work.of(both).partial, Work.of(both).full) == (4, 46)
    assert Work.of(fm.mask("full", 0, 0)) == Work(0, 0, 0, 0, 0) and time_model().ms(Work.of(fm.mask("full", 0, 0)), 8) == 0


def test_the_tiles_are_those_of_the_kernel():
    pytest.importorskip("triton")
    from flashmask_core.kernels import hopper_launch

    for head_dim in (64, 128):
        work = time_model(head_dim, "forward").work(fm.mask("causal & document(800, 736)", 1536))
        rows, columns = hopper_launch.forward_blocks(head_dim)
        assert columns == 128 and work == Work.of(fm.mask("causal & document(800, 736)", 1536), rows)


def test_one_long_line_cannot_be_shared():
    model = time_model(128, "forward")
    row = Work.of(fm.mask("rect(0, 128, 0, 131072)", 131072))
    assert model.ms(row, 1) == pytest.approx(1024 * model.rates[1] * 132) and model.ms(row, 1) == model.ms(row, 64)
    assert model.ms(row, 1024) > model.ms(row, 1)
    assert not model.fills(row, 64) and model.fills(row, 1024) and model.fills(Work.of(fm.mask("full", 8192)), 32)


def test_what_was_not_measured_has_no_model():
    assert time_model(48) is None
    for wrong, said in (
        (dict(gpu="B200"), "gpu: wanted one of H200, A100, got 'B200'"),
        (dict(direction="sideways"), "direction: wanted one of forward, backward, got 'sideways'"),
        (dict(direction="both"), "direction: wanted one of forward, backward, got 'both'"),
        (dict(engine="dense"), "engine: wanted one of flashmask, flex, got 'dense'"),
        (dict(head_dim="128"), "head_dim: wanted a whole number such as 64 or 128, got '128'"),
        (dict(head_dim=128.0), "head_dim: wanted a whole number such as 64 or 128, got 128.0"),
    ):
        with pytest.raises(ValueError, match=said):
            time_model(**wrong)
    assert merge_ms(1, 1, 64, 1, 64) == 0 and merge_ms(2, 1, 8192, 32, 128) > 0


def test_the_papers_tables_by_our_names():
    rows = paper_rows()
    assert len(rows) == 72 and {row.mask for row in rows} == set(PAPER_MASKS)
    causal = next(row for row in rows if (row.mask, row.seqlen, row.head_dim) == ("causal", 8192, 128))
    assert causal.ms["flashmask", "forward"] == 39.01 and causal.tflops["flex", "backward"] == 124.2
    for row in rows:  # its TFLOP/s are those of its rho
        for (engine, direction), ms in row.ms.items():
            exact = 4 * 131072 * row.seqlen * 4096 * (2.5 if direction == "backward" else 1) / ms / 1e9
            rho = 1 - row.tflops[engine, direction] / exact
            assert rho == pytest.approx(row.rho, abs=0.011), row.mask


@pytest.mark.parametrize("seqlen", [8192, 32768])
def test_shipped_counts_are_those_that_are_counted(seqlen):
    for name in (*PAPER_MASKS, "shifted_document"):
        assert count_tiles(name, seqlen) == paper_tiles()[name, seqlen], name


def test_the_shifted_document_mask():
    got = shifted_document(PaperSample((2, 3, 1), (1, 1, 1), (False,) * 3)).to_dense()[0, 0].int().tolist()
    assert got == [
        [1, 1, 0, 0, 0, 0],  # the upper ends of the documents: 0, 3, 4 in place of 0, 2, 5
        [1, 1, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0],
        [0, 0, 1, 1, 1, 0],
        [0, 0, 1, 1, 1, 1],
        [0, 0, 0, 0, 0, 1],
    ]
