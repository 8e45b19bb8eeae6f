"""The canvas: a Streamlit component (v2) that draws a mask from its vectors.

The browser gets O(N) int32 numbers and rasterises what is on screen, so panning and zooming never ask the server. The
scripts beside this file are plain JavaScript and are joined into one module here; nothing is fetched from elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import streamlit as st

from flashmask_core.masks.column_mask import PACKINGS, ColumnMask

from .. import presses
from ..theme import sheet
from ..words import bytes_text

_SCRIPTS = (
    "vectors",
    "mask",
    "levels",
    "view",
    "raster",
    "labels",
    "draw",
    "layers",
    "words",
    "strip",
    "tiles",
    "minimap",
    "cuts",
    "edit",
    "curves",
    "input",
    "mount",
    "main",
)


@cache
def parts() -> tuple[str, str, str]:
    """(HTML, CSS, one JavaScript module) of the canvas; the module's default export draws."""
    here = Path(__file__).parent
    css = sheet(".fm-canvas", here / "canvas.css")
    return (here / "canvas.html").read_text("utf-8"), css, scripts(*_SCRIPTS)


@cache
def _component():
    html, css, script = parts()
    return st.components.v2.component("flashmask_canvas", html=html, css=css, js=script)


def component(folder: Path, name: str, *own: str, shared: tuple[str, ...] = ("mount",), html: str | None = None):
    """A component of ours (v2): NAME.html and NAME.css of its folder, its own scripts behind `shared` ones of the canvas.

    Its element has the class fm-NAME. html: in place of the file.
    """
    return st.components.v2.component(
        f"flashmask_{name}",
        html=(folder / f"{name}.html").read_text("utf-8") if html is None else html,
        css=sheet(f".fm-{name}", folder / f"{name}.css"),
        js=scripts(*shared) + "".join((folder / f"{script}.js").read_text("utf-8") for script in own),
    )


def scripts(*names: str) -> str:
    """Scripts of the canvas as one piece, for a module of its own."""
    return "".join((Path(__file__).parent / f"{name}.js").read_text("utf-8") for name in names)


def payload(
    mask: ColumnMask,
    *,
    identity: str,
    block: tuple[int, int],
    rule: str,
    selection: tuple[int, int],
    view: tuple[float, float, float, float] | None = None,
    opened: int = 0,
    heard: int = 0,
    drawn: bool = False,
    editable: bool = False,
    cuts: Sequence[tuple[int, ...]] = (),
    painted_on: str = "",
    edited: int = 0,
    broken: np.ndarray | tuple = (),
) -> bytes:
    """What the browser gets of a mask with B = Hm = 1: a JSON head, then the vectors that carry information, int32.

    A vector comes as its corners where they are few, else as it is: at most 4 bytes a column and vector, 1, 2 or 4
    vectors as the packing has them. The canvas takes selection and view from here when `opened` is another number than
    before, and the selection with another mask too, unless it has made a choice behind press number `heard`; until then
    it has its own. `broken`: the columns, rising, in which this mask stands for one that does not fit; they are marked.
    `editable`: it can be painted on, and its boundaries dragged, `cuts` those of documents (fields of a `Cut`); another
    mask than one of the same `painted_on` ends the painting; `edited`: "told" of the last edit that was taken.
    """
    names = PACKINGS[mask.causal, mask.bounds]
    vectors = [getattr(mask, name)[0, 0].cpu().numpy().astype("<i4", copy=False) for name in names]
    corners = [corners_of(vector) for vector in vectors]
    sq, sk = mask.seqlen_q, mask.seqlen_k
    numbers = f"{sk:,} × {mask.bounds} number{'s' if mask.bounds > 1 else ''}"
    about = {
        "id": identity,
        "seqlen_q": sq,
        "seqlen_k": sk,
        "causal": mask.causal,
        "names": names,
        "corners": [0 if found is None else found.shape[1] for found in corners],
        "block_m": block[0],
        "block_n": block[1],
        "rule": rule,
        "selection": selection,
        "view": view,
        "opened": opened,
        "heard": heard,
        "drawn": drawn,
        "editable": editable,
        "cuts": cuts,
        "painted_on": painted_on,
        "edited": edited,
        "broken": ranges_of(np.asarray(broken, np.int64)),
        "matrix": _size(f"{sq * sk:,} cell{'s' if sq * sk > 1 else ''}", f"{bytes_text(sq * sk)} as bool"),
        "vectors": _size(numbers, bytes_text(4 * mask.bounds * sk)),
    }
    text = json.dumps(about).encode()
    text += b" " * (-len(text) % 4)
    sent = (vector if found is None else found for vector, found in zip(vectors, corners))
    return b"".join([np.uint32(len(text)).tobytes(), text, *(numbers.tobytes() for numbers in sent)])


def _size(what: str, weighs: str) -> str:
    """A size in words that breaks only between its two parts."""
    return " · ".join(part.replace(" ", "\N{NO-BREAK SPACE}") for part in (what, weighs))


def ranges_of(columns: np.ndarray, most: int = 512) -> list[list[int]]:
    """Rising column numbers as [first, behind the last] of their ranges; the smallest gaps close if they are many."""
    gaps = np.diff(columns)
    least = 1 if (gaps > 1).sum() < most else int(np.partition(gaps, -most)[-most])
    turns = np.flatnonzero(gaps > least)
    many = len(columns)
    firsts, lasts = columns[np.r_[0, turns + 1][:many]], columns[np.r_[turns, many - 1][:many]]
    return np.stack([firsts, lasts + 1], axis=1).tolist()


def corners_of(vector: np.ndarray) -> np.ndarray | None:
    """int32 [2, corners], the columns at which the steps between neighbours change and the numbers there.

    Straight lines between them are the vector. None where that saves less than half.
    """
    step = np.diff(vector)
    turns = np.flatnonzero(step[1:] != step[:-1]) + 1
    if 4 * (len(turns) + 2) > len(vector):
        return None
    columns = np.concatenate([[0], turns, [len(vector) - 1]])
    return np.stack([columns, vector[columns]]).astype("<i4")


def draw(data: bytes, *, key: str, **listeners) -> None:
    """Show the canvas.

    `listeners`, as in `presses.draw`: "selection" gets [query, key] or None from a click, "view" four numbers or None
    when the view has come to rest, "drawn" True with the first picture on the screen, unless the payload says that it
    is known; "edit" {"paint": "hide" or "show", "box": [r0, r1, c0, c1], "told": ms} for a box that was painted,
    {"move": [name, c0, c1, slope, by], "told": ms} for a boundary that was dragged, {"cut": [layer, part, at, by],
    "told": ms} for one of documents.
    """
    presses.draw(_component(), key=key, data=data, **listeners)
