"""Figures of training rows, as pure functions from rows and colours: a panel a task."""

from __future__ import annotations

import plotly.graph_objects as go

from flashmask_core.bench.svg_chart import ROLES
from flashmask_core.training.names import ENGINE_LABELS, PAPER_SPEEDUPS
from flashmask_core.training.result import TrainRow, speedup

from ..figures import styled

VIEWS = {"rate": "Tokens a second", "speedup": "Speed-up over the dense mask", "memory": "Peak memory"}
_ROLE = {"flashmask": "ours", "dense": "dense", "flex": "flex"}
_HATCH = {"flashmask": "", "dense": "/", "flex": "."}
_LINES = {"flashmask": ("solid", "circle"), "dense": ("dash", "square-open"), "flex": ("dot", "triangle-up-open")}


def engine_color(engine: str, dark: bool) -> str:
    return ROLES["dark" if dark else "light"][_ROLE[engine]]


def size_text(tokens: int) -> str:
    """8192 -> "8K"."""
    return f"{tokens // 2**20}M" if tokens % 2**20 == 0 else f"{tokens // 1024}K" if tokens % 1024 == 0 else f"{tokens:,}"


def rate_text(value: float) -> str:
    """41234 -> "41.2K"."""
    return f"{value / 1e6:.2f}M" if value >= 1e6 else f"{value / 1e3:.3g}K" if value >= 1e3 else f"{value:.0f}"


def in_one_chart(rows: list[TrainRow], timed: bool) -> list[TrainRow]:
    """The rows that share a model, data and precision: those with the most times, or, for losses, deterministic ones
    first and then those with the most."""
    setups: dict[tuple, list[TrainRow]] = {}
    for row in rows:
        setups.setdefault(row.setup, []).append(row)

    def worth(own: list[TrainRow]) -> tuple:
        steps = [row for row in own if not row.longest]
        if timed:
            return (sum(bool(row.tokens_per_s) for row in steps),)
        return any(row.deterministic and row.losses for row in steps), sum(bool(row.losses) for row in steps)

    return max(setups.values(), key=worth, default=[])


def steps_of(rows: list[TrainRow], task: str) -> list[TrainRow]:
    """The rows of a task that are no search for the longest context, the shortest first."""
    return sorted((row for row in rows if row.task == task and not row.longest), key=lambda row: row.context)


def bars(rows: list[TrainRow], task: str, view: str, colors: dict, dark: bool) -> go.Figure | None:
    """A group of bars a context, one an engine; None where nothing was timed. What failed is a word in its place."""
    own = steps_of(rows, task)
    value = {"rate": lambda row: row.tokens_per_s, "speedup": lambda row: speedup(row, rows),
             "memory": lambda row: row.peak_memory_bytes and row.peak_memory_bytes / 2**30}[view]  # fmt: skip
    text = {"rate": rate_text, "speedup": lambda x: f"{x:.2f}×", "memory": lambda x: f"{x:.1f}"}[view]
    if not any(value(row) for row in own):
        return None
    made, contexts = go.Figure(), list(dict.fromkeys(row.context for row in own))
    for engine, label in ENGINE_LABELS.items():
        part = {row.context: row for row in own if row.engine == engine}
        if not part or (view == "speedup" and engine == "dense"):
            continue
        ys = [value(part[n]) or 0 if n in part else None for n in contexts]
        made.add_bar(
            x=[size_text(n) for n in contexts], y=ys, name=label,
            text=[text(y) if y else _why_not(part.get(n), own, view) for n, y in zip(contexts, ys)],
            textposition="outside", textangle=0, cliponaxis=False, textfont={"size": 11, "color": colors["dim"]},
            marker={"color": engine_color(engine, dark), "pattern": {"shape": _HATCH[engine], "fillmode": "overlay",
                    "size": 5, "fgcolor": colors["ground"], "fgopacity": 0.55}},
            hovertemplate=f"{label}, %{{x}} tokens: %{{text}}<extra></extra>",
        )  # fmt: skip
    heights = [y for trace in made.data for y in trace.y if y]
    top = 1.18 * max([*heights, PAPER_SPEEDUPS[1] if view == "speedup" else 0])
    if view == "speedup":
        made.add_hrect(*PAPER_SPEEDUPS, fillcolor=colors["dim"], opacity=0.16, line_width=0, layer="below")
        made.add_hline(1, line={"color": colors["dim"], "width": 1, "dash": "dot"})
    made.update_xaxes(title="context, tokens", type="category")
    made.update_yaxes(range=[0, top], nticks=5, title={"memory": "GiB"}.get(view), automargin=True)
    styled(made, colors, height=260)
    return made.update_layout(showlegend=False, hovermode="closest", bargap=0.22, bargroupgap=0.06, margin_t=10)


def _why_not(row: TrainRow | None, rows: list[TrainRow], view: str) -> str:
    """What stands where a bar is missing: what befell the engine, or the dense mask that it would be held against."""
    if row is None:
        return ""
    who = ""
    if row.status == "ok" and view == "speedup":
        row = next((one for one in rows if one.engine == "dense" and one.context == row.context), row)
        who = "dense:<br>"
    if row.status == "ok":
        return ""
    return who + ("out of<br>memory" if row.reason.startswith("out of GPU memory") else "failed")


def curves(rows: list[TrainRow], task: str, colors: dict, dark: bool) -> tuple[go.Figure, int] | None:
    """(loss over steps of every engine, the context): the longest at which most engines have one; None without any."""
    own = [row for row in steps_of(rows, task) if row.losses]
    if not own:
        return None
    count = lambda n: sum(row.context == n for row in own)  # noqa: E731
    context = max((row.context for row in own), key=lambda n: (count(n), n))
    made = go.Figure()
    for row in (row for row in own if row.context == context):
        dash, symbol = _LINES[row.engine]
        color = engine_color(row.engine, dark)
        made.add_scatter(
            x=list(range(1, len(row.losses) + 1)), y=row.losses, name=ENGINE_LABELS[row.engine], mode="lines+markers",
            line={"color": color, "dash": dash, "width": 2},
            marker={"color": color, "symbol": symbol, "size": 6 if row.engine == "flashmask" else 11,
                    "line": {"width": 1.5, "color": color}},
            hovertemplate=f"{ENGINE_LABELS[row.engine]}, step %{{x}}: %{{y:.6f}}<extra></extra>",
        )  # fmt: skip
    made.update_xaxes(title="step", dtick=max(1, len(own[0].losses) // 6))
    made.update_yaxes(nticks=5, automargin=True)
    styled(made, colors, height=220)
    return made.update_layout(showlegend=False, hovermode="closest", margin_t=10), context
