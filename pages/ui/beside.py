"""The cards beside the picture, in the order in which their numbers are there: the picture never waits for them."""

from __future__ import annotations

import streamlit as st

from . import cards, recorded, state
from .build import Built, tile_counts
from .link import Screen

_AT_ONCE = 2**16  # up to so many keys both rules are counted before the card is shown


def cards_of(built: Built, screen: Screen) -> None:
    """Tiles, memory, and what was measured; for a long mask the rule that is off is counted last."""
    tiles, memory, third = st.empty(), st.empty(), st.empty()
    asked = (built.source, screen.block_m, screen.block_n)
    counted = built.seqlen_k <= _AT_ONCE or st.session_state.get("counted") == asked

    def counts(rule: str):
        return tile_counts(*built.source, screen.block_m, screen.block_n, rule)

    memory.html(cards.memory_card(built))
    if not counted:
        tiles.html(cards.card("Tiles the kernel skips", "…", "Counting …"))
        tiles.html(cards.tiles_card(counts(screen.rule), None, screen.rule))
    other = "paper" if screen.rule == "exact" else "exact"
    if counted:
        tiles.html(cards.tiles_card(counts(screen.rule), counts(other), screen.rule))
    third.html(recorded.card(built, screen) or cards.work_card(built, screen.heads))
    if not counted:
        tiles.html(cards.tiles_card(counts(screen.rule), counts(other), screen.rule))
        st.session_state.counted = asked
    _offer_smaller_tiles(built, screen)


def _offer_smaller_tiles(built: Built, screen: Screen) -> None:
    """A few tiles say nothing about a small mask: one click takes tiles that do."""
    length = min(built.seqlen_q, built.seqlen_k)
    if length >= 16 and max(built.seqlen_q // screen.block_m, built.seqlen_k // screen.block_n) <= 2:
        side = 1 << max(0, (length // 16).bit_length() - 1)
        st.button(
            f"Use tiles of {side} × {side}",
            on_click=state.change,
            kwargs={"block_m": side, "block_n": side},
            help="With tiles as large as this the whole mask is only a few of them.",
            width="stretch",
        )
