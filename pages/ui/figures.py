"""Plotly figures, as pure functions from numbers and colours."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

MAX_POINTS = 2000
DASHES = {"lts": "solid", "lte": "dash", "uts": "dot", "ute": "dashdot"}


def thinned(values: np.ndarray, points: int = MAX_POINTS) -> tuple[np.ndarray, np.ndarray]:
    """(positions, values) of at most 2 x `points` numbers that keep the minimum and the maximum of every bucket.

    So no step is lost, however narrow; a vector of up to `points` numbers comes back whole.
    """
    n = len(values)
    if n <= points:
        return np.arange(n), values
    width = -(-n // points)
    padded = np.concatenate([values, np.full(-n % width, values[-1], values.dtype)]).reshape(-1, width)
    start = np.arange(len(padded)) * width
    ends = np.sort(np.stack([start + padded.argmin(1), start + padded.argmax(1)], axis=1), axis=1).ravel()
    ends = np.unique(np.append(np.minimum(ends, n - 1), [0, n - 1]))
    return ends, values[ends]


def vector_curves(vectors: dict[str, np.ndarray], seqlen_q: int, colors: dict, column: int) -> go.Figure:
    """The vectors over the key columns, row numbers downwards as in the matrix; `column` is marked.

    A step stands at the left edge of its column; a last point, the same number again, closes the last column.
    """
    figure = go.Figure()
    seqlen_k = len(next(iter(vectors.values())))
    for name, values in vectors.items():
        x, y = thinned(values)
        x, y = np.append(x, seqlen_k), np.append(y, y[-1])
        figure.add_scatter(
            x=x,
            y=y,
            name=name.upper(),
            mode="lines+markers",  # only points can be clicked; nothing of them is drawn
            marker={"color": "rgba(0,0,0,0)", "size": 9},
            line={
                "shape": "hv",
                "dash": DASHES[name],
                "color": colors["lower" if name[0] == "l" else "upper"],
                "width": 1.8,
            },
            customdata=np.minimum(x, seqlen_k - 1),
            hovertemplate="column %{customdata}: row %{y}",
        )
    figure.add_vline(column, line={"color": colors["select"], "dash": "dash", "width": 1.2})
    figure.update_xaxes(title="key column", range=[0, seqlen_k])
    figure.update_yaxes(title="row", range=[seqlen_q * 1.02, -seqlen_q * 0.02])
    return styled(figure, colors, height=300)


def styled(figure: go.Figure, colors: dict, height: int) -> go.Figure:
    """Our look: no ground of its own, thin grid, legend on top."""
    axis = {
        "gridcolor": colors["line"],
        "zerolinecolor": colors["line"],
        "linecolor": colors["line"],
        "color": colors["dim"],
        "tickfont": {"color": colors["dim"]},  # Streamlit's own theme is paler
        "title": {"font": {"color": colors["dim"]}},
    }
    figure.update_layout(
        height=height,
        margin={"l": 10, "r": 10, "t": 30, "b": 10},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": colors["text"], "size": 12},
        hovermode="x",
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        modebar={"bgcolor": "rgba(0,0,0,0)"},
        bargap=0.25,
    )
    figure.update_xaxes(**axis)
    figure.update_yaxes(**axis)
    return figure
