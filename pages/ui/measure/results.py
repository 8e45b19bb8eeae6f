"""Benchmark rows, a tab a question: how long, how much memory, how far off. A failed or skipped row stays, with its
reason."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from flashmask_core.bench.charts import (
    cases_of, engine_label, error_chart, memory_chart, ordered, peak_chart, reasons, swept, time_chart,
)  # fmt: skip
from flashmask_core.bench.peaks import unknown_peak
from flashmask_core.bench.result import BenchRow, DeviceInfo

from .. import theme
from ..words import bytes_text, plain
from . import plots

PNG_SCALE = 2
_MOST_REASONS = 12
_OF_THE_CASE = ("Mask", "N", "D", "Tile", "Dtype")  # columns that are left out where all rows say the same


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


def measured(where: DeviceInfo | None, date: str | None) -> str:
    """When and with which commit recorded rows were measured, first of all; then `place`. In Markdown."""
    if where is None or not (where.commit and date):
        return place(where, date)
    return (
        f"**Measured on {date[:10]} with commit {where.commit[:7]}**; what changed in the kernels since then is not in "
        f"these figures. {place(replace(where, commit=None), date)}"
    )


def worst_error(row: BenchRow) -> str:
    """The tensor whose error is nearest to its limit: "dq 0.0031 of 0.0078 allowed"."""
    if not row.errors:
        return row.check or ""
    name, error = max(row.errors.items(), key=lambda item: _strain(item[1]))
    measured = "NaN or inf" if error.max_error is None else f"{error.max_error:.2g}"
    return f"{name} {measured}" + ("" if error.limit is None else f" of {error.limit:.2g} allowed")


def _strain(error) -> float:
    return float("inf") if error.max_error is None else error.max_error / max(error.limit or 0.0, 1e-30)


def _outcome(row: BenchRow) -> str:
    if row.status == "ok" and row.computes in ("full", "causal"):
        return f"ceiling: {row.computes}"
    return row.status if row.status != "ok" else row.check or "ok"


def table_rows(rows) -> list[dict]:
    """What the table shows, one dict a row: None where nothing was measured, no column that is empty throughout."""
    ours = {(r.key[:-2], r.direction): r.median_ms for r in reversed(rows)
            if r.provider.startswith("flashmask") and r.median_ms}  # fmt: skip
    shown = []
    for row in rows:
        base = ours.get((row.key[:-2], row.direction))
        shown.append(
            {
                "Engine": engine_label(row),
                "Mask": row.mask_name or row.mask[:60],
                "N": row.seqlen_q,
                "D": row.head_dim,
                "Tile": row.block,
                "Pass": row.direction,
                "Dtype": row.dtype,
                "Outcome": _outcome(row),
                "Time, ms": row.median_ms,
                "Quartiles": quartiles_text(row),
                "× FlashMask": row.median_ms / base if row.median_ms and base else None,
                "TFLOP/s (1-ρ)": row.tflops_rho,
                "TFLOP/s (pairs)": row.tflops_density,
                "Largest error": worst_error(row),
                "Reason": "; ".join(filter(None, (row.reason, row.warning, row.detail))),
            }
        )
    said = [name for name in shown[0] if any(line[name] not in (None, "") for line in shown)] if shown else []
    said = [name for name in said if name not in _OF_THE_CASE or len({line[name] for line in shown}) > 1]
    return [{name: line[name] for name in said} for line in shown]


def table(rows, *, errors: bool = True) -> None:
    """The table alone; errors=False leaves out the largest error, which has a tab of its own."""
    numbers = {
        "Time, ms": "%.3f",
        "× FlashMask": "%.2f",
        "TFLOP/s (1-ρ)": "%.1f",
        "TFLOP/s (pairs)": "%.1f",
    }
    shown = table_rows(ordered(rows))
    if not errors:
        shown = [{name: value for name, value in line.items() if name != "Largest error"} for line in shown]
    config = {
        name: st.column_config.NumberColumn(format=form) for name, form in numbers.items() if shown and name in shown[0]
    }
    config |= {name: st.column_config.TextColumn(width=wide) for name, wide in (("Outcome", 130), ("Engine", 290))}
    st.dataframe(
        shown,
        hide_index=True,
        width="stretch",
        column_config=config,
        height="content" if len(shown) <= 20 else 760,
        placeholder="–",
    )
    said = reasons(rows)
    if said:
        more = [f"and {len(said) - _MOST_REASONS} more in the table"] if len(said) > _MOST_REASONS else []
        st.caption("  \n".join(plain(line) for line in [*said[:_MOST_REASONS], *more]))


def quartiles_text(row: BenchRow) -> str:
    """ "1.07 – 1.15", empty where there are none."""
    low, high = row.lower_quartile_ms, row.upper_quartile_ms
    return "" if low is None or high is None else f"{low:.3g} – {high:.3g}"


def cost_rows(rows) -> list[dict]:
    """What an engine costs besides its calls, each on a line: building its form of the mask, compiling; then its calls."""
    lines = []
    for case in cases_of(rows).values():
        by_engine: dict[str, list[BenchRow]] = {}
        for row in case:
            if row.median_ms is not None:
                by_engine.setdefault(engine_label(row), []).append(row)
        for name, own in by_engine.items():
            row = own[0]
            steps = [("compile", row.compile_ms, "once a shape"), ("mask building", row.mask_build_ms, "every new mask")]
            steps += [(f"kernel, {one.direction}", one.median_ms, "every call") for one in own]
            lines += [
                {"Engine": name, "Mask": row.mask_name or row.mask[:60], "N": row.seqlen_q, "D": row.head_dim,
                 "Tile": row.block, "Step": step, "ms": ms, "How often": often}
                for step, ms, often in steps if ms is not None
            ]  # fmt: skip
    return without_what_is_the_same(lines)


def memory_rows(rows) -> list[dict]:
    """Peak memory, the mask's own bytes, and what a dense mask and the vectors need, in whole bytes."""
    lines = [
        {"Engine": engine_label(row), "Mask": row.mask_name or row.mask[:60], "N": row.seqlen_q, "D": row.head_dim,
         "Tile": row.block, "Pass": row.direction, "Peak above inputs": _bytes(row.peak_memory_bytes),
         "Mask metadata": _bytes(row.mask_bytes), "Dense mask would need": _bytes(row.dense_mask_bytes),
         "Vectors need": _bytes(row.vector_bytes),
         "Outcome": row.status if row.status == "ok" else f"{row.status}: {row.reason}"}
        for row in rows
    ]  # fmt: skip
    return without_what_is_the_same(lines)


