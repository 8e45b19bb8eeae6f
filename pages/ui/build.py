"""From a screen to a mask and its numbers, computed once for each and kept for the next rerun and for other tabs.

What the picture needs comes first; everything else of a mask is counted when it is asked for.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from zlib import crc32

import streamlit as st
import torch

import flashmask_core as fm

from .layers import without_off
from .link import Screen
from .shelf import shelf


# Every run of a page is a new thread, and starting a team of OpenMP threads in each takes longer than the work does.
torch.set_num_threads(1)

_LINTED_UP_TO = 1 << 14  # keys; longer masks are searched for mistakes when that is asked for


@dataclass(frozen=True)
class Built:
    """A mask that could be made: `mask` is the plane that is drawn, `whole` all batch entries and heads of it.

    `variant` says what of `text` it is: "" the mask itself, "wider", "narrower" or "pass 2" what stands for one that
    does not fit, "file <name>" an upload with `text` for its title, "file <name> wider" and so on. `notes`: what the
    language has to say about the text, and the usual mistakes that are in it.
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
    def way(self) -> str:
        """ "wider", "narrower", "pass 2", or "" for the mask itself."""
        return _file_and_way(self.variant)[1]

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


def of_screen(screen: Screen, way: str = "") -> Built:
    """The mask of a screen, of its text or of its upload, or what stands for it. Raises as `built` does."""
    if not screen.file:
        return built(screen.mask, screen.seqlen_q, screen.keys, way)
    item = shelf().get(screen.file)
    if item is None:
        raise ValueError("This server no longer has the uploaded mask. Upload its file again.")
    return built(item.title, screen.seqlen_q, screen.keys, f"file {screen.file} {way}".strip(), screen.plane)


def built(text: str, seqlen_q: int, seqlen_k: int, variant: str = "", plane: tuple[int, int] = (0, 0)) -> Built:
    """The mask of a text or an upload by its variant; see `Built`.

    Raises MaskSyntaxError, NotRepresentableError or another ValueError.
    """
    return _built(text, seqlen_q, seqlen_k, variant, plane)  # the cache takes a default left out for another call


@st.cache_resource(max_entries=8, show_spinner="Working out the mask …")
def _built(text: str, seqlen_q: int, seqlen_k: int, variant: str, plane: tuple[int, int]) -> Built:
    file, way = _file_and_way(variant)
    notes = ()
    if way:
        fit = fitted(text, seqlen_q, seqlen_k, file)
        whole = fit.passes[int(way.removeprefix("pass ")) - 1] if way.startswith("pass ") else getattr(fit, way)
    elif file:
        content = shelf().get(file).content
        whole = content if isinstance(content, fm.ColumnMask) else fm.ColumnMask.from_runs(content)
    else:
        runs = runs_of(text, seqlen_q, seqlen_k)
        whole, notes = fm.ColumnMask.from_runs(runs), fm.parse(without_off(text)).notes(seqlen_q, seqlen_k, runs)
        if seqlen_k <= _LINTED_UP_TO:
            findings = (found for found in fm.lint(runs) if found.level != "note")
            notes += [found.message for found in findings if found.code not in ("empty rows", "future")]
    return Built(text, variant, plane, one_plane(whole, *plane).canonical(), whole, tuple(notes))


def _file_and_way(variant: str) -> tuple[str, str]:
    file, way = "", variant
    if variant.startswith("file "):
        _, file, way = f"{variant} ".split(" ", 2)
    return file, way.strip()


_recent: OrderedDict[tuple, "fm.MaskedRuns"] = OrderedDict()
_recent_lock = Lock()


def runs_of(text: str, seqlen_q: int, seqlen_k: int, progress=None) -> "fm.MaskedRuns":
    """The masked runs of a text; the last few are kept. `progress` hears of the share done of slow ones."""
    key = (text, seqlen_q, seqlen_k)
    with _recent_lock:
        if key in _recent:
            _recent.move_to_end(key)
            return _recent[key]
    runs = fm.parse(text).runs(seqlen_q, seqlen_k, progress=progress)
    with _recent_lock:
        _recent[key] = runs
        while len(_recent) > 8 or len(_recent) > 1 and sum(len(r.starts) for r in _recent.values()) > 1 << 24:
            _recent.popitem(last=False)
    return runs


def one_plane(mask: "fm.ColumnMask", batch: int, head: int) -> "fm.ColumnMask":
    """One batch entry and head of a mask as a mask of its own, its vectors as they are."""
    if (mask.batch, mask.heads) == (1, 1):
        return mask
    vectors = (v[batch : batch + 1, head : head + 1] for v in mask.vectors)
    return fm.ColumnMask(*vectors, seqlen_q=mask.seqlen_q, causal=mask.causal, bounds=mask.bounds)


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


def fitted_of(mask: Built) -> "fm.Fit":
    """The fit of the mask that this one stands for."""
    return fitted(mask.text, mask.seqlen_q, mask.seqlen_k, _file_and_way(mask.variant)[0])


@st.cache_resource(max_entries=4, show_spinner=False)
def fitted(text: str, seqlen_q: int, seqlen_k: int, file: str = "") -> "fm.Fit":
    """The nearest masks that fit, and the exact passes, for a text or an upload that does not fit."""
    return fm.fit(shelf().get(file).content if file else runs_of(text, seqlen_q, seqlen_k))
