"""Benchmark jobs on a page: started in the worker process, watched without blocking, cancelled, shown as they come.

The runner belongs to the whole server and runs one job at a time; a page keeps only the id of its own job. Nothing in
this process touches CUDA.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import streamlit as st
import torch

from flashmask_core.bench.config import BenchJob
from flashmask_core.bench.result import DeviceInfo
from flashmask_core.bench.runner import JobView, get_runner, probe_device

from . import results

POLL_S = 0.7


@st.cache_resource(show_spinner="Asking a worker process for the GPU …")
def device() -> DeviceInfo | str:
    """The GPU that jobs will run on, or a sentence that says why there is none."""
    return probe_device()


@cache
def may_have_gpu() -> bool:
    """A hint without CUDA and without waiting: a driver is loaded, and this PyTorch was built for one."""
    return torch.version.cuda is not None and any(Path(place).exists() for place in ("/dev/nvidiactl", "/dev/dxg"))


def start(slot: str, job: BenchJob) -> None:
    """Queue a job and remember it in this tab under a name."""
    st.session_state[f"job_{slot}"] = get_runner().submit(job)


def view(slot: str) -> JobView | None:
    """The job remembered under a name, as it is now; None if there is none (any more)."""
    job_id = st.session_state.get(f"job_{slot}")
    if job_id is None:
        return None
    try:
        return get_runner().view(job_id)
    except KeyError:  # the server was started anew, or the job is long gone
        del st.session_state[f"job_{slot}"]
        return None


def busy(slot: str) -> bool:
    """True while the job of a name waits or runs."""
    job = view(slot)
    return job is not None and not job.ended


def show(slot: str) -> None:
    """Progress with a cancel button while the job runs, and its rows, failed and skipped ones among them.

    A job outlives the tab that began it. So a tab without one of its own is told what else runs, and may take it over.
    """
    job = view(slot)
    if job is None:
        _offer_others(slot)
        return
    if job.ended:
        _ended(job)
    else:
        _watch(slot)


@st.fragment(run_every=POLL_S)
def _watch(slot: str) -> None:
    job = view(slot)
    if job is None or job.ended:
        st.rerun()
    left, right = st.columns([6, 1], vertical_alignment="bottom")
    waiting = f"waiting, number {job.position} in the queue" if job.position else job.message
    with left:
        st.progress(job.fraction, text=f"{job.job.title}: {waiting} · {job.elapsed_s:.0f} s")
    with right:
        st.button("Cancel", on_click=get_runner().cancel, args=(job.id,), width="stretch", key=f"cancel_{slot}")
    if job.rows:
        results.table(job.rows)


def _offer_others(slot: str) -> None:
    for job in get_runner().jobs():
        if not job.ended and job.job.kind == slot:
            left, right = st.columns([6, 1], vertical_alignment="center")
            state = "waits" if job.position else f"has been running for {job.elapsed_s:.0f} s"
            left.caption(f"A job that another tab began {state}: {job.job.title}")
            right.button("Take over", on_click=_take_over, args=(slot, job.id), key=f"take_{job.id}", width="stretch")


def _take_over(slot: str, job_id: str) -> None:
    st.session_state[f"job_{slot}"] = job_id


def _ended(job: JobView) -> None:
    if job.state == "failed":
        st.error(f"The job ended early: {job.reason}")
    elif job.state == "cancelled":
        until = ". What was measured until then stays below." if job.rows else " before anything was measured."
        st.info(f"Cancelled{until}")
    if not job.rows:
        return
    where = job.rows[0].where or job.where
    st.caption(f"{job.job.title} · {results.place(where, job.rows[0].date_utc)}")
    results.show(job.rows, key=job.id)
