"""`python -m flashmask_core bench`: time masks on the GPU here, or print what was recorded on one."""

from __future__ import annotations

import sys
from pathlib import Path

from ..data import PAPER_MASKS, paper_mask_text
from .cli_recorded import check_record, not_measured, ours_failed, print_recorded, record, reproduce
from .config import DEFAULT_PASSES, DTYPES, PASSES, TIME_LIMIT_S, BenchCase, BenchJob
from .html_report import html_report
from .providers import CEILINGS, DEFAULT_PROVIDERS, DENSE, PROVIDERS, check_provider_names
from .recorded import RECORDED_PATH
from .reproduce import DENSE_MASK
from .sweep import AXES, sweep_cases
from .table import legend, where_line
from .terminal import check_target, follow, known_rows, without_known

# Not argparse's, which would not tell that an argument was named.
_DEFAULTS = {
    "batch": 1, "heads": 32, "head_dim": 128, "dtype": "bfloat16", "passes": ",".join(DEFAULT_PASSES), "block": 128,
    "repeat_ms": 100.0, "rounds": 3, "time_limit": TIME_LIMIT_S,
}  # fmt: skip


def add_bench_command(commands) -> None:
    bench = commands.add_parser(
        "bench",
        help="time the mask on the GPU here against the other engines",
        description="Times a mask, forward and backward, against FlexAttention, SDPA with a dense mask, and SDPA "
        "without a mask as a ceiling, in a process of its own. The paper's table on an H200: "
        "bench --paper all --seqlen 8192 --batch 4 --heads 32 --out rows.jsonl",
        epilog=f"Providers: {', '.join(PROVIDERS)}. Ctrl-C ends the run; what --out has stays, and the same command "
        "goes on where it stopped.",
    )
    bench.add_argument("text", metavar="TEXT", nargs="?", help="the mask, in the mask language")
    bench.add_argument("--paper", metavar="NAMES", help=f"the paper's masks: all, or some of {', '.join(PAPER_MASKS)}")
    bench.add_argument("--seqlen", type=int, metavar="N", help="query rows Sq")
    bench.add_argument("--seqlen-k", type=int, metavar="M", help="key columns Sk (default: as many as rows)")
    bench.add_argument("--batch", type=int, metavar="B", help="default 1")
    bench.add_argument("--heads", type=int, metavar="H", help="query heads (default 32)")
    bench.add_argument("--kv-heads", type=int, metavar="HK", help="key heads (default: as many as query heads)")
    bench.add_argument("--head-dim", type=int, metavar="D", help="default 128")
    bench.add_argument("--dtype", choices=list(DTYPES), help="default bfloat16")
    bench.add_argument("--passes", metavar="NAMES",
                       help=f"some of {', '.join(PASSES)}, where both is a training step, its forward and backward in "
                       f"one call (default {','.join(DEFAULT_PASSES)})")  # fmt: skip
    bench.add_argument("--block", type=int, metavar="T",
                       help="side of the tiles that rho counts and FlexAttention's block mask has (default 128)")  # fmt: skip
    bench.add_argument("--sweep", metavar="AXIS[=VALUES]",
                       help=f"one case a value of {', '.join(AXES)}, such as seqlen=1024,4096; without values a usual "
                       "choice of them")  # fmt: skip
    bench.add_argument("--providers", metavar="NAMES", help=f"default {', '.join(DEFAULT_PROVIDERS)}")
    bench.add_argument("--all-providers", action="store_true",
                       help="with --paper: dense masks and ceilings beside every mask; their times hardly depend on "
                       f"it, so the default times them beside {DENSE_MASK} only")  # fmt: skip
    bench.add_argument("--repeat-ms", type=float, metavar="MS", help="of repetitions for each time (default 100)")
    bench.add_argument("--rounds", type=int, metavar="R", help="how often the providers take turns (default 3)")
    bench.add_argument("--time-limit", type=float, metavar="S",
                       help=f"for one step of one engine, compiling included (default {TIME_LIMIT_S:g})")  # fmt: skip
    bench.add_argument("--parallel", type=int, default=1, metavar="P",
                       help="compile and weigh so many engines at once, before any timing; compile times are then not "
                       "told (default 1)")  # fmt: skip
    bench.add_argument("--warm", action="store_true",
                       help="take compiled code that earlier runs left; compile times are then not those of a first time")  # fmt: skip
    bench.add_argument("--no-history", action="store_true", help="do not keep the run in the local history")
    bench.add_argument("--no-check", action="store_true", help="do not compare with the reference")
    bench.add_argument("--json", action="store_true", help="print rows as lines of strict JSON")
    bench.add_argument("--out", type=Path, metavar="FILE",
                       help="append rows to this file as JSON lines; what it holds is not measured again")  # fmt: skip
    bench.add_argument("--report", type=Path, metavar="FILE", help="write the rows as one HTML file with charts")
    bench.add_argument("--record", type=Path, nargs="?", const=RECORDED_PATH, metavar="FILE",
                       help="add rows with a sound time to the recording that is shipped with the library, or to FILE, beside "
                       "those of other GPUs")  # fmt: skip
    bench.add_argument("--reproduce", metavar="BLOCKS", nargs="?", const="all",
                       help="measure the paper's tables: its twelve masks at 8K, 32K and 128K with D 128 and 64, or the "
                       "blocks named, such as 8192x128,32768x64. --out (default paper.jsonl) keeps every row, so the "
                       "same command goes on where it stopped; after each block its rows go into the recording. none "
                       "only puts into the recording what --out holds")  # fmt: skip
    bench.add_argument("--recorded", action="store_true",
                       help="print the recorded results, or those of the TEXT, --paper, --seqlen, --head-dim and "
                       "--providers that are named; needs no GPU")  # fmt: skip
    bench.set_defaults(run=run_bench)


