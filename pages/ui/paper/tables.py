"""The page's tables as HTML."""

from __future__ import annotations

from html import escape

from flashmask_core.bench.tile_time import TimeModel

from .facts import ENGINES, Line, Times, measured

_OPEN = '<div class="fm-wide" tabindex="0" role="region" aria-label="{}"><table class="fm-versus-table{}">'
_PAPER = "A100, the paper"
NOT_MEASURED = '<span class="fm-none">not measured</span>'


def name_text(mask: str) -> str:
    """ "global_sliding_window" -> "global sliding window"."""
    return mask.replace("_", " ").replace("prefix lm", "prefix LM").replace("qk sparse", "QK-sparse")


def comparison(lines: list[Line], here: str) -> str:
    """The table of a block: rho, then TFLOP/s and the gain on the GPU `here` and on the paper's.

    Where it is too wide a mask takes three lines, a GPU below the other; each is called what its `data-of` says.
    """
    first, *others = (*ENGINES.values(), "gain")
    some = measured(lines)
    both = f'<th class="fm-apart">{first}</th>' + "".join(f"<th>{label}</th>" for label in others)
    nothing = f'<td colspan="3" rowspan="{len(lines)}" class="fm-apart fm-nothing" {_of(here)}>{NOT_MEASURED}</td>'
    rows = "".join(
        f'<tr><th scope="row">{name_text(line.mask)}</th><td {_of("ρ paper")}>{line.paper_rho:.2f}</td>'
        f'<td {_of("ours")} title="ρ of the sample that is timed: {line.timed_rho:.4f}">{line.rho:.4f}</td>'
        + (_cells(line.here, line.gain(line.here), here) if some else nothing * (line is lines[0]))
        + _cells(line.paper, line.gain(line.paper), _PAPER)
        + "</tr>"
        for line in lines
    )
    return (
        f'{_OPEN.format("The table of the paper", " fm-stacks")}<thead><tr><td></td><th colspan="2">ρ, share skipped</th>'
        f'<th colspan="3" class="fm-apart">{escape(here)}, TFLOP/s</th>'
        f'<th colspan="3" class="fm-apart">{_PAPER}, TFLOP/s</th></tr>'
        f"<tr><td {_of('TFLOP/s')}></td><th>paper</th><th>ours</th>{both}{both}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _of(what: str) -> str:
    return f'data-of="{escape(what)}"'


def _cells(whose: dict[str, Times | None], gain: float | None, gpu: str) -> str:
    times = list(whose.values())
    if not any(times):
        return f'<td colspan="{len(times) + 1}" class="fm-apart" {_of(gpu)}>{NOT_MEASURED}</td>'
    cells = [f"{t.tflops:,.0f}" if t else NOT_MEASURED for t in times]
    cells += ["" if gain is None else f"{gain:+.0f} %".replace("-", "−")]
    return "".join(f"<td{f' class=fm-apart {_of(gpu)}' * (i == 0)}>{cell}</td>" for i, cell in enumerate(cells))


def held_out(models: list[TimeModel]) -> str:
    """The estimate's error on each family of masks, and each length, that was left out, a column a model."""
    families = list(dict.fromkeys(family for model in models for family in model.held_out))
    head = "".join(f"<th>D {m.head_dim}<br>{m.direction}</th>" for m in models)
    rows = "".join(
        f'<tr><th scope="row">{escape(name_text(name))}</th>'
        + "".join(f"<td>{_percent(model.held_out.get(name))}</td>" for model in models) + "</tr>"
        for name in families
    )  # fmt: skip
    rows += "".join(
        f'<tr><th scope="row">all of N {n:,}</th>'
        + "".join(f"<td>{_percent(m.held_out_lengths.get(n))}</td>" for m in models) + "</tr>"
        for n in sorted({n for model in models for n in model.held_out_lengths})
    )  # fmt: skip
    total = "".join(
        f'<tr><th scope="row"><b>{word}</b></th>'
        + "".join(f"<td>{_percent(value(m))}</td>" for m in models) + "</tr>"
        for word, value in (("worst", lambda m: m.worst_error), ("mean of the kinds", lambda m: m.mean_error))
    )  # fmt: skip
    return (
        f'{_OPEN.format("Errors of the estimate", "")}<thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{rows}{total}</tbody></table></div>"
    )


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"
