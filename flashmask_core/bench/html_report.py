"""A run as one HTML file: what was measured on what, a table and a chart for each question, no script, no request."""

from __future__ import annotations

from html import escape

from ..masks.picture import THEMES
from .charts import Chart, cases_of, engine_label, error_chart, memory_chart, ordered, peak_chart, reasons, swept, time_chart
from .report import devices_of
from .result import BenchRow
from .svg_chart import svg_chart
from .table import legend, where_line

_COLUMNS = (
    ("Engine", engine_label),
    ("Pass", lambda row: row.direction),
    ("ms", lambda row: _number(row.median_ms)),
    ("quartiles", lambda row: "" if row.lower_quartile_ms is None
     else f"{_number(row.lower_quartile_ms)} – {_number(row.upper_quartile_ms)}"),
    ("TFLOP/s (1-ρ)", lambda row: _number(row.tflops_rho)),
    ("TFLOP/s (pairs)", lambda row: _number(row.tflops_density)),
    ("peak bytes", lambda row: _whole(row.peak_memory_bytes)),
    ("mask bytes", lambda row: _whole(row.mask_bytes)),
    ("mask building, ms", lambda row: _number(row.mask_build_ms)),
    ("compile, ms", lambda row: _number(row.compile_ms)),
    ("outcome", lambda row: row.status if row.status != "ok" else (row.check or "ok").split(":")[0]),
)  # fmt: skip


def charts_of(rows) -> list[Chart]:
    """The charts of a run, one a question."""
    directions = dict.fromkeys(row.direction for row in rows) if swept(rows) else (None,)
    found = [time_chart(rows, direction) for direction in directions]
    found += [peak_chart(rows), memory_chart(rows), error_chart(rows)]
    return [chart for chart in found if chart]


def html_report(rows: list[BenchRow], title: str) -> str:
    """The report; it follows the reader's light or dark theme."""
    where = [where_line(device) for device in devices_of(rows)] or [where_line(None)]
    date = rows[0].date_utc if rows and rows[0].date_utc else ""
    parts = [f"<h1>{escape(title)}</h1>", *(f"<p class=dim>{escape(line)}, {escape(date)}</p>" for line in where)]
    rows = ordered(rows)
    for chart in charts_of(rows):
        parts += [f'<div class="wide {theme}">{svg_chart(chart, theme)}</div>' for theme in ("light", "dark")]
    for case in cases_of(rows).values():
        parts.append(_case(case))
    parts.append(f"<p class=dim>{escape(legend(rows))}</p>")
    return _PAGE.format(title=escape(title), style=_style(), body="\n".join(parts))


def _case(rows: list[BenchRow]) -> str:
    row = rows[0]
    lengths = f"N {row.seqlen_q:,}" if row.seqlen_q == row.seqlen_k else f"Sq {row.seqlen_q:,}, Sk {row.seqlen_k:,}"
    needs = "" if row.dense_mask_bytes is None else (
        f" A dense mask needs {row.dense_mask_bytes:,} bytes, the four vectors {row.vector_bytes:,}."
    )  # fmt: skip
    named = row.mask_name or len(row.mask) > 120  # else the heading is all of it
    text = f"<pre>{escape(row.mask)}</pre>" if named else ""
    head = "".join(f"<th>{escape(name)}</th>" for name, _ in _COLUMNS)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell(r)))}</td>' for _, cell in _COLUMNS)}</tr>" for r in rows)
    return (
        f"<h2><code>{escape(row.mask_name or row.mask[:120])}</code></h2>"
        f"<p class=dim>{lengths}, B {row.batch}, H {row.heads}, key heads {row.kv_heads}, D {row.head_dim}, {row.dtype}, "
        f"tiles of {row.block} × {row.block}.{needs}</p>{text}"
        f"<div class=wide><table><tr>{head}</tr>{body}</table></div>"
        + "".join(f"<p class=dim>{escape(line)}</p>" for line in reasons(rows))
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.3f}" if value < 100 else f"{value:,.1f}"


def _whole(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _style() -> str:
    def colours(theme: str) -> str:
        ground, text, dim, line, *_ = THEMES[theme]
        return f"--ground:{ground};--text:{text};--dim:{dim};--line:{line};"

    return (
        f":root{{color-scheme:light dark;{colours('light')}}}.dark{{display:none}}"
        f"@media(prefers-color-scheme:dark){{:root{{{colours('dark')}}}.dark{{display:block}}.light{{display:none}}}}"
        "body{background:var(--ground);color:var(--text);font:15px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif;"
        "max-width:1180px;margin:2rem auto;padding:0 1rem}svg{width:100%;min-width:640px;height:auto;margin:.5rem 0}"
        "h1{font-size:22px}h2{font-size:16px;margin:2rem 0 0}.dim{color:var(--dim);font-size:13px;margin:.2rem 0;"
        "white-space:pre-line}pre{font-size:12px;white-space:pre-wrap;overflow-wrap:anywhere;max-height:9rem;overflow:auto}"
        ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;"
        "margin:.6rem 0}td,th{border-top:1px solid var(--line);padding:5px 14px 5px 0;text-align:right;"
        "vertical-align:top;white-space:nowrap}th{color:var(--dim);font-weight:500;border:0}"
        "td:nth-child(-n+2),th:nth-child(-n+2),td:last-child,th:last-child{text-align:left}"
    )


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head>
<body>
{body}
</body></html>
"""
