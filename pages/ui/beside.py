"""The cards beside the picture: what is skipped, what the mask weighs, what it costs."""

from __future__ import annotations

import streamlit as st

from flashmask_core.bench.recorded import shipped_problem

from . import cards, presses, recorded, state
from .build import Built, tile_counts
from .link import Screen
from .words import plain


def cards_of(built: Built, screen: Screen) -> None:
    """Tiles by both rules, memory, and what was measured."""
    counts, other = (
        tile_counts(*built.source, screen.block_m, screen.block_n, rule)
        for rule in (screen.rule, "paper" if screen.rule == "exact" else "exact")
    )
    st.html(cards.tiles_card(counts, other, screen.rule, small=cards.this_plane(built)))
    st.html(cards.memory_card(built))
    card = recorded.card(built, screen)
    st.html(card or cards.work_card(built, screen.heads))
    if not card and (problem := shipped_problem()):
        st.caption(plain(problem))
    _offer_smaller_tiles(built, screen)


def _offer_smaller_tiles(built: Built, screen: Screen) -> None:
    """A few tiles say nothing about a small mask: one click takes tiles that do."""
    length = min(built.seqlen_q, built.seqlen_k)
    if length >= 16 and max(built.seqlen_q // screen.block_m, built.seqlen_k // screen.block_n) <= 2:
        side = 1 << max(0, (length // 16).bit_length() - 1)
        st.button(
            f"Use tiles of {side} × {side}",
            on_click=presses.later(state.change, block_m=side, block_n=side),
            help="With tiles as large as this the whole mask is only a few of them.",
            width="stretch",
        )
