"""Charts of benchmark rows in Plotly: the same `Chart` that a report draws as SVG."""

from __future__ import annotations

from math import log10

import plotly.graph_objects as go

from flashmask_core.bench.charts import Chart
from flashmask_core.bench.svg_chart import DASHES, ROLES, length_text, styles_of

from .. import figures

_SYMBOLS = ("circle", "square", "triangle-up", "diamond")
_PLOTLY_DASHES = ("solid", "dash", "dot", "longdashdot")
assert len(_PLOTLY_DASHES) == len(DASHES)
_BARS = {"forward": ("full", ""), "backward": ("partial", "/"), "both": ("upper", "x")}


def figure(chart: Chart, colors: dict, dark: bool) -> go.Figure:
    """The chart as a figure in the colours of the theme."""
    return {"bars": _bars, "lines": _lines, "strips": _strips}[chart.kind](chart, colors, ROLES["dark" if dark else "light"])


def _two_lines(name: str) -> str:
    """An engine's name with what is in brackets below it, so that the bars keep their room on a phone."""
    place = min((at for at in (name.find(" ("), name.find(" [")) if at > 0), default=0)
    return f"{name[:place]}<br>{name[place + 1 :]}" if place else name


def _bars(chart: Chart, colors: dict, roles: dict) -> go.Figure:
    made, bytes_ = go.Figure(), chart.y_label == "bytes"
    names = list(dict.fromkeys(name for series in chart.series for name in series.x))
    unit = "B" if bytes_ else " ms"
    for series in reversed(chart.series):
        color, pattern = _BARS.get(series.name, ("full", ""))
        y = [_two_lines(name) for name in series.x]
        whiskers = {
            "type": "data", "symmetric": False, "thickness": 1, "width": 3, "color": colors["dim"],
            "array": [high - y for y, high in zip(series.y, series.high)],
            "arrayminus": [y - low for y, low in zip(series.y, series.low)],
        }  # fmt: skip
        made.add_bar(
            y=y, x=series.y, orientation="h", name=series.name, offsetgroup=series.name,
            marker={"color": colors[color], "pattern": {"shape": pattern, "fillmode": "overlay", "size": 6,
                                                        "fgcolor": colors["ground"], "fgopacity": 0.4}},
            error_x=None if bytes_ else whiskers, hovertemplate=f"%{{y}}: %{{x:,.4~g}}{unit}",
        )  # fmt: skip
        made.add_bar(  # nothing but the number, behind the upper quartile
            y=y, x=[high - y for y, high in zip(series.y, series.high)], base=series.y, orientation="h",
            offsetgroup=series.name, marker={"color": "rgba(0,0,0,0)"}, hoverinfo="skip", showlegend=False,
            text=[f"\u2002{_short(y)}{unit}" for y in series.y], textposition="outside", cliponaxis=False,
        )  # fmt: skip
    made.update_yaxes(categoryorder="array", categoryarray=[_two_lines(name) for name in names][::-1], automargin=True)
    made.update_xaxes(title=chart.y_label, range=[0, max(high for series in chart.series for high in series.high)])
    figures.styled(made, colors, height=100 + (20 + 20 * len(chart.series)) * len(names))
    return made.update_layout(hovermode="closest", legend_traceorder="reversed", margin_r=84)  # room for the longest's number


def _short(value: float) -> str:
    for size, unit in ((2**40, " Ti"), (2**30, " Gi"), (2**20, " Mi"), (2**10, " Ki")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def _lines(chart: Chart, colors: dict, roles: dict) -> go.Figure:
    made = go.Figure()
    for series, style in zip(chart.series, styles_of(chart.series)):
        mode = "lines" if series.computed else "markers" if series.measured_only else "lines+markers"
        made.add_scatter(
            x=series.x, y=series.y, name=series.name, mode=mode,
            line={"color": roles[series.role], "width": 2, "dash": _PLOTLY_DASHES[style % 4]},
            marker={"size": 9, "symbol": _SYMBOLS[style % 4], "color": roles[series.role]},
            error_y=None if not series.high else {
                "type": "data", "symmetric": False, "thickness": 1, "width": 2, "color": roles[series.role],
                "array": [high - y for y, high in zip(series.y, series.high)],
                "arrayminus": [y - low for y, low in zip(series.y, series.low)],
            },
            hovertemplate="%{x}: %{y:,.4~g}",
        )  # fmt: skip
    for value, name in chart.levels:
        made.add_hline(value, line={"color": colors["dim"], "dash": "dot", "width": 1})
        made.add_annotation(x=0, xref="paper", xanchor="left", y=log10(value) if chart.y_log else value, yanchor="bottom",
                            text=name, showarrow=False, font={"color": colors["dim"], "size": 11})  # fmt: skip
    xs = _x_ticks({x for series in chart.series for x in series.x}) if chart.x_log else None
    ticks = {"type": "log", "tickvals": xs, "ticktext": [length_text(x) for x in xs]} if xs else {}
    made.update_xaxes(title=chart.x_label, automargin=True, **ticks)
    heights = [y for series in chart.series for y in series.y]
    few = chart.y_log and max(heights) < 1000 * min(heights)  # decades: then 2 and 5 are ticks too
    powers = {"type": "log", "dtick": "D2" if few else 1, "exponentformat": "SI"} if chart.y_log else {"rangemode": "tozero"}
    made.update_yaxes(title=chart.y_label, automargin=True, **powers)
    figures.styled(made, colors, height=420)
    return made.update_layout(hovermode="closest", margin_r=30,
                              legend={"yref": "container", "yanchor": "bottom", "y": 0, "itemwidth": 34})  # fmt: skip


def _x_ticks(xs: set) -> list:
    """All of them; of many the powers of four."""
    return sorted(xs) if len(xs) <= 8 else sorted(x for x in xs if x == 4 ** (x.bit_length() // 2)) or sorted(xs)


def _strips(chart: Chart, colors: dict, roles: dict) -> go.Figure:
    longest = max(len(series.y) for series in chart.series)
    wrong = [[1 if v is not None and (v < 0 or v > 1) else None for v in s.y] for s in chart.series]
    names = [_two_lines(series.name) for series in chart.series]
    made = go.Figure()
    made.add_heatmap(
        z=[[None if v is None else min(1.0, abs(v)) for v in s.y] for s in chart.series], y=names, xgap=1, ygap=3,
        zmin=0, zmax=1, colorscale=[[0, colors["empty"]], [1, roles["ours"]]], hoverongaps=False,
        customdata=[["NaN or infinity" if v is not None and v < 0 else f"{v:.2f} of what is allowed" if v is not None
                     else "" for v in s.y] for s in chart.series],
        hovertemplate="%{y}, part %{x} of " + str(longest) + ": %{customdata}<extra></extra>",
        colorbar={"title": {"text": "error / allowed", "side": "right"}, "thickness": 10, "tickcolor": colors["dim"]},
    )  # fmt: skip
    made.add_heatmap(z=wrong, y=names, xgap=1, ygap=3, colorscale=[[0, roles["other"]], [1, roles["other"]]],
                     showscale=False, hoverongaps=False, hoverinfo="skip")  # fmt: skip
    made.update_yaxes(autorange="reversed", automargin=True)
    made.update_xaxes(title=chart.x_label)
    figures.styled(made, colors, height=120 + 30 * len(names))
    return made.update_layout(hovermode="closest")
