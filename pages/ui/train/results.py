"""Training rows: throughput as the paper draws it, the longest context, loss curves, one table, and files."""

from __future__ import annotations

from html import escape

import streamlit as st

from flashmask_core.training.names import ENGINE_LABELS, PAPER_SPEEDUPS, TASK_LABELS
from flashmask_core.training.result import TrainRow, losses_apart, speedup, to_csv, to_json

from .. import theme
from ..measure.results import place
from . import charts

_FEW = 12  # lines of a table that need no scrolling
_OF_THE_SETUP = ("Layers", "Dtype")  # columns that are left out where all rows say the same
PAPER = (
    f"The paper reports {PAPER_SPEEDUPS[0]}× to {PAPER_SPEEDUPS[1]}× over a dense mask in SFT, LoRA, DPO and RM "
    "([arXiv 2410.01359](https://arxiv.org/abs/2410.01359), abstract)"
)

LONGEST = "Sought in steps of about an eighth."


def sources(rows: list[TrainRow]) -> list[str]:
    """Device, versions, date and commit of rows, a line for each; with several, before each the rows it stands for."""
    of: dict[tuple, list[TrainRow]] = {}
    for row in rows:
        of.setdefault((row.where, (row.date_utc or "")[:10]), []).append(row)
    if len(of) < 2:
        return [place(*source) for source in of]
    layers, dtypes = ({what(row) for row in rows} for what in (lambda row: row.model.get("layers"), lambda row: row.dtype))

    def at(row: TrainRow) -> str:
        """What the table shows beside the task and the engine."""
        said = ["the longest context" if row.longest else f"{row.context:,} tokens"]
        said += [f"{row.model.get('layers')} layers"] * (len(layers) > 1) + [row.dtype] * (len(dtypes) > 1)
        return ", ".join(said)

    def stands_for(own: list[TrainRow]) -> str:
        elsewhere = {(row.task, at(row)) for others in of.values() if others is not own for row in others}
        engines: dict[tuple, dict] = {}
        for row in own:
            engines.setdefault((row.task, at(row)), {})[ENGINE_LABELS[row.engine]] = None
        tasks: dict[tuple, list[str]] = {}
        for (task, where), names in engines.items():
            whose = f" with {' and '.join(names)}" if (task, where) in elsewhere else ""
            tasks.setdefault((whose, where), []).append(TASK_LABELS[task])
        return "; ".join(f"{', '.join(names)}{whose}: {where}" for (whose, where), names in tasks.items())

    return [f"**{stands_for(own)}** · {place(*source)}" for source, own in of.items()]


def table_rows(rows: list[TrainRow]) -> list[dict]:
    """What the table shows, one dict a row: None where nothing was measured, no column that is empty throughout."""
    shown = [
        {
            "Task": TASK_LABELS[row.task],
            "Context": f"{'longest: ' if row.longest else ''}{'≥ ' if row.at_least else ''}{row.context:,}",
            "Engine": ENGINE_LABELS[row.engine],
            "Layers": row.model.get("layers"),
            "Dtype": row.dtype,
            "Outcome": row.reason or row.status,
            "Tokens a second": row.tokens_per_s and round(row.tokens_per_s),
            "× dense": speedup(row, rows),
            "Peak, GiB": row.peak_memory_bytes and row.peak_memory_bytes / 2**30,
            "Tiles skipped, %": None if row.rho is None else 100 * row.rho,
            "First loss": row.losses[0] if row.losses else None,
            "Last loss": row.losses[-1] if len(row.losses) > 1 else None,
            "Apart from dense": None if (apart := losses_apart(row, rows)) is None else f"{apart:.1e}",
            "Adapters": row.adapters,
        }
        for row in rows
    ]
    said = [name for name in shown[0] if any(line[name] not in (None, "") for line in shown)] if shown else []
    said = [name for name in said if name not in _OF_THE_SETUP or len({line[name] for line in shown}) > 1]
    return [{name: line[name] for name in said} for line in shown]


