"""The runs of the history: which one is shown, which one beside it, what can be taken away and brought in."""

from __future__ import annotations

import re
from dataclasses import replace

import streamlit as st

from flashmask_core.bench.charts import engine_label
from flashmask_core.bench.history import History, Run, import_run
from flashmask_core.bench.html_report import charts_of, html_report
from flashmask_core.bench.recorded import shipped_results
from flashmask_core.bench.report import MAX_FILE_BYTES, compare, devices_of, from_json, to_csv, to_json
from flashmask_core.bench.result import BenchRow
from flashmask_core.bench.svg_chart import svg_chart
from flashmask_core.bench.table import where_line

from .. import jobs, presses, state, theme
from ..words import plain
from . import png, results

_NONE = ""
_RECORDED = "recorded"  # stands for the results that are shipped, beside a run
_OF_THE_RECORDING = "the results shipped with this program, an H200"
_SIZE = re.compile(r'width="(\d+)" height="(\d+)"')


def panel(busy: bool, known: bool) -> None:
    """The kept runs: a bar to choose and to export, then the chosen one, or two beside each other.

    busy: the chosen one is still being measured, and its rows are shown elsewhere. known: the server knows its job, and
    says elsewhere how it ended.
    """
    history, trial = History(), state.current().trial
    try:
        runs = {run.id: run for run in history.runs()}
        for name in (trial.run, trial.beside):
            if name and name not in runs and (run := history.run(name)):
                runs[name] = run
    except ValueError as problem:
        st.warning(plain(str(problem)))
        return
    st.subheader("Runs", anchor=False)
    rows = _rows(history, trial.run)
    if trial.beside == _RECORDED:
        measured = {row.key for row in rows}
        others = [row for row in shipped_results() if row.key in measured]
    else:
        others = _rows(history, trial.beside)
    _bar(runs, rows)
    st.caption(f"Kept in `{history.path}`, one SQLite file on the machine that serves this page.")
    for name, found in ((trial.run, rows), (trial.beside, others)):
        if name in (_NONE, _RECORDED) or found or name in runs or known and name == trial.run:
            continue
        st.info(f"The run {name} of this link is not in the history of this machine.")
    if rows and not busy:
        run = runs[trial.run]
        _heading(run, rows)
        if trial.beside == _RECORDED:
            _beside(rows, _OF_THE_RECORDING, others)
        elif others:
            _beside(rows, _name(runs[trial.beside]), others)
        results.show(rows, key=run.id)


def _rows(history: History, run_id: str) -> list[BenchRow]:
    """The rows of a run; none, with the reason on the screen, for one that cannot be read."""
    try:
        return history.rows(run_id) if run_id else []
    except ValueError as problem:
        st.warning(plain(str(problem)))
        return []


def _bar(runs: dict[str, Run], rows: list[BenchRow]) -> None:
    trial = state.current().trial
    state.seed("m_shown", trial.run if trial.run in runs else _NONE)
    state.seed("m_beside", trial.beside if trial.beside in (*runs, _RECORDED) else _NONE)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="runs_bar"):
        named = lambda run_id: _name(runs[run_id]) if run_id else "none"  # noqa: E731
        st.selectbox("Shown", [_NONE, *runs], key="m_shown", format_func=named,
                     on_change=presses.later(_choose, "run", "m_shown"))  # fmt: skip
        st.selectbox("Beside it", [_NONE, *runs, _RECORDED], key="m_beside",
                     on_change=presses.later(_choose, "beside", "m_beside"),
                     format_func=lambda name: _OF_THE_RECORDING if name == _RECORDED else named(name),
                     disabled=not rows)  # fmt: skip
        with st.popover("Export", width=96, disabled=not rows, key="export", on_change="rerun") as box:
            if rows and box.open:
                _exports(runs[trial.run], rows)
        with st.popover("Import", width=96, key="import"):
            _import()


def _name(run: Run) -> str:
    """What a run is called among others: no two alike, and the same from its beginning on."""
    origin = "" if run.origin == "here" else f" · from {run.origin}"
    return f"{run.begun_utc[:16].replace('T', ' ')} · {run.title or 'untitled'}{origin} · {run.id[-4:]}"


def _choose(field: str, key: str) -> None:
    if state.is_late(key):
        return
    if field == "run" and not st.session_state[key] and jobs.busy("bench"):
        return  # the browser still holds the "none" of a moment when this run was not listed: no choice of a person
    state.change(trial=replace(state.current().trial, **{field: st.session_state[key] or ""}))


