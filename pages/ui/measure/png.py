"""Buttons that save charts as PNG: the browser draws the SVG of the report, so no image library is needed."""

from __future__ import annotations

from functools import cache

import streamlit as st

SCALE = 2

_HTML = '<div class="fm-png"></div>'

_CSS = """
.fm-png { display: flex; flex-direction: column; gap: 8px; font-family: var(--st-font); }
button { height: 2.5rem; border: 1px solid var(--st-border-color); border-radius: 8px; cursor: pointer;
  background: var(--st-background-color); color: var(--st-text-color); font: inherit; font-size: 0.875rem; width: 100%; }
button:hover { border-color: var(--st-primary-color); color: var(--st-primary-color); }
button:focus-visible { outline: 2px solid var(--st-primary-color); }
"""

_JS = """
const save = (blob, name) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};

async function png({ svg, name, width, height }, scale) {
  const image = new Image(), canvas = document.createElement("canvas");
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
  await image.decode();
  [canvas.width, canvas.height] = [width * scale, height * scale];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => save(blob, name), "image/png");
}

export default function ({ parentElement, data }) {
  const box = parentElement.querySelector(".fm-png");
  box.replaceChildren(...data.pictures.map((picture) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = picture.label;
    button.onclick = () => png(picture, data.scale);
    return button;
  }));
}
"""


@cache
def _component():
    return st.components.v2.component("flashmask_png", html=_HTML, css=_CSS, js=_JS)


def buttons(pictures: list[dict], *, key: str) -> None:
    """A button for each picture: {"label", "name" of the file, "svg", "width", "height"}."""
    _component()(data={"pictures": pictures, "scale": SCALE}, key=key)
