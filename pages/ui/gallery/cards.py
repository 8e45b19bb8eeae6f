"""What hangs in the gallery: every pattern of the language at the length of the screen, and the worked examples."""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import urlencode

import numpy as np
import streamlit as st

import flashmask_core as fm
from flashmask_core.masks.column_mask import PACKINGS
from flashmask_core.masks.examples import EXAMPLES
from flashmask_core.masks.patterns import PATTERNS

from .. import canvas, presets
from ..link import Screen
from ..words import percent_text

LEAST_TOKENS, MOST_TOKENS = 8, 1 << 15  # of a pattern's picture


@dataclass(frozen=True)
class Card:
    """A mask of the gallery; the lengths and the tile as in a `Screen`."""

    title: str
    about: str
    mask: str
    seqlen_q: int
    seqlen_k: int | None
    block_m: int
    block_n: int

    @property
    def values(self) -> dict:
        """The fields of the screen that shows it."""
        names = ("mask", "seqlen_q", "seqlen_k", "block_m", "block_n")
        return {name: getattr(self, name) for name in names}


def drawn_tokens(screen: Screen) -> int:
    """The tokens of the patterns' pictures: an even number (block_diffusion has two halves) within the limits."""
    return min(max(screen.keys, LEAST_TOKENS), MOST_TOKENS) // 2 * 2


def pattern_cards(screen: Screen) -> tuple[Card, ...]:
    """Every pattern of the mask language with arguments that make a good picture."""
    n = drawn_tokens(screen)
    return tuple(
        Card(name, pattern.about, presets.pattern_text(name, n), n, None, screen.block_m, screen.block_n)
        for name, pattern in PATTERNS.items()
    )


def example_cards() -> tuple[Card, ...]:
    """The worked examples, at their own lengths and tiles."""
    return tuple(Card(e.name, e.about, e.text, e.seqlen_q, e.seqlen_k, *e.tile) for e in EXAMPLES.values())


@st.cache_data(max_entries=8, show_spinner="Drawing the gallery …")
def wall_data(cards: tuple[Card, ...], rule: str) -> bytes:
    """What the browser gets: the length of a head, the head as JSON with what each card says, and the masks as the
    canvas takes them, one behind the other; `bytes` of a card is how long its mask is."""
    several = len({_size(card) for card in cards}) > 1
    said, masks = [], []
    for card in cards:
        mask = fm.mask(card.mask, card.seqlen_q, card.seqlen_k).canonical()
        tiles = fm.classify_tiles(mask, card.block_m, card.block_n, rule).counts[0, 0].tolist()
        masks.append(
            canvas.payload(
                mask, identity=card.mask, block=(card.block_m, card.block_n), rule=rule, selection=(0, 0)
            )
        )
        query = Screen(rule=rule, **card.values).to_query()
        said.append({
            "title": card.title, "about": card.about, "mask": card.mask, "bytes": len(masks[-1]),
            "compose": f"./?{urlencode(query)}",
            "density": f"{percent_text(int(mask.visible_pairs()), mask.seqlen_q * mask.seqlen_k)} %",
            "rho": f"{percent_text(tiles[0], sum(tiles))} %",
            "vectors": _names(mask),
            "causal": mask.causal,
            "size": _size(card) if several else "",
        })  # fmt: skip
    head = json.dumps({"cards": said}).encode()
    head += b" " * (-len(head) % 4)
    return b"".join([np.uint32(len(head)).tobytes(), head, *masks])


def _names(mask: fm.ColumnMask) -> str:
    names = PACKINGS[mask.causal, mask.bounds]
    return ", ".join(names).upper() if len(names) < 4 else "all four"


def _size(card: Card) -> str:
    lengths = f"N = {card.seqlen_q:,}" if card.seqlen_k is None else f"{card.seqlen_q:,} × {card.seqlen_k:,}"
    return f"{lengths}, tiles of {card.block_m} × {card.block_n}"
