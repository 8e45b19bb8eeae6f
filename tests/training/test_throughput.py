"""Rows of training: what becomes of failures, the longest context, files, the command line, the worker process."""

import csv
import io
import json
import sys
import time
import weakref

import pytest
import torch

from flashmask_core.bench.cli import main
from flashmask_core.bench.config import BenchJob
from flashmask_core.bench.result import DeviceInfo, dumps
from flashmask_core.bench.run_case import CudaFault
from flashmask_core.bench.runner import BenchRunner
from flashmask_core.packing import examples_of
from flashmask_core.training import cli, engines, throughput
from flashmask_core.training.case import TrainCase, check_examples
from flashmask_core.training.decoder import DecoderConfig
from flashmask_core.training.kept import KeptRuns
from flashmask_core.training.longest import STEP, longest
from flashmask_core.training.names import PAPER_SPEEDUPS
from flashmask_core.training.result import TrainRow, losses_apart, record, recorded, speedup, to_csv, to_json

TINY = DecoderConfig(layers=1, width=16, heads=2, kv_heads=1, hidden=16, vocabulary=50, recompute=False)
WHERE = DeviceInfo("NVIDIA Test", torch_version="2.11.0")


def a_case(task: str = "sft", context: int = 256, **settings) -> TrainCase:
    usual = dict(engines=("dense", "flashmask"), model=TINY, steps=1, warmup=0, dtype="float32")
    return TrainCase(task, context, **(usual | settings))


def a_row(engine: str = "dense", case: TrainCase | None = None, direction: str = "step", **values) -> TrainRow:
    return TrainRow.of_case(case or a_case(), engine, direction, where=WHERE, **values)


def test_a_case_travels_as_json():
    case = a_case("dpo", 512, lengths="(200, 9, 8), (30, 4, 0)", policy="best_fit", longest=True)
    assert TrainCase.from_json(json.loads(dumps(case.to_json()))) == case
    job = BenchJob("train", (case,), "title", excluded=((0, "dense", "hung"),))
    assert BenchJob.from_json(json.loads(dumps(job.to_json()))) == job


@pytest.mark.parametrize(
    "wrong, message",
    [
        (dict(task="ppo"), "task: wanted one of sft, lora, dpo, rm, got 'ppo'"),
        (dict(engines=("dense", "fa9")), "engines: wanted some of flashmask, dense, flex, got fa9"),
        (dict(engines=()), "engines: .*got none"),
        (dict(context=100), "context: wanted 256 to 1,048,576, got 100"),
        (dict(steps=0), "steps: wanted 1 to 48, got 0"),
        (dict(lengths="30, (9, 8)", task="dpo"), r"lengths\[0\]: dpo wants 2 answers, chosen and rejected; 30 has none"),
        (dict(lengths="(9, 8, 7)"), r"lengths\[0\]: sft wants a document, or a prompt with 1 answer; \(9, 8, 7\) has 2"),
        (dict(model=dict(heads=3)), "kv_heads: wanted a divisor of heads = 3, got 4"),
        (dict(model=dict(width=96, heads=2, kv_heads=1, layers=0)), "layers: wanted 1 to 1,000, got 0"),
        (dict(model=dict(width=100)), "width: wanted heads = 16 times an even head dim of at most 256, got 100"),
    ],
)
def test_what_cannot_be_trained_is_refused_by_name(wrong, message):
    with pytest.raises(ValueError, match=message):
        a_case(**wrong)


def test_a_reward_needs_two_answers_and_none_may_be_zero_long():
    check_examples("rm", examples_of([(5, 0, 2), (1, 1, 1, 1)]))
    with pytest.raises(ValueError, match=r"lengths\[1\]: rm wants 2 answers or more, the best first; \(5, 2\) has 1"):
        check_examples("rm", examples_of([(5, 2, 1), (5, 2)]))
    for task, lengths in (("dpo", "(90, 0, 20), (0, 7, 0)"), ("rm", "(90, 0, 0, 4)"), ("sft", "(256, 0)"), ("lora", "0, 40")):
        row = throughput.measure(a_case(task, lengths=lengths), "dense", device="cpu")
        assert row.status == "ok" and len(row.losses) == 1, row.reason


