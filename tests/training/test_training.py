"""The training tasks: losses against their formulas, engines against each other, adapters."""

import importlib.util

import pytest
import torch
import torch.nn.functional as F

import flashmask_core as fm
from flashmask_core.packing import Example, Sequence
from flashmask_core.training import engines
from flashmask_core.training.case import TrainCase
from flashmask_core.training.decoder import Decoder, DecoderConfig
from flashmask_core.training.lora import Adapted, add_adapters
from flashmask_core.training.names import TASKS
from flashmask_core.training.tasks import Batch, answer_logprobs, dpo_loss, reward_loss, sft_loss
from flashmask_core.training.throughput import Trainer, measure

TINY = DecoderConfig(layers=2, width=64, heads=4, kv_heads=2, hidden=32, vocabulary=60)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def a_case(task: str = "sft", **settings) -> TrainCase:
    usual = dict(engines=("dense",), model=TINY, steps=2, warmup=0, dtype="float32", deterministic=True)
    return TrainCase(task, 256, **(usual | settings))


def decoder() -> Decoder:
    torch.manual_seed(0)
    return Decoder(TINY, lambda q, k, v, mask: fm.flashmask_attention(q, k, v, mask, backend="reference"))


def test_answers_that_share_a_prompt_get_the_log_probabilities_of_sequences_of_their_own():
    sequence = Sequence((Example(5, (3, 0, 2)), Example(0, (4,)), Example(2, (1, 1)), Example(3, ())), 27)
    batch, model = Batch.of(sequence, 60, "cpu"), decoder()
    got = answer_logprobs(model(batch.tokens, batch.positions, sequence.mask), model.head, batch)
    at, number = 0, 0
    for example in sequence.examples:
        prompt_length, answers = (example.prompt, example.answers) if example.answers else (0, (example.prompt,))
        prompt = batch.tokens[0, at : at + prompt_length]
        start = at + prompt_length
        for length in answers:
            alone = torch.cat((prompt, batch.tokens[0, start : start + length]))[None]
            if alone.shape[1] > 1 and length:
                n = alone.shape[1]
                logits = model.head(model(alone, torch.arange(n)[None], fm.mask("causal", n)))[0]
                want = -F.cross_entropy(logits[:-1], alone[0, 1:], reduction="none")[max(0, prompt_length - 1) :]
                torch.testing.assert_close(got[batch.answer == number], want, rtol=1e-4, atol=1e-4)
            else:
                assert not (batch.answer == number).any()
            start, number = start + length, number + 1
        at += example.tokens
    assert batch.example.tolist() == [0, 0, 0, 1, 2, 2, 3] and number == 7


def test_losses_by_their_formulas():
    batch = Batch.of(Sequence((Example(2, (1, 2)), Example(2, (2, 0))), 9), 60, "cpu")
    policy, reference = torch.tensor([-1.0, -2, -3, -1, -1]), torch.tensor([-2.0, -2, -2, -1, -2])
    margins = torch.tensor([(1.0) - (0 - 1.0), (0 + 1.0) - 0])
    torch.testing.assert_close(dpo_loss(policy, reference, batch, beta=0.5), -F.logsigmoid(0.5 * margins).mean())
    rewards = torch.tensor([3.0, 1.0, 0.5, 0.5])
    torch.testing.assert_close(reward_loss(rewards, batch), -F.logsigmoid(torch.tensor([2.0, 0.0])).mean())
    assert sft_loss(policy) == 8 / 5 and sft_loss(policy[:0]) == 0


@pytest.fixture
def flex_backward(monkeypatch):
    """FlexAttention with its backward pass on a CPU, where its public function refuses one."""
    import torch.nn.attention.flex_attention as flex

    if DEVICE == "cpu":
        monkeypatch.setattr(flex, "_validate_device", lambda *tensors: None)
    return flex.flex_attention


@pytest.mark.parametrize("task", TASKS)
def test_every_engine_trains_along_the_same_curve(task, flex_backward):
    case, curves = a_case(task), {}
    for engine in engines.ENGINES:
        row = measure(case, engine, device=DEVICE)
        assert row.status == "ok", row.reason
        curves[engine] = torch.tensor(row.losses)
    for engine, curve in curves.items():
        torch.testing.assert_close(curve, curves["dense"], rtol=1e-4, atol=1e-4, msg=engine)
    again = measure(case, "flashmask", device=DEVICE)
    assert torch.equal(torch.tensor(again.losses), curves["flashmask"])
    assert len(set(curves["flashmask"].tolist())) == 2


def test_flex_gets_a_block_mask_of_its_own_for_every_batch_and_compiles_once(flex_backward, monkeypatch):
    from torch._dynamo.backends.debugging import aot_eager

    compiled = []

    def backend(graph, inputs):
        compiled.append(graph)
        return aot_eager(graph, inputs)

    engine = torch.compile(flex_backward, dynamic=False, backend=backend)
    monkeypatch.setattr(engines, "_flex", lambda on_gpu: engine)
    flex, dense = engines.ENGINES["flex"], engines.ENGINES["dense"]
    q, k, v = (torch.randn(1, 256, heads, 16, device=DEVICE, requires_grad=True) for heads in (4, 2, 2))
    for text in ("causal_document(100, 156)", "causal_document(200, 56)", "share_question((60, 30, 38), (100, 28))"):
        mask, grads = fm.mask(text, 256).to(DEVICE), []
        for one in (flex, dense):
            out = one.attend(q, k, v, one.prepare(mask, False, "auto"))
            grads.append((out, *torch.autograd.grad(out.square().sum(), (q, k, v))))
        for got, want in zip(*grads):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)
    assert len(compiled) == 1
    with pytest.raises(ValueError, match="mask: the flex engine of training takes packed examples"):
        flex.prepare(fm.mask("document(100, 156)", 256), False, "auto")


def test_training_learns_and_dpo_begins_at_log_2():
    for task in ("lora", "dpo", "rm"):
        (sequence,) = a_case(task).sequences(1)
        trainer = Trainer(task, "flashmask", TINY, device="cpu", dtype=torch.float32)
        for group in trainer.optimizer.param_groups:
            group["lr"] = 3e-3
        losses = [trainer.step(sequence) for _ in range(4)]
        assert losses[-1] < losses[0], task
        if task == "dpo":
            assert losses[0] == pytest.approx(torch.tensor(2.0).log().item())


@pytest.mark.parametrize(
    "use_peft", [False, pytest.param(True, marks=pytest.mark.skipif(not importlib.util.find_spec("peft"), reason="no peft"))]
)
def test_adapters_begin_as_the_model_and_alone_are_trained(use_peft):
    model = decoder()
    batch = Batch.of(Sequence((Example(5, (3,)),), 8), 60, "cpu")
    arguments = (batch.tokens, batch.positions, fm.mask("causal", 8))
    before = model(*arguments)
    assert add_adapters(model, use_peft=use_peft) == ("peft" if use_peft else "plain")
    assert torch.equal(model(*arguments), before)
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert len(trained) == 2 * 7 * TINY.layers
    if not use_peft:
        assert trained == {f"{name}.{x}" for name, m in model.named_modules() if isinstance(m, Adapted) for x in "ab"}
