"""The one palette: colours of tiles, vectors and text in light and dark, for the canvas, the cards and Plotly.

CSS gets both at once through `light-dark()`, which follows the theme the page shows without a rerun. Figures are made
on the server and ask `st.context.theme` which of the two is on.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

PALETTE = {
    # name: (light, dark)
    "ground": ("#FFFFFF", "#0E1117"),
    "text": ("#1A1D24", "#E6E8EC"),
    "dim": ("#5B6472", "#9AA3AF"),
    "line": ("#E1E4E9", "#2A2F3A"),
    "edge": ("#868E9C", "#6A7383"),  # of what can be filled in: 3 : 1 on ground and card
    "card": ("#F8F9FB", "#161A22"),
    "empty": ("#EDEDED", "#262B33"),
    "partial": ("#DDAA33", "#B8651B"),
    "full": ("#004488", "#9CD3F5"),
    "lower": ("#B93C0A", "#FB923C"),
    "upper": ("#0F766E", "#2DD4BF"),
    "select": ("#DB2777", "#F472B6"),
}


def variables(selector: str) -> str:
    """CSS that sets --fm-<name> for every colour of the palette on a selector."""
    lines = "".join(f"--fm-{name}:light-dark({light},{dark});" for name, (light, dark) in PALETTE.items())
    return f"{selector}{{{lines}}}"


def sheet(selector: str, path: Path) -> str:
    """The style sheet of a component of ours: the palette on its element, what all of them share, then its own."""
    shared = (Path(__file__).parent / "shared.css").read_text("utf-8")
    return variables(selector) + ":host{container-type:inline-size}" + shared + path.read_text("utf-8")


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
