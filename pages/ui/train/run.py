"""The section that trains: what, with which engines, and how it goes. Without a GPU, what can be done instead."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from flashmask_core.bench.config import BenchJob
from flashmask_core.training.case import TrainCase
from flashmask_core.training.decoder import DecoderConfig
from flashmask_core.training.kept import KeptRuns
from flashmask_core.training.names import ENGINE_LABELS, TASK_LABELS, TASKS
from flashmask_core.training.result import TrainRow, recorded

from .. import bar, cards, jobs, presses, state
from ..measure.results import place as device_text
from ..words import plain
from . import results
from .place import PackPlace
from .run_place import MAX_TEXT, TrainPlace, contexts_of

MODELS = {  # layers, width, heads, key heads
    "Four layers of 2,048": (4, 2048, 16, 4),
    "Llama 3.2 1B": (16, 2048, 32, 8),
    "Llama 3 8B, four of its layers": (4, 4096, 32, 8),
}
_OWN = "Your own sizes"
_SHAPE = ("layers", "width", "heads", "kv_heads")
_TINY = DecoderConfig(layers=1, width=32, heads=2, kv_heads=1, hidden=64, vocabulary=64, recompute=False)
_LARGEST = 2**20  # context that the search for the longest one looks at


def section() -> None:
    """Heading, settings, the job, its results; then what was recorded."""
    st.subheader("Train a few steps", anchor=False)
    gpu = jobs.device()
    st.html(
        '<p class="fm-sub">A Llama-shaped decoder of random weights, trained with the losses of SFT, LoRA, DPO and reward '
        "models on the lengths above, or on the paper’s recipe for each where none are typed: FlashMask against a dense "
        "mask and FlexAttention on the same batches.</p>"
    )
    if isinstance(gpu, str):
        _without_gpu(gpu)
    else:
        _with_gpu(gpu)
    _recorded()
    st.caption(
        "On a server without a browser: `python -m flashmask_core train --longest --out training.jsonl`, with `--lengths "
        "FILE` for your own examples; `--record` puts its rows on this page."
    )


def _with_gpu(gpu) -> None:
    place = state.current().pack
    st.caption(f"GPU: {device_text(gpu, None)}")
    _settings(place.train)
    try:
        cases = cases_of(place)
    except (ValueError, TypeError) as problem:
        st.html(cards.error_html(bar.shortened(str(problem))))
        return
    rows = sum(len(case.engines) for case in cases)
    job = BenchJob("train", cases, title=title(place.train))
    st.button(f"Train, {rows} {'row' if rows == 1 else 'rows'}", type="primary", key="train_run", width=160,
              disabled=jobs.busy("train"), on_click=presses.later(jobs.start, "train", job))  # fmt: skip
    kept = _kept_runs(place.train.run)
    _earlier(place.train.run, kept)
    jobs.show("train", results)
    if place.train.run and jobs.view("train") is None:
        _kept(place.train.run, kept.get(place.train.run))


def _without_gpu(why: str) -> None:
    place = state.current().pack.train
    held = ", and results recorded on a GPU" if _shipped()[0] else ""
    st.info(f"Throughput cannot be measured on this machine: {why}. Below: a tiny run that needs no GPU{held}.",
            icon=":material/memory_alt:")  # fmt: skip
    left, right = st.columns([5, 1.4], vertical_alignment="bottom")
    with left:
        st.markdown(
            "**Do the engines learn the same?** One layer of width 32 is trained three steps of 256 tokens on the CPU, drawn "
            "by the paper’s recipe whatever is typed above, the Triton kernels through their interpreter, and its losses "
            "are held against those of the dense mask. It says nothing about speed. FlexAttention has no backward pass on "
            "a CPU."
        )
        _tasks(place)
    with right:
        cases = tuple(
            TrainCase(task, 256, ("dense", "flashmask", "flex"), _TINY, steps=3, warmup=0, dtype="float32",
                      deterministic=True, time_limit_s=240.0)
            for task in place.tasks
        )  # fmt: skip
        job = BenchJob("train_check", cases, title="Tiny training run, interpreter") if cases else None
        st.button("Train a tiny model here", width="stretch", key="train_tiny",
                  disabled=not cases or jobs.busy("train_check"),
                  on_click=presses.later(jobs.start, "train_check", job))  # fmt: skip
    jobs.show("train_check", results)


def _kept_runs(run: str) -> dict[str, list[TrainRow]]:
    """The rows of the latest runs on this machine, and of the one that is shown; what cannot be read is named."""
    kept, found = KeptRuns(), {}
    try:
        names = kept.runs()
    except ValueError as problem:
        st.warning(plain(str(problem)))
        return {}
    for name in filter(None, dict.fromkeys([*names, run])):
        try:
            found[name] = kept.rows(name)
        except ValueError as problem:
            st.warning(plain(str(problem)))
    return {name: rows for name, rows in found.items() if rows}


def _earlier(shown: str, runs: dict[str, list[TrainRow]]) -> None:
    """A choice among the runs that are kept, where there are any."""
    if not runs:
        return

    def name(run: str) -> str:
        rows = runs.get(run)
        if not rows:
            return "none"
        tasks = ", ".join(dict.fromkeys(TASK_LABELS[row.task] for row in rows))
        return f"{(rows[0].date_utc or '')[:16].replace('T', ' ')} · {tasks} · {len(rows)} rows · {run[-4:]}"

    state.seed("t_run", shown if shown in runs else "")
    st.selectbox("Run shown", ["", *runs], format_func=name, width=420, key="t_run",
                 on_change=presses.later(_collect, "run"), disabled=jobs.busy("train"))  # fmt: skip


def _kept(run: str, rows: list[TrainRow] | None) -> None:
    """A run that the server no longer has in mind."""
    if rows:
        st.caption(f"{device_text(rows[0].where, rows[0].date_utc)} · kept in `{KeptRuns().path(run)}`")
        results.show(rows, key=run)
    else:
        st.info(f"The run {run} of this link is not on this machine.")


def _shipped() -> tuple[list[TrainRow], str]:
    """The recorded rows, or why they cannot be read."""
    try:
        return recorded(), ""
    except ValueError as problem:
        return [], str(problem)


def _recorded() -> None:
    rows, problem = _shipped()
    if problem:
        st.warning(plain(problem))
    if rows:
        st.subheader("Recorded results", anchor=False)
        for line in results.sources(rows):
            st.caption(line)
        results.show(rows, key="recorded")


def _settings(place: TrainPlace) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="train_what"):
        _tasks(place)
        st.pills("Engines", list(ENGINE_LABELS), format_func=ENGINE_LABELS.__getitem__, selection_mode="multi",
                 **_setting(place, "engines"))  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="train_bar"):
        shape = tuple(getattr(place, name) for name in _SHAPE)
        named = next((name for name, sizes in MODELS.items() if sizes == shape), _OWN)
        state.seed("t_model", named)
        st.selectbox("Model", [*MODELS, _OWN], key="t_model", on_change=presses.later(_take_model), width=250)
        for name, label, width in (("layers", "Layers", 96), ("width", "Width", 110), ("heads", "Heads", 96),
                                   ("kv_heads", "Key heads", 104)):  # fmt: skip
            st.number_input(label, 1, step=1, width=width, **_setting(place, name))
        st.text_input("Contexts", max_chars=MAX_TEXT, width=170, **_setting(place, "contexts"))
        st.number_input("Steps timed", 1, 46, step=1, width=104, **_setting(place, "steps"))
        st.toggle("Longest context", **_setting(place, "longest"),
                  help="Also search the longest context of which a step fits, up to a million tokens: a few minutes.")  # fmt: skip
        st.toggle("Repeatable", **_setting(place, "exact"),
                  help="fp32 and deterministic algorithms, so that the loss curves can be held together.")  # fmt: skip


def _tasks(place: TrainPlace) -> None:
    st.pills("Tasks", TASKS, format_func=TASK_LABELS.__getitem__, selection_mode="multi", **_setting(place, "tasks"))


def _setting(place: TrainPlace, name: str) -> dict:
    """Arguments of a widget that shows and changes a field of the place."""
    state.seed(f"t_{name}", getattr(place, name))
    return {"key": f"t_{name}", "on_change": presses.later(_collect, name)}


def _collect(name: str) -> None:
    """A setting was changed; an emptied number is put back."""
    if state.is_late(f"t_{name}"):
        return
    value, place = st.session_state[f"t_{name}"], state.current().pack.train
    if name == "tasks":
        value = tuple(one for one in TASKS if one in value)
    elif name == "engines":
        value = tuple(one for one in ENGINE_LABELS if one in value)
    elif value is None:
        value = getattr(place, name)
    _change(**{name: value})


def _take_model() -> None:
    if not state.is_late("t_model") and (sizes := MODELS.get(st.session_state.t_model)):
        _change(**dict(zip(_SHAPE, sizes)))


def _change(**values) -> None:
    pack = state.current().pack
    state.change(pack=replace(pack, train=replace(pack.train, **values)))


def cases_of(place: PackPlace) -> tuple[TrainCase, ...]:
    """The cases that the settings ask for, on the lengths that are packed above. ValueError or TypeError for what
    cannot be."""
    train = place.train
    if not train.tasks or not train.engines:
        raise ValueError(f"{'Engines' if train.tasks else 'Tasks'}: choose at least one")
    settings = dict(
        engines=train.engines, model=DecoderConfig(*(getattr(train, name) for name in _SHAPE)), lengths=place.lengths,
        policy=place.policy, too_long=place.long, seed=place.seed, steps=train.steps, deterministic=train.exact,
        dtype="float32" if train.exact else "bfloat16",
    )  # fmt: skip
    contexts = contexts_of(train.contexts)
    cases = [TrainCase(task, context, **settings) for task in train.tasks for context in contexts]
    if train.longest:
        cases += [TrainCase(task, _LARGEST, longest=True, **settings) for task in train.tasks]
    if not cases:
        raise ValueError("Contexts: wanted at least one, or the longest")
    for case in cases:
        case.check()
    return tuple(cases)


def title(place: TrainPlace) -> str:
    """What the queue calls it."""
    tasks = ", ".join(TASK_LABELS[task] for task in place.tasks)
    return f"Training: {tasks}; {place.layers} × {place.width:,}"
