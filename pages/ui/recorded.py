"""Numbers recorded on a GPU by the bench command, beside the live screen. Nothing is shown that was not measured."""

from __future__ import annotations

import re
from collections import defaultdict
from html import escape
from math import log2

import streamlit as st

from flashmask_core.bench.charts import engine_label
from flashmask_core.bench.recorded import shipped_problem, shipped_results
from flashmask_core.bench.result import BenchRow
from flashmask_core.masks.patterns import PATTERNS

from . import build, cards, estimate, state
from .build import Built, tile_counts
from .link import Screen, name_of
from .measure import results
from .words import plain, ratio_text

LIKENESS = "by the patterns in its text, the share of tiles that are skipped, and the length"


@st.cache_resource(show_spinner=False)
def cases() -> dict[tuple, list[BenchRow]]:
    """The recorded rows by case (mask text, lengths, shape, dtype); empty where nothing was recorded."""
    found = defaultdict(list)
    for row in shipped_results():
        found[row.key[:-2]].append(row)
    return dict(found)


def nearest(built: Built, screen: Screen) -> tuple[list[BenchRow], bool] | None:
    """(rows, True) of the recorded case with this mask and length, else (rows, False) of the one most like it.

    Likeness is what LIKENESS says, then the number of heads.
    """
    timed = [rows for rows in cases().values() if _best(rows, "flashmask", "forward")]
    if not timed:
        return None
    rho = tile_counts(*built.source, 128, 128, "exact").rho

    wanted = _patterns(built.text)

    def distance(rows: list[BenchRow]) -> tuple:
        row = _best(rows, "flashmask", "forward")
        unlike = abs((row.rho or 0) - rho) * 8 + abs(log2(row.seqlen_k / built.seqlen_k))
        names = _patterns(row.mask)
        unlike -= 6 * len(names & wanted) / max(1, len(names | wanted))
        return (
            not _shows_the_same(row, built),
            unlike,
            row.dtype != "bfloat16",
            row.head_dim != 128,
            abs(row.heads - screen.heads),
            -int("".join(filter(str.isdigit, row.date_utc or "0"))[:14]),  # the newest of those that are alike
        )

    rows = min(timed, key=distance)
    return rows, not distance(rows)[0]


def _patterns(text: str) -> set[str]:
    """The names of patterns in a text, causal_document as causal and document."""
    names = set(re.findall(r"[a-z_]+", text)) & set(PATTERNS)
    return (names - {"causal_document"}) | {"causal", "document"} if "causal_document" in names else names


def _shows_the_same(row: BenchRow, built: Built) -> bool:
    """Whether a recorded mask shows the same pairs, whatever text it was written as."""
    pairs = built.seqlen_q * built.seqlen_k
    if (row.seqlen_q, row.seqlen_k) != (built.seqlen_q, built.seqlen_k) or round(row.density * pairs) != built.pairs:
        return False
    return build.built(row.mask, row.seqlen_q, row.seqlen_k).mask.equals(built.mask)


def _best(rows: list[BenchRow], prefix: str, direction: str) -> BenchRow | None:
    """The fastest row of the providers whose name starts so."""
    some = [r for r in rows if r.provider.startswith(prefix) and r.direction == direction and r.median_ms]
    return min(some, key=lambda r: r.median_ms) if some else None


def title(rows: list[BenchRow]) -> str:
    """What a recorded case is called."""
    row = rows[0]
    lengths = f"N {row.seqlen_q:,}" if row.seqlen_q == row.seqlen_k else f"Sq {row.seqlen_q:,}, Sk {row.seqlen_k:,}"
    name = row.mask_name or (row.mask if len(row.mask) < 48 else row.mask[:45] + " …")
    heads = f"H {row.heads}" if row.heads == row.kv_heads else f"H {row.heads}/{row.kv_heads}"
    return f"{name} · {lengths} · B {row.batch} · {heads} · D {row.head_dim} · {row.dtype}"


