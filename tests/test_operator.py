"""The operator among torch's own tools: opcheck, torch.compile, checkpointing, autocast, DDP and FSDP2."""

import pytest
import torch
import torch.distributed as dist
from torch._dynamo.utils import counters

import flashmask_core as fm
from flashmask_core.kernels import launch, operator
from flashmask_core.training.decoder import Decoder, DecoderConfig
from tests.attention_tools import inputs
from tests.distributed.ranks import run_ranks

ON_GPU = torch.cuda.is_available()
TRITON = "triton" if not launch.interpreter_problem() or ON_GPU else "reference"
SMALL = DecoderConfig(layers=1, width=32, heads=2, kv_heads=1, hidden=32, vocabulary=50, recompute=False)
TEXTS = ("causal & document(20, 44)", "causal & document(30, 34)", "causal & document(1, 2, 3, 58)", "causal")


def decoder(device="cpu", backend="reference", **changes) -> Decoder:
    torch.manual_seed(0)
    config = DecoderConfig(**{**SMALL.__dict__, **changes})
    return Decoder(config, lambda q, k, v, mask: fm.flashmask_attention(q, k, v, mask, backend=backend)).to(device)


def batch(device="cpu", size=1, n=64):
    g = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, 50, (size, n), generator=g).to(device)
    return tokens, torch.arange(n, device=device).expand(size, n)


def gradients(model, x, y, mask) -> list[torch.Tensor]:
    model.zero_grad()
    model(x, y, mask).square().sum().backward()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def close(a, b, tolerance=2e-4) -> None:
    assert len(a) == len(b) > 9
    for x, y in zip(a, b):
        torch.testing.assert_close(x, y, rtol=tolerance, atol=tolerance)


ENGINES = [pytest.param(e, marks=[] if e == "triton" else [pytest.mark.gpu]) for e in ("triton", "hopper", "hopper_exact")]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("text", ["causal & document(20, 20)", "document(20, 20)", "global_sliding_window(2, 3, 3)"])
def test_opcheck(engine, text, device):
    if engine != "triton" and torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("needs compute capability 9.0")
    mask = fm.mask(text, 40).to(device)
    dim, dtype = (64, torch.float16) if engine != "triton" else (16, torch.float32)
    q, k, v, dout = inputs(1, 40, 40, 2, 1, dim, dtype, device)
    vectors, plan = operator.prepare(mask, dim, dtype, True, engine)
    packing = (mask.causal, mask.bounds)
    torch.library.opcheck(operator._forward_op, (q, k, v, vectors, plan, *packing, 0.25, engine))
    q, k, v = (x.detach() for x in (q, k, v))
    out, lse = operator._forward_op(q, k, v, vectors, plan, *packing, 0.25, engine)
    saved = (dout, None, q, k, v, out, lse, vectors, plan[3:], *packing, 0.25, engine)
    # dq of the "hopper" backward is added up in any order, so its bits are not repeatable; its shapes are.
    kinds = dict(test_utils=("test_schema", "test_faketensor")) if engine == "hopper" else {}
    torch.library.opcheck(operator._backward_op, saved, **kinds)
    # Only as many runs as are counted are written, so what stands behind them differs from call to call.
    torch.library.opcheck(operator._tile_runs_op, (vectors[:4], 40, 40, *packing, [16, 16, True, 16, 16, False]),
                          test_utils=("test_schema", "test_faketensor"))  # fmt: skip


@pytest.mark.parametrize("backend", ["reference", TRITON])
def test_another_mask_does_not_recompile(backend, device):
    model = decoder(device, backend)
    tokens, positions = batch(device)
    torch._dynamo.reset()
    counters.clear()
    compiled = torch.compile(model, fullgraph=True, backend="inductor" if ON_GPU else "aot_eager")
    for text in TEXTS[:2] if backend == "triton" and not ON_GPU else TEXTS:
        mask = fm.mask(text, 64).to(device)
        close(gradients(compiled, tokens, positions, mask), gradients(model, tokens, positions, mask))
    assert counters["stats"]["unique_graphs"] == 1 and not counters["graph_break"]


def test_a_mask_that_the_module_holds_does_not_recompile_either(device):
    class Holder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.mask = decoder(device), None

        def forward(self, tokens, positions):
            return self.inner(tokens, positions, self.mask)

    model, arguments = Holder().requires_grad_(False), batch(device)
    torch._dynamo.reset()
    counters.clear()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    for text in TEXTS:
        model.mask = fm.mask(text, 64).to(device)
        torch.testing.assert_close(compiled(*arguments), model(*arguments), rtol=1e-4, atol=1e-4)
    assert counters["stats"]["unique_graphs"] == 1


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_activation_checkpointing(compiled, device):
    arguments = (*batch(device), fm.mask(TEXTS[0], 64).to(device))
    model = decoder(device, TRITON, recompute=True)
    run = torch.compile(model, backend="aot_eager") if compiled else model
    close(gradients(run, *arguments), gradients(decoder(device, TRITON), *arguments))


def test_autocast_takes_its_dtype(device):
    arguments = (*batch(device), fm.mask(TEXTS[0], 64).to(device))
    seen = []

    def attend(q, k, v, mask):
        out = fm.flashmask_attention(q, k, v, mask)
        seen.append((q.dtype, v.dtype, out.dtype))
        return out

    torch.manual_seed(0)
    model = Decoder(SMALL, attend).to(device)
    with torch.autocast(device.type, torch.bfloat16):
        low = model(*arguments)
    low.float().square().sum().backward()
    assert (torch.float32, torch.bfloat16, torch.bfloat16) in seen  # rotated q is single precision, v is not
    assert model.layers[0].q_proj.weight.grad.isfinite().all()
    torch.testing.assert_close(low.float(), model(*arguments), rtol=0.1, atol=0.1)


def train_two_ranks(wrap: str) -> None:
    """One step on half of the batch each, averaged, is one step on all of it."""
    tokens, positions = batch(size=2)
    masks = [fm.mask(text, 64) for text in TEXTS[:2]]
    whole = decoder()
    want = gradients(whole, tokens, positions, fm.ColumnMask.stack(masks, "batch"))
    rank = dist.get_rank()
    model = decoder(recompute=True)
    if wrap == "ddp":
        run = torch.nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
    else:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        ranks = init_device_mesh("cpu", (dist.get_world_size(),))  # else it takes the GPU where there is one
        for layer in model.layers:
            fully_shard(layer, mesh=ranks)
        run = fully_shard(model, mesh=ranks)
    run(tokens[rank : rank + 1], positions[rank : rank + 1], masks[rank]).square().sum().backward()
    got = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    names = [name for name, p in whole.named_parameters() if p.grad is not None]
    got = [got[name].full_tensor() if wrap == "fsdp2" else got[name] for name in names]
    close([2 * x for x in got], want)


@pytest.mark.parametrize("wrap", ["ddp", "fsdp2"])
def test_data_parallel(wrap):
    run_ranks(2, train_two_ranks, wrap)
