"""Above the walk: which mask, how many tokens, which tile, which pass; and the small mask that comes of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape

import streamlit as st

import flashmask_core as fm

from .. import bar, copy_link, presets, presses, state
from ..build import Built, of_screen
from ..link import Screen
from . import small
from .place import MAX_TOKENS, PASSES, parse_block

_BLOCKS = ["4 × 4", "8 × 8", "8 × 4", "4 × 8", "16 × 16"]
_WAYS = {
    "narrower": "the nearest mask that hides a little more",
    "wider": "the nearest mask that shows a little more",
}
_PASS_NAMES = {"forward": "Forward", "dkdv": "Backward: dK, dV", "dq": "Backward: dQ"}


def controls(screen: Screen) -> None:
    """The inputs in one row."""
    walk = screen.walk
    _seed(screen)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="walk_bar"):
        st.selectbox(
            "Mask",
            ["", *presets.PRESETS],
            format_func=lambda name: name or "the mask of Compose",
            **_widget("k_source"),
            width=230,
        )
        st.number_input("Tokens", 1, MAX_TOKENS, step=1, **_widget("k_tokens"), width=110)
        st.selectbox(
            "Tile",
            _BLOCKS if walk.block in _BLOCKS else [walk.block, *_BLOCKS],
            **_widget("k_block"),
            accept_new_options=True,
            width=120,
            help="Query rows × key columns, up to 16 each; any two numbers may be typed.",
        )
        st.segmented_control("Pass", list(PASSES), format_func=_PASS_NAMES.__getitem__, **_widget("k_pass"))
        copy_link.button()


def _seed(screen: Screen) -> None:
    walk = screen.walk
    for key, value in {
        "k_source": walk.source,
        "k_tokens": _tokens(screen),
        "k_block": walk.block,
        "k_pass": walk.pass_,
    }.items():
        state.seed(key, value)


def _tokens(screen: Screen) -> int:
    """How many tokens the longer side of the small mask has."""
    walk = screen.walk
    if walk.source:
        return walk.tokens or small.USUAL_TOKENS
    longest = max(screen.seqlen_q, screen.keys)
    return min(longest, walk.tokens or small.usual_tokens(screen.seqlen_q, screen.keys))


def _widget(key: str) -> dict:
    return {"key": key, "on_change": presses.later(_collect, key)}


def _collect(key: str) -> None:
    """What a control says becomes part of the screen; another mask, tile or pass begins a walk anew."""
    if state.is_late(key):
        return
    value, walk = st.session_state[key], state.current().walk
    if key == "k_source":
        changed = {"source": value or "", "tokens": None}
    elif key == "k_tokens":
        changed = {"tokens": int(value)} if value else {}
    elif key == "k_block":
        rows, columns = parse_block(value or "") or (walk.block_m, walk.block_n)
        changed = {"block_m": rows, "block_n": columns}
    else:
        changed = {"pass_": value or walk.pass_}
    if changed:
        state.change(walk=replace(walk, **changed, line=None, step=None))


@dataclass(frozen=True)
class Small:
    """The mask to walk, its text, HTML that says what was done to make it small, and the cell to begin at."""

    mask: "fm.ColumnMask"
    title: str
    note: str
    at: tuple[int, int]


def small_mask(screen: Screen) -> Small:
    """The small mask of a screen; a selected cell of its mask is where the walk begins."""
    tokens = _tokens(screen)
    if screen.walk.source:
        text = presets.PRESETS[screen.walk.source](tokens)
        built = _built_preset(replace(Screen(), mask=text, seqlen_q=tokens))
        note = f"A small preset, <code>{escape(built.text)}</code>, as it is."
        return Small(built.mask, built.text, note, _middle(built.mask))
    built, error = bar.built_or_error(screen)
    if error is not None:
        built = bar.explain(error, screen, built)
    mask, title, note = _made_small(built, tokens)
    at = screen.at
    if not at or at[0] >= built.seqlen_q or at[1] >= built.seqlen_k:
        return Small(mask, title, note, _middle(mask))
    spot = (at[0] * mask.seqlen_q // built.seqlen_q, at[1] * mask.seqlen_k // built.seqlen_k)
    return Small(mask, title, note, spot)


def _middle(mask: "fm.ColumnMask") -> tuple[int, int]:
    return mask.seqlen_q // 2, mask.seqlen_k // 2


def _built_preset(screen: Screen) -> Built:
    try:
        return of_screen(screen)
    except fm.NotRepresentableError as error:
        return bar.explain(error, screen, None)


def _made_small(built: Built, tokens: int) -> tuple["fm.ColumnMask", str, str]:
    mask = small.shrunk(built.mask, tokens)
    shown = bar.shortened(built.text, 120)
    title, text = ", ".join(filter(None, (shown, built.way))), f"<code>{escape(shown)}</code>"
    whose = f"The mask of Compose, {text}"
    if built.way:
        whose = f"In place of {text}, which does not fit, {_WAYS.get(built.way, built.way + ' of its exact answer')}"
    if mask is built.mask:
        return mask, title, f"{whose}, as it is: {mask.seqlen_q} × {mask.seqlen_k} tokens."
    factor = max(built.seqlen_q, built.seqlen_k) / tokens
    about = f"{factor:,.0f}" if factor >= 100 else f"{factor:.3g}"
    share = [100 * int(m.visible_pairs()[0, 0]) / (m.seqlen_q * m.seqlen_k) for m in (mask, built.mask)]
    note = (
        f"{whose}, made small: {mask.seqlen_q} × {mask.seqlen_k} of {built.seqlen_q:,} × "
        f"{built.seqlen_k:,} tokens. Every cell is the middle one of about {about} × {about} that it "
        f"stands for, so what is narrower may be gone ({share[0]:.1f} % of the pairs are visible here, "
        f"{share[1]:.1f} % there)."
    )
    return mask, title, note
