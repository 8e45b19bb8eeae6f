"""A button that copies the address of the page, which is the whole state of the screen."""

from __future__ import annotations

from functools import cache

import streamlit as st

_HTML = '<button type="button">Copy link</button><span role="status" aria-live="polite"></span>'

_CSS = """
button { width: 100%; height: 2.5rem; border: 1px solid var(--st-border-color); border-radius: 8px; cursor: pointer;
  background: var(--st-background-color); color: var(--st-text-color); font: inherit; font-size: 14px;
  white-space: nowrap; }
button:hover { border-color: var(--st-primary-color); color: var(--st-primary-color); }
button:focus-visible { outline: 2px solid var(--st-primary-color); }
span { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
:host { font-family: var(--st-font); }
"""

_JS = """
export default function ({ parentElement }) {
  const button = parentElement.querySelector("button"), status = parentElement.querySelector("span");
  button.onclick = async () => {
    const link = window.location.href;
    let done = true;
    try {
      await navigator.clipboard.writeText(link);
    } catch {
      const area = document.createElement("textarea");
      area.value = link;
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
    }
    button.textContent = done ? "Copied" : "Copy the address";
    status.textContent = done ? "Link copied" : "Copying is not allowed here: copy the address of the page";
    setTimeout(() => { button.textContent = "Copy link"; status.textContent = ""; }, 1600);
  };
}
"""


@cache
def _component():
    return st.components.v2.component("flashmask_copy_link", html=_HTML, css=_CSS, js=_JS)


def button(key: str = "copy_link") -> None:
    """Show the button."""
    _component()(key=key, width=104)