def test_a_large_dataset_is_checked_in_a_moment():
    lengths, start = ", ".join(["(90, 9)"] * 100_000), time.perf_counter()
    for context in range(256, 256 + 20):
        a_case(context=context, lengths=lengths).check()
    assert time.perf_counter() - start < 10


def test_examples_of_ones_own_are_repeated_where_they_are_few_and_refused_where_they_do_not_fit():
    sequences = a_case(lengths="(100, 20), 90", steps=3).sequences(3)
    assert len(sequences) == 3 and all(one.context == 256 and one.tokens > 128 for one in sequences)
    long = a_case(lengths="(300, 20), 90")
    for ask in (long.check, lambda: long.sequences(1)):
        with pytest.raises(ValueError, match=r"lengths\[0\]: \(300, 20\) is 320 tokens, more than the context of 256; split it"):
            ask()
    with pytest.raises(ValueError, match="no example is left to pack"):
        a_case(lengths="300, 0", too_long="drop").check()
    a_case(lengths="300, 1", too_long="drop").check()
    assert a_case(lengths="(300, 20), 90", too_long="split").sequences(1) and long.sequences(1, 512)
    assert long.data != a_case(lengths="(300, 20), 91").data


@pytest.mark.parametrize(
    "error, reason",
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB"), "out of GPU memory: take a shorter context"),
        (NotImplementedError("no backward here\nmore"), "NotImplementedError: no backward here"),
        (float("nan"), "the loss of step 1 is nan"),
    ],
)
def test_an_engine_that_fails_is_a_row_with_its_reason(error, reason, monkeypatch):
    def step(self, sequence, seed=0):
        if isinstance(error, Exception):
            raise error
        return error

    monkeypatch.setattr(throughput.Trainer, "step", step)
    made = []
    monkeypatch.setattr(throughput.Trainer, "__init__", lambda self, *a, **k: made.append(weakref.ref(self)))
    row = throughput.measure(a_case(), "dense", device="cpu")
    assert made[0]() is None, "its memory is given back"
    assert row.status == "failed" and row.reason.startswith(reason) and dumps(row.to_json())


