"""Cases, jobs and rows survive the way through strict JSON; what cannot be is refused by its field's name."""

import json
import math
from dataclasses import replace

import pytest
import torch

from flashmask_core import ColumnMask
from flashmask_core.bench.config import BenchCase, BenchJob, PackedMask, check_cases, row_strip
from flashmask_core.bench.result import BenchRow, DeviceInfo, Errors, dumps, read_rows, resumed_rows


def striped_mask() -> ColumnMask:
    """Two heads, 40 rows, 30 keys, four bounds."""
    generator = torch.Generator().manual_seed(0)
    indices = torch.randint(0, 41, (1, 2, 30, 4), generator=generator).sort(-1).values[..., [2, 3, 0, 1]]
    return ColumnMask.from_startend_row_indices(indices, causal=False, seqlen_q=40)


def test_blocks_are_part_of_what_is_measured():
    rows = [BenchRow.of_case(BenchCase("causal", 128, block=block), "flex", "forward") for block in (128, 64)]
    assert rows[0].key != rows[1].key and rows[0].key[-2:] == rows[1].key[-2:]


def through_json(record: dict) -> dict:
    return json.loads(dumps(record))


def test_case_round_trip():
    case = BenchCase("causal & (q - k < 512)", 8192, batch=4, heads=32, kv_heads=8, providers=["flashmask", "flex"])
    assert case.seqlen_k == 8192 and case.providers == ("flashmask", "flex")
    assert BenchCase.from_json(through_json(case.to_json())) == case


def test_job_round_trip_with_a_mask_that_has_no_text():
    mask = striped_mask()
    case = BenchCase.of_mask(mask, "painted", heads=2, dtype="float16")
    job = BenchJob("bench", (case, case), "two", excluded=((0, "flex", "broke"),), done=(1,))
    again = BenchJob.from_json(through_json(job.to_json()))
    assert again == job
    assert again.cases[0].build_mask().equals(mask) and again.cases[0].mask == "painted"


def test_a_packed_long_mask_stays_small():
    mask = ColumnMask.from_startend_row_indices(torch.full((1, 1, 2**20, 1), 2**20, dtype=torch.int32), causal=True)
    assert len(PackedMask.of(mask).data) < 100_000


@pytest.mark.parametrize(
    "changes, kind, words",
    [
        ({"heads": 6, "kv_heads": 4}, ValueError, "kv_heads: wanted a divisor of heads = 6, got 4"),
        ({"dtype": "int8"}, ValueError, "dtype: wanted one of bfloat16, float16, float32, got 'int8'"),
        ({"passes": ("sideways",)}, ValueError, "passes: wanted some of forward, backward, both, got sideways"),
        ({"passes": ()}, ValueError, "passes: .* got none"),
        ({"providers": ()}, ValueError, "providers: wanted at least one"),
        ({"batch": 0}, ValueError, "batch: wanted 1 or more, got 0"),
        ({"batch": 1.5}, TypeError, "batch: wanted an int, got float"),
        ({"head_dim": 512}, ValueError, "head_dim: wanted at most 256, got 512"),
        ({"repeat_ms": 0}, ValueError, "repeat_ms"),
        ({"time_limit_s": math.nan}, ValueError, "time_limit_s"),
    ],
)
def test_a_case_that_cannot_be(changes, kind, words):
    with pytest.raises(kind, match=words):
        BenchCase("causal", 128, **changes)


def test_jobs_that_cannot_be():
    with pytest.raises(ValueError, match="kind: wanted one of bench, check, device"):
        BenchJob("race", (BenchCase("causal", 8),))
    with pytest.raises(ValueError, match="cases: wanted at least one"):
        BenchJob("bench")
    with pytest.raises(ValueError, match="at most 256 tokens, got 512 x 512"):
        BenchJob("check", (BenchCase("causal", 512),))
    with pytest.raises(TypeError, match="unknown fields speed"):
        BenchCase.from_json({**BenchCase("causal", 8).to_json(), "speed": 1})


def test_check_cases_crop_to_the_corner():
    n = 1000
    mask = ColumnMask.from_startend_row_indices(
        (torch.arange(n) + 300).clamp(max=n).int()[None, None, :, None], causal=True
    )
    cases = check_cases(mask, "window")
    assert [case.dtype for case in cases] == ["float16", "float32"]
    assert cases[0].mask == "window, first 256 x 256"
    assert torch.equal(cases[0].build_mask().to_dense(), mask.to_dense()[..., :256, :256])
    BenchJob("check", cases)


