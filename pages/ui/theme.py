"""The one palette: colours of tiles, vectors and text in light and dark, for the canvas, the cards and Plotly.

CSS gets both at once through `light-dark()`, which follows the theme the page shows without a rerun. Figures are made
on the server and ask `st.context.theme` which of the two is on.
"""

from __future__ import annotations

import streamlit as st

PALETTE = {
    # name: (light, dark)
    "ground": ("#FFFFFF", "#0E1117"),
    "text": ("#1A1D24", "#E6E8EC"),
    "dim": ("#5B6472", "#9AA3AF"),
    "line": ("#E1E4E9", "#2A2F3A"),
    "card": ("#F8F9FB", "#161A22"),
    "empty": ("#EDEDED", "#262B33"),
    "partial": ("#DDAA33", "#B8651B"),
    "full": ("#004488", "#9CD3F5"),
    "lower": ("#B93C0A", "#FB923C"),
    "upper": ("#0F766E", "#2DD4BF"),
    "select": ("#DB2777", "#F472B6"),
}

CARD_CSS = """
.fm-card { border: 1px solid var(--fm-line); border-radius: 10px; padding: 12px 14px; background: var(--fm-card);
  color: var(--fm-text); font-size: 14px; line-height: 1.45; }
.fm-card small { color: var(--fm-dim); font-size: 12px; }
.fm-card .big { font-size: 26px; font-weight: 700; line-height: 1.15; font-variant-numeric: tabular-nums; }
.fm-card .row { display: flex; justify-content: space-between; gap: 10px; margin-top: 4px; }
.fm-card .row span { color: var(--fm-dim); }
.fm-card .row b { font-weight: 600; font-variant-numeric: tabular-nums; white-space: nowrap; }
.fm-card .foot { margin-top: 8px; padding-top: 7px; border-top: 1px solid var(--fm-line);
  color: var(--fm-dim); font-size: 12px; }
.fm-stack { display: flex; height: 14px; border-radius: 4px; overflow: hidden; margin: 8px 0 6px;
  background: var(--fm-empty); }
.fm-key { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 6px; vertical-align: -1px;
  box-shadow: inset 0 0 0 1px var(--fm-line); }
.fm-empty { background: var(--fm-empty); }
.fm-full { background: var(--fm-full); }
.fm-partial { background:
  repeating-linear-gradient(45deg, transparent 0 3px, rgba(0, 0, 0, .34) 3px 4.5px) var(--fm-partial); }
.fm-sub { color: var(--fm-dim); margin: 0; font-size: 14px; }
.fm-lesson { color: var(--fm-text); font-size: 15px; line-height: 1.55; }
.fm-lesson h2 { font-size: 17px; font-weight: 600; margin: 0 0 .5em; padding: 0; }
.fm-lesson p { margin: 0 0 .7em; }
.fm-lesson ul { margin: 0 0 .7em; padding-left: 1.2em; }
.fm-lesson .task { border-left: 3px solid var(--fm-full); padding: 2px 0 2px 10px; font-weight: 600; }
.fm-lesson.after { border-left: 3px solid var(--fm-line); padding-left: 10px; }
.fm-error { border-left: 3px solid var(--fm-lower); background: var(--fm-card); border-radius: 6px; padding: 8px 12px;
  color: var(--fm-text); font-size: 13.5px; }
.fm-finding { display: flex; gap: 10px; align-items: flex-start; font-size: 14px; line-height: 1.45;
  color: var(--fm-text); }
.fm-finding i { flex: none; width: 18px; height: 18px; border-radius: 50%; color: var(--fm-ground); font-weight: 700;
  font-style: normal; font-size: 12px; line-height: 18px; text-align: center; margin-top: 1px; }
.fm-thumb { margin: 0; }
.fm-thumb img { width: 100%; display: block; border-radius: 6px; image-rendering: pixelated; }
.st-key-examples .fm-thumb img { min-height: 10px; border: 1px solid var(--fm-line); }
.st-key-examples .fm-sub { font-size: 13px; line-height: 1.4; margin-top: -10px; }
.st-key-examples [data-testid="stColumn"]:first-child { min-width: 56px; max-width: 64px; flex: none; }
.st-key-examples [data-testid="stHorizontalBlock"] { flex-wrap: nowrap; }
.st-key-examples [data-testid="stColumn"]:last-child { min-width: 0; }
.st-key-repair .fm-thumb { max-width: 280px; }
.fm-thumb figcaption { color: var(--fm-dim); font-size: 12px; margin-top: 4px; }
.fm-error small { color: var(--fm-dim); }
.fm-error pre { margin: 0 0 4px; padding: 0; background: none; font: 13px/1.35 ui-monospace, Menlo, Consolas, monospace;
  white-space: pre; overflow-x: auto; color: var(--fm-text); }
.fm-error pre i { color: var(--fm-lower); font-style: normal; font-weight: 700; }
"""


def variables(selector: str) -> str:
    """CSS that sets --fm-<name> for every colour of the palette on a selector."""
    lines = "".join(f"--fm-{name}:light-dark({light},{dark});" for name, (light, dark) in PALETTE.items())
    return f"{selector}{{{lines}}}"


def overlays() -> str:
    """CSS for what stands outside the app's own element, which alone knows the theme."""
    scheme = "dark" if is_dark() else "light"
    return f'[data-testid="stPopoverBody"],[data-testid="stDialog"]{{color-scheme:{scheme}}}'


def is_dark() -> bool:
    """True when the browser of this session shows the dark theme."""
    return st.context.theme.type == "dark"


def colors() -> dict[str, str]:
    """The palette of the theme that is on, for figures."""
    return {name: pair[is_dark()] for name, pair in PALETTE.items()}
