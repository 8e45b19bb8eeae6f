"""The bar in which a mask is written: text, lengths, tile, rule, heads; and what is wrong with it, under it."""

from __future__ import annotations

from html import escape

import streamlit as st

import flashmask_core as fm

from . import begin, copy_link, examples, presets, presses, repair, state, upload, working
from .build import Built, built, of_screen, runs_of
from .language import panel as language
from .link import MAX_LENGTH, RULES, Screen
from .stack import panel as stack
from .undo import buttons as undo

_TILES = ["64 × 64", "128 × 64", "64 × 128", "128 × 128", "256 × 128", "128 × 256", "256 × 256"]


def mask_bar(screen: Screen, *, action=None, heads: bool = True) -> None:
    """Inputs of the screen in one row; `action` draws the page's main button in the last place.

    heads=False leaves the number of heads to the page.
    """
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="mask_bar"):
        with st.container(key="mask_field"):
            st.text_input(
                "Mask",
                **state.widget("w_mask"),
                placeholder="an uploaded mask; type here to replace it" if screen.file else "causal & document(9, 9)",
            )
            language.popover(screen)
        length_and_tile(screen)
        st.selectbox(
            "Skip rule",
            list(RULES),
            **state.widget("w_rule"),
            width=150,
            format_func=RULES.__getitem__,
            help="exact: a tile is skipped if no pair in it is visible. paper: equation 4, the minimum and "
            "maximum of each interval alone.",
        )
        with st.popover("More", width=88):
            st.number_input(
                "Keys Sk, if not N",
                1,
                MAX_LENGTH,
                value=None,
                step=1,
                **state.widget("w_nk"),
                placeholder="as many as N",
                width=260,
                disabled=bool(screen.file),
                help="Causal and every pattern then align bottom-right.",
            )
            if heads:
                st.number_input("Query heads H", 1, 1024, step=1, **state.widget("w_heads"), width=260)
        copy_link.button()
        if action:
            action()
    if screen.is_long:
        st.caption(
            f"This text has {len(screen.mask):,} characters, too many for a link. A copied link works while this "
            "server keeps the text; the screen's small file (below, Take it with you) always does."
        )


def length_and_tile(screen: Screen) -> None:
    """How many tokens, and the tile."""
    st.number_input(
        "Tokens N",
        1,
        MAX_LENGTH,
        step=1,
        **state.widget("w_n"),
        width=104,
        disabled=bool(screen.file),
    )
    tiles = _TILES if screen.tile in _TILES else [screen.tile, *_TILES]
    st.selectbox(
        "Tile",
        tiles,
        **state.widget("w_tile"),
        accept_new_options=True,
        width=134,
        help="Query rows × key columns; any two numbers may be typed.",
    )


def chips(screen: Screen, layers: bool = True) -> None:
    """Preset masks, layers if the page does not show them itself, undo and redo."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="chips"):
        state.seed("w_preset", None if screen.file else presets.matching(screen.mask, screen.keys))
        st.pills(
            "Presets",
            list(presets.PRESETS),
            key="w_preset",
            label_visibility="collapsed",
            on_change=presses.later(_take_preset),
            width="stretch",
        )
        examples.popover()
        upload.button()
        if layers:
            box = st.popover("Layers", width=100, key="layers", on_change="rerun")
            if box.open:
                with box:
                    stack.panel(screen)
        undo.buttons()


def _take_preset() -> None:
    if not state.is_late("w_preset") and (name := st.session_state["w_preset"]):
        begin.with_values(mask=presets.PRESETS[name](state.current().keys))


def built_or_explained(screen: Screen) -> Built:
    """The mask of the screen, or what the page shows in its place, with the reason above it.

    What stands above the picture is one element whatever it holds, so that the picture stays where it is.
    """
    with st.container(key="above"):
        result, error = built_or_error(screen)
        return result if error is None else explain(error, screen, result)


def built_or_error(screen: Screen) -> tuple[Built, Exception | None]:
    """(the mask of the screen, None), or (the last one that could be made in this tab, what is wrong).

    A tab whose first text is wrong gets plain causal.
    """
    report = working.progress()
    try:
        if not screen.file:
            runs_of(screen.mask, screen.seqlen_q, screen.keys, report)  # kept for `of_screen`
        result = of_screen(screen)
    except (ValueError, TypeError, MemoryError) as error:
        return _last_valid(screen), error
    st.session_state.last_valid = screen
    if screen.file:
        upload.about(result, screen)
    return result, None


def _last_valid(screen: Screen) -> Built:
    try:
        return of_screen(st.session_state["last_valid"])
    except (KeyError, ValueError):  # nothing was valid yet, or an upload that the server no longer has
        return built("causal", screen.seqlen_q, screen.keys)


def does_not_fit(error: Exception | None) -> bool:
    """True for a mask that exists, but has columns beyond FlashMask's reach: `repair` has the ways on."""
    return isinstance(error, fm.NotRepresentableError)


def shortened(message: str, most: int = 400) -> str:
    """The first line of a message; a message that repeats a long text is cut in the middle."""
    line = message.splitlines()[0]
    return line if len(line) <= most else f"{line[: most // 2]} … {line[-most // 2 :]}"


def explain(error: Exception, screen: Screen, shown: Built) -> Built:
    """One message under the bar: where in the text, what is wrong, and the way out.

    Returns what the page should draw: a nearest mask that fits if one was chosen, else `shown`.
    """
    if does_not_fit(error):
        return repair.offer(error, screen)
    position = getattr(error, "position", None)
    pointed = ""
    if position is not None:
        start = max(0, position - 60)
        piece = "".join(" " if c.isspace() else c for c in screen.mask[start : position + 60])
        pointed = (
            f"<pre>{'…' * bool(start)}{escape(piece)}\n{' ' * bool(start)}{' ' * (position - start)}<i>^</i></pre>"
        )
    message = escape(shortened(str(error) or type(error).__name__))
    still = f"<br><small>Shown instead: <code>{escape(shown.text[:160])}</code>, N = {shown.seqlen_q:,}.</small>"
    st.html(f'<div class="fm-error" role="alert">{pointed}{message}{still}</div>')
    return shown
