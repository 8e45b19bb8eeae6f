"""The command line: show a mask, count its tiles, time it, export it. `main(argv)` returns the exit code.

Exit codes: 0 fine; 1 something of ours failed; 2 what was asked for cannot be (a wrong text, no GPU), with one message
on stderr; 130 interrupted.
"""

from __future__ import annotations

import argparse
import codecs
import os
import sys
from itertools import groupby

from ..training.cli import add_train_command
from .cli_bench import add_bench_command
from .cli_history import add_history_command
from .result import dumps

_PAIR_GLYPHS = {"utf": "·▒█", "ascii": ".+#"}  # by TileKind
# Of export; read without importing it.
_TARGETS = "paddle, flex_attention, sdpa, numpy, fa4, magi, transformers, npy, json, png, svg"
_THUMBNAIL = 32  # cells on the longer side


def main(argv: list[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    codecs.register_error("stand_in", _stand_in)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="stand_in")
    try:
        return arguments.run(arguments)
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except (ValueError, TypeError, OSError) as error:
        print(f"flashmask_core {arguments.command}: {error}", file=sys.stderr)
        return 2


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    """What a terminal without the character gets in its place."""
    stand_ins = {"×": "x", "…": "...", "·": ".", "▒": "+", "█": "#"}
    return "".join(stand_ins.get(c, "?") for c in error.object[error.start : error.end]), error.end


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m flashmask_core",
        description="Attention masks as four row numbers a key column: look at one, count its tiles, time it.",
        epilog="A mask is one line of text, such as 'causal & document(333, 333, 334)' or "
        "'causal & (q - k < 512) | causal & (k < 16)'. Put it in quotes, and -- before one that begins with a minus.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="show | tiles | bench | history | train | export")

    show = commands.add_parser("show", help="the vectors, the packing, how much is visible, and a small picture")
    _add_mask(show)
    show.set_defaults(run=_show)

    tiles = commands.add_parser("tiles", help="EMPTY, PARTIAL and FULL tiles by both rules, and bytes")
    _add_mask(tiles)
    for name, what in (("m", "query rows"), ("n", "key columns")):
        tiles.add_argument(f"--block-{name}", type=int, default=128, metavar="SIZE", help=f"{what} of a tile (128)")
    tiles.set_defaults(run=_tiles)

    add_bench_command(commands)
    add_history_command(commands)
    add_train_command(commands)

    export = commands.add_parser("export", help="the mask as code or a file for another library")
    _add_mask(export, json_help="the same as --to json")
    export.add_argument("--to", metavar="TARGET", help=f"one of {_TARGETS}")
    export.add_argument("--heads", type=int, metavar="H", help="query heads, where a target needs them")
    export.add_argument("--npy", metavar="NAME", help="let the code load this file instead of holding the vectors")
    export.add_argument("--out", metavar="FILE", help="write there instead of to standard output")
    export.set_defaults(run=_export)
    return parser


def _add_mask(command: argparse.ArgumentParser, json_help: str = "print strict JSON instead") -> None:
    command.add_argument("text", metavar="TEXT", help="the mask, in the mask language")
    command.add_argument("--seqlen", type=int, required=True, metavar="N", help="query rows Sq")
    command.add_argument("--seqlen-k", type=int, metavar="M", help="key columns Sk (default: as many as rows)")
    command.add_argument("--json", action="store_true", help=json_help)


def _show(arguments) -> int:
    from ..masks.column_mask import ColumnMask
    from ..masks.language import parse

    expr = parse(arguments.text)
    runs = expr.runs(arguments.seqlen, arguments.seqlen_k)
    mask = ColumnMask.from_runs(runs)
    notes = expr.notes(arguments.seqlen, arguments.seqlen_k, runs)
    pairs, all_pairs = mask.visible_pairs().item(), mask.seqlen_q * mask.seqlen_k
    density = pairs / all_pairs if all_pairs else 0.0
    names = ("lts", "lte", "uts", "ute")
    vectors = {name: vector[0, 0].tolist() for name, vector in zip(names, mask.vectors)}
    stored = _stored_names(mask)
    if arguments.json:
        print(dumps({
            "mask": str(expr), "seqlen_q": mask.seqlen_q, "seqlen_k": mask.seqlen_k, "causal": mask.causal,
            "stored_vectors": list(stored), "vectors": vectors, "visible_pairs": pairs, "density": density,
            "vector_bytes": mask.nbytes, "dense_mask_bytes": all_pairs, "notes": notes,
        }))  # fmt: skip
        return 0
    print(f"{expr}    {mask.seqlen_q:,} queries x {mask.seqlen_k:,} keys\n")
    print(f"packing  causal={mask.causal}, {len(stored)} vector{'s' * (len(stored) > 1)} ({', '.join(stored)}): "
          f"{mask.nbytes:,} bytes; a dense mask takes {all_pairs:,}")  # fmt: skip
    print(f"visible  {pairs:,} of {all_pairs:,} pairs, density {density:.6g}")
    for name in names:
        print(f"{name}      {_abridged(vectors[name])}{'' if name in stored else '   (not stored)'}")
    for note in notes:
        print(f"note     {note}")
    print()
    for line in _thumbnail(mask):
        print(line)
    return 0


def _tiles(arguments) -> int:
    from ..masks.language import mask as build
    from ..tiles.classify import RULES, TileKind, classify_tiles

    mask = build(arguments.text, arguments.seqlen, arguments.seqlen_k)
    maps = {rule: classify_tiles(mask, arguments.block_m, arguments.block_n, rule) for rule in RULES}
    _, _, tiles_m, tiles_n = maps["exact"].shape
    dense = mask.seqlen_q * mask.seqlen_k
    counts = {rule: dict(zip((k.name for k in TileKind), m.counts[0, 0].tolist())) for rule, m in maps.items()}
    if arguments.json:
        print(dumps({
            "mask": arguments.text, "seqlen_q": mask.seqlen_q, "seqlen_k": mask.seqlen_k,
            "block_m": arguments.block_m, "block_n": arguments.block_n, "row_tiles": tiles_m, "column_tiles": tiles_n,
            "rules": {rule: {**counts[rule], "rho": maps[rule].rho.item()} for rule in RULES},
            "vector_bytes": mask.nbytes, "dense_mask_bytes": dense,
        }))  # fmt: skip
        return 0
    print(f"tiles of {arguments.block_m} x {arguments.block_n}: {tiles_m:,} x {tiles_n:,} = {tiles_m * tiles_n:,}\n")
    print(f"{'rule':<7}{'EMPTY':>14}{'PARTIAL':>14}{'FULL':>14}{'rho':>10}")
    for rule in RULES:
        numbers = "".join(f"{count:>14,}" for count in counts[rule].values())
        print(f"{rule:<7}{numbers}{maps[rule].rho.item():>10.4f}")
    print("\nexact judges every pair; paper is equation 4: min and max of each interval alone. rho = EMPTY / all.")
    print(f"vectors {mask.nbytes:,} bytes; dense mask {dense:,} bytes")
    return 0


def _export(arguments) -> int:
    from ..masks.export import export_mask

    if arguments.json and arguments.to not in (None, "json"):
        raise ValueError(f"--json: the same as --to json, and --to {arguments.to} was asked for too")
    target = "json" if arguments.json else arguments.to
    if target is None:
        raise ValueError(f"--to: wanted one of {_TARGETS}")
    content = export_mask(
        arguments.text, target, arguments.seqlen, arguments.seqlen_k, heads=arguments.heads, npy=arguments.npy
    )
    if arguments.out:
        with open(arguments.out, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
    elif isinstance(content, str):
        print(content, end="")
    elif sys.stdout.isatty():
        raise ValueError(f"--out: {target} is no text for a terminal; name a file")
    else:
        sys.stdout.buffer.write(content)
    return 0


def _stored_names(mask) -> tuple[str, ...]:
    from ..masks.column_mask import PACKINGS

    return PACKINGS[mask.causal, mask.bounds]


def _abridged(values: list[int], most: int = 12) -> str:
    """A vector as value×count; the middle left out where that is long."""
    groups = [(value, len(list(same))) for value, same in groupby(values)]
    words = [f"{value}×{count}" if count > 1 else str(value) for value, count in groups]
    if len(words) > most:
        words = words[: most - 3] + ["…"] + words[-2:]
    return " ".join(words)


def _thumbnail(mask) -> list[str]:
    """Rows of two characters a cell: nothing, some or all of its pairs visible."""
    from ..tiles.classify import classify_tiles

    if not mask.seqlen_q or not mask.seqlen_k:
        return []
    cell = -(-max(mask.seqlen_q, mask.seqlen_k) // _THUMBNAIL)
    glyphs = _PAIR_GLYPHS["utf"]
    try:
        glyphs.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        glyphs = _PAIR_GLYPHS["ascii"]
    kinds = classify_tiles(mask, cell, cell).kinds[0, 0].tolist()
    lines = ["".join(2 * glyphs[kind] for kind in row) for row in kinds]
    size = "a pair" if cell == 1 else f"{cell:,} x {cell:,} pairs"
    return [*lines, f"a cell is {size}: {glyphs[2]} all visible, {glyphs[1]} some, {glyphs[0]} none"]
