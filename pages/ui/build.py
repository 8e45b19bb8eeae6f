"""From a screen to a mask and its numbers, computed once for each and kept for the next rerun and for other tabs."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from zlib import crc32

import streamlit as st

import flashmask_core as fm


@dataclass(frozen=True)
class Built:
    """A mask that could be made. `pairs`: visible pairs; `notes`: what the language has to say about it."""

    text: str
    seqlen_q: int
    seqlen_k: int
    variant: str
    mask: "fm.ColumnMask"
    pairs: int
    empty_rows: int
    notes: tuple[str, ...]
    seconds: float

    @property
    def source(self) -> tuple[str, int, int, str]:
        """The arguments that build it again."""
        return self.text, self.seqlen_q, self.seqlen_k, self.variant

    @property
    def identity(self) -> str:
        return f"{self.seqlen_q}x{self.seqlen_k}:{self.variant}:{crc32(self.text.encode()):08x}"


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


@st.cache_resource(max_entries=8, show_spinner=False)
def built(text: str, seqlen_q: int, seqlen_k: int, variant: str = "") -> Built:
    """The mask of a text; variant "wider" or "narrower" is the nearest one that fits, for a text that does not.

    Raises MaskSyntaxError, NotRepresentableError or another ValueError.
    """
    began = perf_counter()
    if variant:
        mask, notes = getattr(fitted(text, seqlen_q, seqlen_k), variant), ()
    else:
        expression = fm.parse(text)
        runs = expression.runs(seqlen_q, seqlen_k)
        mask = fm.ColumnMask.from_runs(runs)
        notes = tuple(expression.notes(seqlen_q, seqlen_k, runs))
    return Built(
        text=text,
        seqlen_q=seqlen_q,
        seqlen_k=seqlen_k,
        variant=variant,
        mask=mask,
        pairs=int(mask.visible_pairs()[0, 0]),
        empty_rows=int(mask.empty_rows().sum()),
        notes=notes,
        seconds=perf_counter() - began,
    )


@st.cache_data(max_entries=64, show_spinner=False)
def tile_counts(
    text: str, seqlen_q: int, seqlen_k: int, variant: str, block_m: int, block_n: int, rule: str
) -> TileCounts:
    """Tile counts of a mask that `built` makes."""
    tiles = fm.classify_tiles(built(text, seqlen_q, seqlen_k, variant).mask, block_m, block_n, rule)
    return TileCounts(*tiles.counts[0, 0].tolist())


@st.cache_resource(max_entries=4, show_spinner=False)
def fitted(text: str, seqlen_q: int, seqlen_k: int) -> "fm.Fit":
    """The nearest masks that fit, and the exact passes, for a text that does not fit."""
    return fm.fit(fm.parse(text).runs(seqlen_q, seqlen_k))
