"""`python -m flashmask_core train`: training throughput of FlashMask, a dense mask and FlexAttention."""

from __future__ import annotations

import argparse
import sys

# Names of TASKS and ENGINES, so that the command line needs no torch to be read.
_TASKS, _ENGINES = ("sft", "lora", "dpo", "rm"), ("flashmask", "dense", "flex")


def add_train_command(commands) -> None:
    train = commands.add_parser(
        "train",
        help="tokens a second and memory of training steps, engine against engine",
        description="Train a Llama-shaped decoder of random weights a few steps on packings drawn by the paper's recipe: "
        "one row a task, context and engine, and with --longest the longest context of which a step fits (doubling, "
        "then bisection to an eighth).",
    )
    train.add_argument("--tasks", nargs="+", choices=_TASKS, default=list(_TASKS))
    train.add_argument("--engines", nargs="+", choices=_ENGINES, default=list(_ENGINES))
    train.add_argument("--contexts", nargs="*", type=int, default=[8192, 32768], metavar="N", help="tokens (8192 32768)")
    for name, value, what in (("layers", 4, "layers"), ("width", 2048, "heads x head dim"), ("heads", 16, "query heads"),
                              ("kv-heads", 4, "key heads"), ("vocabulary", 32000, "tokens")):  # fmt: skip
        train.add_argument(f"--{name}", type=int, default=value, metavar="N", help=f"{what} ({value})")
    train.add_argument("--steps", type=int, default=5, metavar="N", help="timed steps, after two that are not (5)")
    train.add_argument("--longest", action="store_true", help="also search the longest context of which a step fits")
    train.add_argument("--most", type=int, default=2**20, metavar="N", help="no context beyond this is tried (1048576)")
    train.add_argument("--deterministic", action="store_true", help="repeatable losses, to hold the curves together")
    train.add_argument("--fp32", action="store_true", help="weights in single precision instead of bfloat16")
    train.add_argument("--device", choices=("cuda", "cpu"), help="default: cuda where there is one")
    train.add_argument("--json", action="store_true", help="print one JSON object a line")
    train.add_argument("--out", metavar="FILE", help="append the JSON lines to this file too")
    train.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    import os

    import torch

    from ..bench.result import dumps
    from ..checks import whole
    from .decoder import DecoderConfig
    from .throughput import longest, rows

    whole("steps", arguments.steps, 1, 10_000)
    config = DecoderConfig(arguments.layers, arguments.width, arguments.heads, arguments.kv_heads, None,
                           arguments.vocabulary)  # fmt: skip
    device = arguments.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device: there is no CUDA GPU")
    if arguments.longest and device == "cpu":
        raise ValueError("longest: the longest context that fits is a question to a GPU's memory")
    if arguments.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=True)

    def say(row, what: str = "") -> None:
        line = dumps({**row.to_json(), "what": what or "throughput"})
        print(line if arguments.json else _told(row, what), flush=True)
        if arguments.out:
            with open(arguments.out, "a", encoding="utf-8") as file:
                file.write(line + "\n")

    dtype = torch.float32 if arguments.fp32 else torch.bfloat16
    for row in rows(arguments.tasks, arguments.engines, arguments.contexts, config, steps=arguments.steps,
                    device=device, deterministic=arguments.deterministic, dtype=dtype):  # fmt: skip
        say(row)
    if arguments.longest:
        for task in arguments.tasks:
            for engine in arguments.engines:
                trial = lambda row: print(f"  tried {row.context:,}: {row.error or 'fits'}", file=sys.stderr)  # noqa: E731
                say(longest(task, engine, config, most=arguments.most, on_trial=trial), "longest")
    return 0


def _told(row, what: str) -> str:
    head = f"{what or row.task:8} {row.task:5} {row.context:>9,}  {row.engine:10}" if what else (
        f"{row.task:5} {row.context:>9,}  {row.engine:10}")  # fmt: skip
    if row.error:
        return f"{head} {row.error}"
    memory = "" if row.peak_gib is None else f"  {row.peak_gib:7.2f} GiB"
    curve = ", ".join(f"{loss:.4f}" for loss in row.losses[:8])
    return f"{head} {row.tokens_per_s:>12,.0f} tokens/s{memory}  losses {curve}"
