"""The recording: the rows of every device, what cannot be right in it, and several processes that write it at once."""

import json
import multiprocessing
from dataclasses import replace

import pytest

from flashmask_core.bench import recorded
from flashmask_core.bench.cli import main
from flashmask_core.bench.config import BenchCase
from flashmask_core.bench.recorded import record_results, recorded_results, rows_of, shipped_devices, shipped_results
from flashmask_core.bench.result import BenchRow, DeviceInfo, dumps
from flashmask_core.bench.tile_time import time_model


def a_row(mask: str = "causal", ms: float = 1.0, device: str = "NVIDIA H200", **values) -> BenchRow:
    times = dict(median_ms=ms, lower_quartile_ms=ms, upper_quartile_ms=ms, tflops_rho=9.0, tflops_density=8.0, rho=0.5,
                 density=0.5, check="passed", date_utc="2026-01-31T12:00:00+00:00", where=DeviceInfo(device))  # fmt: skip
    return BenchRow.of_case(BenchCase(mask, 64), "flashmask", "forward", **{**times, **values})


def test_the_rows_of_every_device_stand_beside_each_other(tmp_path):
    path = tmp_path / "r.json"
    ours, newer, other = a_row(), a_row(ms=2.0), a_row(ms=7.0, device="NVIDIA GH200 480GB")
    assert record_results([ours], path) == record_results([newer], path) == 1
    assert record_results([other], path) == 2
    assert recorded_results(path) == [newer, other]
    assert rows_of(recorded_results(path)) == [newer] and rows_of(recorded_results(path), other.where.device) == [other]


def test_what_is_told_of_the_h200_is_of_no_other(monkeypatch, tmp_path):
    path, model = tmp_path / "r.json", time_model()
    path.write_bytes(recorded.RECORDED_PATH.read_bytes())
    others = [replace(row, median_ms=0.5, lower_quartile_ms=0.5, upper_quartile_ms=0.5, where=DeviceInfo("NVIDIA H200 NVL"))
              for row in recorded_results()]  # fmt: skip
    assert record_results(others, path) == 2 * len(others)
    before = shipped_results()
    monkeypatch.setattr(recorded, "RECORDED_PATH", path)
    assert shipped_results() == before and shipped_results("NVIDIA H200 NVL") == others
    assert shipped_devices() == ["NVIDIA H200", "NVIDIA H200 NVL"]
    time_model.cache_clear()
    assert time_model() == model


UNSOUND = [dict(check="failed: out is off"), dict(warning="above the peak"), dict(status="failed", reason="out of memory"),
           dict(median_ms=None)]  # fmt: skip


@pytest.mark.parametrize("values", UNSOUND)
def test_only_a_sound_row_is_recorded(values, tmp_path):
    path, good = tmp_path / "r.json", a_row()
    assert not a_row(**values).sound and good.sound and a_row(check="not run: too long").sound
    assert record_results([good, a_row(**values)], path) == 1 and recorded_results(path) == [good]


WRONG = [
    ("mask", "document(1,2", "this ( is never closed"), ("mask", "document(900)", "document describes 900 tokens"),
    ("seqlen_q", 2**40, "wanted at most 1,048,576"), ("batch", 0, "wanted 1 or more"), ("kv_heads", 5, "a divisor of heads"),
    ("head_dim", 999, "at most 256"), ("dtype", "int8", "wanted one of bfloat16"), ("direction", "up", "wanted one of forward"),
    ("median_ms", -1.0, "wanted more than 0"), ("median_ms", 1e9, "between its quartiles"), ("tflops_rho", -1.0, "0 or more"),
    ("rho", None, "wanted a number in a row that is ok, got null"), ("tflops_rho", None, "got null"),
    ("density", 1.5, "wanted 0 to 1"), ("date_utc", "yesterday", "wanted a date such as"), ("mask_bytes", -4, "0 or more"),
]  # fmt: skip


@pytest.mark.parametrize("field, value, words", WRONG)
def test_a_row_that_cannot_be_right_is_named_and_not_recorded(field, value, words, tmp_path):
    path = tmp_path / "r.json"
    record_results([a_row(), a_row("full")], path)
    before, record = path.read_bytes(), json.loads(path.read_text())
    with pytest.raises(ValueError, match=r"not recorded: '.*', flashmask, \w+: ") as problem:
        record_results([replace(a_row("sliding_window(8)"), **{field: value})], path)
    assert f"{field}: " in str(problem.value) and words in str(problem.value) and path.read_bytes() == before
    record["rows"][1][field] = value
    path.write_text(json.dumps(record))
    with pytest.raises(ValueError, match="damaged: row 2: ") as problem:
        recorded_results(path)
    assert f"row 2: {field}: " in str(problem.value) and words in str(problem.value)


@pytest.mark.parametrize(
    "text, words",
    [("{", "no JSON from line 1"), ("[" * 100_000, "no text of ours"), ("[1]", "wanted an object, got list"),
     ('{"schema": 2}', "schema: wanted 1, got 2"), ('{"schema": 1, "where": 3, "rows": []}', "where: wanted a list, got int"),
     ('{"schema": 1, "where": [], "rows": [7]}', "row 1: wanted an object, got int"),
     ('{"schema": 1, "where": [], "rows": [{"where": 0}]}', "row 1: where: wanted")],
)  # fmt: skip
def test_a_damaged_recording_is_one_sentence_and_a_way_out(text, words, tmp_path, monkeypatch, capsys):
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="r.json is damaged: ") as problem:
        recorded_results(path)
    assert words in str(problem.value) and "Delete it and record again." in str(problem.value)
    assert "Error" not in str(problem.value)
    monkeypatch.setattr(recorded, "RECORDED_PATH", path)
    assert shipped_results() == [] and "Restore it with git" in recorded.shipped_problem()
    assert main(["bench", "causal", "--seqlen", "8", "--record", str(path)]) == 2
    assert "is damaged" in capsys.readouterr().err and path.read_text() == text


def _record(path, masks, ready):
    ready.wait()
    for mask in masks:
        record_results([a_row(mask)], path)


def test_several_at_once_lose_no_row(tmp_path):
    path, fork = tmp_path / "r.json", multiprocessing.get_context("fork")
    masks, ready = [[f"sliding_window({8 * at + n + 1})" for n in range(8)] for at in range(4)], fork.Barrier(4)
    writers = [fork.Process(target=_record, args=(path, some, ready)) for some in masks]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0] * 4
    assert {row.mask for row in recorded_results(path)} == {mask for some in masks for mask in some}
    assert [file.name for file in tmp_path.iterdir()] == ["r.json"]


@pytest.mark.parametrize("option", ["--out", "--record", "--report"])
def test_a_target_that_cannot_be_written_is_told_with_its_path(option, tmp_path, capsys):
    for target, words in ((tmp_path, "is a folder; name a file in it"), (tmp_path / "no" / "f", "there is no folder")):
        assert main(["bench", "causal", "--seqlen", "8", option, str(target)]) == 2
        told = capsys.readouterr().err
        assert f"{option}: {target} " in told and words in told and "Errno" not in told
        if option != "--report":
            assert main(["bench", "--reproduce", "8192x64", option, str(target)]) == 2
            told = capsys.readouterr().err
            assert f"{option}: {target} " in told and words in told and "Errno" not in told
    assert list(tmp_path.iterdir()) == []


def test_a_row_is_written_as_it_was_read(tmp_path):
    path = tmp_path / "r.json"
    record_results(recorded_results(), path)
    assert json.loads(path.read_text()) == json.loads(recorded.RECORDED_PATH.read_text())
    assert all(dumps(row.to_json()) for row in recorded_results(path))
