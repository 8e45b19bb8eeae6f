"""What is to be measured: shape, engines, and what is swept over."""

from __future__ import annotations

from dataclasses import fields, replace

import streamlit as st

from flashmask_core.bench.config import DTYPES, PASSES, BenchCase
from flashmask_core.bench.providers import PROVIDERS
from flashmask_core.bench.sweep import AXES, sweep_cases
from flashmask_core.data import PAPER_MASKS

from .. import presses, state
from ..build import Built
from ..link import Screen
from ..words import numbers_of
from .trial import HEAD_DIMS, LIMITS_S, MAX_VALUES, Trial

_SWEEPS = {"": "One case", "seqlen": "Length N", "sparsity": "Sparsity", "head_dim": "Head dim", "block": "Tile",
           "mask": "The paper's masks"}  # fmt: skip
_LIMIT_HELP = (
    f"For each step of an engine: compiling and weighing it in a process of its own, checking it, one turn of timing. One "
    f"that takes longer is stopped and stays in the table with that reason. {LIMITS_S[0]} to {LIMITS_S[1]:,} s."
)
_PASS_HELP = "forward alone; backward alone; both: a training step, its forward and backward in one call"


def inputs(screen: Screen) -> None:
    """The settings, as widgets that show and change the screen's trial."""
    for field in fields(Trial):
        state.seed(f"m_{field.name}", getattr(screen.trial, field.name))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="shape_bar"):
        st.number_input("Batch B", 1, 1024, step=1, **_setting("batch"), width=100)
        st.number_input("Query heads H", 1, 1024, step=1, **state.widget("w_heads"), width=120)
        keys = {"placeholder": "as H", "width": 120, **_setting("kv_heads")}
        st.number_input("Key heads Hk", 1, 1024, value=None, step=1, **keys)
        st.selectbox("Head dim D", HEAD_DIMS, **_setting("head_dim"), width=104)
        st.selectbox("Dtype", list(DTYPES), **_setting("dtype"), width=120)
        st.pills("Passes", PASSES, selection_mode="multi", help=_PASS_HELP, **_setting("passes"))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="engine_bar"):
        st.multiselect(
            "Engines", list(PROVIDERS), **_setting("engines"), format_func=lambda name: PROVIDERS[name].label
        )
        st.selectbox("Measure", list(_SWEEPS), format_func=_SWEEPS.__getitem__, width=170, **_setting("sweep"),
                     help="One case, or one for every value of what is chosen here.")  # fmt: skip
        st.number_input("Time limit, s", *LIMITS_S, step=30, help=_LIMIT_HELP, **_setting("limit"), width=124)
        if screen.trial.sweep and screen.trial.sweep != "mask":
            st.text_input("Values", max_chars=MAX_VALUES, width=280, **_setting("values"),
                          placeholder=", ".join(map(str, AXES[screen.trial.sweep][1])))  # fmt: skip


def _setting(name: str) -> dict:
    """Arguments of a widget that shows and changes a field of the screen's trial."""
    return {"key": f"m_{name}", "on_change": presses.later(collect, name)}


def collect(name: str) -> None:
    """A setting was changed. An emptied number is put back; only the key heads may be left out, for as many as H."""
    if state.is_late(f"m_{name}"):
        return
    value, trial = st.session_state[f"m_{name}"], state.current().trial
    changed = {name: value}
    if name == "passes":
        changed = {name: tuple(one for one in PASSES if one in value)}
    elif name == "engines":
        changed = {name: tuple(value)}
    elif name == "sweep":
        changed["values"] = ""  # those of another axis
    elif value is None and name != "kv_heads":
        changed = {name: getattr(trial, name)}
    state.change(trial=replace(trial, **changed))


def cases(screen: Screen, built: Built) -> tuple[BenchCase, ...]:
    """The cases that the settings ask for. ValueError for what cannot be."""
    trial = screen.trial
    values = {"batch": trial.batch, "heads": screen.heads, "kv_heads": trial.kv_heads, "head_dim": trial.head_dim,
              "dtype": trial.dtype, "passes": trial.passes, "providers": trial.engines, "time_limit_s": float(trial.limit)}  # fmt: skip
    if built.variant:
        title = f"{built.text} ({built.way})" if built.way else built.text
        case = BenchCase.of_mask(built.whole, title, **values)
    else:
        case = BenchCase(built.text, built.seqlen_q, built.seqlen_k, **values)
    if not trial.sweep:
        return (case,)
    found = sweep_cases(case, trial.sweep, _values(trial))
    for one in found:
        if trial.sweep != "mask":
            one.build_mask()  # a length for which the mask cannot be is told now
    return found


def _values(trial: Trial) -> tuple:
    if trial.sweep == "mask":
        return PAPER_MASKS
    if not trial.values.strip():
        return AXES[trial.sweep][1]
    return numbers_of(trial.values, "Values", "64, 128")


def title(screen: Screen, built: Built) -> str:
    """What the queue and the history call it."""
    swept = {"": f"N = {built.seqlen_q:,}", "seqlen": "over N", "sparsity": f"N = {built.seqlen_q:,}, over sparsity",
             "head_dim": f"N = {built.seqlen_q:,}, over D", "block": f"N = {built.seqlen_q:,}, over tiles",
             "mask": f"N = {built.seqlen_q:,}"}[screen.trial.sweep]  # fmt: skip
    name = {"mask": "the paper's masks", "sparsity": "causal documents"}.get(screen.trial.sweep, built.text[:60])
    return f"{name}, {swept}"
