"""How long a mask takes where nobody has measured it: the time model's figures with their error bars."""

from __future__ import annotations

import streamlit as st

from flashmask_core.bench.tile_time import TimeModel, Work, time_model

from . import cards
from .build import Built
from .link import Screen

HEAD_DIM = 128
LEAST_MS = 0.05  # below it a kernel's launch counts for more than its tiles


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
    return f"≈ {ms:,.0f} ms" if ms >= 100 else f"≈ {ms:.3g} ms"


def basis(heads: int) -> str:
    """What times of masks that were not measured rest on; empty where nothing was recorded."""
    model = time_model(HEAD_DIM)
    if model is None:
        return ""
    return (
        f"Times are estimates for an {model.gpu}, bf16, one batch entry, {heads} heads, D {HEAD_DIM}, from "
        f"{model.basis} ({error_text(model)}: the worst on masks of a kind{_or_lengths(model)} that was left out of the fit)."
    )


def _or_lengths(model: TimeModel) -> str:
    return " or a length" if model.held_out_lengths else ""


def card(built: Built, screen: Screen) -> str:
    """The card of a mask that was not measured; empty where there is no model."""
    ours = {d: time_model(HEAD_DIM, d) for d in ("forward", "backward")}
    paper = time_model(HEAD_DIM, "forward", "A100")
    if None in (*ours.values(), paper):
        return ""
    work = _work(built.identity, built.mask)
    planes = screen.heads
    known = ours["forward"].held_out_lengths or built.seqlen_k in ours["forward"].lengths
    elsewhere = "" if known else " At another length it may be more."
    forward, backward = (f"{ms_text(model.ms(work, planes))}" for model in ours.values())
    body = (
        f"<small>forward, {error_text(ours['forward'])}</small>"
        + cards.row("backward", f"{backward} {error_text(ours['backward'])}")
        + cards.row("A100, the paper’s", f"{ms_text(paper.ms(work, planes))} {error_text(paper)}")
    )
    return cards.card(
        f"Estimated for an {ours['forward'].gpu}", forward, body, small=f"D {HEAD_DIM}, {screen.heads} heads, B 1",
        foot=f"Not measured: a sum over its tiles, fitted to {ours['forward'].basis}. ± is the worst error on masks of "
        f"a kind{_or_lengths(ours['forward'])} that the fit had not seen.{elsewhere}",
    )  # fmt: skip
