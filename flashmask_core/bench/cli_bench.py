"""`python -m flashmask_core bench`: time masks on the GPU here, or print what was recorded on one."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from ..data import PAPER_MASKS, paper_mask_text
from .config import DEFAULT_PASSES, DTYPES, PASSES, BenchCase, BenchJob
from .history import History
from .html_report import html_report
from .providers import CEILINGS, DEFAULT_PROVIDERS, DENSE, PROVIDERS, check_provider_names
from .reproduce import DENSE_MASK, ENGINES, blocks_of
from .recorded import RECORDED_PATH, record_results, recorded_results
from .result import BenchRow, dumps, read_rows
from .runner import BenchRunner, JobView
from .sweep import AXES, sweep_cases
from .table import LEGEND, duration_text, header, row_line, where_line


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
    bench.add_argument("--batch", type=int, default=1, metavar="B", help="default 1")
    bench.add_argument("--heads", type=int, default=32, metavar="H", help="query heads (default 32)")
    bench.add_argument("--kv-heads", type=int, metavar="HK", help="key heads (default: as many as query heads)")
    bench.add_argument("--head-dim", type=int, default=128, metavar="D", help="default 128")
    bench.add_argument("--dtype", choices=list(DTYPES), default="bfloat16", help="default bfloat16")
    bench.add_argument("--passes", default=",".join(DEFAULT_PASSES),
                       help=f"some of {', '.join(PASSES)}, where both is a training step, its forward and backward in "
                       f"one call (default {','.join(DEFAULT_PASSES)})")  # fmt: skip
    bench.add_argument("--block", type=int, default=128, metavar="T",
                       help="side of the tiles that rho counts and FlexAttention's block mask has (default 128)")  # fmt: skip
    bench.add_argument("--sweep", metavar="AXIS[=VALUES]",
                       help=f"one case a value of {', '.join(AXES)}, such as seqlen=1024,4096; without values a usual "
                       "choice of them")  # fmt: skip
    bench.add_argument("--providers", metavar="NAMES", help=f"default {', '.join(DEFAULT_PROVIDERS)}")
    bench.add_argument("--all-providers", action="store_true",
                       help="with --paper: dense masks and ceilings beside every mask; their times hardly depend on "
                       f"it, so the default times them beside {DENSE_MASK} only")  # fmt: skip
    bench.add_argument("--repeat-ms", type=float, default=100.0, help="of repetitions for each time (default 100)")
    bench.add_argument("--rounds", type=int, default=3, help="how often the providers take turns (default 3)")
    bench.add_argument("--time-limit", type=float, default=240.0, metavar="S",
                       help="for one step of one engine, compiling included (default 240)")  # fmt: skip
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
                       help="add the rows to the recording that is shipped with the library, or to FILE")  # fmt: skip
    bench.add_argument("--reproduce", metavar="BLOCKS", nargs="?", const="all",
                       help="measure the paper's tables: its twelve masks at 8K, 32K and 128K with D 128 and 64, or the "
                       "blocks named, such as 8192x128,32768x64. --out (default paper.jsonl) keeps every row, so the "
                       "same command goes on where it stopped; after each block its rows go into the recording. none "
                       "only puts into the recording what --out holds")  # fmt: skip
    bench.add_argument("--recorded", action="store_true", help="print the recorded results; needs no GPU")
    bench.set_defaults(run=run_bench)


def run_bench(arguments) -> int:
    if arguments.recorded:
        return _print_recorded(arguments)
    if arguments.reproduce:
        return _reproduce(arguments)
    cases = _cases(arguments)
    known = _known_rows(arguments.out)
    todo = [case for case in (_without_known(case, known) for case in cases) if case is not None]
    if arguments.out and len(todo) < len(cases):
        print(f"{arguments.out} has {len(cases) - len(todo)} of {len(cases)} masks already", file=sys.stderr)
    if not todo:
        view, rows = None, []
    else:
        if arguments.out:
            open(arguments.out, "a").close()  # a file that cannot be written is told before hours of measuring
        for case in todo:
            case.build_mask()  # a wrong text is told before anything starts
        job = BenchJob("bench", tuple(todo), _title(arguments), parallel=arguments.parallel, cold=not arguments.warm)
        view, rows = _follow(job, arguments)
        if view.state == "failed" and not rows:
            hint = "`python -m flashmask_core bench --recorded` prints results recorded on an H200"
            print(f"flashmask_core bench: {view.reason}. {hint}.", file=sys.stderr)
            return 2
    if arguments.report:
        arguments.report.write_text(html_report([*known.values(), *rows], _title(arguments)), encoding="utf-8")
        print(f"{arguments.report} written", file=sys.stderr)
    if arguments.record:
        held = record_results([*known.values(), *rows], arguments.record)
        print(f"{arguments.record} now holds {held} rows", file=sys.stderr)
    if view is None:
        return 0
    if not arguments.json:
        print(f"\n{where_line(view.where, rows[-1].date_utc if rows else None)}\n{LEGEND}")
    if view.state != "done":
        print(f"flashmask_core bench: {view.state}: {view.reason}", file=sys.stderr)
        return 130 if view.state == "cancelled" else 1
    return int(any(_ours_failed(row) for row in rows))


def _reproduce(arguments) -> int:
    """Block by block: what --out lacks is measured, then all of it goes into the recording."""
    for name in ("text", "paper", "seqlen", "sweep"):
        if getattr(arguments, name) is not None:
            raise ValueError(f"--reproduce: the paper's tables say what is measured; leave --{name} out")
    arguments.out = arguments.out or Path("paper.jsonl")
    arguments.record = arguments.record or RECORDED_PATH
    engines = check_provider_names((arguments.providers or ",".join(ENGINES)).split(","))
    blocks, code = blocks_of(arguments.reproduce), 0
    open(arguments.out, "a").close()
    for block in [*blocks, None]:
        known = _known_rows(arguments.out)
        if known:
            held = record_results(list(known.values()), arguments.record)
            print(f"{arguments.record} now holds {held} rows", file=sys.stderr)
        if block is None:
            break
        cases = block.cases(engines, check=not arguments.no_check)
        todo = tuple(case for case in (_without_known(case, known) for case in cases) if case is not None)
        print(f"{block.name}: {len(cases) - len(todo)} of {len(cases)} masks are measured already", file=sys.stderr)
        if not todo:
            continue
        title = f"the paper's tables, {block.name}"
        job = BenchJob("bench", todo, title, parallel=arguments.parallel, cold=not arguments.warm)
        view, rows = _follow(job, arguments)
        code |= any(_ours_failed(row) for row in rows) or view.state != "done"
        if view.state != "done":
            print(f"flashmask_core bench: {view.state}: {view.reason}", file=sys.stderr)
            return 130 if view.state == "cancelled" else 2
    return int(code)


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
        kv_heads=arguments.kv_heads, head_dim=arguments.head_dim, dtype=arguments.dtype,
        passes=tuple(arguments.passes.split(",")), repeat_ms=arguments.repeat_ms, rounds=arguments.rounds,
        check=not arguments.no_check, time_limit_s=arguments.time_limit, block=arguments.block,
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


def _known_rows(path: Path | None) -> dict[tuple, BenchRow]:
    """Rows of an --out file that need no repetition, by key; a line that was cut short is taken off the file."""
    if path is None or not path.exists():
        return {}
    rows = read_rows(path)
    if not path.read_text(encoding="utf-8").endswith("\n"):
        path.write_text("".join(dumps(row.to_json()) + "\n" for row in rows), encoding="utf-8")
    return {row.key: row for row in rows if row.status != "failed"}


def _without_known(case: BenchCase, known: dict) -> BenchCase | None:
    """The case with the providers that the file lacks, or None if it lacks none."""
    left = tuple(
        p for p in case.providers
        if not all(BenchRow.of_case(case, p, direction).key in known for direction in case.passes)
    )  # fmt: skip
    return replace(case, providers=left) if left else None


def _follow(job: BenchJob, arguments) -> tuple[JobView, list[BenchRow]]:
    """Run the job; rows are printed and written as they come, progress goes to stderr."""
    runner = BenchRunner(history=None if arguments.no_history else History())
    progress = _Progress()
    shown: list[BenchRow] = []
    try:
        job_id = runner.submit(job)
        while True:
            view = runner.wait(job_id, 0.25)
            for row in view.rows[len(shown) :]:
                progress.clear()
                if not arguments.json and not shown:
                    print(header())
                print(dumps(row.to_json()) if arguments.json else row_line(row), flush=True)
                if arguments.out:
                    with open(arguments.out, "a", encoding="utf-8") as out:
                        out.write(dumps(row.to_json()) + "\n")
                shown.append(row)
            if view.ended:
                progress.clear()
                if view.unkept:
                    print(f"flashmask_core bench: {view.unkept}", file=sys.stderr)
                return view, shown
            left = "" if view.remaining_s is None else f"  about {duration_text(view.remaining_s)} left"
            progress.show(f"{view.fraction:4.0%}{left if progress.terminal else ''}  {view.message}")
    except KeyboardInterrupt:
        runner.cancel(job_id)
        return runner.wait(job_id, 10), shown
    finally:
        runner.close()


class _Progress:
    """One changing line on a terminal's stderr; elsewhere a line for every new message."""

    def __init__(self):
        self.terminal, self.last = sys.stderr.isatty(), ""

    def show(self, message: str) -> None:
        if message != self.last:
            end = "" if self.terminal else "\n"
            print(f"\r\x1b[K{message}" if self.terminal else message, end=end, file=sys.stderr, flush=True)
            self.last = message

    def clear(self) -> None:
        if self.terminal and self.last:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self.last = ""


