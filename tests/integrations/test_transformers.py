"""Tiny random models of several families: logits and gradients against eager attention, with every kind of mask."""

import pytest
import torch

import flashmask_core as fm

transformers = pytest.importorskip("transformers")
from flashmask_core.integrations import transformers as flashmask  # noqa: E402

SIZES = dict(
    hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=61,
    max_position_embeddings=256, attention_dropout=0.0,
)  # fmt: skip
FAMILIES = {
    "llama": ("LlamaConfig", {}),
    "mistral": ("MistralConfig", dict(sliding_window=7)),
    "qwen3": ("Qwen3Config", dict(head_dim=16)),
    "gpt_neox": ("GPTNeoXConfig", {}),
}
N = 40


@pytest.fixture(params=FAMILIES)
def models(request):
    """(with our attention, with eager attention), of the same weights."""
    name, extra = FAMILIES[request.param]
    made = []
    for implementation in (flashmask.register(), "eager"):
        torch.manual_seed(0)
        config = getattr(transformers, name)(**SIZES, **extra)
        config._attn_implementation = implementation
        made.append(transformers.AutoModelForCausalLM.from_config(config).eval())
    made[0].load_state_dict(made[1].state_dict())
    return made


def compare(models, ids, keep=None, **inputs):
    """Logits and the gradients of every weight, where `keep` [B, N] says that a token is real."""
    results = []
    for model in models:
        model.zero_grad()
        logits = model(ids, use_cache=False, **inputs).logits
        if keep is not None:
            logits = logits[keep]
        (logits * torch.linspace(-1, 1, logits.numel()).reshape(logits.shape)).sum().backward()
        results.append((logits.detach(), {n: p.grad for n, p in model.named_parameters() if p.grad is not None}))
    (ours, grads), (theirs, wanted) = results
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert grads.keys() == wanted.keys()
    for name in wanted:
        torch.testing.assert_close(grads[name], wanted[name], rtol=1e-3, atol=1e-3, msg=lambda m, name=name: f"{name}: {m}")


@pytest.fixture
def ids():
    return torch.randint(0, 61, (2, N), generator=torch.Generator().manual_seed(1))


def test_plain_causal(models, ids):
    compare(models, ids)


def test_packed_position_ids(models, ids):
    positions = torch.tensor([[*range(11), *range(9), *range(20)], [*range(3), *range(30), *range(7)]])
    compare(models, ids, position_ids=positions)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding(models, ids, side):
    keep = torch.ones(2, N, dtype=torch.bool)
    if side == "left":
        keep[1, :13] = False
    else:
        keep[1, -13:] = False
    compare(models, ids, keep, attention_mask=keep.long())


def test_a_prefix_that_sees_itself(models, ids):
    seen = torch.ones(N, N, dtype=torch.bool).tril()
    seen[:9, :9] = True
    additive = torch.where(seen, 0.0, torch.finfo(torch.float32).min)[None, None].expand(2, 1, N, N)
    if "sliding_window" not in FAMILIES[models[0].config.model_type][1]:  # a 4-D mask takes the window's place too
        compare(models, ids, attention_mask=additive)


def test_nothing_leaks_between_packed_documents(models, ids):
    positions = torch.tensor([[*range(17), *range(23)]] * 2)
    changed = ids.clone()
    changed[:, :17] = (ids[:, :17] + 7) % 61
    one, two = (models[0](x, position_ids=positions, use_cache=False).logits[:, 17:] for x in (ids, changed))
    assert torch.equal(one, two)


def test_generation_with_a_cache(models, ids):
    outputs = [
        model.generate(ids[:, :8], attention_mask=torch.ones(2, 8).long(), max_new_tokens=12, do_sample=False, pad_token_id=0)
        for model in models
    ]
    assert torch.equal(*outputs)


def test_through_the_portable_kernels(device):
    """The interpreter on a CPU, the compiled kernels on a GPU."""
    made = []
    for implementation in (flashmask.register("column_mask_triton", backend="triton"), "eager"):
        torch.manual_seed(0)
        config = transformers.LlamaConfig(**SIZES | dict(num_hidden_layers=1))
        config._attn_implementation = implementation
        made.append(transformers.AutoModelForCausalLM.from_config(config).eval().to(device))
    ids = torch.randint(0, 61, (1, 24), generator=torch.Generator().manual_seed(1)).to(device)
    positions = torch.tensor([[*range(10), *range(14)]], device=device)
    ours, theirs = (model(ids, position_ids=positions, use_cache=False).logits for model in made)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_one_mask_for_all_layers(models, ids, monkeypatch):
    made = []
    strips = flashmask._of_strips
    monkeypatch.setattr(flashmask, "_of_strips", lambda *args: made.append(1) or strips(*args))
    models[0](ids, position_ids=torch.tensor([[*range(20), *range(20)]] * 2), use_cache=False)
    assert len(made) == 1


def test_masks_are_exact_in_strips(monkeypatch):
    monkeypatch.setattr(flashmask, "_STRIP_ELEMENTS", 100)
    g = torch.Generator().manual_seed(3)
    bounds = torch.randint(0, 30, (2, 4, 23), generator=g).sort(1).values
    q = torch.arange(29)[:, None]
    hidden = ((q >= bounds[:, None, 0]) & (q < bounds[:, None, 1])) | ((q >= bounds[:, None, 2]) & (q < bounds[:, None, 3]))
    mask = flashmask._of_strips(lambda columns: ~hidden[..., columns], 2, 29, 23)
    assert torch.equal(mask.to_dense()[:, 0], ~hidden)
    with pytest.raises(fm.NotRepresentableError, match="1 column"):
        flashmask._of_strips(lambda c: ((q != 3) & (q != 5) & (q != 7) | (torch.arange(5)[c] != 2))[None], 1, 29, 5)


def test_what_is_refused():
    with pytest.raises(ValueError, match="takes every name with 'flash' in it"):
        flashmask.register("flashmask")
    config = transformers.LlamaConfig(**SIZES | dict(attention_dropout=0.1))
    config._attn_implementation = flashmask.register()
    model = transformers.AutoModelForCausalLM.from_config(config).train()
    with pytest.raises(ValueError, match="dropout is not implemented"):
        model(torch.zeros(1, 8, dtype=torch.int64))
