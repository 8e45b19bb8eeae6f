"""The one command that measures the paper's tables: its blocks, and that it goes on where it stopped."""

import sys
from pathlib import Path

import pytest

from flashmask_core.bench import cli_bench
from flashmask_core.bench.cli import main
from flashmask_core.bench.recorded import recorded_results
from flashmask_core.bench.reproduce import BLOCKS, DENSE_MASK, blocks_of
from flashmask_core.bench.result import read_rows
from flashmask_core.bench.runner import BenchRunner
from flashmask_core.data import PAPER_MASKS

FAKE = (sys.executable, str(Path(__file__).parent / "fake_worker.py"))


def test_blocks_have_the_shapes_of_the_papers_tables():
    assert list(BLOCKS) == ["8192x128", "8192x64", "32768x128", "32768x64", "131072x128", "131072x64"]
    assert blocks_of("all") == list(BLOCKS.values()) and blocks_of("none") == []
    with pytest.raises(ValueError, match="--reproduce: 8kx128 unknown; there are all, none, 8192x128"):
        blocks_of("8192x64,8kx128")
    for block in BLOCKS.values():
        cases = block.cases()
        assert {case.mask_name for case in cases} == set(PAPER_MASKS) and len(cases) == 12
        for case in cases:
            assert case.batch * case.seqlen_q == 131072 and case.heads * case.head_dim == 4096
            dense = case.mask_name == DENSE_MASK and block.name == "8192x128"
            assert case.providers[:2] == ("flashmask", "flex") and (len(case.providers) > 2) == dense


def test_it_goes_on_where_it_stopped_and_keeps_the_recording(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(cli_bench, "BenchRunner", lambda **options: BenchRunner(FAKE, **options))
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
    assert main(["bench", "--reproduce", "none", "--seqlen", "8192"]) == 2
    assert "leave --seqlen out" in capsys.readouterr().err
