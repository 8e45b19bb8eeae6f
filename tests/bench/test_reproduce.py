"""The one command that measures the paper's tables: its blocks, and that it goes on where it stopped."""

import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flashmask_core.bench import terminal
from flashmask_core.bench.cli import main
from flashmask_core.bench.readme import BEGIN, END, README, table_markdown
from flashmask_core.bench.recorded import recorded_results
from flashmask_core.bench.reproduce import BLOCKS, DENSE_MASK, blocks_of
from flashmask_core.bench.result import DeviceInfo, dumps, read_rows
from flashmask_core.bench.runner import BenchRunner
from flashmask_core.data import PAPER_MASKS

FAKE = (sys.executable, str(Path(__file__).parent / "fake_worker.py"))


def test_blocks_have_the_shapes_of_the_papers_tables():
    assert list(BLOCKS) == ["8192x128", "8192x64", "32768x128", "32768x64", "131072x128", "131072x64"]
    assert blocks_of("all") == list(BLOCKS.values()) and blocks_of("none") == []
    with pytest.raises(ValueError, match="--reproduce: 8kx128 unknown; there are all, none, 8192x128"):
        blocks_of("8192x64,8kx128")
    assert blocks_of(" 32768X64, 8192x128,8192X128 ") == [BLOCKS["32768x64"], BLOCKS["8192x128"]]
    assert blocks_of("8192x64, all") == list(BLOCKS.values()) and blocks_of(" None ") == []
    for unclear in ("", " , ", "none,8192x64"):
        with pytest.raises(ValueError, match="--reproduce: wanted all, none, or some of 8192x128, 8192x64"):
            blocks_of(unclear)
    for block in BLOCKS.values():
        cases = block.cases()
        assert {case.mask_name for case in cases} == set(PAPER_MASKS) and len(cases) == 12
        for case in cases:
            assert case.batch * case.seqlen_q == 131072 and case.heads * case.head_dim == 4096
            dense = case.mask_name == DENSE_MASK and block.name == "8192x128"
            assert case.providers[:2] == ("flashmask", "flex") and (len(case.providers) > 2) == dense


