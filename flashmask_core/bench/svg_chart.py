"""A `Chart` as a self-contained SVG, for the HTML report and for pictures. Colours of both themes are in it."""

from __future__ import annotations

import math
from html import escape

from ..masks.picture import THEMES
from .charts import Chart, Series

WIDTH = 960
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 24, 76, 50
# Colours by role, light and dark; a role's second engine is told apart by its mark and its dashes.
ROLES = {
    "light": {"ours": "#004488", "flex": "#B07C00", "fa4": "#0F766E", "dense": "#B93C0A", "ceiling": "#5B6472",
              "other": "#DB2777"},
    "dark": {"ours": "#9CD3F5", "flex": "#E0A33E", "fa4": "#2DD4BF", "dense": "#FB923C", "ceiling": "#9AA3AF",
             "other": "#F472B6"},
}  # fmt: skip
DASHES = ("", "7 4", "2 3", "9 3 2 3")
_SHADES = {"backward": 0.62, "both": 0.38}  # opacity of bars


def svg_chart(chart: Chart, theme: str = "light", foot: str = "") -> str:
    """The chart on the ground of a theme; `foot`: a line below it (device, versions, date)."""
    ground, text, dim, line, *_ = THEMES[theme]
    draw = {"bars": _bars, "lines": _lines, "strips": _strips}[chart.kind]
    body, height = draw(chart, theme)
    lines = _wrapped(foot, 140)
    total = height + 20 + 15 * len(lines)
    feet = "".join(
        f'<text x="{_LEFT}" y="{height + 14 + 15 * i}" fill="{dim}" font-size="11">{escape(part)}</text>'
        for i, part in enumerate(lines)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total}" width="{WIDTH}" height="{total}" '
        f'font-family="system-ui,-apple-system,Segoe UI,Roboto,Noto Sans,DejaVu Sans,sans-serif" font-size="12" '
        f'role="img" aria-label="{escape(chart.title, quote=True)}"><rect width="100%" height="100%" fill="{ground}"/>'
        f'<text x="16" y="26" fill="{text}" font-size="16" font-weight="600">{escape(chart.title)}</text>'
        f"{body}{feet}</svg>"
    )


def _wrapped(text: str, most: int) -> list[str]:
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + len(word) < most:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def number_text(value: float) -> str:
    """1536000 -> "1.54M", 0.62 -> "0.62"."""
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def length_text(value: float) -> str:
    """131072 -> "128K", 2**20 -> "1M", 96000 -> "96,000", 0.25 -> "0.25"."""
    if value >= 2**20 and value % 2**20 == 0:
        return f"{value // 2**20:g}M"
    return f"{value // 1024:g}K" if value >= 1024 and value % 1024 == 0 else f"{value:,}"


def _legend(items, theme: str, y: int = 48) -> str:
    """(name, swatch markup at 0, 0) in rows above the plot."""
    text, x, out = THEMES[theme][1], 16, []
    for name, swatch in items:
        width = 30 + 6.6 * len(name)
        if x + width > WIDTH - 8 and x > 16:
            x, y = 16, y + 17
        out.append(f'<g transform="translate({x},{y})">{swatch}<text x="24" y="4" fill="{text}">{escape(name)}</text></g>')
        x += width + 10
    return "".join(out)


def _legend_rows(names) -> int:
    x, rows = 16, 1
    for name in names:
        width = 30 + 6.6 * len(name)
        if x + width > WIDTH - 8 and x > 16:
            x, rows = 16, rows + 1
        x += width + 10
    return rows


