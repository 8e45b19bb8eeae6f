"""`python -m flashmask_core history`: the runs that were kept, listed, shown, compared, exported, imported, forgotten."""

from __future__ import annotations

import sys
from pathlib import Path

from .charts import reasons
from .history import History, Run, import_run
from .html_report import html_report
from .recorded import recorded_results, rows_of
from .report import MAX_FILE_BYTES, compare, from_json, to_csv, to_json
from .result import BenchRow, dumps
from .table import header, legend, matrix_lines, pair_header, pair_line, row_line, where_line

FORMATS = ("csv", "json", "jsonl", "html")
_RUN = "the id of a run or how it begins, last, recorded (the results that are shipped), or a .json or .jsonl file of rows"


def add_history_command(commands) -> None:
    history = commands.add_parser(
        "history",
        help="the kept runs: list, show, compare, export, import, remove",
        description=f"The runs of this machine. Where RUN is asked for: {_RUN}.",
        epilog="The file is one SQLite database in the user's data folder, or where FLASHMASK_HISTORY says.",
    )
    acts = history.add_subparsers(dest="act", metavar=" | ".join(_ACTS))
    history.set_defaults(run=_list, json=False)
    for name, (act, about) in _ACTS.items():
        command = acts.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}. RUN: {_RUN}.")
        command.set_defaults(run=act)
        if name in ("show", "compare", "export", "remove"):
            command.add_argument("which", metavar="RUN", help=_RUN)
        if name == "compare":
            command.add_argument("other", metavar="RUN", help="the one beside it")
        if name == "show":
            command.add_argument("--matrix", action="store_true", help="a line a mask, a column an engine: ms alone")
        if name in ("list", "show", "compare"):
            command.add_argument("--json", action="store_true", help="print lines of strict JSON instead")
        if name == "export":
            command.add_argument("--to", choices=FORMATS, help="default: what the name of --out ends in, else json")
            command.add_argument("--out", type=Path, metavar="FILE", help="write there instead of to standard output")
        if name == "import":
            command.add_argument("file", type=Path, metavar="FILE", help="a run exported as .json, or rows as .jsonl")


def _list(arguments) -> int:
    history = History()
    runs = history.runs()
    if arguments.json:
        for run in runs:
            print(dumps({name: getattr(run, name) for name in Run.__dataclass_fields__}))
        return 0
    print(f"{history.path}: {len(runs)} runs" if runs else f"{history.path}: no runs yet")
    for run in runs:
        origin = "" if run.origin == "here" else f", from {run.origin}"
        print(f"{run.id:<14}{run.begun_utc[:16].replace('T', ' ')}  {run.state:<10}{run.rows:>5} rows  "
              f"{run.device or 'device unknown'}  {run.title}{origin}")  # fmt: skip
    return 0


def _show(arguments) -> int:
    title, rows = _run(arguments.which)
    if arguments.json:
        for row in rows:
            print(dumps(row.to_json()))
        return 0
    print(f"{title}\n{where_line(rows[0].where, rows[0].date_utc)}")
    if arguments.matrix:
        for direction in dict.fromkeys(row.direction for row in rows):
            print("", *matrix_lines(rows, direction), sep="\n")
        for line in reasons(rows):
            print(f"  {line}")
        return 0
    print(f"\n{header()}")
    for row in rows:
        print(row_line(row))
    print(f"\n{legend(rows)}")
    return 0


def _compare(arguments) -> int:
    (first, ours), (second, theirs) = _run(arguments.which), _run(arguments.other)
    pairs = compare(ours, theirs)
    if arguments.json:
        for pair in pairs:
            row = pair.first or pair.second
            print(dumps({
                "mask": row.mask, "seqlen_q": row.seqlen_q, "seqlen_k": row.seqlen_k, "head_dim": row.head_dim,
                "provider": row.provider, "direction": row.direction, "ratio": pair.ratio, "beyond_quartiles": pair.apart,
                "first_ms": pair.first and pair.first.median_ms, "second_ms": pair.second and pair.second.median_ms,
            }))  # fmt: skip
        return 0
    for number, name, rows in ((1, first, ours), (2, second, theirs)):
        print(f"{number}  {name}\n   {where_line(rows[0].where, rows[0].date_utc)}")
    print(f"\n{pair_header()}")
    for pair in pairs:
        print(pair_line(pair))
    both = [pair for pair in pairs if pair.ratio is not None]
    slower, faster = (sum(bool(pair.apart and sign * pair.ratio > sign) for pair in both) for sign in (1, -1))
    print(f"\n{len(both)} times in both: 2 is slower in {slower} and faster in {faster}; in the others the quartiles overlap."
          if both else "\nThe two have no measurement in common: other masks, lengths or engines.")  # fmt: skip
    return 0


def _export(arguments) -> int:
    title, rows = _run(arguments.which)
    ending = arguments.out.suffix[1:] if arguments.out else ""
    to = arguments.to or (ending if ending in FORMATS else "json")
    match to:
        case "csv":
            text = to_csv(rows)
        case "html":
            text = html_report(rows, title)
        case "json":
            text = to_json(rows, title)
        case _:
            text = "".join(dumps(row.to_json()) + "\n" for row in rows)
    if arguments.out is None:
        print(text, end="")
        return 0
    arguments.out.write_text(text, encoding="utf-8")
    print(f"{arguments.out} written: {len(rows)} rows", file=sys.stderr)
    return 0


def _import(arguments) -> int:
    title, rows = _of_file(arguments.file)
    run_id = import_run(History(), title, rows, arguments.file.name)
    print(f"{run_id}: {len(rows)} rows of {arguments.file}")
    return 0


def _remove(arguments) -> int:
    run = _found(arguments.which)
    History().remove(run.id)
    print(f"{run.id} removed: {run.title}, {run.rows} rows")
    return 0


def _run(name: str) -> tuple[str, list[BenchRow]]:
    """(title, rows) of a run, the recording or a file; ValueError where there is none."""
    if name == "recorded":
        return "the recording that is shipped", _some(rows_of(recorded_results()), name)
    if name.endswith((".json", ".jsonl")):
        return _of_file(Path(name))
    run = _found(name)
    return run.title or "untitled", _some(History().rows(run.id), name)


def _some(rows: list[BenchRow], name: str) -> list[BenchRow]:
    if not rows:
        raise ValueError(f"{name}: holds no rows")
    return rows


def _of_file(path: Path) -> tuple[str, list[BenchRow]]:
    if path.stat().st_size > MAX_FILE_BYTES:
        raise ValueError(f"{path}: wanted at most {MAX_FILE_BYTES:,} bytes, got {path.stat().st_size:,}")
    try:
        title, rows = from_json(path.read_bytes())
    except ValueError as problem:
        raise ValueError(f"{path}: {problem}") from None
    return title or path.name, rows


def _found(name: str) -> Run:
    """The run of an id, of the beginning of one, or the last; ValueError where that is none or not one alone."""
    runs = History().runs(most=10_000)
    if name == "last" and runs:
        return runs[0]
    found = [run for run in runs if run.id == name] or [run for run in runs if name and run.id.startswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"{name}: {len(found)} runs begin so: {', '.join(run.id for run in found[:8])}")
    raise ValueError(f"{name}: no run of {History().path}; `history list` names them; wanted {_RUN}")


_ACTS = {
    "list": (_list, "the runs, newest first"),
    "show": (_show, "the rows of a run"),
    "compare": (_compare, "two runs row by row"),
    "export": (_export, "a run as a file"),
    "import": (_import, "keep a run that somebody else exported"),
    "remove": (_remove, "forget a run"),
}
