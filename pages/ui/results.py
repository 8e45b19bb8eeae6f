"""Benchmark rows as a table and as bars. A failed or skipped row stays, with its reason."""

from __future__ import annotations

import plotly.graph_objects as go
import streamlit as st

from flashmask_core.bench.providers import PROVIDERS
from flashmask_core.bench.result import BenchRow, DeviceInfo, dumps

from . import figures, theme
from .words import bytes_text


def place(where: DeviceInfo | None, date: str | None) -> str:
    """Device, versions, date and commit in one line."""
    if where is None:
        return "device unknown"
    parts = [where.device]
    parts += [
        f"{name} {value}"
        for name, value in (
            ("torch", where.torch_version),
            ("triton", where.triton_version),
            ("CUDA", where.cuda_version),
            ("driver", where.driver),
        )
        if value
    ]
    if date:
        parts.append(date.replace("T", " ").replace("+00:00", " UTC"))
    if where.commit:
        commit, plus, changes = where.commit.partition("+")
        parts.append(f"commit {commit[:10]}{plus}{changes}")
    return " · ".join(parts)


def label(row: BenchRow) -> str:
    """The engine as people call it, its backend with it."""
    provider = PROVIDERS.get(row.provider)
    name = provider.label if provider else row.provider
    return f"{name} [{row.backend}]" if row.backend and row.backend not in name else name


def worst_error(row: BenchRow) -> str:
    """The tensor whose error is nearest to its limit: "dq 0.0031 of 0.0078 allowed"."""
    if not row.errors:
        return row.check or ""
    name, error = max(row.errors.items(), key=lambda item: _strain(item[1]))
    measured = "NaN or inf" if error.max_error is None else f"{error.max_error:.2g}"
    return f"{name} {measured} of {error.limit:.2g} allowed"


def _strain(error) -> float:
    return float("inf") if error.max_error is None else error.max_error / max(error.limit, 1e-30)


def table_rows(rows) -> list[dict]:
    """What the table shows, one dict a row: None where nothing was measured, no column that is empty throughout."""
    ours = {r.direction: r.median_ms for r in rows if r.provider.startswith("flashmask") and r.median_ms}
    shown = []
    for row in rows:
        base = ours.get(row.direction)
        shown.append(
            {
                "Engine": label(row),
                "Pass": row.direction,
                "Dtype": row.dtype,
                "Outcome": row.status if row.status != "ok" else row.check or "ok",
                "Computes": row.computes or "",
                "Time, ms": row.median_ms,
                "× FlashMask": row.median_ms / base if row.median_ms and base else None,
                "TFLOP/s (1-ρ)": row.tflops_rho,
                "TFLOP/s (pairs)": row.tflops_density,
                "Peak memory": None if row.peak_memory_bytes is None else bytes_text(row.peak_memory_bytes),
                "Mask": None if row.mask_bytes is None else bytes_text(row.mask_bytes),
                "Mask building, ms": row.mask_build_ms,
                "Largest error": worst_error(row),
                "Reason": row.reason or row.detail or "",
            }
        )
    said = [name for name in shown[0] if any(line[name] not in (None, "") for line in shown)] if shown else []
    if len({row.dtype for row in rows}) < 2:
        said = [name for name in said if name != "Dtype"]
    return [{name: line[name] for name in said} for line in shown]


def table(rows) -> None:
    """The table alone."""
    numbers = {
        "Time, ms": "%.3f",
        "× FlashMask": "%.2f",
        "TFLOP/s (1-ρ)": "%.1f",
        "TFLOP/s (pairs)": "%.1f",
        "Mask building, ms": "%.3f",
    }
    shown = table_rows(rows)
    config = {
        name: st.column_config.NumberColumn(format=form) for name, form in numbers.items() if shown and name in shown[0]
    }
    config |= {name: st.column_config.TextColumn(width=wide) for name, wide in (("Outcome", 150), ("Engine", 220))}
    st.dataframe(
        shown,
        hide_index=True,
        width="stretch",
        column_config=config,
        height="content" if len(shown) <= 20 else 760,
        placeholder="–",
    )


def show(rows, *, key: str) -> None:
    """Bars, table and download."""
    timed = [row for row in rows if row.median_ms is not None]
    if timed:
        st.plotly_chart(
            time_bars(timed, theme.colors()), width="stretch", key=f"bars_{key}", config={"displaylogo": False}
        )
    table(rows)
    if not timed:
        st.caption("An error may be twice the error of plain torch in the same dtype.")
        return
    st.caption(
        "TFLOP/s (1-ρ): 4·B·H·Sq·Sk·D·(1-ρ) with ρ of 128 × 128 tiles, the paper's figure. TFLOP/s (pairs): 4·D for "
        "each visible pair. Backward counts 2.5 times that. An error may be twice the error of plain torch "
        "in the same dtype. Mask: what an engine keeps on the GPU to know the mask, for FlashMask the vectors and its "
        "tile lists. Ceilings compute every pair or the causal half, not this mask."
    )
    st.download_button(
        "Download rows (.jsonl)",
        "\n".join(dumps(row.to_json()) for row in rows),
        "flashmask_bench.jsonl",
        on_click="ignore",
        key=f"rows_{key}",
    )


def _in_two_lines(name: str) -> str:
    """An engine's name with what is in brackets below it, so that the bars keep their room on a phone."""
    place = min((at for at in (name.find(" ("), name.find(" [")) if at > 0), default=0)
    return f"{name[:place]}<br>{name[place + 1 :]}" if place else name


def time_bars(rows, colors: dict) -> go.Figure:
    """Median milliseconds of every engine, forward and backward side by side, quartiles as whiskers."""
    figure = go.Figure()
    engines = list(dict.fromkeys(_in_two_lines(label(row)) for row in rows))
    for direction, color, pattern in (("backward", colors["partial"], "/"), ("forward", colors["full"], "")):
        part = [row for row in rows if row.direction == direction]
        if not part:
            continue
        figure.add_bar(
            y=[_in_two_lines(label(row)) for row in part],
            x=[row.median_ms for row in part],
            orientation="h",
            name=direction,
            marker={
                "color": color,
                "pattern": {
                    "shape": pattern,
                    "fillmode": "overlay",
                    "size": 6,
                    "fgcolor": colors["ground"],
                    "fgopacity": 0.4,
                },
            },
            error_x={
                "type": "data",
                "symmetric": False,
                "thickness": 1,
                "width": 3,
                "color": colors["dim"],
                "array": [(row.upper_quartile_ms or row.median_ms) - row.median_ms for row in part],
                "arrayminus": [row.median_ms - (row.lower_quartile_ms or row.median_ms) for row in part],
            },
            text=[f"\u2002{row.median_ms:.3g} ms" for row in part],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{y}: %{x:.3f} ms",
        )
    figure.update_yaxes(categoryorder="array", categoryarray=engines[::-1], automargin=True)
    longest = max(row.upper_quartile_ms or row.median_ms for row in rows)
    figure.update_xaxes(title="ms, median", range=[0, 1.22 * longest])  # room for the number behind the longest bar
    figures.styled(figure, colors, height=110 + 44 * len(engines))
    return figure.update_layout(hovermode="closest", legend_traceorder="reversed")
