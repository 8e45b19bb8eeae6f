"""The two masks of a comparison, and their difference: exact numbers, whether or not a mask fits FlashMask."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

import flashmask_core as fm
from flashmask_core.bench.paper import DIRECTIONS
from flashmask_core.bench.ways_on import MAX_COUNTED_COLUMNS, estimated_ms
from flashmask_core.masks.compare import Difference, runs_of
from flashmask_core.masks.lint import Finding

from .. import build
from ..estimate import HEAD_DIM
from ..link import Screen
from ..shelf import shelf

_ABOUT_MEANT = ("explained", "flag", "ends", "leak")  # findings that say how a mask misses what was meant


@dataclass(frozen=True)
class Source:
    """Where a mask comes from: a text, or an upload by its name on the shelf and one plane of it."""

    text: str
    seqlen_q: int
    seqlen_k: int
    file: str = ""
    plane: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Side:
    """One of the two. `given` is the mask as it was uploaded, or its runs; `passes` what attention takes, None for more
    passes than are counted."""

    title: str
    given: "fm.ColumnMask | fm.MaskedRuns"
    runs: "fm.MaskedRuns"
    pairs: int
    pass_count: int
    passes: "tuple[fm.ColumnMask, ...] | None"


@dataclass(frozen=True)
class Cost:
    """Tiles of all passes together and about how long they take; None where that is not known."""

    tiles: tuple[int, int, int] | None
    forward_ms: float | None
    backward_ms: float | None


def first_of(screen: Screen) -> Source:
    """The mask of the screen."""
    return Source(screen.mask if not screen.file else "", screen.seqlen_q, screen.keys, screen.file, screen.plane)


def second_of(screen: Screen) -> Source:
    """What it is compared with: what was chosen, else plain causal, and for causal itself a window."""
    other = screen.other
    text = other.text
    if not text and not other.file:
        text = f"sliding_window({max(1, screen.keys // 16)})" if screen.mask.strip() == "causal" else "causal"
    return Source(text, screen.seqlen_q, screen.keys, other.file, other.plane)


@st.cache_resource(max_entries=8, show_spinner="Working out the mask …")
def side(source: Source) -> Side:
    """The mask of a source. A ValueError for a wrong text, a lost upload, or one of other lengths."""
    title, given = source.text, None
    if source.file:
        item = shelf().get(source.file)
        if item is None:
            raise ValueError("This server no longer has the uploaded mask. Upload its file again.")
        title, given = item.title, item.given if item.given is not None else item.content
        if (given.seqlen_q, given.seqlen_k) != (source.seqlen_q, source.seqlen_k):
            raise ValueError(
                f"{title} has {given.seqlen_q:,} queries and {given.seqlen_k:,} keys, and the mask it is held against "
                f"{source.seqlen_q:,} and {source.seqlen_k:,}: swap the two, or change the lengths."
            )
        if isinstance(given, fm.ColumnMask):
            given = build.one_plane(given, *source.plane)
    else:
        given = build.runs_of(source.text, source.seqlen_q, source.seqlen_k)
    runs = runs_of(given)
    fit = fm.fit(runs)
    few = fit.pass_count * runs.seqlen_k <= MAX_COUNTED_COLUMNS
    return Side(title, given, runs, runs.visible_pairs(), fit.pass_count, tuple(fit.passes) if few else None)


@st.cache_data(max_entries=64, show_spinner=False)
def cost(source: Source, block_m: int, block_n: int, rule: str, heads: int) -> Cost:
    """What the mask of a source costs in tiles of block_m x block_n, and in time for that many heads."""
    passes = side(source).passes
    if passes is None:
        return Cost(None, None, None)
    tiles = sum(fm.classify_tiles(one, block_m, block_n, rule).counts[0, 0] for one in passes).tolist()
    return Cost(tuple(tiles), *(estimated_ms(passes, 1, heads, HEAD_DIM, direction) for direction in DIRECTIONS))


@st.cache_resource(max_entries=8, show_spinner="Comparing …")
def difference(first: Source, second: Source) -> tuple[Difference, tuple[Finding, ...]]:
    """What the first shows and the second hides (extra) and the other way round (missing), and what explains it if the
    second was the one that was meant."""
    a, b = side(first), side(second)
    found = fm.compare(a.runs, b.runs)
    if found.equal:
        return found, ()
    meant = b.runs if second.file else second.text
    return found, tuple(f for f in fm.lint(a.given, meant=meant) if f.code in _ABOUT_MEANT)


def layers_of(runs: "fm.MaskedRuns") -> list["fm.ColumnMask"]:
    """Masks of at most two hidden runs a column that together hide what `runs` hides, for the canvas."""
    number = (np.arange(len(runs.starts)) - runs.offsets[runs.columns]) // 2
    count = int(number.max(initial=0)) + 1
    return [fm.ColumnMask.from_runs(runs.keep(number == one)).canonical() for one in range(count)]


def layer_count(runs: "fm.MaskedRuns") -> int:
    """How many masks `layers_of` makes."""
    return max(1, (int(runs.counts.max(initial=0)) + 1) // 2)
