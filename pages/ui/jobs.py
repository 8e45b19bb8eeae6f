"""Jobs on a page: started in the worker process, watched without blocking, cancelled, shown as they come.

The runner belongs to the whole server and runs one job at a time; a page keeps only the id of its own job, that of a
benchmark or of training in its address, where a reload finds it. A job whose last tab is gone is cancelled after a while. Nothing in this process
touches CUDA.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import streamlit as st
import torch
from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from flashmask_core.bench.config import BenchJob
from flashmask_core.bench.job_record import JobView
from flashmask_core.bench.result import DeviceInfo
from flashmask_core.bench.server import get_runner, probe_device
from flashmask_core.bench.table import duration_text

from . import state
from .measure import results
from .words import plain

POLL_S = 0.7
_TRAINING = ("train", "train_check")


@st.cache_resource(show_spinner="Asking a worker process for the GPU …")
def device() -> DeviceInfo | str:
    """The GPU that jobs will run on, or a sentence that says why there is none."""
    return probe_device()


@cache
def may_have_gpu() -> bool:
    """A hint without CUDA and without waiting: a driver is loaded, and this PyTorch was built for one."""
    return torch.version.cuda is not None and any(Path(place).exists() for place in ("/dev/nvidiactl", "/dev/dxg"))


def start(slot: str, job: BenchJob) -> None:
    """Queue a job and remember it in this tab: benchmarks and training as a run of the screen, another under its slot."""
    _remember(slot, get_runner().submit(job, _looks()))


def _remember(slot: str, job_id: str) -> None:
    if slot == "bench":
        state.change(trial=replace(state.current().trial, run=job_id))
    elif slot in _TRAINING:
        pack = state.current().pack
        state.change(pack=replace(pack, train=replace(pack.train, run=job_id)))
    else:
        st.session_state[f"job_{slot}"] = job_id


def _looks():
    """A function that says whether this tab is still open, on whatever page; yes where no server could say."""
    session_id = get_script_run_ctx().session_id
    return lambda: not runtime.exists() or runtime.get_instance().is_active_session(session_id)


def view(slot: str) -> JobView | None:
    """The job of this tab as it is now; None if there is none (any more)."""
    screen = state.current()
    runs = {"bench": screen.trial.run, **dict.fromkeys(_TRAINING, screen.pack.train.run)}
    job_id = runs[slot] if slot in runs else st.session_state.get(f"job_{slot}")
    if not job_id:
        return None
    try:
        job = get_runner().view(job_id)
        return job if slot not in runs or job.job.kind == slot else None
    except KeyError:  # the server was started anew, or the job is long gone; a run may be in the history
        st.session_state.pop(f"job_{slot}", None)
        return None


def busy(slot: str) -> bool:
    """True while the job of this tab waits or runs."""
    job = view(slot)
    return job is not None and not job.ended


def show(slot: str, drawn=results) -> None:
    """Progress with a cancel button while the job waits or runs; how it ended; what else is in the queue.

    drawn: draws rows, by its `table(rows)` and `show(rows, key=...)`. The rows of a "bench" job that has ended are shown
    by the history.
    """
    job = view(slot)
    if job is None:
        _offer_others(slot)
    elif job.ended:
        _ended(slot, job, drawn)
    else:
        _look_on(job.id)
        _watch(slot, drawn)


def _look_on(job_id: str) -> None:
    """This tab looks at a job that another one, or this one before it was loaded anew, began."""
    watched = st.session_state.setdefault("watched", set())
    if job_id not in watched:
        watched.add(job_id)
        get_runner().watch(job_id, _looks())


@st.fragment(run_every=POLL_S)
def _watch(slot: str, drawn) -> None:
    job = view(slot)
    if job is None or job.ended:
        st.rerun()
    left, right = st.columns([6, 1], vertical_alignment="bottom")
    with left:
        st.progress(job.fraction, text=plain(_doing(job)))
    with right:
        st.button("Cancel", on_click=get_runner().cancel, args=(job.id,), width="stretch", key=f"cancel_{slot}")
    if job.rows:
        drawn.table(list(job.rows))


def _doing(job: JobView) -> str:
    """What it does and how long that takes; a waiting job's place."""
    if job.position:
        ahead = "one job" if job.position == 1 else f"{job.position} jobs"
        return f"{job.job.title}: waiting, number {job.position} in the queue; {ahead} before it"
    left = "" if job.remaining_s is None else f", about {duration_text(job.remaining_s)} left"
    return f"{job.message} · {duration_text(job.elapsed_s)}{left}"


def _offer_others(slot: str) -> None:
    for job in get_runner().jobs():
        if not job.ended and job.job.kind == slot:
            left, right = st.columns([6, 1], vertical_alignment="center")
            state_ = "waits" if job.position else f"has been running for {duration_text(job.elapsed_s)}"
            left.caption(f"A job that another tab began {state_}: {plain(job.job.title)}")
            right.button("Take over", on_click=_remember, args=(slot, job.id), key=f"take_{job.id}", width="stretch")


def _ended(slot: str, job: JobView, drawn) -> None:
    if job.state == "failed":
        st.error(f"The job ended early: {plain(job.reason or '')}")
    elif job.state == "cancelled":
        until = ". What was measured until then stays below." if job.rows else " before anything was measured."
        st.info(f"{plain((job.reason or 'cancelled').capitalize())}{until}")
    if job.unkept:
        st.warning(f"This run is not kept: {plain(job.unkept)}")
    if job.rows and (slot != "bench" or job.unkept):
        where = job.rows[0].where or job.where
        st.caption(f"{plain(job.job.title)} · {results.place(where, job.rows[0].date_utc)}")
        drawn.show(list(job.rows), key=job.id)