@pytest.mark.parametrize("engine, square", [("flashmask", 0), ("dense", 3)])
@pytest.mark.parametrize("memory", [5 * 2**30, 12 * 2**30, 140 * 2**30])
def test_the_longest_context_is_found_in_few_trials(engine, square, memory):
    tried = []

    def need(n: int) -> int:
        return 3 * 2**30 + 120_000 * n + square * n * n

    def train(case, engine, *, device, context, warmup, steps):
        tried.append((context, warmup))
        if need(context) > memory:
            return a_row(engine, case, "longest", status="failed", reason="out of GPU memory: …", context=context)
        return a_row(engine, case, "longest", context=context, tokens_per_s=1.0, peak_memory_bytes=need(context))

    for most in (2**20, 50_000):
        tried.clear()
        row = longest(a_case(context=most, longest=True), engine, memory_bytes=memory, train=train)
        assert row.status == "ok" and row.longest and row.context % STEP == 0 and need(row.context) <= memory
        assert row.at_least == (row.context == most // STEP * STEP)
        longer = row.context + max(STEP, row.context // 8) + STEP
        assert row.at_least or need(longer) > 0.95 * memory, "within an eighth, in steps"
        assert len(tried) <= 7 and all(warmup == (n <= 2**17) for n, warmup in tried)
    row = longest(a_case(context=2**20, longest=True), engine, memory_bytes=memory // 10**6, train=lambda *a, **k: a_row(
        engine, a_case(), "longest", status="failed", reason="out of GPU memory: …", context=k["context"]))  # fmt: skip
    assert row.status == "failed" and row.reason == "not even 8,192 tokens: out of GPU memory: …"


def test_a_fault_ends_the_search_and_keeps_what_was_found():
    def train(case, engine, *, device, context, warmup, steps):
        if context > 40_000:
            raise CudaFault("an illegal memory access")
        return a_row(engine, case, "longest", context=context, tokens_per_s=1.0, peak_memory_bytes=2**30)

    with pytest.raises(CudaFault) as fault:
        longest(a_case(context=2**20, longest=True), "dense", memory_bytes=2**40, train=train)
    best = fault.value.best
    assert (best.context, best.status, best.at_least) == (32768, "ok", True)
    assert best.reason == "at 65,536 tokens an illegal memory access"


def test_rows_are_held_against_the_dense_mask_on_the_same_batches():
    dense = a_row(tokens_per_s=100.0, losses=(4.0, 2.0))
    ours = a_row("flashmask", tokens_per_s=250.0, losses=(4.0, 2.002))
    other = a_row("flashmask", a_case(context=512), tokens_per_s=90.0, losses=(1.0,))
    broken = a_row("flex", status="failed", reason="no")
    rows = [dense, ours, other, broken]
    assert speedup(ours, rows) == 2.5 and losses_apart(ours, rows) == pytest.approx(0.001)
    assert (speedup(other, rows), losses_apart(other, rows), speedup(broken, rows)) == (None, None, None)
    assert PAPER_SPEEDUPS == (1.65, 3.22)


def test_rows_as_files(tmp_path):
    rows = [a_row(tokens_per_s=100.0, step_s=(0.5, 0.25), losses=(4.0,)), a_row("flex", status="failed", reason="=no")]
    path = tmp_path / "recorded.json"
    assert recorded(path) == [] and record(rows, path) == 2 and recorded(path) == rows
    assert record([a_row(tokens_per_s=200.0)], path) == 2 and recorded(path)[0].tokens_per_s == 200.0
    assert json.loads(to_json(rows), parse_constant=pytest.fail)["devices"][0]["device"] == "NVIDIA Test"
    cells = next(csv.DictReader(io.StringIO(to_csv(rows))))
    assert (cells["tokens_per_s"], cells["speedup_over_dense"], cells["step_s"], cells["width"]) == ("100.0", "1.0", "0.5 0.25", "16")
    path.write_text('{"format": "other"}')
    with pytest.raises(ValueError, match="not a recording of training"):
        recorded(path)
    with pytest.raises(ValueError, match="losses: wanted float, got 'x'"):
        TrainRow.from_json({**rows[0].to_json(), "losses": ["x"]})

FAKE = '''
import json, os, signal, sys, time
job = json.loads(sys.stdin.readline())
say = lambda **event: print(json.dumps(event), flush=True)
say(event="device", where={"device": "stand-in"})
out = {(at, name) for at, name, _ in job["excluded"]}
for number, case in enumerate(job["cases"]):
    if number in job["done"]:
        continue
    say(event="case", case=number)
    for engine in case["engines"]:
        if (number, engine) in out:
            continue
        say(event="progress", case=number, provider=engine, message=engine, fraction=0.1)
        match job["title"].partition("=")[::2]:
            case name, "kill" if name == engine:
                os.kill(os.getpid(), signal.SIGKILL)
            case name, "hang" if name == engine:
                time.sleep(60)
            case name, "fatal" if name == engine:
                say(event="fatal", reason="CUDA error: an illegal memory access")
                sys.exit(4)
        row = dict(task=case["task"], engine=engine, context=case["context"], status="ok", tokens_per_s=5.0)
        say(event="row", case=number, row=row)
    say(event="case_done", case=number)
say(event="done")
'''


@pytest.mark.parametrize(
    "title, reason",
    [("dense=kill", "SIGKILL"), ("dense=hang", "time limit of 1 s"), ("dense=fatal", "an illegal memory access"), ("none", "")],
)
def test_what_ends_the_worker_is_a_row_with_its_reason_the_others_go_on_and_rows_are_kept(title, reason, tmp_path):
    (tmp_path / "worker.py").write_text(FAKE)
    kept = KeptRuns(tmp_path / "runs")
    runner = BenchRunner((sys.executable, str(tmp_path / "worker.py")), trained=kept)
    cases = (a_case(engines=("flashmask", "dense", "flex"), time_limit_s=1.0), a_case("rm", engines=("flex",)))
    view = runner.wait(runner.submit(BenchJob("train", cases, title)), 30)
    runner.close()
    assert view.state == "done"
    failed = [row for row in view.rows if row.status == "failed"]
    assert [row.engine for row in failed] == ["dense"] * (title != "none") and all(reason in row.reason for row in failed)
    assert len(view.rows) == 4 and sorted(map(str, kept.rows(view.id))) == sorted(map(str, view.rows))
    assert kept.rows("unknown") == []
    with pytest.raises(ValueError, match="is no name of a run"):
        kept.rows("../history")


SMALL = "--layers 1 --width 16 --heads 1 --kv-heads 1 --vocabulary 50 --contexts 256 --steps 1 --warmup 0 --device cpu"


def test_the_command_line_trains_in_the_worker_and_goes_on_where_it_stopped(capsys, tmp_path):
    """Our kernel in the interpreter learns what the dense mask does; FlexAttention's failure stays with its reason."""
    out = tmp_path / "rows.jsonl"
    command = ["train", "--tasks", "sft", *SMALL.split(), "--out", str(out)]
    assert main([*command, "--engines", "flex", "dense", "flashmask"]) == 0
    said = capsys.readouterr().out
    assert "does not support backward on CPU" in said and "apart from dense" in said
    flex, dense, ours = rows = [TrainRow.from_json(json.loads(line)) for line in out.read_text().splitlines()]
    assert flex.status == "failed" and losses_apart(ours, rows) < 1e-4 and ours.where.device == "CPU, Triton interpreter"
    out.write_text(out.read_text() + '{"task": "sf')  # cut short
    kept = tmp_path / "kept.json"
    assert main([*command, "--engines", "dense", "flashmask", "--record", str(kept)]) == 0
    assert "has 2 of 2 rows already" in capsys.readouterr().err and len(recorded(kept)) == 2
    assert len(out.read_text().splitlines()) == 3
    unmade = tmp_path / "unmade.json"
    assert main([*command, "--contexts", "1024", "--engines", "dense", "--record", str(unmade)]) == 2
    assert "on the CPU, through the interpreter, steps of at most 512 tokens" in capsys.readouterr().err and not unmade.exists()


@pytest.mark.parametrize(
    "wrong, message",
    [
        ("--heads 3", "kv_heads"), ("--contexts 100", "context: wanted 256"), ("--steps 0", "steps:"), ("--longest", "--longest:"),
        ("--contexts", "--contexts: wanted at least one"), ("--lengths lengths.csv --tasks dpo", "dpo wants 2 answers"),
        ("--lengths lengths.csv --tasks sft", "more than the context of 256"), ("--policy sorted", "policy: wanted one of"),
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_one_message(wrong, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lengths.csv").write_text("prompt,answer\n300,20\n")
    assert main(["train", *SMALL.split(), "--heads", "2", "--kv-heads", "2", *wrong.split()]) == 2
    assert message in capsys.readouterr().err


def test_a_row_is_known_by_what_was_trained(tmp_path):
    out = tmp_path / "rows.jsonl"
    case = a_case(engines=("flashmask", "dense", "flex"))
    rows = [a_row("flashmask"), a_row("dense", status="failed", reason="out of GPU memory: …"),
            a_row("flex", status="failed", reason="a hang")]  # fmt: skip
    out.write_text("".join(dumps(row.to_json()) + "\n" for row in rows))
    left = cli._without_known(case, cli._known(out))
    assert left.engines == ("flex",), "out of memory is a result, another failure is tried again"
    assert cli._without_known(a_case(context=512), cli._known(out)).engines == ("dense", "flashmask")
    assert engines.ENGINES.keys() == {"flashmask", "dense", "flex"}