def table(rows: list[TrainRow]) -> None:
    """The table alone."""
    formats = {"Tokens a second": "localized", "× dense": "%.2f", "Peak, GiB": "%.2f", "Tiles skipped, %": "%.1f",
               "First loss": "%.4f", "Last loss": "%.4f"}  # fmt: skip
    shown = table_rows(rows)
    config = {name: st.column_config.NumberColumn(format=form) for name, form in formats.items() if name in shown[0]}
    wide = {"Task": 100, "Context": 140, "Engine": 140, "Outcome": 170 if any(row.reason for row in rows) else 80}
    config |= {name: st.column_config.TextColumn(width=width) for name, width in wide.items()}
    st.dataframe(shown, hide_index=True, width="stretch", placeholder="–", column_config=config,
                 height="content" if len(shown) <= _FEW else 460)  # fmt: skip
    if reasons := reasons_html(rows):
        st.html(reasons)


def reasons_html(rows: list[TrainRow]) -> str:
    """Why what failed did, each reason once with whom it befell."""
    befell: dict[str, list[TrainRow]] = {}
    for row in rows:
        if row.reason:
            befell.setdefault(f"{ENGINE_LABELS[row.engine]}: {row.reason}", []).append(row)
    lines = []
    for reason, own in befell.items():
        tasks = ", ".join(dict.fromkeys(TASK_LABELS[row.task] for row in own))
        lines.append(f"<li>{escape(reason)} <small>({tasks})</small></li>")
    return f'<ul class="fm-reasons">{"".join(lines)}</ul>' if lines else ""


def show(rows: list[TrainRow], *, key: str) -> None:
    """Everything that rows say. The engines' names and colours stand once, above the panels."""
    tasks = [task for task in TASK_LABELS if any(row.task == task for row in rows)]
    colors, dark = theme.colors(), theme.is_dark()
    timed, repeatable = charts.in_one_chart(rows, timed=True), charts.in_one_chart(rows, timed=False)
    if any(row.tokens_per_s for row in timed):
        _throughput(timed, tasks, colors, dark, key)
        st.caption(setting_text(timed))
    longest = longest_html(rows, tasks)
    if longest:
        st.markdown("**The longest context of which a step fits**")
        st.html(longest)
        st.caption(f"{LONGEST} {setting_text([row for row in rows if row.longest], steps=False)}")
    found = {task: made for task in tasks if (made := charts.curves(repeatable, task, colors, dark))}
    if found:
        st.markdown("**Loss, step by step, on the same batches**")
        st.html(legend_html([row for row in repeatable if row.losses], dark))
        for task, column in zip(found, st.columns(len(found), gap="small")):
            figure, context = found[task]
            with column:
                st.html(f'<p class="fm-panel"><b>{TASK_LABELS[task]}</b> {charts.size_text(context)} tokens</p>')
                st.plotly_chart(figure, width="stretch", key=f"loss_{task}_{key}", config={"displayModeBar": False})
        st.caption(f"{agreement(repeatable)}  \n{setting_text(repeatable)}")
    table(rows)
    with st.container(horizontal=True, gap="small", key=f"train_files_{key}"):
        st.download_button("Rows, .csv", to_csv(rows), "training.csv", on_click="ignore", key=f"train_csv_{key}")
        st.download_button("Rows, .json", to_json(rows), "training.json", on_click="ignore", key=f"train_json_{key}")


def _throughput(rows: list[TrainRow], tasks: list[str], colors: dict, dark: bool, key: str) -> None:
    device = next(row.where.device for row in rows if row.tokens_per_s)
    st.markdown(f"**Training throughput on {device}**")
    view = st.segmented_control("Shown", list(charts.VIEWS), format_func=charts.VIEWS.__getitem__, default="rate",
                                key=f"train_view_{key}", label_visibility="collapsed", required=True)  # fmt: skip
    st.html(legend_html(rows, dark, band=view == "speedup"))
    tasks = [task for task in tasks if charts.steps_of(rows, task)]  # of the others only the longest was searched
    for task, column in zip(tasks, st.columns(len(tasks), gap="small")):
        figure = charts.bars(rows, task, view, colors, dark)
        with column:
            st.html(f'<p class="fm-panel"><b>{TASK_LABELS[task]}</b> {escape(gains_text(rows, task))}</p>')
            if figure is None:
                st.caption("Nothing to show: see the reasons in the table.")
            else:
                st.plotly_chart(figure, width="stretch", key=f"bars_{task}_{key}", config={"displayModeBar": False})
    st.caption(f"{PAPER}; here: a few layers of random weights, so embedding, optimizer and attention weigh otherwise.")


