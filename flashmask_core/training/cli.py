"""`python -m flashmask_core train`: training throughput of FlashMask, a dense mask and FlexAttention."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from .names import ENGINE_LABELS, TASKS


def add_train_command(commands) -> None:
    train = commands.add_parser(
        "train",
        help="tokens a second and memory of training steps, engine against engine",
        description="Train a Llama-shaped decoder of random weights a few steps on packed sequences: one row a task, "
        "context and engine, and with --longest the longest context of which a step fits. It runs in a process of its "
        "own, so an engine that fails is a row with its reason and the others go on.",
        epilog="Ctrl-C ends the run; what --out has stays, and the same command goes on where it stopped.",
    )
    train.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    train.add_argument("--engines", nargs="+", choices=list(ENGINE_LABELS), default=list(ENGINE_LABELS))
    train.add_argument("--contexts", nargs="*", type=int, default=[8192, 32768], metavar="N", help="tokens (8192 32768)")
    train.add_argument("--lengths", metavar="FILE",
                       help="a .csv or .json of your examples' lengths, packed; default: drawn by the paper's recipe")  # fmt: skip
    train.add_argument("--policy", default="best_fit", help="how --lengths are packed: in_order, first_fit_decreasing, "
                       "best_fit (best_fit)")  # fmt: skip
    train.add_argument("--too-long", default="refuse", help="an example longer than the context: refuse, split, drop (refuse)")
    for name, value, what in (("layers", 4, "layers"), ("width", 2048, "heads x head dim"), ("heads", 16, "query heads"),
                              ("kv-heads", 4, "key heads"), ("vocabulary", 32000, "tokens")):  # fmt: skip
        train.add_argument(f"--{name}", type=int, default=value, metavar="N", help=f"{what} ({value})")
    train.add_argument("--steps", type=int, default=5, metavar="N", help="timed steps (5)")
    train.add_argument("--warmup", type=int, default=2, metavar="N", help="steps before them (2)")
    train.add_argument("--longest", action="store_true", help="also search the longest context of which a step fits")
    train.add_argument("--most", type=int, default=2**20, metavar="N", help="no context beyond this is tried (1048576)")
    train.add_argument("--deterministic", action="store_true", help="repeatable losses, to hold the curves together")
    train.add_argument("--fp32", action="store_true", help="weights in single precision instead of bfloat16")
    train.add_argument("--device", choices=("cuda", "cpu"), default="cuda",
                       help="cpu: contexts of at most 512 in fp32, our kernels through the Triton interpreter")  # fmt: skip
    train.add_argument("--time-limit", type=float, default=600.0, metavar="S", help="for one step of one engine (600)")
    train.add_argument("--json", action="store_true", help="print one JSON object a line")
    train.add_argument("--out", type=Path, metavar="FILE",
                       help="append rows to this file as JSON lines; what it holds is not trained again")  # fmt: skip
    train.add_argument("--record", nargs="?", const="", metavar="FILE",
                       help="add the rows to the recording that the app shows, or to FILE")  # fmt: skip
    train.add_argument("--recorded", action="store_true", help="print the recorded results; needs no GPU")
    train.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from .result import RECORDED_PATH, record, recorded

    if arguments.recorded:
        rows = recorded()
        if not rows:
            raise ValueError("no recorded training results are shipped with this version")
        _print(rows, rows, arguments.json)
        return 0
    cases = cases_of(arguments)
    known = _known(arguments.out)
    todo = [one for one in (_without_known(case, known) for case in cases) if one is not None]
    rows = [known[key] for key in _keys(cases) if key in known]
    if rows:
        print(f"{arguments.out} has {len(rows)} of {len(_keys(cases))} rows already", file=sys.stderr)
    code = 0
    if todo:
        if arguments.out:
            open(arguments.out, "a").close()  # a file that cannot be written is told before anything is trained
        code = _follow(todo, arguments, rows)
    if arguments.record is not None and rows:
        path = arguments.record or RECORDED_PATH
        print(f"{path} now holds {record(rows, path)} rows", file=sys.stderr)
    return code


def cases_of(arguments: argparse.Namespace) -> list:
    """The TrainCases that the arguments ask for; ValueError or TypeError for what cannot be."""
    from ..packing import read_file
    from .case import TrainCase
    from .decoder import DecoderConfig

    cpu = arguments.device == "cpu"
    if arguments.longest and cpu:
        raise ValueError("--longest: the longest context that fits is a question to a GPU's memory")
    lengths = ""
    if arguments.lengths:
        lengths = ", ".join(map(str, read_file(Path(arguments.lengths).read_bytes(), arguments.lengths)))
    model = DecoderConfig(arguments.layers, arguments.width, arguments.heads, arguments.kv_heads, None,
                          arguments.vocabulary, recompute=not cpu)  # fmt: skip
    settings = dict(
        engines=tuple(arguments.engines), model=model, lengths=lengths, policy=arguments.policy,
        too_long=arguments.too_long, steps=arguments.steps, warmup=arguments.warmup, deterministic=arguments.deterministic,
        dtype="float32" if arguments.fp32 or cpu else "bfloat16", time_limit_s=arguments.time_limit,
    )  # fmt: skip
    cases = [TrainCase(task, context, **settings) for task in arguments.tasks for context in arguments.contexts]
    if arguments.longest:
        cases += [TrainCase(task, arguments.most, longest=True, **settings) for task in arguments.tasks]
    if not cases:
        raise ValueError("--contexts: wanted at least one, or --longest")
    for case in cases:
        case.check()  # examples that do not fit are told before anything starts
    return cases


def _keys(cases) -> list[tuple]:
    from .result import TrainRow

    return [TrainRow.of_case(case, engine, case.passes[0]).key for case in cases for engine in case.engines]


def _known(path: Path | None) -> dict:
    """Rows of an --out file that need no repetition, by key; a line that was cut short is taken off the file.

    Out of memory is a result; another failure is tried again.
    """
    from ..bench.result import resumed_rows
    from .result import TrainRow
    from .throughput import OUT_OF_MEMORY

    rows = resumed_rows(path, TrainRow, "training")
    return {row.key: row for row in rows if row.status == "ok" or OUT_OF_MEMORY in row.reason}


def _without_known(case, known: dict):
    """The case with the engines that the file lacks, or None if it lacks none."""
    left = tuple(engine for engine, key in zip(case.engines, _keys([case])) if key not in known)
    return replace(case, engines=left) if left else None


def _follow(cases: list, arguments, rows: list) -> int:
    """Run them in the worker process; rows are printed and written as they come, and put behind `rows`."""
    from ..bench.config import BenchJob
    from ..bench.result import dumps
    from ..bench.runner import BenchRunner

    runner, shown, said = BenchRunner(), 0, ""
    job = runner.submit(BenchJob("train_check" if arguments.device == "cpu" else "train", tuple(cases), "train"))
    try:
        while True:
            view = runner.wait(job, 0.25)
            for row in view.rows[shown:]:
                rows.append(row)
                _print([row], rows, arguments.json)
                if arguments.out:
                    with open(arguments.out, "a", encoding="utf-8") as out:
                        out.write(dumps(row.to_json()) + "\n")
            shown = len(view.rows)
            if view.ended:
                break
            if view.message != said:
                said = view.message
                print(f"{view.fraction:4.0%}  {said}", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        runner.cancel(job)
        view = runner.wait(job, 10)
    finally:
        runner.close()
    if view.state != "done":
        hint = ". --device cpu trains a tiny context without one" if "no CUDA GPU" in (view.reason or "") else ""
        print(f"flashmask_core train: {view.state}: {view.reason}{hint}", file=sys.stderr)
        return 130 if view.state == "cancelled" else 2
    return int(any(row.engine == "flashmask" and row.status == "failed" for row in view.rows))


def _print(rows, among, as_json: bool) -> None:
    from ..bench.result import dumps

    for row in rows:
        print(dumps(row.to_json()) if as_json else _told(row, among), flush=True)


def _told(row, among) -> str:
    from .result import losses_apart, speedup

    at = f"{'longest' if row.longest else ''} {'≥ ' if row.at_least else ''}{row.context:,}".strip()
    head = f"{row.task:5} {at:>18}  {row.engine:10}"
    if row.status != "ok":
        return f"{head} {row.reason}"
    said = [f"{row.tokens_per_s:>12,.0f} tokens/s"] if row.tokens_per_s else []
    if row.peak_memory_bytes:
        said.append(f"{row.peak_memory_bytes / 2**30:7.2f} GiB")
    if faster := speedup(row, among):
        said.append(f"{faster:.2f}x dense")
    if (apart := losses_apart(row, among)) is not None:
        said.append(f"losses {apart:.1e} apart from dense")
    said.append("losses " + ", ".join(f"{loss:.4f}" for loss in row.losses[:8]))
    return f"{head} {'  '.join(said)}"
