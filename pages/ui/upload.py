"""A mask from a file: a preview of what was read, and questions where the file does not say it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import streamlit as st

import flashmask_core as fm
from flashmask_core.masks.compare import runs_of
from flashmask_core.masks.lint import Finding
from flashmask_core.masks.outline import Outline

from . import begin, cards, check, shelf, state, theme, thumbnail
from .build import Built, one_plane
from .link import Screen

_KINDS = {
    "auto": "tell by the file",
    "dense": "dense matrix",
    "startend_row_indices": "startend_row_indices",
    "cu_seqlens": "cu_seqlens",
    "lengths": "document lengths",
    "position_ids": "position_ids",
    "attention_mask": "attention_mask",
    "json": "our own .json",
}
_CAUSAL = ("startend_row_indices", "cu_seqlens", "lengths", "position_ids", "attention_mask")
_ACCEPTED = """\
- **dense** `[Sq, Sk]`, `[B, Sq, Sk]` or `[B, Hm, Sq, Sk]`: 0 and 1, bool, additive (0 and −1e4 or less), a two-tone PNG
- **.png** of ours: the mask it carries
- **startend_row_indices** `[B, Hm, Sk, C]`, with its causal flag
- **cu_seqlens**, **document lengths** (also a column of a .csv), **position_ids**, **attention_mask**
- **.json** of ours: a mask, or a whole screen

