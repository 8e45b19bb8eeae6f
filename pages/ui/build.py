"""From a screen to a mask and its numbers, computed once for each and kept for the next rerun and for other tabs.

What the picture needs comes first; everything else of a mask is counted when it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from zlib import crc32

import streamlit as st
import torch

import flashmask_core as fm

from .link import Screen
from .shelf import shelf


# Every run of a page is a new thread, and starting a team of OpenMP threads in each takes longer than the work does.
torch.set_num_threads(1)


@dataclass(frozen=True)
class Built:
    """A mask that could be made: `mask` is the plane that is drawn, `whole` all batch entries and heads of it.

    `notes`: what the language has to say about the text.
    """

    text: str
    variant: str
    plane: tuple[int, int]
    mask: "fm.ColumnMask"
    whole: "fm.ColumnMask"
    notes: tuple[str, ...] = ()

    @property
    def seqlen_q(self) -> int:
        return self.mask.seqlen_q

    @property
    def seqlen_k(self) -> int:
        return self.mask.seqlen_k

    @property
    def source(self) -> tuple[str, int, int, str, tuple[int, int]]:
        """The arguments that build it again."""
        return self.text, self.seqlen_q, self.seqlen_k, self.variant, self.plane

    @property
    def identity(self) -> str:
        plane = "" if self.plane == (0, 0) else f":{self.plane[0]},{self.plane[1]}"
        return f"{self.seqlen_q}x{self.seqlen_k}:{self.variant}:{crc32(self.text.encode()):08x}{plane}"

    @cached_property
    def pairs(self) -> int:
        """Visible pairs."""
        return int(self.mask.visible_pairs()[0, 0])


@dataclass(frozen=True)
class TileCounts:
    """EMPTY, PARTIAL and FULL tiles of one mask head by one rule."""

    empty: int
    partial: int
    full: int

    @property
    def total(self) -> int:
        return self.empty + self.partial + self.full

    @property
    def rho(self) -> float:
        return self.empty / self.total


def of_screen(screen: Screen) -> Built:
    """The mask of a screen, of its text or of its upload. Raises as `built` does."""
    if not screen.file:
        return built(screen.mask, screen.seqlen_q, screen.keys)
    item = shelf().get(screen.file)
    if item is None:
        raise ValueError("This server no longer has the uploaded mask. Upload its file again.")
    return built(item.title, screen.seqlen_q, screen.keys, f"file {screen.file}", screen.plane)


def built(text: str, seqlen_q: int, seqlen_k: int, variant: str = "", plane: tuple[int, int] = (0, 0)) -> Built:
    """The mask of a text; variant "wider" or "narrower" is the nearest one that fits, for a text that does not.

    Variant "file <name>" is an uploaded mask, and `text` its title. Raises MaskSyntaxError, NotRepresentableError or
    another ValueError.
    """
    return _built(text, seqlen_q, seqlen_k, variant, plane)  # the cache takes a default left out for another call


@st.cache_resource(max_entries=8, show_spinner="Working out the mask …")
def _built(text: str, seqlen_q: int, seqlen_k: int, variant: str, plane: tuple[int, int]) -> Built:
    notes = ()
    if variant.startswith("file "):
        whole = shelf().get(variant[5:]).content
    elif variant:
        whole = getattr(fitted(text, seqlen_q, seqlen_k), variant)
    else:
        expression = fm.parse(text)
        runs = expression.runs(seqlen_q, seqlen_k)
        whole, notes = fm.ColumnMask.from_runs(runs), tuple(expression.notes(seqlen_q, seqlen_k, runs))
    return Built(text, variant, plane, _plane_of(whole, *plane), whole, notes)


def _plane_of(mask: "fm.ColumnMask", batch: int, head: int) -> "fm.ColumnMask":
    if (mask.batch, mask.heads) == (1, 1):
        return mask
    indices, causal = mask.to_startend_row_indices()
    one = indices[batch : batch + 1, head : head + 1]
    return fm.ColumnMask.from_startend_row_indices(one, causal=causal, seqlen_q=mask.seqlen_q).canonical()


@st.cache_data(max_entries=64, show_spinner=False)
def tile_counts(
    text: str,
    seqlen_q: int,
    seqlen_k: int,
    variant: str,
    plane: tuple[int, int],
    block_m: int,
    block_n: int,
    rule: str,
) -> TileCounts:
    """Tile counts of a mask that `built` makes."""
    tiles = fm.classify_tiles(built(text, seqlen_q, seqlen_k, variant, plane).mask, block_m, block_n, rule)
    return TileCounts(*tiles.counts[0, 0].tolist())


@st.cache_resource(max_entries=4, show_spinner=False)
def fitted(text: str, seqlen_q: int, seqlen_k: int) -> "fm.Fit":
    """The nearest masks that fit, and the exact passes, for a text that does not fit."""
    return fm.fit(fm.parse(text).runs(seqlen_q, seqlen_k))