def test_row_strip_is_a_part_of_the_mask():
    mask = striped_mask()
    for first, last, columns in ((0, 40, None), (7, 23, None), (39, 40, 11), (0, 5, 30)):
        strip = row_strip(mask, first, last, columns)
        assert torch.equal(strip.to_dense(), mask.to_dense()[:, :, first:last, :columns])


def full_row() -> BenchRow:
    case = BenchCase("causal", 128, mask_name="causal", kv_heads=2)
    return BenchRow.of_case(
        case, "flashmask", "backward", backend="triton", computes="mask", median_ms=1.25, lower_quartile_ms=1.2,
        upper_quartile_ms=1.5, repetitions=80, tflops_rho=400.5, tflops_density=390.0, rho=0.25, density=0.5,
        peak_memory_bytes=2**40, mask_bytes=512, mask_build_ms=0.1, vectors_ms=2.0, compile_ms=900.0, check="passed",
        errors={"dq": Errors(1e-3, 2e-3, 4.0, (1e-3, None), (0, 1, 17, 5)), "dk": Errors(None, 2e-3, 4.0, (-1.0,))},
        where=DeviceInfo("NVIDIA H200", "9.0", 150_000_000_000, "580.1", "13.0", "2.11.0", "3.6.0", "3.12.3"),
        date_utc="2026-11-29T20:00:00+00:00",
    )  # fmt: skip


def test_row_round_trip():
    row = full_row()
    assert BenchRow.from_json(through_json(row.to_json())) == row
    assert row.errors["dq"].passed and not row.errors["dk"].passed
    assert not Errors(2.1e-2, 1e-2, 1.0).passed and Errors(0.0, 0.0, 0.0).passed


@pytest.mark.parametrize(
    "name, value",
    [
        ("median_ms", "fast"), ("median_ms", True), ("median_ms", float("nan")), ("seqlen_q", 1.5), ("seqlen_q", "8"),
        ("seqlen_q", None), ("mask", None), ("mask", 7), ("errors", []), ("errors", {"dq": 3}), ("where", "here"),
        ("where", {"device": 9}), ("peak_memory_bytes", 1e9), ("status", "fine"), ("tempo", 1),
    ],
)  # fmt: skip
def test_a_field_of_another_type_is_named(name, value):
    with pytest.raises(ValueError, match="device" if value == {"device": 9} else name):
        BenchRow.from_json({**through_json(full_row().to_json()), name: value})


def test_json_is_strict():
    with pytest.raises(ValueError):
        dumps(BenchRow.of_case(BenchCase("causal", 8), "flex", "forward", median_ms=math.nan).to_json())


def test_rows_that_cannot_be():
    with pytest.raises(ValueError, match="reason: a skipped row needs one"):
        BenchRow.of_case(BenchCase("causal", 8), "flex", "forward", "skipped")
    with pytest.raises(ValueError, match="status: wanted one of ok, skipped, failed"):
        BenchRow.of_case(BenchCase("causal", 8), "flex", "forward", "fine")
    with pytest.raises(ValueError, match="wanted an object, got list"):
        BenchRow.from_json([])


def test_files_of_rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    row = full_row()
    line = dumps(row.to_json())
    path.write_text(f"{line}\n\n{line}\n{line[:50]}")
    assert read_rows(path) == [row, row], "a last line cut short is left out"
    path.write_text(f"{line}\n{{}}\n{line}\n")
    with pytest.raises(ValueError, match="line 2: no benchmark row"):
        read_rows(path)


def test_a_file_goes_on_behind_its_last_whole_row(tmp_path):
    path, row = tmp_path / "rows.jsonl", replace(full_row(), detail="2 × too slow\u2028")
    line = dumps(row.to_json())
    assert resumed_rows(None) == resumed_rows(path) == [] and not path.exists()
    for cut in (line[:1], line[:5], line[:50], line.encode()[: line.encode().index("×".encode()) + 1]):
        path.write_bytes(f"{line}\n".encode() + (cut if isinstance(cut, bytes) else cut.encode()))
        assert resumed_rows(path) == [row] and path.read_text() == f"{line}\n"
    path.write_text(line)
    assert resumed_rows(path) == [row] and path.read_text() == f"{line}\n"


@pytest.mark.parametrize("theirs", ['{"my": "data"}', '{"mask": 1}', "notes without an end", "[1, 2", '{"mask": "causal"}'])
def test_a_file_that_holds_something_else_is_refused_and_stays(theirs, tmp_path):
    path = tmp_path / "theirs.json"
    path.write_text(theirs)
    with pytest.raises(ValueError, match="line 1: no benchmark row"):
        resumed_rows(path)
    assert path.read_text() == theirs