def _heading(run: Run, rows: list[BenchRow]) -> None:
    ended = run.reason if run.reason and run.reason.startswith(run.state) else f"{run.state}: {run.reason}"
    said = {"done": "", "running": "not ended · "}.get(run.state, f"{ended} · ")
    devices = devices_of(rows)
    place = results.place(devices[0] if devices else None, rows[0].date_utc or run.begun_utc)
    more = f" and {len(devices) - 1} more" if len(devices) > 1 else ""
    origin = "" if run.origin == "here" else f" · from {run.origin}"
    st.caption(f"**{plain(run.title)}** · {plain(said)}{run.rows} rows · {plain(place)}{more}{plain(origin)}")


def _beside(rows, other: str, others) -> None:
    """Both runs row by row. other: what the second one is called."""
    pairs = compare(rows, others)
    same = [pair for pair in pairs if pair.ratio is not None]
    st.markdown("**Beside each other**")
    if same:
        slower = sum(pair.ratio > 1 for pair in same if pair.apart)
        faster = sum(pair.ratio < 1 for pair in same if pair.apart)
        st.caption(
            f"Beside it: {plain(other)}. {len(same)} times in both: it was slower in {slower}, faster in {faster}, "
            "and in the others the quartiles overlap."
        )
    else:
        st.caption("The two runs have no measurement in common: other masks, lengths or engines.")
    lines = []
    for pair in sorted(pairs, key=lambda pair: pair.ratio is None):
        row = pair.first or pair.second
        lines.append({
            "Engine": engine_label(row), "Mask": row.mask_name or row.mask[:60], "N": row.seqlen_q, "D": row.head_dim,
            "Tile": row.block, "Pass": row.direction, "Shown, ms": pair.first and pair.first.median_ms,
            "Beside, ms": pair.second and pair.second.median_ms, "Beside / shown": pair.ratio,
            "Difference": {True: "beyond the quartiles", False: "within the quartiles", None: ""}[pair.apart],
            "Only in": "" if pair.first and pair.second else "shown" if pair.first else "beside",
        })  # fmt: skip
    numbers = {name: st.column_config.NumberColumn(format=form) for name, form in
               (("Shown, ms", "%.3f"), ("Beside, ms", "%.3f"), ("Beside / shown", "%.3f"))}  # fmt: skip
    st.dataframe(results.without_what_is_the_same(lines), hide_index=True, width="stretch", column_config=numbers,
                 placeholder="–", height="content" if len(lines) <= 16 else 520)  # fmt: skip


def _exports(run: Run, rows: list[BenchRow]) -> None:
    """Files of the run that is shown; none of them asks for anything to be measured again."""
    stem = re.sub(r"[^A-Za-z0-9]+", "_", f"{run.title}_{run.begun_utc[:10]}").strip("_")[:80] or "run"
    title = run.title or "Benchmark"
    files = (
        ("Rows, .csv", lambda: to_csv(rows), "csv"), ("Run, .json", lambda: to_json(rows, title), "json"),
        ("Report, .html", lambda: html_report(rows, title), "html"),
    )  # fmt: skip
    for label, data, ending in files:
        st.download_button(label, data, f"{stem}.{ending}", on_click="ignore", width="stretch", key=f"take_run_{ending}")
    look = "dark" if theme.is_dark() else "light"
    devices = devices_of(rows)
    foot = f"{title}. {where_line(devices[0] if devices else None, rows[0].date_utc)}"
    pictures = []
    for chart in charts_of(rows):
        svg = svg_chart(chart, look, foot)
        width, height = map(int, _SIZE.search(svg).groups())
        name = re.sub(r"\W+", "_", chart.title.lower())
        pictures.append({"label": f"{chart.title}, .png", "name": f"{stem}_{name}.png", "svg": svg, "width": width,
                         "height": height})  # fmt: skip
    png.buttons(pictures, key="png")


def _import() -> None:
    st.caption("A run that somebody else exported as .json, or rows of the command line as .jsonl. Nothing in it is run.")
    st.file_uploader("Run", ["json", "jsonl"], key="m_import", label_visibility="collapsed", on_change=presses.later(_take),
                     max_upload_size=MAX_FILE_BYTES // 2**20)  # fmt: skip
    if st.session_state.get("import_problem") and st.session_state.m_import:
        st.error(st.session_state.import_problem)


def _take() -> None:
    """Callback of an import: somebody else's run is kept, and shown beside one's own."""
    file, history, trial = st.session_state.get("m_import"), History(), state.current().trial
    if file is None:
        return
    name = file.name[:100]
    try:
        title, rows = from_json(file.getvalue())
        run_id = import_run(history, title, rows, name)
    except ValueError as problem:
        st.session_state.import_problem = f"{name}: {str(problem)[:400]}"
        return
    st.session_state.import_problem = ""
    state.change(trial=replace(trial, beside=run_id) if trial.run else replace(trial, run=run_id))