def _bars(chart: Chart, theme: str) -> tuple[str, int]:
    _, text, dim, line, *_ = THEMES[theme]
    names = list(dict.fromkeys(x for series in chart.series for x in series.x))
    left = min(380, 30 + max(7 * len(name) for name in names))
    most = max(high for series in chart.series for high in (series.high or series.y))
    thick, gap = 16, 14
    group = thick * len(chart.series) + gap
    color, out, y0 = ROLES[theme]["ours"], [], _TOP
    scale = (WIDTH - left - 110) / (most or 1)
    for number, name in enumerate(names):
        y = y0 + number * group
        middle = y + thick * len(chart.series) / 2 + 4
        out.append(f'<text x="{left - 8}" y="{middle:.1f}" fill="{text}" text-anchor="end">{escape(name)}</text>')
        for at, series in enumerate(chart.series):
            if name not in series.x:
                continue
            index = series.x.index(name)
            value, top = series.y[index], y + at * thick
            out.append(
                f'<rect x="{left}" y="{top + 1}" width="{max(1, value * scale):.1f}" height="{thick - 3}" rx="2" '
                f'fill="{color}" fill-opacity="{_SHADES.get(series.name, 1)}"/>'
            )
            end = value
            if series.high and series.high[index] > series.low[index]:
                low, end = series.low[index], series.high[index]
                at_y = top + thick / 2 - 0.5
                out.append(f'<path d="M{left + low * scale:.1f} {at_y}H{left + end * scale:.1f}" stroke="{text}"/>')
            out.append(
                f'<text x="{left + end * scale + 6:.1f}" y="{top + thick - 4}" fill="{dim}" font-size="11">'
                f"{number_text(value)}</text>"
            )
    bottom = y0 + len(names) * group
    out.append(f'<path d="M{left} {y0 - 4}V{bottom - gap + 4}" stroke="{line}"/>')
    out.append(f'<text x="{left}" y="{bottom + 12}" fill="{dim}">{escape(chart.y_label)}</text>')
    swatch = lambda name: (  # noqa: E731
        f'<rect width="18" height="10" y="-5" rx="2" fill="{color}" fill-opacity="{_SHADES.get(name, 1)}"/>'
    )
    return _legend([(s.name, swatch(s.name)) for s in chart.series], theme) + "".join(out), bottom + 24


def _ticks(low: float, high: float, log: bool) -> list[float]:
    if log:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        every = max(1, len(powers) // 8)
        ticks = [10.0**p for p in powers if p % every == 0]
        if len([t for t in ticks if low <= t <= high]) < 3:
            ticks = [m * 10.0**p for p in powers for m in (1, 2, 5)]
        return [t for t in ticks if low * 0.999 <= t <= high * 1.001]
    step = 10.0 ** math.floor(math.log10((high - low) / 4 or 1))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= 6)
    return [step * i for i in range(math.ceil(low / step), math.floor(high / step + 1e-9) + 1)]


class _Axis:
    """Numbers or names to pixels."""

    def __init__(self, values, log: bool, start: float, end: float, zero: bool):
        self.names = list(dict.fromkeys(v for v in values if isinstance(v, str)))
        self.start, self.end, self.log = start, end, log
        if self.names:
            return
        self.low, self.high = min(values), max(values)
        if zero and not log:
            self.low = min(0.0, self.low)
        if self.low == self.high:
            self.low, self.high = (self.low / 2, self.high * 2) if log and self.low > 0 else (self.low - 1, self.high + 1)

    def at(self, value) -> float:
        if self.names:
            share = (self.names.index(value) + 0.5) / len(self.names)
        elif self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def _mark(number: int, x: float, y: float, color: str) -> str:
    shapes = (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.6" fill="{color}"/>',
        f'<rect x="{x - 3.4:.1f}" y="{y - 3.4:.1f}" width="6.8" height="6.8" fill="{color}"/>',
        f'<path d="M{x:.1f} {y - 4.6:.1f}l4.4 8h-8.8z" fill="{color}"/>',
        f'<path d="M{x:.1f} {y - 4.8:.1f}l4.8 4.8-4.8 4.8-4.8-4.8z" fill="{color}"/>',
    )
    return shapes[number % len(shapes)]


def styles_of(series: tuple[Series, ...]) -> list[int]:
    """Of each series, which of its role it is: 0 for the first one with that colour, and so on."""
    seen: dict[str, int] = {}
    found = []
    for one in series:
        if one.computed:
            found.append(1)
            continue
        found.append(seen.get(one.role, 0))
        seen[one.role] = found[-1] + 1
    return found


