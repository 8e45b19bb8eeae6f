"""The cards beside the picture: what is skipped, what the mask weighs, what it costs. HTML from numbers alone."""

from __future__ import annotations

from html import escape

from flashmask_core.bench.tile_work import kept_bytes

from .build import Built, TileCounts
from .words import bytes_text, heads_text, percent_text, ratio_text


def row(label: str, value: str, key: str = "") -> str:
    """One line of a card; `key` names the colour of a little square before the label."""
    square = f'<i class="fm-key fm-{key}"></i>' if key else ""
    return f'<div class="row"><span>{square}{label}</span><b>{value}</b></div>'


def card(title: str, big: str, body: str, *, small: str = "", foot: str = "") -> str:
    """A card as HTML."""
    small = f" <small>{small}</small>" if small else ""
    foot = f'<div class="foot">{foot}</div>' if foot else ""
    return f'<div class="fm-card"><div>{title}{small}</div><div class="big">{big}</div>{body}{foot}</div>'


def this_plane(built: Built) -> str:
    """ "this plane" of a mask with several batch entries or heads, else empty."""
    return "this plane" if built.whole.batch * built.whole.heads > 1 else ""


def tiles_card(counts: TileCounts, other: TileCounts, rule: str, *, small: str = "") -> str:
    """Tiles skipped by the rule that is on, and what the other rule would make of them."""
    shares = "".join(
        f'<div class="fm-{kind}" style="flex:{n}"></div>'
        for kind, n in (("empty", counts.empty), ("partial", counts.partial), ("full", counts.full))
        if n
    )
    body = (
        f'<div class="fm-stack" aria-hidden="true">{shares}</div>'
        + row("skipped", f"{counts.empty:,}", "empty")
        + row("partial, tested", f"{counts.partial:,}", "partial")
        + row("full, no test", f"{counts.full:,}", "full")
    )
    exact, paper = (counts, other) if rule == "exact" else (other, counts)
    worth = exact.empty - paper.empty
    if worth or exact.full != paper.full:
        foot = (
            f"Tiles skipped: {exact.empty:,} by the exact rule, {paper.empty:,} by the paper's. Tiles that need no "
            f"test: {exact.full:,} and {paper.full:,}."
        )
    else:
        foot = "The exact rule and the paper's agree on every tile here."
    return card("Tiles the kernel skips", f"{percent_text(counts.empty, counts.total)} %", body, small=small, foot=foot)


def memory_card(built: Built) -> str:
    """Bytes of the mask as a dense bool matrix, as vectors, and as what our kernels keep on a GPU."""
    dense, vectors = built.seqlen_q * built.seqlen_k, built.mask.nbytes
    flag = "causal" if built.mask.causal else "not causal"
    body = row("dense, bool", bytes_text(dense)) + row(f"vectors, {built.mask.bounds} × int32", bytes_text(vectors))
    foot = ""
    if built.seqlen_k >= 1024:
        kept = kept_bytes(built.mask)
        body += row("kept on a GPU", bytes_text(kept))
        foot = f"{_times_less(dense, vectors)} are the vectors alone; with the lists of tiles that a GPU keeps it is {_times_less(dense, kept)}."
    small = ", ".join(filter(None, (flag, this_plane(built))))
    return card("Memory of the mask", _times_less(dense, vectors), body, small=small, foot=foot)


def _times_less(dense: int, other: int) -> str:
    """ "2,048× less", "3.2× more"."""
    return f"{ratio_text(dense / other)}× less" if dense >= other else f"{ratio_text(other / dense)}× more"


def work_card(built: Built, heads: int, head_dim: int = 128) -> str:
    """Visible pairs, and the arithmetic they stand for."""
    pairs = built.seqlen_q * built.seqlen_k
    small = ", ".join(filter(None, (f"{heads_text(heads)}, D {head_dim}", this_plane(built))))
    flops = 4 * head_dim * heads
    body = (
        row("visible pairs", f"{built.pairs:,}")
        + row("forward", flops_text(flops * built.pairs))
        + row("dense forward", flops_text(flops * pairs))
    )
    return card("Pairs that count", f"{percent_text(built.pairs, pairs)} %", body, small=small)


def flops_text(count: int) -> str:
    """1.2e12 -> "1.20 TFLOP"."""
    for unit, size in (("PFLOP", 1e15), ("TFLOP", 1e12), ("GFLOP", 1e9), ("MFLOP", 1e6)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:,} FLOP"


def notes_html(notes: tuple[str, ...]) -> str:
    """Remarks about the mask as one quiet paragraph."""
    return f'<p class="fm-sub">{" · ".join(escape(note) for note in notes)}</p>' if notes else ""


def error_html(message: str) -> str:
    """One message about something that does not work. It may quote a file or a text, so nothing in it is Markdown."""
    return f'<div class="fm-error" role="alert">{escape(message)}</div>'
