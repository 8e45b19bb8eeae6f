"""Measure: the mask of the screen on the local GPU, against the engines one would use instead."""

from dataclasses import fields, replace

import streamlit as st

from flashmask_core.bench.config import DTYPES, PASSES, BenchCase, BenchJob, check_cases
from flashmask_core.bench.providers import PROVIDERS
from pages.ui import bar, jobs, recorded, results, state
from pages.ui.trial import HEAD_DIMS, Trial

screen = state.current()

st.title("Measure", anchor=False)
st.html(
    '<p class="fm-sub">The same mask, live on the GPU of this machine, in a process of its own: one job at a time, '
    "and an out-of-memory ends a job, not the app.</p>"
)
bar.mask_bar(screen, heads=False)
bar.chips(screen)
built = bar.built_or_explained(screen)

gpu = jobs.device()


def settings() -> dict:
    """The shape and the rivals, as fields of a BenchCase."""
    trial = screen.trial
    for field in fields(Trial):
        st.session_state[f"m_{field.name}"] = getattr(trial, field.name)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="shape_bar"):
        st.number_input("Batch B", 1, 1024, step=1, **setting("batch"), width=110)
        st.number_input("Query heads H", 1, 1024, step=1, **state.widget("w_heads"), width=130)
        keys = {"placeholder": "as H", "width": 130, **setting("kv_heads")}
        st.number_input("Key heads Hk", 1, 1024, value=None, step=1, **keys)
        st.selectbox("Head dim D", HEAD_DIMS, **setting("head_dim"), width=110)
        st.selectbox("Dtype", list(DTYPES), **setting("dtype"), width=130)
        st.pills("Passes", PASSES, selection_mode="multi", **setting("passes"))
    st.multiselect(
        "Engines", list(PROVIDERS), **setting("engines"), format_func=lambda name: PROVIDERS[name].label
    )
    return {
        "batch": trial.batch,
        "heads": screen.heads,
        "kv_heads": trial.kv_heads,
        "head_dim": trial.head_dim,
        "dtype": trial.dtype,
        "passes": trial.passes,
        "providers": trial.engines,
    }


def setting(name: str) -> dict:
    """Arguments of a widget that shows and changes a field of the screen's trial."""
    return {"key": f"m_{name}", "on_change": collect, "args": (name,)}


def collect(name: str) -> None:
    """Callback of a setting. An emptied number is put back; only the key heads may be left out, for as many as H."""
    value, trial = st.session_state[f"m_{name}"], state.current().trial
    if name == "passes":
        value = tuple(one for one in PASSES if one in value)
    elif name == "engines":
        value = tuple(value)
    elif value is None and name != "kv_heads":
        value = getattr(trial, name)
    state.change(trial=replace(trial, **{name: value}))


def case_of(values: dict) -> BenchCase:
    if built.variant:
        title = f"{built.text} ({built.way})" if built.way else built.text
        return BenchCase.of_mask(built.whole, title, **values)
    return BenchCase(built.text, built.seqlen_q, built.seqlen_k, **values)


def run_here() -> None:
    """Settings, Run, and what came out."""
    st.caption(f"GPU: {results.place(gpu, None)}")
    values = settings()
    try:
        case = case_of(values)
    except ValueError as problem:
        st.error(bar.shortened(str(problem)))
        return
    st.button(
        "Run",
        type="primary",
        disabled=jobs.busy("bench"),
        width=148,
        on_click=jobs.start,
        args=("bench", BenchJob("bench", (case,), title=f"{built.text[:60]}, N = {built.seqlen_q:,}")),
    )
    jobs.show("bench")


def no_gpu() -> None:
    """Why nothing can be timed here, and what can be done instead."""
    below = "a check of the kernel that needs no GPU"
    if recorded.cases():
        below = f"results recorded on a GPU, and {below}"
    st.info(f"Nothing can be timed on this machine: {gpu}. Below: {below}.", icon=":material/memory_alt:")
    left, right = st.columns([5, 1.4], vertical_alignment="center")
    with left:
        st.markdown(
            "**Check the kernel here.** The Triton kernel itself runs through its interpreter on the first 256 × 256 "
            "tokens of this mask, forward and backward, and is compared with the reference."
        )
    with right:
        job = BenchJob("check", check_cases(built.mask, built.text[:80]), title="Kernel check, interpreter")
        st.button(
            "Check the kernel here",
            disabled=jobs.busy("check"),
            width="stretch",
            on_click=jobs.start,
            args=("check", job),
        )
    jobs.show("check")


if isinstance(gpu, str):
    no_gpu()
else:
    run_here()
recorded.section(built, screen)
