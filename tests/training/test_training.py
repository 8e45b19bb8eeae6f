"""The training tasks: losses against their formulas, engines against each other, adapters, the command line."""

import json

import pytest
import torch
import torch.nn.functional as F

import flashmask_core as fm
from flashmask_core.bench.cli import main
from flashmask_core.packing import Example, Sequence
from flashmask_core.training.decoder import Decoder, DecoderConfig
from flashmask_core.training.lora import Adapted, add_adapters
from flashmask_core.training.tasks import TASKS, Batch, answer_logprobs, dpo_loss, reward_loss
from flashmask_core.training.throughput import Trainer, longest, measure, sequences_for

TINY = DecoderConfig(layers=2, width=32, heads=4, kv_heads=2, hidden=32, vocabulary=60)
ON_GPU = torch.cuda.is_available()


def decoder() -> Decoder:
    torch.manual_seed(0)
    return Decoder(TINY, lambda q, k, v, mask: fm.flashmask_attention(q, k, v, mask, backend="reference"))


def test_answers_that_share_a_prompt_get_the_log_probabilities_of_sequences_of_their_own():
    sequence = Sequence((Example(5, (3, 0, 2)), Example(0, (4,)), Example(2, (1, 1))), 24)
    batch, model = Batch.of(sequence, 60, "cpu"), decoder()
    got = answer_logprobs(model(batch.tokens, batch.positions, sequence.mask), model.head, batch)
    at, number = 0, 0
    for example in sequence.examples:
        prompt = batch.tokens[0, at : at + example.prompt]
        start = at + example.prompt
        for length in example.answers:
            alone = torch.cat((prompt, batch.tokens[0, start : start + length]))[None]
            if alone.shape[1] > 1 and length:
                n = alone.shape[1]
                logits = model.head(model(alone, torch.arange(n)[None], fm.mask("causal", n)))[0]
                want = -F.cross_entropy(logits[:-1], alone[0, 1:], reduction="none")[max(0, example.prompt - 1) :]
                torch.testing.assert_close(got[batch.answer == number], want, rtol=1e-4, atol=1e-4)
            else:
                assert not (batch.answer == number).any()
            start, number = start + length, number + 1
        at += example.tokens
    assert batch.example.tolist() == [0, 0, 0, 1, 2, 2] and number == 6


def test_losses_by_their_formulas():
    batch = Batch.of(Sequence((Example(2, (1, 2)), Example(2, (2, 0))), 9), 60, "cpu")
    policy, reference = torch.tensor([-1.0, -2, -3, -1, -1]), torch.tensor([-2.0, -2, -2, -1, -2])
    margins = torch.tensor([(1.0) - (0 - 1.0), (0 + 1.0) - 0])
    torch.testing.assert_close(dpo_loss(policy, reference, batch, beta=0.5), -F.logsigmoid(0.5 * margins).mean())
    rewards = torch.tensor([3.0, 1.0, 0.5, 0.5])
    torch.testing.assert_close(reward_loss(rewards, batch), -F.logsigmoid(torch.tensor([2.0, 0.0])).mean())


@pytest.mark.parametrize("task", TASKS)
def test_every_engine_trains_along_the_same_curve(task):
    device = "cuda" if ON_GPU else "cpu"
    curves = {}
    for engine in ("flashmask", "dense", "flex") if ON_GPU else ("flashmask", "dense"):
        row = measure(task, engine, 256, TINY, steps=2, warmup=0, device=device, deterministic=True, dtype=torch.float32)
        assert not row.error and row.tokens_per_s > 0
        curves[engine] = torch.tensor(row.losses)
    for engine, curve in curves.items():
        torch.testing.assert_close(curve, curves["flashmask"], rtol=1e-4, atol=1e-4, msg=engine)
    again = measure(task, "flashmask", 256, TINY, steps=2, warmup=0, device=device, deterministic=True, dtype=torch.float32)
    assert torch.equal(torch.tensor(again.losses), curves["flashmask"])
    assert len(set(curves["flashmask"].tolist())) == 2


def test_training_learns_and_dpo_begins_at_log_2():
    (sequence,) = sequences_for("dpo", 256, 1)
    for task in ("lora", "dpo", "rm"):
        trainer = Trainer(task, "flashmask", TINY, device="cpu", dtype=torch.float32)
        for group in trainer.optimizer.param_groups:
            group["lr"] = 3e-3
        losses = [trainer.step(sequence) for _ in range(4)]
        assert losses[-1] < losses[0], task
        if task == "dpo":
            assert losses[0] == pytest.approx(torch.tensor(2.0).log().item())


def test_plain_adapters_begin_as_the_model_and_alone_are_trained():
    model = decoder()
    batch = Batch.of(Sequence((Example(5, (3,)),), 8), 60, "cpu")
    arguments = (batch.tokens, batch.positions, fm.mask("causal", 8))
    before = model(*arguments)
    assert add_adapters(model, use_peft=False) == "plain"
    assert torch.equal(model(*arguments), before)
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert trained == {f"{name}.{x}" for name, m in model.named_modules() if isinstance(m, Adapted) for x in "ab"}
    assert len(trained) == 2 * 7 * TINY.layers


def test_the_longest_context_is_found_by_bisection(monkeypatch):
    from flashmask_core.training import throughput

    tried = []

    def pretend(task, engine, context, config, **options):
        tried.append(context)
        return throughput.TrainRow(task, engine, context, error="out of memory" if context > limit else "")

    monkeypatch.setattr(throughput, "measure", pretend)
    for limit in (10_000, 40_000, 200_000, 999_999_999):
        tried.clear()
        row = longest("sft", "flashmask", TINY)
        assert not row.error and row.context <= limit and len(tried) < 12
        assert row.context == 2**20 or min(2**20, limit) < row.context + max(8192, row.context // 8) + 8192
    limit = 0
    assert longest("sft", "flashmask", TINY).error == "not even the shortest context fits"


def test_the_command_line_writes_rows(capsys, tmp_path):
    out = tmp_path / "rows.jsonl"
    small = "--layers 1 --width 32 --heads 2 --kv-heads 1 --vocabulary 50 --contexts 256 --steps 1 --device cpu --fp32"
    assert main(["train", "--tasks", "sft", "--engines", "flashmask", "dense", *small.split(), "--out", str(out)]) == 0
    assert "tokens/s" in capsys.readouterr().out
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["engine"] for row in found] == ["flashmask", "dense"] and found[0]["losses"]
    for wrong, message in (("--heads 3", "kv_heads"), ("--contexts 100", "context: wanted 256"), ("--steps 0", "steps:"),
                           ("--longest", "longest:")):  # fmt: skip
        assert main(["train", *small.split(), "--kv-heads", "2", *wrong.split()]) == 2
        assert message in capsys.readouterr().err


def test_the_command_line_knows_every_task_and_engine():
    from flashmask_core.training import cli
    from flashmask_core.training.engines import ENGINES

    assert (cli._TASKS, cli._ENGINES) == (TASKS, tuple(ENGINES))
