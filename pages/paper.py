"""The paper's tables beside what these kernels do, from the same masks; works without a GPU."""

from dataclasses import replace

import streamlit as st

from flashmask_core.bench.recorded import shipped_problem
from flashmask_core.bench.reproduce import BLOCKS
from flashmask_core.bench.tile_time import time_model
from pages.ui import copy_link, presses, state, theme
from pages.ui.measure import results
from pages.ui.paper import facts, figures, says, tables
from pages.ui.paper.place import TIMES
from pages.ui.words import plain

screen = state.current()
place = screen.paper

FOUND = st.cache_data(facts.document_finding, show_spinner=False)
EXACT = st.cache_data(facts.exact_finding, show_spinner=False)


def move(name: str) -> None:
    if not state.is_late(f"p_{name}") and (value := st.session_state[f"p_{name}"]):
        state.change(paper=replace(state.current().paper, **{name: value}))


def chosen(name: str, label: str, options, **look) -> None:
    state.seed(f"p_{name}", getattr(place, name))
    st.segmented_control(label, list(options), key=f"p_{name}", on_change=presses.later(move, name), **look)


def block_name(name: str) -> str:
    block = BLOCKS[name]
    return f"{block.seqlen // 1024}K · D {block.head_dim}"


st.title("The paper, reproduced", anchor=False)
st.html(
    '<p class="fm-sub">The twelve masks of <a href="https://arxiv.org/abs/2410.01359">arXiv 2410.01359</a> from the '
    "authors’ own packings: what they measured on an A100, what these kernels do, and FlexAttention beside both.</p>"
)
sources = {**facts.recorded(), **facts.local()}
with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="paper_bar"):
    chosen("table", "Table", BLOCKS, format_func=block_name)
    chosen("time", "Pass", TIMES, format_func=TIMES.__getitem__)
    source = next(iter(sources))
    if len(sources) > 1:
        source = st.selectbox("Measured on", list(sources), key="p_source", width=260, persist_state="session")
    copy_link.button()

if problem := shipped_problem():
    st.warning(plain(problem))
block, rows, here = BLOCKS[place.table], sources[source], facts.device_of(sources[source])
shown = facts.lines(block, place.time, rows)
st.html(tables.comparison(shown, here))
st.caption(says.about(block, shown))
for where, date in facts.sources(shown):
    st.caption(results.measured(where, date))

colors = theme.colors()
left, right = st.columns([1, 1.1], gap="medium")
with left:
    st.subheader("Speed", anchor=False)
    st.plotly_chart(figures.speed(shown, colors, here), width="stretch", key="paper_speed")
with right:
    st.subheader("Time falls nearly in a straight line with the tiles skipped", anchor=False)
    st.plotly_chart(figures.latency(shown, colors, here), width="stretch", key="paper_latency")
    st.subheader("Memory of the mask", anchor=False)
    st.plotly_chart(figures.memory(rows, colors), width="stretch", key="paper_memory")

st.subheader("Two findings", anchor=False)
left, right = st.columns(2, gap="medium")
left.html(says.document_card(FOUND(32768), facts.document_elsewhere(32768)))
right.html(says.exact_card(EXACT(8192)))

st.subheader("How far the estimate can be trusted", anchor=False)
st.html(f'<p class="fm-sub">{says.ESTIMATE}</p>')
for gpu, engine, name in (
    ("H200", "flashmask", "H200, recorded runs"),
    ("H200", "flex", "H200, FlexAttention’s recorded runs"),
    ("A100", "flashmask", "A100, the paper’s tables"),
):
    models = [m for d in (128, 64) for way in ("forward", "backward") if (m := time_model(d, way, gpu, engine))]
    if not models:  # nothing was recorded
        continue
    with st.expander(f"{name}: worst {100 * max(m.worst_error for m in models):.1f} %", expanded=(gpu, engine) == ("H200", "flashmask")):
        st.html(tables.held_out(models))

st.subheader("Do it again", anchor=False)
st.code(says.COMMAND, language="bash")
st.html(f'<p class="fm-sub">{says.AGAIN}</p>')
