"""Results that are shipped: printed (`bench --recorded`), and measured anew (`bench --reproduce`)."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from ..masks.compare import compare
from ..masks.expr import MaskExpr
from ..masks.language import parse
from .config import BenchJob
from .job_record import JobView
from .providers import check_provider_names
from .readme import update_readme
from .recorded import RECORDED_PATH, record_results, recorded_results
from .reproduce import ENGINES, blocks_of
from .result import BenchRow, dumps
from .table import header, legend, row_line, where_line
from .terminal import check_target, follow, known_rows, without_known

# What of the command's arguments --reproduce does not take.
_SAID_BY_THE_PAPER = (
    "text", "paper", "seqlen", "seqlen_k", "batch", "heads", "kv_heads", "head_dim", "dtype", "passes", "block", "sweep",
    "repeat_ms", "rounds", "time_limit", "all_providers", "report", "recorded",
)  # fmt: skip


def reproduce(arguments) -> int:
    """Block by block: what --out lacks is measured, then all of it goes into the recording.

    Where nothing can be measured, such as without a GPU, no file changes.
    """
    for name in _SAID_BY_THE_PAPER:
        if getattr(arguments, name) not in (None, False):
            option = "TEXT" if name == "text" else f"--{name.replace('_', '-')}"
            raise ValueError(f"--reproduce: the paper's tables say what is measured; leave {option} out")
    arguments.out = arguments.out or Path("paper.jsonl")
    arguments.record = arguments.record or RECORDED_PATH
    engines = check_provider_names((arguments.providers or ",".join(ENGINES)).split(","))
    blocks, code = blocks_of(arguments.reproduce), 0
    if not blocks and not arguments.out.exists():
        raise ValueError(f"--reproduce none: there is no {arguments.out}; --out names the file of the rows to record")
    check_target("--out", arguments.out)
    check_record(arguments.record)
    measured = False
    for block in blocks:
        known = known_rows(arguments.out)
        cases = block.cases(engines, check=not arguments.no_check)
        todo = tuple(case for case in (without_known(case, known) for case in cases) if case is not None)
        print(f"{block.name}: {len(cases) - len(todo)} of {len(cases)} masks are measured already", file=sys.stderr)
        if not todo:
            continue
        title = f"the paper's tables, {block.name}"
        job = BenchJob("bench", todo, title, parallel=arguments.parallel, cold=not arguments.warm)
        view, rows = follow(job, out=arguments.out, as_json=arguments.json, keep=not arguments.no_history)
        code |= any(ours_failed(row) for row in rows)
        if view.state == "failed" and not rows:
            return not_measured(view)
        if view.state != "done":
            print(f"flashmask_core bench: {view.state}: {view.reason}", file=sys.stderr)
            return 130 if view.state == "cancelled" else 2
        measured = True
        _record_all(arguments)
    if not measured:
        _record_all(arguments)
    return int(code)


def _record_all(arguments) -> None:
    """What --out holds, into the recording and, of the shipped one, into the README."""
    record(known_rows(arguments.out).values(), arguments.record)
    if arguments.record.resolve() == RECORDED_PATH and update_readme():
        print("the table of README.md is that of the recording", file=sys.stderr)


def check_record(path: Path | None) -> None:
    """ValueError for a recording that cannot be added to, told before hours of measuring."""
    check_target("--record", path)
    if path is not None:
        recorded_results(path)


def record(rows: Iterable[BenchRow], path: Path) -> None:
    """Into a recording; how much it then holds, and how many rows are not fit for one, goes to stderr."""
    rows = list(rows)
    held, left = record_results(rows, path), sum(not row.sound for row in rows)
    more = f"; {left} not taken: failed, skipped, wrong or doubtful" if left else ""
    print(f"{path} now holds {held} rows{more}", file=sys.stderr)


def not_measured(view: JobView) -> int:
    """Why a job came to no row, and what can be seen without a GPU; the exit code."""
    hint = "`python -m flashmask_core bench --recorded` prints results recorded on an H200"
    print(f"flashmask_core bench: {view.reason}. {hint}.", file=sys.stderr)
    return 2


def print_recorded(arguments) -> int:
    if arguments.out:
        raise ValueError("--out: goes with a measurement; redirect the output of --recorded instead")
    rows = recorded_results()
    if not rows:
        raise ValueError("no recorded results are shipped with this version")
    for name, field, wanted in (
        ("--seqlen", "seqlen_q", arguments.seqlen), ("--head-dim", "head_dim", arguments.head_dim),
        ("--paper", "mask_name", arguments.paper), ("--providers", "provider", arguments.providers),
    ):  # fmt: skip
        if wanted is not None and (name, wanted) not in (("--paper", "all"), ("--providers", "all")):
            several = name in ("--paper", "--providers")
            rows = _of(rows, name, field, wanted.split(",") if several else [wanted])
    if arguments.text is not None:
        rows = _showing(rows, parse(arguments.text))
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
    print(f"\n{legend(rows)}")
    return 0


def _of(rows: list[BenchRow], name: str, field: str, wanted: list) -> list[BenchRow]:
    """The rows whose field is one of the wanted values; ValueError, with those there are, for a value of no row."""
    there = list(dict.fromkeys(getattr(row, field) for row in rows))
    for value in wanted:
        if value not in there:
            raise ValueError(f"{name} {value}: recorded are {', '.join(str(one)[:60] for one in sorted(there))}")
    return [row for row in rows if getattr(row, field) in wanted]


def _showing(rows: list[BenchRow], expr: MaskExpr) -> list[BenchRow]:
    """The rows whose mask shows the same pairs as the text, however it was written; ValueError where there are none."""

    @cache
    def same(text: str, seqlen_q: int, seqlen_k: int) -> bool:
        try:
            return compare(expr.runs(seqlen_q, seqlen_k), parse(text).runs(seqlen_q, seqlen_k)).equal
        except ValueError:  # such as documents longer than this length
            return False

    found = [row for row in rows if same(row.mask, row.seqlen_q, row.seqlen_k)]
    if not found:
        names = ", ".join(dict.fromkeys(row.mask_name for row in rows))
        raise ValueError(f"{str(expr)[:80]}: no recorded mask is the same; --paper takes their names: {names}")
    return found


def ours_failed(row: BenchRow) -> bool:
    """Whether a row of our kernels failed or is wrong."""
    return row.provider.startswith("flashmask") and (row.status == "failed" or row.wrong)
