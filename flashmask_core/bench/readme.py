"""The README's table of times, from the recording: `python -m flashmask_core.bench.readme` writes it anew."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from textwrap import wrap

from ..data import PAPER_MASKS
from .paper import DIRECTIONS
from .recorded import recorded_results, rows_of
from .reproduce import ENGINES
from .result import BenchRow

README = Path(__file__).resolve().parents[2] / "README.md"
BEGIN, END = "<!-- from the recording: begin -->", "<!-- from the recording: end -->"
SEQLEN, HEAD_DIM = 8192, 128
_NAMES = {"prefix_lm_document": "prefix LM document", "prefix_lm_causal": "prefix LM causal", "qk_sparse": "QK-sparse",
          "sliding_window": f"sliding window ({SEQLEN // 16})",
          "global_sliding_window": "global + sliding window"}  # fmt: skip
_TOGETHER_S = 60.0


def table_markdown(rows: list[BenchRow]) -> str:
    """Of the newest run of all the paper's masks at SEQLEN and HEAD_DIM on the H200: where and when, then the table.

    ValueError where no run in `rows` is complete.
    """
    found = _newest(rows)
    first = found[PAPER_MASKS[0], "flashmask", "forward"]
    where, date = first.where, (first.date_utc or "")[:10]
    about = (
        f"One {where.device}, {first.dtype}, B {first.batch}, H {first.heads}, N {first.seqlen_q}, D {first.head_dim}, the "
        f"authors' packing; medians in ms, FlexAttention compiled{' and timed in turns with ours' * _in_turns(found)}. "
        f"**Measured on {date} with commit {(where.commit or 'unknown')[:7]}**, torch {where.torch_version}, Triton "
        f"{where.triton_version}: what changed in the kernels since then is not in these figures."
    )
    lines = [
        *wrap(about, 118),
        "",
        "| mask | forward | TFLOP/s | FlexAttention | | backward | TFLOP/s | FlexAttention | |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for mask in PAPER_MASKS:
        cells = [_NAMES.get(mask, mask.replace("_", " "))]
        for direction in DIRECTIONS:
            ours, flex = (found[mask, engine, direction] for engine in ENGINES)
            ratio = f"{flex.median_ms / ours.median_ms:.2f}×"
            cells += [f"{ours.median_ms:.2f}", f"{ours.tflops_rho:.0f}", f"{flex.median_ms:.2f}", ratio]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _newest(rows: list[BenchRow]) -> dict[tuple[str, str, str], BenchRow]:
    """(mask, engine, direction) -> row, of one shape and version, engines timed in turns; the newest that has them all."""
    runs: dict[tuple, dict] = {}
    for row in rows_of(rows):
        if row.mask_name in PAPER_MASKS and (row.seqlen_q, row.head_dim) == (SEQLEN, HEAD_DIM):
            run = runs.setdefault((row.batch, row.heads, row.dtype, row.where), {})
            run[row.mask_name, row.provider, row.direction] = row
    wanted = {(mask, engine, d) for mask in PAPER_MASKS for engine in ENGINES for d in DIRECTIONS}
    whole = [run for run in runs.values() if wanted <= run.keys()]
    if not whole:
        raise ValueError(f"no run of all the paper's masks at N {SEQLEN}, D {HEAD_DIM} is recorded")
    return max(whole, key=lambda run: max(row.date_utc or "" for row in run.values()))


def _in_turns(found: dict) -> bool:
    """Whether every pair of engines was timed in one job, which ends its rows together."""
    seconds = {key: datetime.fromisoformat(row.date_utc).timestamp() for key, row in found.items() if row.date_utc}
    apart = [abs(seconds.get((mask, "flashmask", d), 0.0) - seconds.get((mask, "flex", d), 1e9))
             for mask in PAPER_MASKS for d in DIRECTIONS]  # fmt: skip
    return max(apart) <= _TOGETHER_S


def update_readme(path: Path = README) -> bool:
    """Write the table between the marks of the README; False where there is no README with them, or no whole run."""
    if not path.exists():
        return False
    text = path.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        return False
    try:
        table = table_markdown(recorded_results())
    except ValueError:
        return False
    path.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")
    return True


if __name__ == "__main__":
    raise SystemExit(0 if update_readme() else f"{README}: no marks for the table, or no whole run is recorded")
