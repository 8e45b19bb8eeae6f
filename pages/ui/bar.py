"""The bar in which a mask is written: text, lengths, tile, rule, heads; and what is wrong with it, under it."""

from __future__ import annotations

from html import escape

import streamlit as st

import flashmask_core as fm
from flashmask_core.masks.patterns import PATTERNS

from . import copy_link, presets, state
from .build import Built, built, fitted

_TILES = ["64 × 64", "128 × 64", "64 × 128", "128 × 128", "256 × 128", "128 × 256", "256 × 256"]


def mask_bar(screen: state.Screen, *, action=None) -> None:
    """Inputs of the screen in one row; `action` draws the page's main button in the last place."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="mask_bar"):
        st.text_input("Mask", key="w_mask", on_change=state.collect, placeholder="causal & document(512, 512)",
                      help="Patterns and comparisons in q and k, joined by & | ~. It is parsed, never evaluated.")  # fmt: skip
        st.number_input("Tokens N", 1, state.MAX_LENGTH, step=1, key="w_n", on_change=state.collect, width=118)
        tiles = _TILES if screen.tile in _TILES else [screen.tile, *_TILES]
        st.selectbox("Tile", tiles, key="w_tile", on_change=state.collect, accept_new_options=True, width=134,
                     help="Query rows × key columns; any two numbers may be typed.")  # fmt: skip
        st.selectbox("Skip rule", list(state.RULES), key="w_rule", on_change=state.collect, width=150,
                     format_func=state.RULES.__getitem__,
                     help="exact: a tile is skipped if no pair in it is visible. paper: equation 4, the minimum and "
                     "maximum of each interval alone.")  # fmt: skip
        with st.popover("More", width=92):
            st.number_input("Keys Sk, if not N", 1, state.MAX_LENGTH, value=None, step=1, key="w_nk", on_change=state.collect,
                            placeholder="as many as N", help="Causal and every pattern then align bottom-right.")  # fmt: skip
            st.number_input("Query heads H", 1, 1024, step=1, key="w_heads", on_change=state.collect)
        copy_link.button()
        if action:
            action()


def chips(screen: state.Screen) -> None:
    """Preset masks, the pattern picker, and undo."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="chips"):
        st.session_state["w_preset"] = presets.matching(screen.mask, screen.keys)
        st.pills("Presets", list(presets.PRESETS), key="w_preset", label_visibility="collapsed", on_change=_take_preset,
                 width="stretch")  # fmt: skip
        with st.popover("Add pattern", width=132):
            _pattern_picker(screen)
        st.button(":material/undo:", on_click=state.undo_text, disabled=not st.session_state.get("texts"), key="undo_text",
                  help="Bring back the mask text before the last change")  # fmt: skip


def _take_preset() -> None:
    name = st.session_state["w_preset"]
    if name:
        state.change(mask=presets.PRESETS[name](state.current().keys))


def _pattern_picker(screen: state.Screen) -> None:
    name = st.selectbox("Pattern", list(PATTERNS), key="w_pattern", persist_state="session")
    pattern = PATTERNS[name]
    st.caption(f"{pattern.about} Visible: `{pattern.rule}`")
    typed = []
    for parameter, text in zip(pattern.parameters, presets.argument_texts(name, screen.keys)):
        typed.append(st.text_input(f"{parameter.name}: {parameter.about}", text, key=f"w_arg_{name}_{parameter.name}"))
    term = f"{name}({', '.join(t.strip() for t in typed if t.strip())})" if typed else name
    operators = {"&": "and, &", "|": "or, |", "=": "replace"}
    how = st.segmented_control("Join it to the text by", list(operators), default="&", format_func=operators.__getitem__,
                               key="w_join")  # fmt: skip
    st.code(term, language=None, wrap_lines=True)
    text = presets.joined(screen.mask, how or "&", term)
    st.button("Insert", type="primary", on_click=state.change, kwargs={"mask": text}, width="stretch")


def built_or_error(screen: state.Screen) -> tuple[Built | None, Exception | None]:
    """(the mask of the screen, None), or (the last one that could be made in this tab, what is wrong)."""
    try:
        result = built(screen.mask, screen.seqlen_q, screen.keys)
    except (ValueError, TypeError, MemoryError) as error:
        last = st.session_state.get("last_valid")
        return (built(*last) if last else None), error
    st.session_state.last_valid = (screen.mask, screen.seqlen_q, screen.keys)
    return result, None


def explain(error: Exception, screen: state.Screen, shown: Built | None) -> None:
    """One message under the bar: where in the text, what is wrong, and the way out."""
    position = getattr(error, "position", None)
    text = ""
    if position is not None:
        text = screen.mask
        start = max(0, position - 60)
        piece = text[start : position + 60].replace("\n", " ")
        caret = " " * (position - start) + "<i>^</i>"
        text = f"<pre>{'…' if start else ''}{escape(piece)}\n{' ' if start else ''}{caret}</pre>"
    message = escape(str(error).splitlines()[0] if str(error) else type(error).__name__)
    still = ""
    if shown is not None:
        still = f"<br><span class='fm-sub'>Shown below: the last mask that could be drawn, <code>{escape(shown.text[:200])}</code>.</span>"
    st.html(f'<div class="fm-error" role="alert">{text}{message}{still}</div>')
    if isinstance(error, fm.NotRepresentableError):
        _offer_fits(error, screen)


def _offer_fits(error: fm.NotRepresentableError, screen: state.Screen) -> None:
    """Which columns have too many runs, and the nearest masks that fit."""
    columns = error.columns
    shown = ", ".join(map(str, columns[:12])) + (" …" if len(columns) > 12 else "")
    with st.expander(f"{len(columns):,} columns do not fit: {shown}", expanded=True):
        try:
            fit = fitted(screen.mask, screen.seqlen_q, screen.keys)
        except (ImportError, ValueError) as problem:
            st.caption(str(problem))
            return
        choices = {"hides a little more": fit.narrower, "hides a little less": fit.wider}
        how = st.segmented_control("Nearest mask that", list(choices), default=next(iter(choices)), key="w_fit")
        st.session_state.fit_choice = how
        st.caption(f"The exact answer takes {len(fit.passes)} passes, merged by their log-sum-exp.")