Files are read, never executed; pickles (.pt) are not read at all. Rows are queries, columns are keys."""
_UNTOLD = "“What it holds”"
_FIELDS = {
    "the bytes": "this file",
    "say which with kind=": f"say which under {_UNTOLD}",
    "say which array with array=": "say which under “Array”",
    "needs column=": "needs “Column”",
}
_MOST_PLANES = 4096  # to choose from
_RECOGNISED_UP_TO = 1 << 17  # keys, in a preview


@dataclass(frozen=True)
class Preview:
    """What a file was read as; `picture` is its first batch entry and head."""

    facts: str
    picture: str
    findings: tuple[Finding, ...]
    text: str
    upside_down: bool


@dataclass(frozen=True)
class Broken:
    """A file of several planes of which these, as (batch entry, mask head), do not fit FlashMask."""

    planes: tuple[tuple[int, int], ...]


def button() -> None:
    """Opens the dialog."""
    if st.button("Upload", width=84, key="upload_open"):
        st.dialog("Upload a mask", width="large")(ask)()


def ask() -> None:
    """What stands in the dialog."""
    if st.session_state.pop("upload_done", False):
        st.rerun()
    file = st.file_uploader(
        "Mask or screen", type=["npy", "npz", "csv", "png", "json", "safetensors"], key="upload",
        label_visibility="collapsed",
    )  # fmt: skip
    if file is None:
        st.markdown(_ACCEPTED)
        return
    if shelf.is_screen(file.getvalue()):
        st.markdown("This is the small file of a screen.")
        _show_button(file, "auto", {})
        return
    kind, options = _questions(file.name)
    found = _preview(file.file_id, kind, tuple(options.items()), theme.is_dark(), _data=file.getvalue())
    if isinstance(found, Broken):
        plane = _ask_plane(found)
        if plane is None:
            return
        options["plane"] = plane
        found = _preview(file.file_id, kind, tuple(options.items()), theme.is_dark(), _data=file.getvalue())
    if isinstance(found, Preview):
        _shown(found, file, kind, options)
    elif kind in ("auto", "dense") and "polarity" not in options and found.startswith("polarity:"):
        _ask_polarity(file, kind, options)
    elif kind in ("auto", "startend_row_indices") and found.startswith("causal:"):
        _ask_causal(file, options)
    else:
        st.html(cards.error_html(found))
        if _UNTOLD in found:
            st.markdown(_ACCEPTED)
    if problem := st.session_state.pop("upload_problem", None):
        st.html(cards.error_html(problem))


def _questions(name: str) -> tuple[str, dict]:
    """The kind and the options for `load_mask` that were chosen."""
    options = {}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="upload_questions"):
        kind = st.selectbox("What it holds", list(_KINDS), format_func=_KINDS.__getitem__, key="upload_kind", width=220)
        if kind in _CAUSAL:
            flag = st.segmented_control("Causal flag", ["causal", "not causal"], key="upload_causal")
            options["causal"] = None if flag is None else flag == "causal"
        if kind == "startend_row_indices":
            options["seqlen_q"] = st.number_input("Queries Sq, if not Sk", 1, value=None, key="upload_sq", width=170)
        if kind in ("auto", "dense"):
            options["polarity"] = st.segmented_control(
                "1, True or bright is", ["visible", "masked"], key="upload_polarity"
            )
            rows = st.segmented_control("Rows are", ["queries", "keys"], default="queries", key="upload_rows")
            options["rows"] = "keys" if rows == "keys" else None
        if name.endswith((".npz", ".safetensors")):
            options["array"] = st.text_input("Array", key="upload_array", width=150).strip() or None
        if name.endswith(".csv"):
            column = st.text_input("Column, by name or number", key="upload_column", width=190).strip()
            options["column"] = int(column) if column.isdecimal() else column or None
    return kind, {name: value for name, value in options.items() if value is not None}


@st.cache_resource(max_entries=8, show_spinner="Reading …")
def _preview(file_id: str, kind: str, options: tuple, dark: bool, *, _data: bytes) -> Preview | Broken | str:
    """What `load_mask` makes of the file, or what is wrong in one message."""
    try:
        mask = shelf.read_mask(_data, kind=kind, **dict(options))
    except fm.NotRepresentableError as error:
        if error.planes:
            return Broken(error.planes)
        return f"{len(error.columns):,} of its columns do not fit FlashMask, with more masked runs than can be kept."
    except (ValueError, TypeError, MemoryError) as error:
        return _in_words(error)
    one = one_plane(mask, 0, 0) if isinstance(mask, fm.ColumnMask) else mask
    runs = runs_of(one)
    several = f", B = {mask.batch}, Hm = {mask.heads}" if isinstance(mask, fm.ColumnMask) and one is not mask else ""
    pairs, size = runs.visible_pairs(), runs.seqlen_q * runs.seqlen_k
    facts = f"{runs.seqlen_q:,} queries × {runs.seqlen_k:,} keys{several} · "
    facts += f"{pairs:,} pairs visible, {100 * pairs / size:.1f} %"
    if isinstance(mask, fm.MaskedRuns):
        facts += f" · {int((runs.counts > 2).sum()):,} columns do not fit FlashMask"
    elif kind == "startend_row_indices":
        facts += f" · causal={mask.causal}"
    findings = [f for f in fm.lint(one) if f.level != "note"][:3]
    known = fm.recognise(runs) if runs.seqlen_k <= _RECOGNISED_UP_TO else None
    outline = Outline(runs) if pairs else None
    upside_down = bool(outline and outline.farthest <= 0 > outline.nearest)
    picture = thumbnail.of_runs(runs, dark)
    return Preview(
        facts, picture, tuple(findings), known.text if known and len(known.text) <= check.SHORT else "", upside_down
    )


def _ask_plane(found: Broken) -> tuple[int, int] | None:
    """Which one of the planes that do not fit is to be shown, with its ways on."""
    count = len(found.planes)
    st.markdown(
        f"{count:,} of its planes, a batch entry and a mask head each, do{'es' * (count == 1)} not fit FlashMask. Choose "
        "one: it is shown alone, with the nearest masks that fit and the exact answer in several passes."
    )
    return st.selectbox(
        "Batch entry and mask head", found.planes[:_MOST_PLANES], index=None, placeholder="choose one", width=260,
        format_func=lambda plane: f"batch {plane[0]}, head {plane[1]}", key="upload_plane",
    )  # fmt: skip


def _in_words(error: Exception) -> str:
    """What is wrong, in the words of the dialog: its fields instead of arguments, no list of what functions take."""
    told = (str(error) or type(error).__name__).partition("accepted are\n")[0].rstrip("; .")
    for words, own in _FIELDS.items():
        told = told.replace(words, own)
    return told[:800]


def _shown(found: Preview, file, kind: str, options: dict) -> None:
    left, right = st.columns([1, 1.5], gap="medium")
    with left:
        st.html(_figure(found.picture, "As it was read"))
    with right:
        st.markdown(f"**{escape(shelf.plain(file.name))}**  \n{found.facts}")
        if found.text:
            st.caption(f"This is `{check.cut(found.text)}`.")
        for finding in found.findings:
            st.html(check.finding_html(finding))
        if found.upside_down and "rows" not in options:
            words = "Every query sees only itself and what comes after it. If the rows are keys, say so above."
            st.html(check.line_html("warning", words))
        _show_button(file, kind, options)


def _ask_polarity(file, kind: str, options: dict) -> None:
    st.markdown(
        "The file does not say whether 1, True or the brighter tone means visible or masked. Which of the two is it?"
    )
    _ask_either(
        file, kind, {word: {**options, "polarity": word} for word in ("visible", "masked")},
        {word: {"upload_polarity": word} for word in ("visible", "masked")}, about="1, True or bright is ",
    )  # fmt: skip


def _ask_causal(file, options: dict) -> None:
    st.markdown(
        "These are startend_row_indices, and the file does not say their causal flag, without which the same numbers "
        "mean another mask. Which of the two is it?"
    )
    options = {name: value for name, value in options.items() if name in ("seqlen_q", "array", "column")}
    kind = "startend_row_indices"
    _ask_either(
        file, kind, {word: {**options, "causal": word == "causal"} for word in ("causal", "not causal")},
        {word: {"upload_kind": kind, "upload_causal": word} for word in ("causal", "not causal")},
    )  # fmt: skip


def _ask_either(file, kind: str, readings: dict, answers: dict, about: str = "") -> None:
    """Two readings side by side, by their words; a click chooses one and sets its widgets."""
    for column, (word, options) in zip(st.columns([1, 1, 0.7], gap="medium"), readings.items()):
        found = _preview(file.file_id, kind, tuple(options.items()), theme.is_dark(), _data=file.getvalue())
        with column:
            if isinstance(found, Broken):
                found = f"{len(found.planes):,} of its planes do not fit FlashMask; say above what it is to choose one."
            if isinstance(found, str):
                st.html(cards.error_html(found))
                continue
            st.html(_figure(found.picture, f"{about}{word}: {found.facts}" if about else found.facts))
            st.button(f"It is {word}", on_click=st.session_state.update, args=(answers[word],), key=f"upload_{word}",
                      width="stretch")  # fmt: skip


def _figure(picture: str, words: str) -> str:
    return thumbnail.figure(picture, "Preview of the mask", above="keys →", below=f"queries ↓ · {escape(words)}")


def _show_button(file, kind: str, options: dict) -> None:
    st.button("Show it", type="primary", on_click=_take, args=(file, kind, options), key="upload_show")


def _take(file, kind: str, options: dict) -> None:
    try:
        found = shelf.put_upload(file.getvalue(), file.name, kind=kind, **options)
        if isinstance(found, str):
            mask = shelf.shelf().get(found).content
            heads = mask.heads if isinstance(mask, fm.ColumnMask) else 1
            other = state.current().other
            found = shelf.fitted_to(Screen(file=found, heads=max(heads, 32), other=other), mask)
    except (ValueError, TypeError, MemoryError) as error:
        st.session_state.upload_problem = _in_words(error)
        return
    begin.with_screen(found)
    st.session_state.upload_done = True


def about(built: Built, screen: Screen) -> None:
    """Which file is shown, what it is, and a choice of its batch entries and heads where it has several."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="upload_bar"):
        st.caption(
            f"Uploaded: **{built.text}**. A link to it works while this server keeps it; the screen's small "
            "file (below, Take it with you) always does."
        )
        choose_plane(built.whole)
    check.summary(built)


def choose_plane(whole: "fm.ColumnMask | fm.MaskedRuns") -> None:
    """A choice of batch entry and mask head, where a mask has several."""
    batch, heads = shelf.planes_of(whole)
    if batch * heads > 1:
        st.selectbox(
            "Batch entry and mask head",
            [(b, h) for b in range(batch) for h in range(heads)][:4096],
            **state.widget("w_plane"),
            format_func=lambda plane: f"batch {plane[0]}, head {plane[1]}",
            width=200,
        )