def test_it_goes_on_where_it_stopped_and_keeps_the_recording(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(terminal, "BenchRunner", lambda **options: BenchRunner(FAKE, **options))
    out, record = tmp_path / "paper.jsonl", tmp_path / "record.json"
    command = ["bench", "--no-history", "--out", str(out), "--record", str(record), "--reproduce"]
    assert main([*command, "8192x64", "--providers", "flashmask"]) == 0
    assert len(read_rows(out)) == len(recorded_results(record)) == 24
    lines = out.read_text().splitlines(keepends=True)
    out.write_text("".join(lines[:7]) + lines[7][:40])  # cut in the middle of a row
    assert main([*command, "8192x64,32768x128"]) == 0
    assert len({row.key for row in read_rows(out)}) == len(recorded_results(record)) == 96
    assert "8192x64: 0 of 12 masks are measured already" in capsys.readouterr().err
    assert main([*command, "8192x64,32768x128"]) == 0 and main([*command, "none"]) == 0
    assert capsys.readouterr().err.count("12 of 12 masks") == 2
    assert main(["bench", "--reproduce", "none", "--out", str(tmp_path / "none.jsonl")]) == 2
    assert "there is no" in capsys.readouterr().err and not (tmp_path / "none.jsonl").exists()


@pytest.mark.parametrize(
    "given",
    [["--seqlen", "8192"], ["--seqlen-k", "8"], ["--batch", "1"], ["--heads", "32"], ["--kv-heads", "4"], ["--head-dim", "64"],
     ["--dtype", "bfloat16"], ["--passes", "forward"], ["--block", "128"], ["--sweep", "seqlen"], ["--paper", "all"],
     ["--rounds", "3"], ["--repeat-ms", "9"], ["--time-limit", "9"], ["--all-providers"], ["--recorded"],
     ["--report", "r.html"]],
)  # fmt: skip
def test_what_the_paper_says_cannot_be_named(given, capsys):
    assert main(["bench", *given, "--reproduce", "8192x64"]) == 2
    assert f"leave {given[0]} out" in capsys.readouterr().err


def test_without_a_gpu_nothing_changes(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("FAKE_WORKER_ACTS", "start=refuse")
    monkeypatch.setattr(terminal, "BenchRunner", lambda **options: BenchRunner(FAKE, **options))
    monkeypatch.chdir(tmp_path)
    record = tmp_path / "record.json"
    assert main(["bench", "--reproduce", "8192x64", "--no-history", "--record", str(record)]) == 2
    assert "no CUDA GPU here. `python -m flashmask_core bench --recorded` prints" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert main(["bench", "--reproduce", "", "--record", str(record)]) == 2
    assert "--reproduce: wanted all, none, or some of" in capsys.readouterr().err and list(tmp_path.iterdir()) == []

    monkeypatch.setenv("FAKE_WORKER_ACTS", "")
    assert main(["bench", "--reproduce", "8192x64", "--no-history", "--out", "rows", "--record", str(record)]) == 0
    before = record.read_bytes()
    record.write_text(before.decode().replace("1.5", "2.0"))  # whatever it holds, it stays
    changed = record.read_bytes()
    monkeypatch.setenv("FAKE_WORKER_ACTS", "start=refuse")
    assert main(["bench", "--reproduce", "8192x64,32768x64", "--no-history", "--out", "rows", "--record", str(record)]) == 2
    assert changed != before and record.read_bytes() == changed, "one block is known, but nothing could be measured"
    assert main(["bench", "--reproduce", "8192x64", "--no-history", "--out", "rows", "--record", str(record)]) == 0
    assert record.read_bytes() == before, "nothing is left to measure, so no GPU is wanted"


def test_a_row_that_is_not_sound_is_measured_again_and_not_recorded(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(terminal, "BenchRunner", lambda **options: BenchRunner(FAKE, **options))
    out, record = tmp_path / "rows", tmp_path / "record.json"
    command = ["bench", "--no-history", "--out", str(out), "--record", str(record), "--providers", "flashmask", "--reproduce"]
    assert main([*command, "8192x64"]) == 0
    rows = read_rows(out)
    bad = [dataclasses.replace(rows[0], check="failed: out is off"), dataclasses.replace(rows[2], warning="too fast")]
    out.write_text("".join(dumps(row.to_json()) + "\n" for row in [*bad, rows[1], *rows[3:]]))
    record.unlink()
    assert main([*command, "none"]) == 0
    assert {row.key for row in recorded_results(record)} == {row.key for row in [rows[1], *rows[3:]]}
    assert main([*command, "8192x64"]) == 0 and "8192x64: 10 of 12 masks" in capsys.readouterr().err
    assert {row.key for row in recorded_results(record)} == {row.key for row in rows}
    assert all(row.sound for row in recorded_results(record))


def test_killed_in_the_middle_of_a_block_it_goes_on(tmp_path):
    """The command is killed as the system's memory killer does it; what it had measured is not measured again."""
    out, record = tmp_path / "paper.jsonl", tmp_path / "record.json"
    code = f"""
import sys
from flashmask_core.bench import cli, terminal
runner = terminal.BenchRunner
terminal.BenchRunner = lambda **options: runner({FAKE!r}, **options)
sys.exit(cli.main(sys.argv[1:]))
"""
    command = [sys.executable, "-c", code, "bench", "--reproduce", "8192x64,32768x64", "--no-history", "--providers",
               "flashmask", "--json", "--out", str(out), "--record", str(record)]  # fmt: skip

    def start(**more):
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | more)

    first = start(FAKE_WORKER_ACTS="flashmask=slow")  # a second a mask
    until = time.monotonic() + 60
    while (not out.exists() or out.read_text().count("\n") < 6) and time.monotonic() < until:
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    before = read_rows(out)
    assert 6 <= len(before) < 24 and not record.exists(), "in the middle of the first block"

    second = start()
    printed, said = second.communicate(timeout=60)
    assert second.returncode == 0, said.decode()
    rows = read_rows(out)
    assert rows[: len(before)] == before and len(rows) == len({row.key for row in rows}) == 48
    assert printed.count(b"\n") == 48 - len(before), "and the rest alone was measured"
    assert f"8192x64: {len(before) // 2} of 12 masks are measured already" in said.decode()
    assert {row.key for row in recorded_results(record)} == {row.key for row in rows}


def test_the_readme_shows_the_h200_and_sound_rows_alone():
    rows = recorded_results()
    faster = [dataclasses.replace(row, median_ms=0.01, date_utc="2030-01-01") for row in rows]
    other = [dataclasses.replace(row, where=DeviceInfo("NVIDIA GH200 480GB")) for row in faster]
    off = [dataclasses.replace(row, check="failed: out is off") for row in faster]
    assert table_markdown([*rows, *other, *off]) == table_markdown(rows)
    for lacking in (other, off):
        with pytest.raises(ValueError, match="no run of all the paper's masks"):
            table_markdown(lacking)


def test_the_readme_shows_what_is_recorded():
    """`python -m flashmask_core.bench.readme` writes it; so does `bench --reproduce`."""
    shown = README.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].strip()
    assert shown == table_markdown(recorded_results()), "python -m flashmask_core.bench.readme"
    assert "Measured on" in shown and "with commit" in shown and shown.count("\n| ") == 13