def _ours_failed(row: BenchRow) -> bool:
    wrong = row.status == "failed" or (row.check or "").startswith("failed")
    return row.provider.startswith("flashmask") and wrong


def _print_recorded(arguments) -> int:
    if arguments.out:
        raise ValueError("--out: goes with a measurement; redirect the output of --recorded instead")
    rows = recorded_results()
    if not rows:
        raise ValueError("no recorded results are shipped with this version")
    if arguments.seqlen is not None:
        lengths = sorted({row.seqlen_q for row in rows})
        rows = [row for row in rows if row.seqlen_q == arguments.seqlen]
        if not rows:
            raise ValueError(f"--seqlen {arguments.seqlen}: recorded are {', '.join(map(str, lengths))}")
    if arguments.json:
        for row in rows:
            print(dumps(row.to_json()))
        return 0
    last = None
    for row in rows:
        group = (row.where, row.batch, row.heads, row.kv_heads, row.seqlen_q, row.seqlen_k, row.head_dim, row.dtype)
        if group != last:
            print(f"\n{where_line(row.where, row.date_utc)}\nB {row.batch}, H {row.heads} (key heads {row.kv_heads}), "
                  f"Sq {row.seqlen_q}, Sk {row.seqlen_k}, D {row.head_dim}, {row.dtype}\n{header()}")  # fmt: skip
            last = group
        print(row_line(row))
    print(f"\n{LEGEND}")
    return 0
