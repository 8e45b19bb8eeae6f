"""The command line as a person or a script meets it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import flashmask_core as fm
from flashmask_core.bench import cli_recorded, recorded, terminal
from flashmask_core.bench.cli import main
from flashmask_core.bench.config import BenchCase
from flashmask_core.bench.history import History
from flashmask_core.bench.recorded import recorded_results
from flashmask_core.bench.result import BenchRow, DeviceInfo, dumps, read_rows
from flashmask_core.bench.runner import BenchRunner
from flashmask_core.bench.table import row_line, where_line
from flashmask_core.data import PAPER_LENGTHS

FAKE = (sys.executable, str(Path(__file__).parent / "fake_worker.py"))
ROOT = Path(__file__).resolve().parents[2]


def command(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "flashmask_core", *arguments], capture_output=True, text=True, cwd=ROOT, timeout=120,
        env={"PATH": "/usr/bin:/bin", "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip


def test_show_draws_the_ten_token_figure(capsys):
    assert main(["show", "causal_document(4,3,3)", "--seqlen", "10"]) == 0
    out = capsys.readouterr().out
    assert "lts      4×4 7×3 10×3\n" in out and "causal=True, 1 vector (lts): 40 bytes" in out
    assert "visible  22 of 100 pairs, density 0.22" in out
    assert "████████············\n········██··········\n" in out


def test_show_as_json_holds_the_whole_vectors(capsys):
    assert main(["show", "document(333, 333)", "--seqlen", "1000", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    mask = fm.mask("document(333, 333)", 1000)
    assert shown["vectors"]["lts"] == mask.lts[0, 0].tolist() and shown["stored_vectors"] == ["lts", "ute"]
    assert shown["visible_pairs"] == 2 * 333**2 and shown["dense_mask_bytes"] == 10**6
    assert any("padding" in note for note in shown["notes"])


def test_show_of_a_million_tokens_and_of_rectangles(capsys):
    assert main(["show", "sliding_window(4096)", "--seqlen", str(2**20)]) == 0
    assert "…" in capsys.readouterr().out
    assert main(["show", "causal", "--seqlen", "3", "--seqlen-k", "5"]) == 0
    assert "██████····\n████████··\n██████████\n" in capsys.readouterr().out


def test_tiles_by_both_rules(capsys):
    assert main(["tiles", "causal & document(333, 333, 334)", "--seqlen", "1000", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["rules"]["exact"]["EMPTY"] == 44 and shown["row_tiles"] == 8
    assert main(["tiles", "sliding_window(37)", "--seqlen", "300", "--block-m", "64", "--block-n", "64"]) == 0
    out = capsys.readouterr().out
    assert "5 x 5 = 25" in out and "0.6400" in out


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["show", "causl & document(3)", "--seqlen", "10"], "causl"),
        (["show", "causal & q - k < 512", "--seqlen", "10"], "parentheses"),
        (["tiles", "document(20)", "--seqlen", "10"], "20"),
        (["tiles", "causal", "--seqlen", "-1"], "-1"),
        (["tiles", "causal", "--seqlen", "9", "--block-m", "0"], "block_m: wanted 1 or more, got 0"),
        (["bench"], "TEXT or --paper"),
        (["bench", "causal", "--paper", "all", "--seqlen", "8"], "TEXT or --paper"),
        (["bench", "causal"], "--seqlen: wanted"),
        (["bench", "causal(", "--seqlen", "8"], "causal("),
        (["bench", "causal", "--seqlen", "8", "--providers", "flax"], "flax unknown; there are flashmask"),
        (["bench", "causal", "--seqlen", "8", "--heads", "6", "--kv-heads", "4"], "divisor of heads = 6, got 4"),
        (["bench", "--paper", "cuasal", "--seqlen", "8192"], "cuasal unknown; there are all, full"),
        (["bench", "causal", "--seqlen", "8", "--passes", "sideways"], "sideways"),
    ],
)
def test_a_wrong_request_is_one_message_and_exit_code_2(capsys, arguments, words):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and words in captured.err and "Traceback" not in captured.err
    assert captured.err.startswith(f"flashmask_core {arguments[0]}: ")


def test_the_caret_points_at_the_character(capsys):
    main(["show", "causal & documnt(3)", "--seqlen", "10"])
    lines = capsys.readouterr().err.rstrip("\n").split("\n")
    assert lines[1][lines[2].index("^") :].startswith("documnt")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_bench_without_a_gpu_says_so_in_a_process_of_its_own():
    done = command("bench", "causal", "--seqlen", "128")
    assert done.returncode == 2 and done.stdout == ""
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("flashmask_core bench: no CUDA GPU") and "bench --recorded" in last
    assert "Traceback" not in done.stderr


def test_help_names_the_commands():
    done = command("--help")
    assert done.returncode == 0 and all(word in done.stdout for word in ("show", "tiles", "bench", "quotes"))
    assert command().returncode == 2


@pytest.fixture
def stand_in(monkeypatch):
    """Let the bench command run the stand-in worker."""
    monkeypatch.setattr(terminal, "BenchRunner", lambda history: BenchRunner(FAKE, history=history))


def test_bench_prints_and_writes_rows_and_resumes(stand_in, capsys, tmp_path):
    out = tmp_path / "rows.jsonl"
    arguments = ["bench", "causal", "--seqlen", "256", "--providers", "flashmask,flex", "--out", str(out)]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert printed.count("1.250 - 2.000") == 4 and "stand-in" in printed and "4*B*H*Sq*Sk*D*(1-rho)" in printed
    assert len(read_rows(out)) == 4

    with open(out, "a") as file:
        file.write('{"mask": "cut sho')
    assert main([*arguments[:5], "flashmask,flex,sdpa_full_flash", "--out", str(out), "--json"]) == 0
    captured = capsys.readouterr()
    assert [json.loads(line)["provider"] for line in captured.out.splitlines()] == ["sdpa_full_flash"] * 2
    assert len(read_rows(out)) == 6
    assert main(arguments) == 0 and capsys.readouterr().err.startswith(f"{out} has 1 of 1 masks already")


def test_bench_of_the_paper_times_ceilings_beside_one_mask_only(stand_in, capsys):
    assert main(["bench", "--paper", "causal,causal_document", "--seqlen", "512", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    by_mask = {name: {r["provider"] for r in rows if r["mask_name"] == name} for name in ("causal", "causal_document")}
    assert by_mask["causal"] == {"flashmask", "flex"} and len(by_mask["causal_document"]) == 8
    assert main(["bench", "--paper", "causal,full", "--seqlen", "512", "--all-providers", "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 * 8 * 2


def test_bench_records_and_prints_the_recording(stand_in, capsys, tmp_path, monkeypatch):
    path = tmp_path / "h200.json"
    assert main(["bench", "causal", "--seqlen", "256", "--providers", "flex", "--record", str(path)]) == 0
    assert "now holds 2 rows" in capsys.readouterr().err
    assert main(["bench", "full", "--seqlen", "512", "--providers", "flex", "--record", str(path)]) == 0
    assert main(["bench", "full", "--seqlen", "512", "--providers", "flex", "--record", str(path)]) == 0
    assert len(recorded_results(path)) == 4
    json.loads(path.read_text(), parse_constant=pytest.fail)
    capsys.readouterr()
    monkeypatch.setattr(cli_recorded, "recorded_results", lambda: recorded_results(path))
    assert main(["bench", "--recorded", "--seqlen", "512"]) == 0
    assert capsys.readouterr().out.count("1.250 - 2.000") == 2
    assert main(["bench", "--recorded", "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_nothing_recorded_yet(tmp_path, capsys, monkeypatch):
    assert recorded_results(tmp_path / "none.json") == []
    monkeypatch.setattr(cli_recorded, "recorded_results", lambda: [])
    assert main(["bench", "--recorded"]) == 2 and "no recorded results" in capsys.readouterr().err
    (tmp_path / "bad.json").write_text('{"schema": 7}')
    with pytest.raises(ValueError, match="bad.json is damaged: schema: wanted 1, got 7"):
        recorded_results(tmp_path / "bad.json")


def test_what_is_shipped_can_be_read():
    for row in recorded_results(recorded.RECORDED_PATH):
        dumps(row.to_json())
        assert row.where is not None and row.date_utc


def test_rows_without_numbers_show_their_reason():
    case = BenchCase("causal", 8, mask_name="causal")
    skipped = BenchRow.of_case(case, "flex", "forward", "skipped", reason="needs 9 bytes and 8 are free")
    assert row_line(skipped).endswith("skipped: needs 9 bytes and 8 are free")
    checked = BenchRow.of_case(case, "flashmask", "forward", backend="triton (interpreter)", check="passed")
    assert row_line(checked).endswith("passed") and "triton (interpreter)" in row_line(checked)
    where = DeviceInfo("NVIDIA H200", driver="580", commit="0123456789abcdef+changes")
    assert where_line(where, "2026-11-29") == "NVIDIA H200, driver 580, commit 0123456789ab+changes, 2026-11-29"
    assert where_line(DeviceInfo("one")) == "one" and where_line(None) == "device unknown"


def test_an_ascii_terminal_gets_stand_ins():
    done = subprocess.run(
        [sys.executable, "-m", "flashmask_core", "show", "causal", "--seqlen", "99"], capture_output=True, cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0 and b"99x99" in done.stdout and b"all visible" in done.stdout, done


@pytest.mark.parametrize(
    "named, masks, lengths, dims, providers",
    [
        (["--paper", "full,causal", "--head-dim", "64"], {"full", "causal"}, set(PAPER_LENGTHS), {64}, {"flashmask", "flex"}),
        (["causal", "--seqlen", "32768", "--providers", "flex"], {"causal"}, {32768}, {64, 128}, {"flex"}),
        (["causal & document(2481, 1388, 1978, 2345)", "--providers", "flashmask"], {"causal_document"}, {8192}, {64, 128},
         {"flashmask"}),
    ],
)  # fmt: skip
def test_recorded_shows_what_was_named(named, masks, lengths, dims, providers, capsys):
    assert main(["bench", "--recorded", "--json", *named]) == 0
    rows = [BenchRow.from_json(json.loads(line)) for line in capsys.readouterr().out.splitlines()]
    assert {row.mask_name for row in rows} == masks and {row.seqlen_q for row in rows} == lengths
    assert {row.head_dim for row in rows} == dims and {row.provider for row in rows} == providers


@pytest.mark.parametrize(
    "named, words",
    [
        (["--seqlen", "0"], "--seqlen 0: recorded are 8192"), (["--head-dim", "9"], "--head-dim 9: recorded are 64, 128"),
        (["sliding_window(513)"], "no recorded mask is the same; --paper takes their names"),
        (["--paper", "full,fill"], "--paper fill: recorded are"),
    ],
)  # fmt: skip
def test_recorded_says_what_it_lacks(named, words, capsys):
    assert main(["bench", "--recorded", *named]) == 2
    said = capsys.readouterr()
    assert words in said.err and not said.out


def test_recorded_says_what_there_is_and_takes_no_out(stand_in, capsys, tmp_path):
    assert main(["bench", "--recorded", "--seqlen", "77"]) == 2
    assert "--seqlen 77: recorded are" in capsys.readouterr().err
    assert main(["bench", "--recorded", "--out", str(tmp_path / "rows")]) == 2
    assert "--out: goes with a measurement" in capsys.readouterr().err
    assert main(["bench", "causal", "--seqlen", "64", "--out", str(tmp_path / "no" / "rows")]) == 2
    assert capsys.readouterr().out == ""


def test_a_sweep_is_one_case_a_value_and_is_kept(stand_in, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("FLASHMASK_HISTORY", str(tmp_path / "history.sqlite"))
    sweep = ["bench", "causal & document(500, 524)", "--seqlen", "1024", "--providers", "flashmask", "--json", "--sweep"]
    assert main([*sweep, "seqlen=1024,512,1000", "--report", str(tmp_path / "report.html")]) == 0
    assert "Time of one forward pass" in (tmp_path / "report.html").read_text()
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["seqlen_q"], row["mask"]) for row in rows[::2]] == [
        (1024, "causal & document(500, 524)"), (512, "causal & document(250, 262)"),
        (1000, "causal & document(488, 512)"),
    ]  # fmt: skip
    (run,) = History().runs()
    assert run.rows == 6 and run.state == "done" and "seqlen=1024,512,1000" in run.title
    assert main([*sweep, "head_dim", "--no-history"]) == 0 and len(History().runs()) == 1
    assert {json.loads(line)["head_dim"] for line in capsys.readouterr().out.splitlines()} == {32, 64, 128, 256}
    assert main([*sweep, "head_dim=few"]) == 2 and "wanted numbers such as head_dim=64,128" in capsys.readouterr().err
    assert main([*sweep, "weight=3"]) == 2 and "wanted one of seqlen, sparsity" in capsys.readouterr().err