def _bytes(count: int | None) -> str:
    return "" if count is None else f"{count:,} ({bytes_text(count)})" if count >= 1024 else f"{count:,}"


def error_rows(rows) -> list[dict]:
    """Every tensor's error beside that of plain torch in the same dtype, what is allowed, and where it is largest."""
    lines = []
    for row in rows:
        for name, error in (row.errors or {}).items():
            place = "" if error.worst is None else "batch {}, head {}, position {:,}, channel {}".format(*error.worst)
            lines.append(
                {"Engine": engine_label(row), "Mask": row.mask_name or row.mask[:60], "N": row.seqlen_q,
                 "D": row.head_dim, "Tile": row.block, "Pass": row.direction, "Tensor": name,
                 "Error": "NaN or inf" if error.max_error is None else f"{error.max_error:.3g}",
                 "Plain torch": "NaN or inf" if error.naive_max_error is None else f"{error.naive_max_error:.3g}",
                 "Allowed": "" if error.limit is None else f"{error.limit:.3g}",
                 "Verdict": "passed" if error.passed else "failed", "Largest at": place}
            )  # fmt: skip
    return without_what_is_the_same(lines)


def without_what_is_the_same(lines: list[dict]) -> list[dict]:
    dropped = {name for name in _OF_THE_CASE if len({line.get(name) for line in lines}) < 2}
    dropped |= {name for name in (lines[0] if lines else ()) if all(line[name] in (None, "") for line in lines)}
    return [{name: value for name, value in line.items() if name not in dropped} for line in lines]


