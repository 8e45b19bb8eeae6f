"""Train: from the lengths of a dataset to packed sequences, their masks, and ranks that share one sequence."""

from dataclasses import replace

import streamlit as st

from flashmask_core.masks.compare import runs_of
from flashmask_core.packing import POLICIES, TOO_LONG, in_groups, read_file
from pages.ui import bar, begin, cards, presses, state, theme, thumbnail
from pages.ui.train import figures, packed, run
from pages.ui.train.place import FORMS, MAX_CONTEXT, MAX_RANKS, MAX_SEQUENCES

screen = state.current()
place = screen.pack

_KEY_BYTES = 2 * 2 * 8 * 128  # of a token: K and V, bf16, 8 key heads of 128

st.title("Pack and train", anchor=False)
st.html(
    f"<style>{figures.CSS}</style>"
    '<p class="fm-sub">Lengths of documents, or of prompts and their answers, packed into sequences of one context: '
    "what is wasted, what a kernel may skip, what each GPU has to do, and how fast it trains.</p>"
)


def setting(name: str) -> dict:
    """Arguments of a widget that shows and changes a field of the place."""
    st.session_state[f"p_{name}"] = getattr(place, name)
    return {"key": f"p_{name}", "on_change": presses.later(collect, name)}


def collect(name: str) -> None:
    """A setting was changed; an emptied number is put back."""
    now = state.current().pack
    if state.is_late(f"p_{name}"):
        return
    value = st.session_state[f"p_{name}"]
    change(**{name: getattr(now, name) if value is None else value})


def change(**values) -> None:
    now = state.current().pack
    state.change(pack=replace(now, **{"sequence": 0, **values}))


def settings() -> None:
    """Where the lengths come from and how they are packed."""
    st.text_area(
        "Lengths", **setting("lengths"), height=68,
        placeholder="3000, (500, 200, 210), 1200: a document, a prompt with two answers, a document. "
        "Empty: drawn by the paper's recipe.",
    )  # fmt: skip
    if told := in_groups(place.lengths):
        st.caption(f":material/warning: {told}")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="pack_bar"):
        with st.popover("Upload", width=110):
            file = st.file_uploader("A .csv or .json of lengths", type=["csv", "json"], key="pack_file")
            st.caption("A row, or an item, is one example: its length, or prompt, answer, answer …")
            if file is not None:
                st.button("Pack these", type="primary", on_click=presses.later(take, file.getvalue(), file.name))
            if problem := st.session_state.pop("pack_problem", None):
                st.html(cards.error_html(problem))
        st.number_input("Context", 1, MAX_CONTEXT, step=1024, **setting("context"), width=140)
        st.selectbox("Policy", list(POLICIES), format_func=POLICIES.__getitem__, **setting("policy"), width=210)
        if place.lengths:
            st.segmented_control("Longer than the context", TOO_LONG, required=True, **setting("long"))
            st.button("Draw instead", on_click=presses.later(change, lengths=""), width=130)
        else:
            st.selectbox("Recipe", list(FORMS), format_func=FORMS.__getitem__, **setting("form"), width=230)
            st.number_input("Contexts drawn", 1, MAX_SEQUENCES, step=1, **setting("count"), width=130)
            st.number_input("Seed", 0, 9999, step=1, **setting("seed"), width=100)


def take(data: bytes, name: str) -> None:
    """Callback: the lengths of a file become the typed list."""
    try:
        change(lengths=", ".join(map(str, read_file(data, name))))
    except (ValueError, TypeError) as error:
        st.session_state.pack_problem = bar.shortened(str(error))


def sequences(found: packed.Packed) -> None:
    """All of them as bars, one of them as a mask."""
    total = len(found.packing.sequences)
    chosen = min(place.sequence, total - 1)
    st.subheader("Packed sequences", anchor=False)
    st.html(
        '<p class="fm-sub"><i class="fm-key fm-full"></i>prompt or document '
        '<i class="fm-key fm-partial"></i>answer that shares its prompt <i class="fm-key fm-empty"></i>padding</p>'
    )
    left, right = st.columns([2.4, 1], gap="large")
    with left:
        st.html(figures.sequences_html(found, chosen))
        if total > packed.MOST_DRAWN:
            st.caption(f"The first {packed.MOST_DRAWN} of {total:,} are drawn; the tiles of those are counted.")
    one = found.packing.sequences[chosen]
    with right:
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            if total > 1:
                st.session_state.p_sequence = chosen
                st.number_input("Sequence", 0, total - 1, step=1, key="p_sequence", width=130,
                                on_change=presses.later(collect, "sequence"))  # fmt: skip
            opened = st.button("Open in Compose", type="primary")
        picture = thumbnail.of_runs(runs_of(one.mask), theme.is_dark())
        words = f"Sequence {chosen}: {len(one.examples)} examples, {one.padding:,} of {one.context:,} tokens padding"
        st.html(thumbnail.figure(picture, words, above="keys →", below=f"queries ↓ · {words}"))
    if opened:
        begin.elsewhere("pages/compose.py", mask=one.text, seqlen_q=one.context, seqlen_k=None)


def ranks(found: packed.Packed) -> None:
    """The chosen sequence dealt to several GPUs."""
    one = found.packing.sequences[min(place.sequence, len(found.packing.sequences) - 1)]
    st.subheader("One sequence on several GPUs", anchor=False)
    st.html(
        '<p class="fm-sub">Context parallel: the chosen sequence is cut into chunks that are dealt to ranks. '
        '<i class="fm-key fm-full"></i>pairs a rank computes <i class="fm-key fm-partial"></i>keys and values it must '
        "receive (8 key heads of 128 in bf16).</p>"
    )
    st.number_input("Ranks", 1, MAX_RANKS, step=1, **setting("ranks"), width=120)
    try:
        deals = packed.dealt(one.text, one.context, place.ranks, _sequence=one)
    except ValueError as error:
        st.html(cards.error_html(str(error)))
        return
    st.html(figures.deals_html(deals, _KEY_BYTES))
    st.caption(
        "In a training script: `ContextParallel(mask)` of `flashmask_core.distributed`; measured by "
        "`torchrun --nproc-per-node 2 -m flashmask_core.distributed.bench`."
    )


def files(found: packed.Packed) -> None:
    """The arrays that a training script takes."""
    st.subheader("Take it with you", anchor=False)
    st.html(
        '<p class="fm-sub">position_ids [sequences, context], answers from the end of their prompt on; cu_seqlens of all '
        "sequences end to end, padding as a document of its own; startend_row_indices [sequences, 1, context, C], "
        "causal.</p>"
    )
    packing = found.packing
    try:
        size = len(packing.sequences) * packing.context
        packed_files = packed.files_of(packing) if size <= 2**21 or st.toggle(f"Make the files of {size:,} tokens") else {}
    except ValueError as error:
        st.html(cards.error_html(str(error)))
        return
    with st.container(horizontal=True, gap="small", key="pack_files"):
        for name, data in packed_files.items():
            st.download_button(name, data, name, on_click="ignore", key=f"pack_take_{name}")


settings()
try:
    found = packed.of(place)
except (ValueError, TypeError, MemoryError) as error:
    st.html(cards.error_html(bar.shortened(str(error))))
else:
    st.html(figures.numbers_html(found))
    st.html(figures.gains_html(found))
    if not place.lengths:
        st.caption("Drawn: 1 to 10 documents a context, at least 128 tokens each, in shuffled order.")
    sequences(found)
    files(found)
    ranks(found)
run.section()
