"""Context parallel attention measured against one GPU in the same run.

    torchrun --nproc-per-node 2 -m flashmask_core.distributed.bench --seqlen 131072

First a correctness check at a small length against the dense reference, then, mask by mask, the whole sequence on rank 0
alone and the sequence dealt to all ranks, forward and forward with backward: medians of CUDA event times, of the slowest
rank. `--json` prints one JSON object a line. Needs a GPU a rank.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics

import torch
import torch.distributed as dist

from ..attention import flashmask_attention
from ..data import paper_mask_text
from ..masks.language import mask as mask_of_text
from ..reference import attention_ref
from .deals import POLICIES, loads
from .parallel import ContextParallel

_CHECK_SEQLEN = 2048 + 77
_CHECK_MASKS = ("causal", "causal & document(700, 300, 1125)", "sliding_window(512)", "document(1000, 1125)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("masks", nargs="*", help="texts of the mask language; default: causal, documents, a window")
    parser.add_argument("--seqlen", type=int, default=131072)
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--kv-heads", type=int, default=8)
    parser.add_argument("--head-dim", type=int, default=128)
    parser.add_argument("--chunk", type=int, default=None)
    parser.add_argument("--policy", nargs="+", choices=(*POLICIES, "auto"), default=["auto"])
    parser.add_argument("--waves", type=int, nargs="+", default=[0], help="0 chooses")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("context parallel is measured on a CUDA GPU a rank, and PyTorch finds none")
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    try:
        _bench(arguments)
    except ValueError as error:  # a mask or a deal that cannot be
        raise SystemExit(f"flashmask_core.distributed.bench: {error}") from None
    finally:
        dist.destroy_process_group()


def _bench(arguments) -> None:
    n = arguments.seqlen
    texts = arguments.masks or [
        "causal", paper_mask_text("causal_document", n), f"sliding_window({max(1, n // 16)})", "sliding_window(4096)",
    ]  # fmt: skip
    _say(f"correct at {_CHECK_SEQLEN} tokens: {_checked(arguments.head_dim)}", arguments)
    for text in texts:
        mask = mask_of_text(text, n).to("cuda")
        alone = _alone(mask, arguments)
        for policy in arguments.policy:
            for waves in arguments.waves:
                _report(_measure(text, mask, policy, waves or None, alone, arguments), arguments)


def _inputs(n: int, arguments, seed: int = 0):
    """q, k, v, dout in bf16, the same on every rank."""
    g = torch.Generator("cuda").manual_seed(seed)
    heads, kv_heads = arguments.heads, arguments.kv_heads
    new = lambda h: torch.randn(1, n, h, arguments.head_dim, generator=g, device="cuda", dtype=torch.bfloat16)  # noqa: E731
    return new(heads).requires_grad_(), new(kv_heads).requires_grad_(), new(kv_heads).requires_grad_(), new(heads)


def _checked(head_dim: int) -> str:
    """Output and gradients against the dense reference: at most twice the error of one GPU without parallelism."""
    small = argparse.Namespace(heads=4, kv_heads=2, head_dim=head_dim)
    worst = 0.0
    for text in _CHECK_MASKS:
        mask = mask_of_text(text, _CHECK_SEQLEN).to("cuda")
        *qkv, dout = _inputs(_CHECK_SEQLEN, small)
        exact = attention_ref(*qkv, mask)[0]
        exact = (exact, *torch.autograd.grad(exact, qkv, dout.float()))
        alone = flashmask_attention(*qkv, mask)
        alone = (alone, *torch.autograd.grad(alone, qkv, dout))
        for policy in POLICIES:
            cp = ContextParallel(mask, chunk=128, policy=policy)
            local = [cp.shard(x).detach().requires_grad_() for x in qkv]
            out = cp.attention(*local, waves=2)
            parts = (out, *torch.autograd.grad(out, local, cp.shard(dout)))
            for name, part, want, other in zip(("out", "dq", "dk", "dv"), parts, exact, alone):
                error, limit = ((x.float() - want).abs().max().item() for x in (cp.gather(part), other))
                worst = max(worst, error / limit if limit else 0.0)
                if not error <= 2 * limit + 1e-3:
                    raise SystemExit(f"{text}, {policy}: {name} is off by {error:.3g}, one GPU by {limit:.3g}")
    return f"the largest error is {worst:.2f} times that of one GPU"


def _alone(mask, arguments) -> dict[str, float]:
    """Times of the whole sequence on rank 0, while the others wait; nothing on them."""
    times = {}
    if dist.get_rank() == 0:
        *qkv, dout = _inputs(arguments.seqlen, arguments)
        times = _times(lambda: flashmask_attention(*qkv, mask), qkv, dout, arguments.repeats)
    dist.barrier()
    return times


def _measure(text: str, mask, policy: str, waves: int | None, alone: dict[str, float], arguments) -> dict:
    *qkv, dout = _inputs(arguments.seqlen, arguments)
    row = dict(mask=text, seqlen=arguments.seqlen, heads=arguments.heads, kv_heads=arguments.kv_heads,
               head_dim=arguments.head_dim, ranks=dist.get_world_size(), gpu=torch.cuda.get_device_name())  # fmt: skip
    cp = ContextParallel(mask, chunk=arguments.chunk, policy=policy)
    local, dlocal = [cp.shard(x).detach().requires_grad_() for x in qkv], cp.shard(dout)
    del qkv, dout
    torch.cuda.empty_cache()
    many = _times(lambda: cp.attention(*local, waves=waves), local, dlocal, arguments.repeats, together=True)
    load = loads(mask, cp.deal)
    pairs = [one.pairs for one in load]
    key_bytes = 2 * 2 * arguments.kv_heads * arguments.head_dim
    row |= dict(policy=cp.deal.policy, chunk=cp.deal.chunk, waves=cp._waves(arguments.kv_heads, waves),
                busiest_over_mean=max(pairs) * len(pairs) / max(1, sum(pairs)),
                received_mib=max(one.received_keys for one in load) * key_bytes / 2**20)  # fmt: skip
    for name, time in many.items():
        row[f"{name}_ms"] = time
        if alone:
            row[f"{name}_one_gpu_ms"], row[f"{name}_speedup"] = alone[name], alone[name] / time
    return row


def _times(call, leaves, dout, repeats: int, together: bool = False) -> dict[str, float]:
    """Median ms of forward, and of forward with backward; of the slowest rank where all ranks call it."""

    def both():
        torch.autograd.grad(call(), leaves, dout)

    def forward():
        with torch.no_grad():
            call()

    return {name: _time(work, repeats, together) for name, work in (("forward", forward), ("both", both))}


def _time(work, repeats: int, together: bool) -> float:
    times = []
    for turn in range(repeats + 2):
        torch.cuda.synchronize()
        if together:
            dist.barrier()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        end.synchronize()
        if turn >= 2:
            times.append(start.elapsed_time(end))
    median = torch.tensor(statistics.median(times), device="cuda")
    if together:
        dist.all_reduce(median, dist.ReduceOp.MAX)
    return median.item()


def _report(row: dict, arguments) -> None:
    short = row["mask"] if len(row["mask"]) < 40 else row["mask"][:37] + "…"
    times = "; ".join(
        f"{words} {row.get(f'{name}_one_gpu_ms', 0):.2f} -> {row[f'{name}_ms']:.2f} ms, {row.get(f'{name}_speedup', 0):.2f}x"
        for name, words in (("forward", "forward"), ("both", "with backward"))
    )
    line = f"{short:40} {row['policy']:10} chunk {row['chunk']}, {row['waves']} waves, busiest {row['busiest_over_mean']:.3f} "
    line += f"of the mean, receives {row['received_mib']:.0f} MiB | {times}"
    _say(json.dumps(row) if arguments.json else line, arguments, always=True)


def _say(line: str, arguments, always: bool = False) -> None:
    if dist.get_rank() == 0 and (always or not arguments.json):
        print(line, flush=True)


if __name__ == "__main__":
    main()
