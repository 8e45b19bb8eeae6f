"""Numbers recorded on a GPU by the bench command, beside the live screen. Nothing is shown that was not measured."""

from __future__ import annotations

from collections import defaultdict
from html import escape
from math import hypot, log2

import streamlit as st

from flashmask_core.bench.charts import engine_label
from flashmask_core.bench.recorded import shipped_problem, shipped_results
from flashmask_core.bench.result import BenchRow
from flashmask_core.bench.tile_time import recorded_work
from flashmask_core.bench.tile_work import BLOCK

from . import build, cards, estimate, state
from .build import Built, tile_counts
from .link import Screen, name_of
from .measure import results
from .words import heads_text, plain, ratio_text

_OCTAVE = 1 / 32  # of unlikeness: twice the length counts as much as that share of the tiles


@st.cache_resource(show_spinner=False)
def cases() -> dict[tuple, list[BenchRow]]:
    """The recorded rows by case (mask text, lengths, shape, dtype); empty where nothing was recorded."""
    found = defaultdict(list)
    for row in shipped_results():
        found[row.key[:-2]].append(row)
    return dict(found)


def nearest(built: Built, screen: Screen) -> tuple[list[BenchRow], bool] | None:
    """(rows, True) of the recorded case with this mask and length, else (rows, False) of the one with the likest work.

    Of the head dim and dtype of the screen, where there are such; then by the shares of tiles of 128 x 128 that are
    skipped and PARTIAL, and the length; then by the number of heads.
    """
    timed = [rows for rows in cases().values() if _best(rows, "flashmask", "forward")]
    if not timed:
        return None
    rho, partial = _shares(built)

    def distance(rows: list[BenchRow]) -> tuple:
        row = _best(rows, "flashmask", "forward")
        its_rho, its_partial = _recorded_shares(row)
        octaves = abs(log2(row.seqlen_q / built.seqlen_q * row.seqlen_k / built.seqlen_k)) / 2
        return (
            not _shows_the_same(row, built),
            abs(log2(row.head_dim / screen.trial.head_dim)),
            row.dtype != screen.trial.dtype,
            hypot(its_rho - rho, its_partial - partial) + _OCTAVE * octaves,
            abs(row.heads - screen.heads),
            -int("".join(filter(str.isdigit, row.date_utc or "0"))[:14]),  # the newest of those that are alike
        )

    rows = min(timed, key=distance)
    return rows, not distance(rows)[0]


def how_near(row: BenchRow, built: Built) -> str:
    """In what the work of a recorded mask differs from that of the screen's, in words."""
    (rho, partial), (own_rho, own_partial) = _recorded_shares(row), _shares(built)
    its, own = _lengths(row), _lengths(built)
    return (
        f"{_name(row)}, ρ {rho:.3f} against {own_rho:.3f} here, {100 * partial:.1f} % of the tiles partial against "
        f"{100 * own_partial:.1f} %" + (f", {its} against {own}" if its != own else "")
    )


def _shares(built: Built) -> tuple[float, float]:
    """(rho, share of PARTIAL tiles) of the mask of the screen."""
    counts = tile_counts(*built.source, BLOCK, BLOCK, "exact")
    return counts.rho, counts.partial / counts.total


def _recorded_shares(row: BenchRow) -> tuple[float, float]:
    """The same of a recorded mask."""
    work, total = recorded_work(row), -(-row.seqlen_q // BLOCK) * -(-row.seqlen_k // BLOCK)
    return 1 - (work.partial + work.full) / total, work.partial / total


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
    heads = f"H {row.heads}" if row.heads == row.kv_heads else f"H {row.heads}/{row.kv_heads}"
    return f"{_name(row)} · {_lengths(row)} · B {row.batch} · {heads} · D {row.head_dim} · {row.dtype}"


def _name(row: BenchRow) -> str:
    return row.mask_name or (row.mask if len(row.mask) < 48 else row.mask[:45] + " …")


def _lengths(of: BenchRow | Built) -> str:
    return f"N {of.seqlen_q:,}" if of.seqlen_q == of.seqlen_k else f"Sq {of.seqlen_q:,}, Sk {of.seqlen_k:,}"


def card(built: Built, screen: Screen) -> str:
    """The card of the recorded case with the mask of the screen, else of an estimate; empty where there is neither.

    Both are of one batch entry. A recorded mask has one plane.
    """
    found = nearest(built, screen)
    if found is None or not found[1] or built.whole.batch * built.whole.heads > 1:
        return estimate.card(built, screen)
    rows, _ = found
    ours = _best(rows, "flashmask", "forward")
    dense, flex = _best(rows, "sdpa_dense", "forward"), _best(rows, "flex", "forward")
    rival, name = (flex, "FlexAttention") if flex else (dense, "the dense mask")
    if rival is None:
        body, big = "", _an_entry(ours)
    else:
        faster = rival.median_ms >= ours.median_ms
        ratio = rival.median_ms / ours.median_ms if faster else ours.median_ms / rival.median_ms
        big = f"{ratio_text(ratio)}× {'faster' if faster else 'slower'}"
        body = f"<small>than {name}, forward</small>"
    body += cards.row(f"FlashMask ({ours.backend})", _an_entry(ours))
    if flex:
        body += cards.row("FlexAttention", _an_entry(flex))
    if dense:
        other_run = "" if (dense.date_utc or "")[:10] == (ours.date_utc or "")[:10] else ", another run"
        body += cards.row(f"dense ({dense.backend}{other_run})", _an_entry(dense))
    date, commit = (ours.date_utc or "")[:10], (ours.where.commit or "")[:7]
    share = "" if ours.batch == 1 else f"Measured at B {ours.batch}: times are those divided by {ours.batch}. "
    return cards.card(
        f"Measured on an {escape(ours.where.short_name)}", big, body, small=f"D {ours.head_dim}, {heads_text(ours.heads)}, B 1",
        foot=f"{share}{ours.dtype}. {date} {commit}".strip() + ".",
    )  # fmt: skip


def _an_entry(row: BenchRow) -> str:
    """The time of one batch entry: "0.290 ms"."""
    return f"{row.median_ms / row.batch:#.3g} ms"


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
        _section(*found, built, screen)
        return
    fold = st.expander("Measured on an H200 by the bench command, shipped with this program", on_change="rerun",
                       key="recorded")  # fmt: skip
    if fold.open:
        with fold:
            _section(*found, built, screen)


def _section(rows: list[BenchRow], same: bool, built: Built, screen: Screen) -> None:
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
        st.caption(plain(f"The mask of this screen was not recorded. Nearest in its work: {how_near(rows[0], built)}."))
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
