"""What a mask is, what looks wrong with it, and how it differs from the one that was meant."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import streamlit as st

import flashmask_core as fm
from flashmask_core.masks.lint import Finding

from . import cards, presses, state, theme, thumbnail
from .build import Built, built, fitted_of
from .shelf import shelf
from .versus.place import Other

_ICONS = {"error": ("✕", "lower"), "warning": ("!", "partial"), "note": ("i", "dim")}
SHORT = 160  # characters of a text that says at a glance what a mask is
_LONG = 600  # characters of a recognised text that are shown


@dataclass(frozen=True)
class Checked:
    """The shortest text found that gives the mask, or the nearest one with the pairs that differ; and the findings."""

    text: str
    changed_pairs: int
    findings: tuple[Finding, ...]


def panel(mask: Built) -> None:
    """The tab: what it is, what may be wrong, and the comparison."""
    checked = checked_of(*mask.source)
    _what_it_is(mask, checked)
    if checked.findings:
        _list(checked.findings, mask, "lint")
    else:
        st.caption(
            "None of the usual mistakes: every query sees its own key and nothing of the future, and no row is empty."
        )
    _meant(mask)


def summary(mask: Built) -> None:
    """One quiet line about an upload: what it is, and the worst that was found."""
    checked = checked_of(*mask.source)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="recognised_bar"):
        if checked.changed_pairs:
            st.caption(f"Nearest text: `{cut(checked.text)}`, which differs in {checked.changed_pairs:,} pairs.")
        else:
            long = f"It is exactly a text of {len(checked.text):,} characters, of rectangles for the most part."
            st.caption(f"It is exactly `{checked.text}`." if len(checked.text) <= SHORT else long)
            st.button("Use this text", on_click=presses.later(state.change, mask=checked.text), key="use_text_above")
    serious = [finding for finding in checked.findings if finding.level != "note"]
    if serious:
        _list(serious[:3], mask, "above")


@st.cache_data(max_entries=64, show_spinner="Looking for what this mask is …")
def checked_of(text: str, seqlen_q: int, seqlen_k: int, variant: str, plane: tuple[int, int]) -> Checked:
    """What `panel` shows of the mask that was written or uploaded (not of what stands for it)."""
    given = _written(built(text, seqlen_q, seqlen_k, variant, plane))
    found = fm.recognise(given, nearest=True)
    return Checked(found.text, found.changed_pairs, tuple(fm.lint(given)))


def _written(mask: Built) -> "fm.ColumnMask | fm.MaskedRuns":
    """The mask itself, its vectors as they were uploaded; the runs of one that does not fit."""
    if mask.way:
        return fitted_of(mask).runs
    given = shelf().get(mask.variant.removeprefix("file ")).given if mask.variant else None
    if given is not None and (given.batch, given.heads) == (1, 1):
        return given
    return mask.mask


def _what_it_is(mask: Built, checked: Checked) -> None:
    left, right = st.columns([5, 1.3], vertical_alignment="center")
    with left:
        if checked.changed_pairs:
            st.markdown(
                f"No short text gives this mask. The nearest is `{cut(checked.text)}`, which differs in "
                f"**{checked.changed_pairs:,}** pairs."
            )
        elif _as_typed(mask) == checked.text:
            st.markdown("No shorter text gives this mask.")
        else:
            st.markdown(f"This is exactly `{cut(checked.text)}`.")
    with right:
        if checked.text != _as_typed(mask):
            st.button("Use this text", on_click=presses.later(state.change, mask=checked.text), key="use_text",
                      width="stretch")  # fmt: skip


def _as_typed(mask: Built) -> str:
    """The mask's own text in canonical form; "" for an upload."""
    return "" if mask.variant.startswith("file ") else str(fm.parse(mask.text))


def _list(findings, mask: Built, key: str) -> None:
    """Findings, each with a button that goes to a place it speaks of."""
    for number, finding in enumerate(findings):
        left, right = st.columns([8, 1.3], vertical_alignment="center")
        with left:
            st.html(finding_html(finding))
        if finding.at is not None:
            with right:
                st.button("Look at it", key=f"{key}_{number}", on_click=presses.later(state.select, finding.at),
                          width="stretch", help=f"Query {finding.at[0]:,}, key {finding.at[1]:,}")  # fmt: skip


def finding_html(finding: Finding) -> str:
    """A finding as one line with the sign of its level."""
    return line_html(finding.level, finding.message)


def line_html(level: str, message: str) -> str:
    """A message with the sign of a level: a cross, an exclamation mark or an i."""
    icon, colour = _ICONS[level]
    return (
        f'<div class="fm-finding"><i style="background:var(--fm-{colour})" title="{level}">{icon}</i>'
        f"<span>{escape(message)}</span></div>"
    )


def _meant(mask: Built) -> None:
    text = st.text_input(
        "Hold it against the mask that was meant",
        key="w_meant",
        persist_state="session",
        placeholder="sliding_window(512) & document(2481, 1388, 1978, 2345)",
        help="Counts the pairs that differ, and names the usual mistake that explains them, if one does.",
    )
    if not text.strip():
        return
    if st.button("Compare them side by side", key="side_by_side"):
        state.go("pages/compare.py", other=Other(text.strip()))
    try:
        findings, extra, missing = _compared(mask.source, text)
    except ValueError as error:
        st.html(cards.error_html(str(error).splitlines()[0][:400]))
        return
    if not findings:
        st.success("The same mask, pair by pair.", icon=":material/check:")
        return
    picture, told = st.columns([1, 3.2], gap="medium")
    with picture:
        st.html(_difference_html(extra, missing))
    with told:
        _list(findings, mask, "meant")


@st.cache_resource(max_entries=8, show_spinner="Comparing …")
def _compared(source: tuple, text: str):
    """(findings about the difference, what is shown too much, what too little)"""
    written = _written(built(*source))
    seqlen_q, seqlen_k = source[1:3]
    meant = fm.parse(text).runs(seqlen_q, seqlen_k)
    difference = fm.compare(written, meant)
    findings = [f for f in fm.lint(written, meant=text) if f.code in ("explained", "differs", "flag", "ends", "leak")]
    return (() if difference.equal else tuple(findings)), difference.extra, difference.missing


def _difference_html(extra: fm.MaskedRuns, missing: fm.MaskedRuns) -> str:
    keys = [("lower", "shown, and should not be"), ("upper", "not shown, and should be"), ("select", "both")]
    legend = "<br>".join(f'<i class="fm-key" style="background:var(--fm-{c})"></i>{words}' for c, words in keys)
    source = thumbnail.of_difference(extra, missing, theme.is_dark())
    return thumbnail.figure(source, "Where the masks differ", below=legend)


def cut(text: str) -> str:
    text = text.replace("`", "")
    return text if len(text) <= _LONG else f"{text[:_LONG]} …"