def gains_text(rows: list[TrainRow], task: str) -> str:
    """FlashMask's speed-ups over the dense mask in a task, "1.31 to 2.40× dense"."""
    gains = [gain for row in charts.steps_of(rows, task) if row.engine == "flashmask" and (gain := speedup(row, rows))]
    if not gains:
        return ""
    low, high = f"{min(gains):.2f}", f"{max(gains):.2f}"
    return f"{low}× dense" if low == high else f"{low} to {high}× dense"


def agreement(rows: list[TrainRow]) -> str:
    """How far apart the losses of the engines are, in one sentence."""
    apart = [value for row in rows if (value := losses_apart(row, rows)) is not None]
    if not apart:
        return "One engine alone has losses, so there is nothing to hold them against."
    exact = all(row.deterministic for row in rows)
    why = "fp32, deterministic" if exact else f"{rows[0].dtype}; fp32 and deterministic brings them closer"
    return (
        f"Losses of the engines are at most {max(apart):.1e} of their value apart from those of the dense mask ({why}). "
        "Tokens are random and every step has a batch of its own: a curve need not fall, but the engines' must coincide."
    )


def legend_html(rows: list[TrainRow], dark: bool, band: bool = False) -> str:
    """Engines with their colours; band: the paper's speed-ups too."""
    engines = [engine for engine in ENGINE_LABELS if any(row.engine == engine for row in rows)]
    parts = [
        f'<span><i class="fm-key" style="background:{charts.engine_color(engine, dark)}"></i>{ENGINE_LABELS[engine]}</span>'
        for engine in engines if not (band and engine == "dense")
    ]  # fmt: skip
    if band:
        parts.append('<span><i class="fm-key" style="background:color-mix(in srgb,var(--fm-dim) 16%,transparent)"></i>'
                     f"the paper: {PAPER_SPEEDUPS[0]}× to {PAPER_SPEEDUPS[1]}×</span>")  # fmt: skip
    return f'<div class="fm-legend">{"".join(parts)}</div>'


def longest_html(rows: list[TrainRow], tasks: list[str]) -> str:
    """A table, a task a line and an engine a column; empty where nobody searched."""
    found = {(row.task, row.engine): row for row in rows if row.longest}
    if not found:
        return ""
    engines = [engine for engine in ENGINE_LABELS if any(at[1] == engine for at in found)]
    lines = []
    for task in (task for task in tasks if any(at[0] == task for at in found)):
        cells = "".join(f"<td>{_longest_cell(found.get((task, engine)))}</td>" for engine in engines)
        lines.append(f"<tr><td>{TASK_LABELS[task]}</td>{cells}</tr>")
    head = "".join(f"<th>{ENGINE_LABELS[engine]}</th>" for engine in engines)
    return f'<table class="fm-gain fm-longest"><thead><tr><th>Task</th>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'


def _longest_cell(row: TrainRow | None) -> str:
    if row is None:
        return "–"
    if row.status != "ok":
        return escape(row.reason[:60])
    memory = f", {row.peak_memory_bytes / 2**30:.0f} GiB" if row.peak_memory_bytes else ""
    rate = f"<br><small>{charts.rate_text(row.tokens_per_s)} a second{memory}</small>" if row.tokens_per_s else ""
    return f"{'at least ' if row.at_least else ''}<b>{row.context:,}</b>{rate}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _steps_text(rows: list[TrainRow]) -> str:
    """On a CPU no step is timed."""
    if any(row.tokens_per_s for row in rows):
        return f"{_counted(rows[0].steps, 'step')} timed after {rows[0].warmup}"
    return _counted(rows[0].warmup + rows[0].steps, "step")


def setting_text(rows: list[TrainRow], steps: bool = True) -> str:
    """Model, data and steps of rows that share them."""
    model = rows[0].model
    said = [f"{_counted(model['layers'], 'layer')} of width {model['width']:,}, {_counted(model['heads'], 'query head')} on "
            f"{_counted(model['kv_heads'], 'key head')}, "
            f"feed-forward {model['hidden']:,}, vocabulary {model['vocabulary']:,}, random weights" if model else "",
            "activations recomputed a layer at a time" if model.get("recompute") else "", rows[0].dtype,
            _steps_text(rows) if steps else "", f"data: {rows[0].data}"]  # fmt: skip
    return "; ".join(filter(None, said)) + "."