def run_bench(arguments) -> int:
    if arguments.reproduce is not None:
        return reproduce(arguments)
    if arguments.recorded:
        return print_recorded(arguments)
    for name, value in _DEFAULTS.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    check_target("--out", arguments.out)
    check_target("--report", arguments.report)
    check_record(arguments.record)
    cases = _cases(arguments)
    known = known_rows(arguments.out)
    todo = [case for case in (without_known(case, known) for case in cases) if case is not None]
    if arguments.out and len(todo) < len(cases):
        print(f"{arguments.out} has {len(cases) - len(todo)} of {len(cases)} masks already", file=sys.stderr)
    if not todo:
        view, rows = None, []
    else:
        for case in todo:
            case.build_mask()  # a wrong text is told before anything starts
        job = BenchJob("bench", tuple(todo), _title(arguments), parallel=arguments.parallel, cold=not arguments.warm)
        view, rows = follow(job, out=arguments.out, as_json=arguments.json, keep=not arguments.no_history)
        if view.state == "failed" and not rows:
            return not_measured(view)
    if arguments.report:
        arguments.report.write_text(html_report([*known.values(), *rows], _title(arguments)), encoding="utf-8")
        print(f"{arguments.report} written", file=sys.stderr)
    if arguments.record:
        record([*known.values(), *rows], arguments.record)
    if view is None:
        return 0
    if not arguments.json:
        print(f"\n{where_line(view.where, rows[-1].date_utc if rows else None)}\n{legend(rows)}")
    if view.state != "done":
        print(f"flashmask_core bench: {view.state}: {view.reason}", file=sys.stderr)
        return 130 if view.state == "cancelled" else 1
    return int(any(ours_failed(row) for row in rows))


def _title(arguments) -> str:
    what = arguments.text or f"the paper's masks: {arguments.paper}"
    return f"{what[:60]}, N = {arguments.seqlen:,}" + (f", {arguments.sweep}" if arguments.sweep else "")


def _swept(case: BenchCase, sweep: str | None) -> list[BenchCase]:
    """The case, or one a value of the axis: "seqlen=1024,4096"."""
    if sweep is None:
        return [case]
    axis, _, listed = sweep.partition("=")
    values = listed.split(",") if listed else AXES.get(axis, ("", ()))[1]
    if axis != "mask" and listed:
        if not all(value.strip().isdigit() for value in values):
            raise ValueError(f"--sweep: wanted numbers such as {axis}=64,128, got {sweep!r}")
        values = [int(value) for value in values]
    return list(sweep_cases(case, axis, values))


def _cases(arguments) -> list[BenchCase]:
    """The cases that were asked for; ValueError for what cannot be."""
    if (arguments.text is None) == (arguments.paper is None):
        raise ValueError("wanted a mask TEXT or --paper, one of the two")
    if arguments.seqlen is None:
        raise ValueError("--seqlen: wanted, unless with --recorded")
    providers = tuple((arguments.providers or ",".join(DEFAULT_PROVIDERS)).split(","))
    providers = tuple(PROVIDERS) if providers == ("all",) else check_provider_names(providers)
    settings = dict(
        seqlen_q=arguments.seqlen, seqlen_k=arguments.seqlen_k, batch=arguments.batch, heads=arguments.heads,
        kv_heads=arguments.kv_heads, head_dim=arguments.head_dim, dtype=arguments.dtype, block=arguments.block,
        passes=tuple(arguments.passes.split(",")), repeat_ms=arguments.repeat_ms, rounds=arguments.rounds,
        check=not arguments.no_check, time_limit_s=arguments.time_limit,
    )  # fmt: skip
    if arguments.paper is None:
        return _swept(BenchCase(arguments.text, providers=providers, **settings), arguments.sweep)
    if arguments.sweep:
        raise ValueError("--sweep: goes with a mask TEXT; --paper is a sweep over masks itself")
    names = PAPER_MASKS if arguments.paper == "all" else tuple(arguments.paper.split(","))
    unknown = [name for name in names if name not in PAPER_MASKS]
    if unknown:
        raise ValueError(f"--paper: {', '.join(unknown)} unknown; there are all, {', '.join(PAPER_MASKS)}")
    beside = DENSE_MASK if DENSE_MASK in names else names[0]
    mask_free = {*DENSE, *CEILINGS}
    cases = []
    for name in names:
        own = [p for p in providers if arguments.all_providers or name == beside or p not in mask_free]
        if own:
            text = paper_mask_text(name, arguments.seqlen)
            cases.append(BenchCase(text, providers=own, mask_name=name, **settings))
    return cases