def card(built: Built, screen: Screen) -> str:
    """The card of the recorded case with the mask of the screen, else of an estimate; empty where there is neither."""
    found = nearest(built, screen)
    if found is None or not found[1]:
        return estimate.card(built, screen)
    rows, _ = found
    ours = _best(rows, "flashmask", "forward")
    dense, flex = _best(rows, "sdpa_dense", "forward"), _best(rows, "flex", "forward")
    rival, name = (flex, "FlexAttention") if flex else (dense, "the dense mask")
    if rival is None:
        body, big = "", f"{ours.median_ms:.2f} ms"
    else:
        faster = rival.median_ms >= ours.median_ms
        ratio = rival.median_ms / ours.median_ms if faster else ours.median_ms / rival.median_ms
        big = f"{ratio_text(ratio)}× {'faster' if faster else 'slower'}"
        body = f"<small>than {name}, forward</small>"
    body += cards.row(f"FlashMask ({ours.backend})", f"{ours.median_ms:.2f} ms")
    if flex:
        body += cards.row("FlexAttention", f"{flex.median_ms:.2f} ms")
    if dense:
        other_run = "" if (dense.date_utc or "")[:10] == (ours.date_utc or "")[:10] else ", another run"
        body += cards.row(f"dense ({dense.backend}{other_run})", f"{dense.median_ms:.2f} ms")
    device = ours.where.device.removeprefix("NVIDIA ") if ours.where else "a GPU"
    where = f"on an {escape(device)}" if device.startswith("H") else f"on {escape(device)}"
    date = (ours.date_utc or "")[:10]
    commit = (ours.where.commit or "")[:7] if ours.where else ""
    return cards.card(
        f"Measured {where}", big, body, small=f"D {ours.head_dim}, {ours.heads} heads, B {ours.batch}",
        foot=f"{ours.dtype}. {date} {commit}".strip() + ".",
    )  # fmt: skip


def section(built: Built, screen: Screen, *, folded: bool) -> None:
    """The recorded results, for the Measure page: the case nearest to the screen first, any other to choose.

    folded: there is a run above that matters more.
    """
    if problem := shipped_problem():
        st.warning(plain(problem))
    found = nearest(built, screen)
    if found is None:
        return
    st.subheader("Recorded results", anchor=False)
    if not folded:
        _section(*found, screen)
        return
    fold = st.expander("Measured on an H200 by the bench command, shipped with this program", on_change="rerun",
                       key="recorded")  # fmt: skip
    if fold.open:
        with fold:
            _section(*found, screen)


def _section(rows: list[BenchRow], same: bool, screen: Screen) -> None:
    by_name = {name_of_case(case): case for case in cases().values()}
    if screen.case and screen.case not in by_name:
        st.warning(f"case={screen.case!r} of the link is no recorded result (any more); the nearest one is shown.")
    nearest_name = name_of_case(rows)
    st.session_state.w_case = screen.case if screen.case in by_name else nearest_name
    chosen = st.selectbox(
        "Case",
        list(by_name),
        format_func=lambda name: title(by_name[name]),
        key="w_case",
        on_change=_choose,
        args=(nearest_name,),
    )
    rows = by_name[chosen]
    if not same and chosen == nearest_name:
        st.caption(f"The mask of this screen was not recorded; this is the case most like it, {LIKENESS}.")
    for line in _runs(rows):
        st.caption(line)
    results.show(rows, key=f"recorded_{chosen}")


def _runs(rows: list[BenchRow]) -> list[str]:
    """Where and when, a line for each run; with several, the engines of each, as only those were timed in turns."""
    runs: dict = {}
    for row in rows:
        day = (row.date_utc or "")[:10]
        runs.setdefault((row.where, day), []).append(row)
    lines = [results.measured(of[0].where, of[0].date_utc) for of in runs.values()]
    if len(lines) == 1:
        return lines
    engines = (dict.fromkeys(engine_label(row) for row in of) for of in runs.values())
    return [f"{', '.join(names)}: {line}" for names, line in zip(engines, lines)]


def _choose(nearest_name: str) -> None:
    chosen = st.session_state.w_case
    state.change(case="" if chosen == nearest_name else chosen)


def name_of_case(rows: list[BenchRow]) -> str:
    """What a link calls a recorded case: by its mask, lengths, shape and dtype."""
    return name_of(repr(rows[0].key[:-2]).encode())[:8]
