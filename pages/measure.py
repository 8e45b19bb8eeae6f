"""Measure: the mask of the screen on the local GPU, against the engines one would use instead."""

import streamlit as st

from flashmask_core.bench.config import CHECK_MAX_LENGTH, BenchJob, check_cases
from pages.ui import bar, jobs, presses, recorded, state
from pages.ui.measure import results, runs, setup
from pages.ui.walk.small import shrunk

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


def run_here() -> None:
    """Settings, Run, and how it goes."""
    st.caption(f"GPU: {results.place(gpu, None)}")
    setup.inputs(screen)
    try:
        cases = setup.cases(screen, built)
    except ValueError as problem:
        st.error(bar.shortened(str(problem)))
        return
    st.button(
        "Run" if len(cases) == 1 else f"Run {len(cases)} cases",
        type="primary",
        disabled=jobs.busy("bench"),
        width=148,
        on_click=presses.later(jobs.start, "bench", BenchJob("bench", cases, title=setup.title(screen, built))),
        key="run",
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
            "**Check the kernel here.** The Triton kernel itself runs through its interpreter on this mask, forward and "
            f"backward, and is compared with the reference. A longer mask is made small: {CHECK_MAX_LENGTH} × "
            f"{CHECK_MAX_LENGTH}, every cell the middle one of those it stands for."
        )
    with right:
        mask = shrunk(built.mask, CHECK_MAX_LENGTH)
        name = built.text[:80] + ", made small" * (mask is not built.mask)
        job = BenchJob("check", check_cases(mask, name), title="Kernel check, interpreter")
        st.button(
            "Check the kernel here",
            disabled=jobs.busy("check"),
            width="stretch",
            on_click=presses.later(jobs.start, "check", job),
        )
    jobs.show("check")


if isinstance(gpu, str):
    no_gpu()
else:
    run_here()
runs.panel(jobs.busy("bench"), known=jobs.view("bench") is not None)
recorded.section(built, screen, folded=bool(screen.trial.run))