def show(rows, *, key: str) -> None:
    """A tab a question, each with one chart and one table."""
    rows = ordered(rows)
    if not any(row.median_ms is not None or row.mask_bytes for row in rows):
        table(rows)
        if any(row.errors for row in rows):
            st.caption("An error may be twice the error of plain torch in the same dtype.")
        return
    tabs = st.tabs(["Time", "Memory", "Error"], key=f"tabs_{key}", on_change="rerun")
    for tab, draw in zip(tabs, (_time, _memory, _error)):
        if tab.open:
            with tab:
                draw(rows, key)


def _chart(chart, name: str) -> None:
    """A chart; its camera saves a PNG."""
    if chart is None:
        return
    st.markdown(f"**{chart.title}**")
    config = {"displaylogo": False, "toImageButtonOptions": {"format": "png", "scale": PNG_SCALE, "filename": name}}
    figure = plots.figure(chart, theme.colors(), theme.is_dark())
    st.plotly_chart(figure, width="stretch", key=f"chart_{name}", config=config)


def _time(rows, key: str) -> None:
    directions = list(dict.fromkeys(row.direction for row in rows))
    direction = None
    if swept(rows) and len(directions) > 1:
        direction = st.segmented_control("Pass", directions, default=directions[0], key=f"direction_{key}",
                                         label_visibility="collapsed", required=True)  # fmt: skip
    _chart(time_chart(rows, direction), f"time_{key}")
    table(rows, errors=False)
    unknown = filter(None, dict.fromkeys(unknown_peak(row.where) for row in rows))
    st.caption(
        "Device events around each call, the L2 cache flushed before it, engines in rotating order. "
        "TFLOP/s (1-ρ): 4·B·H·Sq·Sk·D·(1-ρ), the paper's figure; (pairs): 4·D for each visible pair; backward counts "
        "2.5 times that, both 3.5. Ceilings compute every pair or the causal half, not this mask. " + plain(" ".join(unknown))
    )
    costs = cost_rows(rows)
    if costs:
        with st.expander("Compiling, building the mask and the kernel, each on its line"):
            st.dataframe(costs, hide_index=True, width="stretch", height="content" if len(costs) <= 24 else 760,
                         placeholder="–", column_config={"ms": st.column_config.NumberColumn(format="%.3f")})  # fmt: skip


def _memory(rows, key: str) -> None:
    _chart(memory_chart(rows), f"mask_memory_{key}")
    st.caption("Dashed: computed, to a million tokens. Marks: what an engine was measured to keep on the device.")
    _chart(peak_chart(rows), f"peak_{key}")
    lines = memory_rows(rows)
    st.dataframe(lines, hide_index=True, width="stretch", height="content" if len(lines) <= 20 else 760)
    st.caption(
        "Peak: the most that was allocated at a time above q, k, v and dout, in a process of its own for every engine, "
        "so it does not depend on the order. Mask metadata: what an engine keeps to know the mask, for FlashMask the "
        "vectors and its tile lists."
    )


def _error(rows, key: str) -> None:
    chart = error_chart(rows)
    if chart:
        _chart(chart, f"error_{key}")
        st.caption("Grey parts were not compared: at long N rows are sampled. Pink: beyond what is allowed, or NaN.")
    lines = error_rows(rows)
    if lines:
        st.dataframe(lines, hide_index=True, width="stretch", height="content" if len(lines) <= 24 else 760)
    unchecked = {f"{engine_label(row)}: {row.check}" for row in rows if row.check and row.check.startswith("not run")}
    st.caption(
        "Against the fp32 reference on the very inputs that are timed. An error may be twice the error of plain torch in "
        "the same dtype." + "".join(f"  \n{line}" for line in sorted(unchecked))
    )
