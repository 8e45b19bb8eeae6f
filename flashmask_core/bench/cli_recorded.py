"""Results that are shipped: printed (`bench --recorded`), and measured anew (`bench --reproduce`)."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

from ..masks.compare import compare
from ..masks.expr import MaskExpr
from ..masks.language import parse
from .config import BenchJob
from .providers import check_provider_names
from .readme import update_readme
from .recorded import RECORDED_PATH, record_results, recorded_results
from .reproduce import ENGINES, blocks_of
from .result import BenchRow, dumps
from .table import header, legend, row_line, where_line
from .terminal import follow, known_rows, without_known


def reproduce(arguments) -> int:
    """Block by block: what --out lacks is measured, then all of it goes into the recording."""
    for name, given in (("TEXT", arguments.text), ("--paper", arguments.paper), ("--seqlen", arguments.seqlen),
                        ("--head-dim", arguments.head_dim), ("--sweep", arguments.sweep)):  # fmt: skip
        if given is not None:
            raise ValueError(f"--reproduce: the paper's tables say what is measured; leave {name} out")
    arguments.out = arguments.out or Path("paper.jsonl")
    arguments.record = arguments.record or RECORDED_PATH
    engines = check_provider_names((arguments.providers or ",".join(ENGINES)).split(","))
    blocks, code = blocks_of(arguments.reproduce), 0
    if not blocks and not arguments.out.exists():
        raise ValueError(f"--reproduce none: there is no {arguments.out}; --out names the file of the rows to record")
    open(arguments.out, "a").close()
    for block in [*blocks, None]:
        known = known_rows(arguments.out)
        if known:
            held = record_results(list(known.values()), arguments.record)
            print(f"{arguments.record} now holds {held} rows", file=sys.stderr)
            if arguments.record == RECORDED_PATH and update_readme():
                print("the table of README.md is that of the recording", file=sys.stderr)
        if block is None:
            break
        cases = block.cases(engines, check=not arguments.no_check)
        todo = tuple(case for case in (without_known(case, known) for case in cases) if case is not None)
        print(f"{block.name}: {len(cases) - len(todo)} of {len(cases)} masks are measured already", file=sys.stderr)
        if not todo:
            continue
        title = f"the paper's tables, {block.name}"
        job = BenchJob("bench", todo, title, parallel=arguments.parallel, cold=not arguments.warm)
        view, rows = follow(job, out=arguments.out, as_json=arguments.json, keep=not arguments.no_history)
        code |= any(ours_failed(row) for row in rows) or view.state != "done"
        if view.state != "done":
            print(f"flashmask_core bench: {view.state}: {view.reason}", file=sys.stderr)
            return 130 if view.state == "cancelled" else 2
    return int(code)


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
    wrong = row.status == "failed" or (row.check or "").startswith("failed")
    return row.provider.startswith("flashmask") and wrong
