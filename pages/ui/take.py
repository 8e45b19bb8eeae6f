"""What can be taken away: the numbers, pictures, a page of the explorer, and code for other libraries."""

from __future__ import annotations

import io

import numpy as np
import streamlit as st

import flashmask_core as fm
from flashmask_core.masks.column_mask import PACKINGS
from flashmask_core.masks.export.snippets import SNIPPET_TARGETS

from . import picture, shelf, state, theme
from .build import Built, fitted_of, tile_counts
from .explorer_page import explorer_page

_LIBRARIES = {
    "paddle": "Paddle", "flex_attention": "FlexAttention", "sdpa": "SDPA", "fa4": "FlashAttention-4",
    "magi": "MagiAttention", "transformers": "Transformers", "numpy": "NumPy",
}  # fmt: skip


def panel(built: Built) -> None:
    """Downloads in one row, code below."""
    if built.way:
        _not_exact(built)
    _files(built)
    _code(built)


def _not_exact(built: Built) -> None:
    fit = fitted_of(built)
    many = f"{fit.pass_count:,} passes"
    if built.way.startswith("pass "):
        st.warning(
            f"The mask that was written does not fit FlashMask. These files hold {built.way} of its {many}, of which "
            f"all are needed: `fm.fit(fm.parse(text).runs(N)).passes` is the list for `flashmask_attention`."
        )
        return
    pairs = fit.narrower_pairs if built.way == "narrower" else fit.wider_pairs
    st.warning(
        f"The mask that was written does not fit FlashMask. These files hold the nearest one that does, which "
        f"{'hides' if built.way == 'narrower' else 'shows'} {pairs:,} pairs more. The exact answer takes {many}: "
        f"`fm.fit(fm.parse(text).runs(N)).passes`, a list for `flashmask_attention`."
    )


def _files(built: Built) -> None:
    screen = state.current()
    indices, causal = built.whole.to_startend_row_indices()
    names = PACKINGS[causal, indices.shape[-1]]
    st.markdown(
        f"`startend_row_indices` int32 {list(indices.shape)}, the numbers {', '.join(n.upper() for n in names)}, "
        f"together with **`causal={causal}`**: the same numbers mean another mask under the other flag."
    )
    stem = f"startend_row_indices_causal_{str(causal).lower()}"
    tile, look = (screen.block_m, screen.block_n), "dark" if theme.is_dark() else "light"

    def drawn(target: str):
        return lambda: fm.export_mask(*_plane(built), target, *_lengths(built), tile=tile, theme=look)

    def page() -> str:
        counts, other = (tile_counts(*built.source, *tile, rule) for rule in
                         (screen.rule, "paper" if screen.rule == "exact" else "exact"))  # fmt: skip
        return explorer_page(built, counts, other, block=tile, rule=screen.rule, heads=screen.heads,
                             spot=picture.spot(built, screen.at), view=screen.view)  # fmt: skip

    files = (
        ("Numbers, .npy", lambda: fm.export_mask(built.whole, "npy"), f"{stem}.npy", "For Paddle and numpy.load."),
        ("Numbers, .csv", lambda: _csv(built.mask), f"{stem}.csv", "One row a key, of the batch entry and head drawn."),
        ("Mask, .json", lambda: fm.export_mask(built.whole, "json"), "mask.json", "load_mask reads it back."),
        ("Picture, .png", drawn("png"), "mask.png", f"By tiles of {screen.tile}; Upload reads the mask back."),
        ("Picture, .svg", drawn("svg"), "mask.svg", f"By tiles of {screen.tile}, with title and axes."),
        ("This page, .html", page, "mask.html",
         "The pictures above in one file, to pan and zoom without a server; for a talk or a colleague."),
        ("This screen, .json", lambda: shelf.screen_file(screen), "flashmask_screen.json",
         "The whole screen as a small file, also where the mask is too large for a link. Upload opens it."),
    )  # fmt: skip
    with st.container(horizontal=True, gap="small", key="downloads"):
        for label, data, name, about in files:
            st.download_button(label, data, name, on_click="ignore", help=about, key=f"take_{name}")


def _plane(built: Built) -> tuple:
    """What is drawn, as export_mask wants it: the text where it gives it, else the mask."""
    return (built.text,) if not built.variant else (built.mask,)


def _lengths(built: Built) -> tuple[int, int] | tuple:
    return (built.seqlen_q, built.seqlen_k) if not built.variant else ()


def _code(built: Built) -> None:
    target = st.pills(
        "As code for",
        list(SNIPPET_TARGETS),
        default="flex_attention",
        format_func=_LIBRARIES.__getitem__,
        key="take_target",
        persist_state="session",
    )
    if target is None:
        return
    try:
        source = _snippet(built.source, target)
    except ValueError as error:
        st.info(str(error)[:400])
        return
    caveats, _, code = source.partition("\n")
    st.caption(caveats.removeprefix("# "))
    left, right = st.columns([5, 1], vertical_alignment="center")
    with left:
        usual = "It defines `attention(q, k, v)`; its docstring states the layout."
        registers = "It registers the attention function `column_mask`; its last line says how a model takes it."
        st.caption(registers if target == "transformers" else usual)
    with right:
        st.download_button("Download .py", source, f"mask_{target}.py", on_click="ignore", width="stretch",
                           key="take_code")  # fmt: skip
    st.code(code if len(code) < 20_000 else code[:20_000] + "\n…", language="python", height=320)


@st.cache_data(max_entries=16, show_spinner=False)
def _snippet(source: tuple, target: str) -> str:
    from .build import built

    mask = built(*source)
    return fm.export_mask(mask.text if not mask.variant else mask.whole, target, *_lengths(mask))


def _csv(mask: fm.ColumnMask) -> bytes:
    indices, causal = mask.to_startend_row_indices()
    out = io.StringIO()
    names = PACKINGS[causal, indices.shape[-1]]
    out.write(f"# startend_row_indices, causal={causal}, seqlen_q={mask.seqlen_q}\nkey,{','.join(names)}\n")
    keys = np.arange(indices.shape[2])
    np.savetxt(out, np.column_stack([keys, indices[0, 0]]), fmt="%d", delimiter=",")
    return out.getvalue().encode()
