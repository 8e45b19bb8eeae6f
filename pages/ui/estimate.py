"""How long a mask takes where nobody has measured it: the time model's figures with their error bars."""

from __future__ import annotations

from dataclasses import replace
from math import hypot

import streamlit as st

from flashmask_core.bench.paper import DIRECTIONS
from flashmask_core.bench.tile_time import TimeModel, dense_ms, time_model
from flashmask_core.bench.tile_work import Work

from . import cards
from .build import Built
from .link import Screen
from .words import heads_text

HEAD_DIM = 128
LEAST_MS = 0.05  # below it a kernel's launch counts for more than its tiles
_LEFT_OUT = "a kind or a length that was left"


@st.cache_data(max_entries=64, show_spinner=False)
def _work(identity: str, _mask) -> Work:
    return Work.of(_mask)


def error_text(model: TimeModel) -> str:
    """ "± 8 %": the worst error on a family of masks that the fit had not seen."""
    return f"± {100 * model.worst_error:.0f} %"


def ms_text(ms: float) -> str:
    """Three digits: "≈ 0.272 ms", "≈ 27.2 ms", "≈ 1,230 ms"; of less than a launch takes only that."""
    if ms < LEAST_MS:
        return f"< {LEAST_MS} ms"
    return f"≈ {ms:,.0f} ms" if ms >= 100 else f"≈ {ms:#.3g} ms"


def basis(screen: Screen) -> str:
    """What times of masks that were not measured rest on; empty where nothing was recorded."""
    model = time_model(HEAD_DIM)
    if model is None:
        return ""
    error = f" ({error_text(model)}: the worst on masks of {_LEFT_OUT} out of the fit)"
    known = model.covers(screen.seqlen_q, screen.keys)
    return (
        f"Times are estimates for an {model.gpu}, bf16, one batch entry, {heads_text(screen.heads)}, D {HEAD_DIM}, from "
        f"{model.basis}{error if known else '; how near they are at this length was not measured'}."
    )


def card(built: Built, screen: Screen) -> str:
    """The card of a mask that was not measured, all planes of it; empty where there is no model."""
    ours = {d: time_model(HEAD_DIM, d) for d in DIRECTIONS}
    flex, paper = time_model(HEAD_DIM, engine="flex"), time_model(HEAD_DIM, gpu="A100")
    if None in (*ours.values(), flex, paper):
        return ""
    whole, heads = built.whole, screen.heads
    planes = whole.batch * whole.heads
    work = _work(replace(built, plane=(0, 0)).identity, whole)
    small = f"D {HEAD_DIM}, {heads_text(heads)}, B 1" + f", mean of {planes:,} planes" * (planes > 1)
    title = f"Estimated for an {ours['forward'].gpu}"
    if not work.partial + work.full:
        return cards.card(title, "nothing to do", "<small>no pair is visible, so no tile is computed</small>", small=small)
    forward, backward, flex_ms, paper_ms = (model.ms(work, heads) for model in (*ours.values(), flex, paper))
    fills = all(model.fills(work, heads) for model in ours.values())
    known = ours["forward"].covers(built.seqlen_q, built.seqlen_k)
    trusted = forward >= LEAST_MS and fills and known

    def row(what: str, ms: float, model: TimeModel) -> str:
        if not trusted:
            return cards.row(what, ms_text(ms))
        error = error_text(model).replace(" ", "&nbsp;")
        return cards.row(f"{what} <small>{error}</small>", ms_text(ms).removeprefix("≈ "))

    label = f"forward, {error_text(ours['forward'])}" if trusted else "forward"
    if forward >= LEAST_MS:
        label += f": {_against(flex_ms / forward, hypot(ours['forward'].worst_error, flex.worst_error))}"
    body = (
        f"<small>{label}</small>"
        + row("backward", backward, ours["backward"])
        + row("FlexAttention", flex_ms, flex)
    )
    dense = dense_ms(built.seqlen_q, built.seqlen_k, heads, planes=whole.heads)
    has_dense = dense is not None and dense >= LEAST_MS
    if has_dense:
        body += cards.row("a dense mask", f"about {ms_text(dense).removeprefix('≈ ')}")
    body += row("paper’s A100", paper_ms, paper)
    if trusted:
        basis = f"fitted to {ours['forward'].basis}. ± is the worst error on masks of {_LEFT_OUT} out of the fit."
    else:
        n = ours["forward"].lengths
        alike = " and masks with work for the whole GPU" if known and not fills else ""
        basis = f"fitted at N {n[0]:,} to {n[-1]:,}{alike}; how near it is here was not measured."
    basis += " A dense mask’s time is scaled from 8K." * has_dense
    return cards.card(title, ms_text(forward), body, small=small, foot=f"Not measured: a sum over its tiles, {basis}")


def _against(ratio: float, error: float) -> str:
    """ "about 1.6× faster than FlexAttention", where the error leaves no doubt which is."""
    if 1 / (1 + error) < ratio < 1 + error:
        return "about as fast as FlexAttention"
    return f"about {max(ratio, 1 / ratio):.1f}× {'faster' if ratio > 1 else 'slower'} than FlexAttention"
