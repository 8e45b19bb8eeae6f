"""The page's figures, as pure functions from its numbers and colours."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from flashmask_core.bench.result import BenchRow

from ..figures import styled
from .facts import ENGINES, Line, measured
from .tables import name_text

_LENGTHS = 2 ** np.arange(12, 21)
_LOOKS = {"flashmask": ("full", "circle", "solid"), "flex": ("partial", "square-open", "dash")}


def speed(lines: list[Line], colors: dict, here: str) -> go.Figure:
    """TFLOP/s of every mask: ours and FlexAttention's here, hatched the paper's on its A100."""
    figure = go.Figure()
    names = [name_text(line.mask) for line in lines]
    for device, side, pattern in ((here, "here", ""), ("A100, paper", "paper", "/")):
        for engine, label in ENGINES.items():
            times = [getattr(line, side)[engine] for line in lines]
            if any(times):
                figure.add_bar(
                    y=names, x=[t and t.tflops for t in times], orientation="h", name=f"{label}, {device}",
                    marker={"color": colors[_LOOKS[engine][0]],
                            "pattern": {"shape": pattern, "fgcolor": colors["ground"], "size": 5,
                                        "fillmode": "overlay"}},
                    hovertemplate="%{y}: %{x:,.0f} TFLOP/s<extra>" + f"{label}, {device}</extra>",
                )  # fmt: skip
    figure.update_yaxes(autorange="reversed")
    figure.update_xaxes(title="TFLOP/s")
    return styled(figure, colors, height=660).update_layout(hovermode="closest", legend={"y": 1.01}, bargap=0.2)


def latency(lines: list[Line], colors: dict, here: str) -> go.Figure:
    """Time over the share of tiles that are skipped, a point a mask, with the straight line through each engine's.

    A panel a GPU; the one `here` is left out where nothing was measured.
    """
    sides = {"here": here, "paper": "A100, the paper"} if measured(lines) else {"paper": "A100, the paper"}
    figure = make_subplots(1, len(sides), subplot_titles=list(sides.values()), horizontal_spacing=0.09)
    named: set[str] = set()
    for column, side in enumerate(sides, 1):
        for engine, label in ENGINES.items():
            color, symbol, dash = _LOOKS[engine]
            known = [line for line in lines if getattr(line, side)[engine]]
            if not known:
                continue
            x = np.array([line.timed_rho if side == "here" else line.own_rho for line in known])
            y = np.array([getattr(line, side)[engine].ms for line in known])
            figure.add_scatter(
                x=x, y=y, mode="markers", name=label, legendgroup=engine, showlegend=engine not in named,
                marker={"color": colors[color], "symbol": symbol, "size": 9, "line": {"width": 2}},
                text=[name_text(line.mask) for line in known], row=1, col=column,
                hovertemplate="%{text}: ρ %{x:.4f}, %{y:.2f} ms<extra>" + label + "</extra>",
            )  # fmt: skip
            named.add(engine)
            if len(known) > 2:
                ends = np.array([x.min(), x.max()])
                figure.add_scatter(
                    x=ends, y=np.polyval(straight(x, y), ends), mode="lines", legendgroup=engine, showlegend=False,
                    line={"color": colors[color], "dash": dash, "width": 1.5}, hoverinfo="skip", row=1, col=column,
                )  # fmt: skip
    figure.update_xaxes(title="ρ, skipped", range=[-0.03, 1.0])
    figure.update_yaxes(rangemode="tozero")
    figure.update_yaxes(title="ms", col=1)
    styled(figure, colors, height=380).update_layout(hovermode="closest", margin={"t": 60}, legend={"y": 1.12})
    return figure.update_annotations(font={"size": 13})


def straight(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """(slope, height at 0) of the line with the medians of what pairs of points say: a few points far off move it little."""
    i, j = np.triu_indices(len(x), 1)
    apart = np.abs(x[j] - x[i]) > 1e-9
    slope = float(np.median((y[j] - y[i])[apart] / (x[j] - x[i])[apart])) if apart.any() else 0.0
    return slope, float(np.median(y - slope * x))


def memory(rows: list[BenchRow], colors: dict) -> go.Figure:
    """Bytes of one mask over the length: dense, as FlexAttention's blocks, as vectors; points were measured."""
    figure = go.Figure()
    tiles = (_LENGTHS / 128) ** 2
    for label, values, color, dash in (
        ("dense, bfloat16", 2.0 * _LENGTHS**2.0, "lower", "dot"),
        ("dense, bool", 1.0 * _LENGTHS**2.0, "lower", "solid"),
        ("FlexAttention’s BlockMask", 16 * tiles, "partial", "dash"),
        ("FlashMask, 4 vectors", 16.0 * _LENGTHS, "full", "dash"),
        ("FlashMask, 1 vector", 4.0 * _LENGTHS, "full", "solid"),
    ):
        figure.add_scatter(
            x=_LENGTHS, y=values, mode="lines", name=label, line={"color": colors[color], "dash": dash, "width": 2},
            hovertemplate="N %{x:,}: %{y:.3s}B<extra>" + label + "</extra>",
        )  # fmt: skip
    for engine, label in ENGINES.items():
        held = {(row.seqlen_q, row.mask_bytes) for row in rows
                if row.provider == engine and row.mask_bytes and row.seqlen_q == row.seqlen_k}  # fmt: skip
        if held:
            x, y = zip(*sorted(held))
            figure.add_scatter(
                x=x, y=y, mode="markers", name=f"{label}, kept on the GPU", hovertemplate="N %{x:,}: %{y:.3s}B",
                marker={"color": colors[_LOOKS[engine][0]], "symbol": _LOOKS[engine][1], "size": 8,
                        "line": {"width": 2}},
            )  # fmt: skip
    ticks = {4096: "4K", 8192: "8K", 32768: "32K", 131072: "128K", 524288: "512K", 1048576: "1M"}
    figure.update_xaxes(type="log", title="N, tokens", tickvals=list(ticks), ticktext=list(ticks.values()))
    figure.update_yaxes(type="log", title="bytes of one mask", tickvals=[2.0**n for n in range(14, 42, 4)],
                        ticktext=["16 KiB", "256 KiB", "4 MiB", "64 MiB", "1 GiB", "16 GiB", "256 GiB"])  # fmt: skip
    return styled(figure, colors, height=400).update_layout(hovermode="closest")