def _lines(chart: Chart, theme: str) -> tuple[str, int]:
    _, text, dim, line, *_ = THEMES[theme]
    xs = [x for s in chart.series for x in s.x]
    ys = [y for s in chart.series for y in (*s.y, *s.low, *s.high)] + [value for value, _ in chart.levels]
    top = 56 + 17 * _legend_rows([s.name for s in chart.series])
    tilted = bool(xs) and isinstance(xs[0], str)
    height = top + 330
    x_axis = _Axis(xs, chart.x_log, _LEFT, WIDTH - _RIGHT, False)
    y_axis = _Axis(ys, chart.y_log, height, top, True)
    out, legend = [], []
    for tick in _ticks(y_axis.low, y_axis.high, chart.y_log):
        y = y_axis.at(tick)
        out.append(f'<path d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}" stroke="{line}"/>')
        out.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" fill="{dim}" text-anchor="end">{number_text(tick)}</text>')
    x_ticks = x_axis.names or sorted(set(xs))
    while not x_axis.names and len(x_ticks) > 12:
        x_ticks = x_ticks[::2]
    for tick in x_ticks:
        x, name = x_axis.at(tick), tick if x_axis.names else length_text(tick)
        turn = f' transform="rotate(-28 {x:.1f} {height + 18})" text-anchor="end"' if tilted else ' text-anchor="middle"'
        out.append(f'<text x="{x:.1f}" y="{height + 18}" fill="{dim}"{turn}>{escape(str(name))}</text>')
    for value, name in chart.levels:
        y = y_axis.at(value)
        out.append(f'<path d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}" stroke="{dim}" stroke-dasharray="2 4"/>')
        out.append(f'<text x="{_LEFT + 6}" y="{y - 5:.1f}" fill="{dim}" font-size="11">{escape(name)}</text>')
    for series, style in zip(chart.series, styles_of(chart.series)):
        color = ROLES[theme][series.role]
        points = [(x_axis.at(x), y_axis.at(y)) for x, y in zip(series.x, series.y)]
        dash = f' stroke-dasharray="{DASHES[style % 4]}"' if style else ""
        if not series.measured_only:
            path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
            out.append(f'<path d="{path}" fill="none" stroke="{color}" stroke-width="2"{dash}/>')
        for (x, _), low, high in zip(points, series.low, series.high):
            out.append(f'<path d="M{x:.1f} {y_axis.at(low):.1f}V{y_axis.at(high):.1f}" stroke="{color}"/>')
        if not series.computed:
            out += [_mark(style, x, y, color) for x, y in points]
        swatch = "" if series.measured_only else f'<path d="M0 0H18" stroke="{color}" stroke-width="2"{dash}/>'
        legend.append((series.name, swatch + ("" if series.computed else _mark(style, 9, 0, color))))
    bottom = height + (64 if tilted else 38)
    out.append(f'<text x="{WIDTH - _RIGHT}" y="{bottom}" fill="{dim}" text-anchor="end">{escape(chart.x_label)}</text>')
    out.append(f'<text x="{_LEFT}" y="{bottom}" fill="{dim}">{escape(chart.y_label)}</text>')
    return _legend(legend, theme) + "".join(out), bottom + 8


def _strips(chart: Chart, theme: str) -> tuple[str, int]:
    _, text, dim, line, *_ = THEMES[theme]
    left = min(400, 24 + max(7 * len(s.name) for s in chart.series))
    wide, tall = WIDTH - left - 76, 18
    out = []
    for number, series in enumerate(chart.series):
        y = 50 + number * (tall + 4)
        out.append(f'<text x="{left - 8}" y="{y + 13}" fill="{text}" text-anchor="end">{escape(series.name)}</text>')
        cell = wide / len(series.y)
        for at, value in enumerate(series.y):
            fill, opacity = strip_color(value, theme)
            out.append(
                f'<rect x="{left + at * cell:.1f}" y="{y}" width="{cell:.2f}" height="{tall}" fill="{fill}" '
                f'fill-opacity="{opacity:.2f}"/>'
            )
        known = [value for value in series.y if value is not None]
        said = "NaN" if -1.0 in known else f"{max(known, default=0):.2f}"
        out.append(f'<text x="{left + wide + 8}" y="{y + 13}" fill="{dim}">{said}</text>')
    bottom = 50 + len(chart.series) * (tall + 4) + 16
    out.append(f'<text x="{left}" y="{bottom}" fill="{dim}">{escape(chart.x_label)}; {escape(chart.y_label)}, '
               "the largest at the right</text>")  # fmt: skip
    return "".join(out), bottom + 8


def strip_color(value: float | None, theme: str) -> tuple[str, float]:
    """(colour, opacity) of a part: grey where nothing was compared, pink for NaN or beyond what is allowed."""
    if value is None:
        return THEMES[theme][4], 1.0
    if value < 0 or value > 1:
        return ROLES[theme]["other"], 1.0
    return ROLES[theme]["ours"], 0.08 + 0.92 * min(1.0, value)
