"""Small pictures of masks as data URIs, drawn by the library."""

from __future__ import annotations

from base64 import b64encode

import numpy as np

from flashmask_core.masks.picture import THEMES, block_kinds, fitting_block, png_of
from flashmask_core.masks.runs import MaskedRuns

from .theme import PALETTE

_BLOCKS = 160  # on the longer side, at most
_PIXELS = 480


def of_runs(runs: MaskedRuns, dark: bool, marked: np.ndarray | None = None, blocks: int = _BLOCKS) -> str:
    """A square or oblong picture of a mask in so many blocks at most; `marked` columns get a bar below it."""
    block = fitting_block(max(runs.seqlen_q, runs.seqlen_k), 1, blocks)
    kinds = block_kinds(runs, block, block)
    colours = [*THEMES["dark" if dark else "light"][4:]]
    bar = np.zeros((0, kinds.shape[1]), np.uint8)
    if marked is not None:
        colours += [PALETTE["select"][dark], PALETTE["ground"][dark]]
        bar = np.full((1, kinds.shape[1]), 4, np.uint8)
        bar[0, marked // block] = 3
    return _uri(_scaled(kinds), _scaled(kinds, bar), colours)


def of_difference(extra: MaskedRuns, missing: MaskedRuns, dark: bool) -> str:
    """Where a mask shows too much and where too little, as two kinds of blocks; both where both are in a block."""
    block = fitting_block(max(extra.seqlen_q, extra.seqlen_k), 1, _BLOCKS)
    more, less = (block_kinds(runs, block, block) > 0 for runs in (extra, missing))
    kinds = more + 2 * less
    colours = [PALETTE[name][dark] for name in ("empty", "lower", "upper", "select")]
    return _uri(_scaled(kinds.astype(np.uint8)), None, colours)


def figure(source: str, words: str, above: str = "", below: str = "") -> str:
    """HTML of a picture with what it shows in words, and captions."""
    above, below = (f"<figcaption>{caption}</figcaption>" if caption else "" for caption in (above, below))
    return f'<figure class="fm-thumb">{above}<img src="{source}" alt="{words}">{below}</figure>'


def _scaled(kinds: np.ndarray, bar: np.ndarray | None = None) -> np.ndarray:
    """Blocks of whole pixels; a bar is 10 pixels high with a gap of 4 above it."""
    scale = max(1, _PIXELS // max(kinds.shape))
    if bar is None:
        return np.repeat(np.repeat(kinds, scale, axis=0), scale, axis=1)
    if not len(bar):
        return np.zeros((0, kinds.shape[1] * scale), np.uint8)
    wide = np.repeat(bar, scale, axis=1)
    return np.concatenate([np.full((4, wide.shape[1]), 4, np.uint8), np.repeat(wide, 10, axis=0)])


def _uri(picture: np.ndarray, bar: np.ndarray | None, colours: list[str]) -> str:
    pixels = picture if bar is None else np.concatenate([picture, bar])
    return f"data:image/png;base64,{b64encode(png_of(pixels, colours)).decode()}"
