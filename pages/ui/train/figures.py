"""Packed sequences and deals as HTML, from numbers alone."""

from __future__ import annotations

from html import escape

from flashmask_core.distributed import Deal, RankLoad
from flashmask_core.packing import POLICIES, Packing

from .. import cards
from ..words import bytes_text
from .packed import MOST_DRAWN, Packed

_MOST_PARTS = 400  # of a bar; what is shorter than a pixel is not worth an element

CSS = """
.fm-pack { display: grid; grid-template-columns: max-content minmax(0, 1fr) max-content; gap: 4px 12px;
  align-items: center; font-size: 12.5px; font-variant-numeric: tabular-nums; color: var(--fm-dim); }
.fm-pack .bar { display: flex; height: 18px; border-radius: 4px; overflow: hidden; background: var(--fm-empty); }
.fm-pack .on { color: var(--fm-text); font-weight: 700; }
.fm-pack .bar.on { outline: 2px solid var(--fm-select); outline-offset: 1px; }
.fm-pack .example { display: flex; min-width: 0; border-right: 1px solid var(--fm-ground); box-sizing: border-box; }
.fm-pack .example > i { min-width: 0; border-right: 1px solid var(--fm-ground); box-sizing: border-box; }
.fm-pack .example > i:last-child { border-right: 0; }
.fm-numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(160px, 1fr)); gap: 12px; }
.fm-gain { width: 100%; border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }
.fm-gain th { text-align: right; font-weight: 500; color: var(--fm-dim); padding: 4px 10px; }
.fm-gain td { text-align: right; white-space: nowrap; padding: 4px 10px; border-top: 1px solid var(--fm-line); }
.fm-gain :is(th, td):first-child { text-align: left; padding-left: 0; }
.fm-gain tr.on td { font-weight: 700; }
.fm-deals { display: grid; grid-template-columns: repeat(auto-fit, minmax(290px, 1fr)); gap: 20px; }
.fm-deals h4 { font-size: 14px; font-weight: 600; margin: 0 0 2px; padding: 0; }
.fm-deals p { font-size: 12.5px; color: var(--fm-dim); margin: 0 0 8px; }
.fm-deals .bar { height: 9px; margin: 1px 0; }
.fm-panel { margin: 0; font-size: 13px; color: var(--fm-dim); }
.fm-panel b { color: var(--fm-text); margin-right: 4px; }
.fm-legend { display: flex; flex-wrap: wrap; gap: 2px 16px; font-size: 13px; color: var(--fm-dim); }
.fm-gain small { color: var(--fm-dim); }
.fm-reasons { margin: 0; padding-left: 18px; font-size: 13px; color: var(--fm-dim); overflow-wrap: anywhere; }
.fm-longest { table-layout: fixed; }
.fm-longest td { white-space: normal; }
@media (max-width: 640px) {
  .fm-gain { font-size: 12.5px; }
  .fm-gain :is(th, td) { padding: 4px 3px; }
}
"""


def numbers_html(found: Packed) -> str:
    """Four cards: sequences, padding, skipped tiles, spread of work."""
    packing, rho = found.packing, found.rho
    examples = sum(len(one.examples) for one in packing.sequences)
    tokens = sum(one.tokens for one in packing.sequences)
    dropped = cards.row("dropped", f"{packing.dropped:,}") if packing.dropped else ""
    parts = (
        cards.card("Sequences", f"{len(packing.sequences):,}",
                   cards.row("examples", f"{examples:,}") + cards.row("tokens", f"{tokens:,}") + dropped),
        cards.card("Padding", f"{100 * packing.waste:.2f} %",
                   cards.row("tokens", f"{len(packing.sequences) * packing.context - tokens:,}")
                   + cards.row("padded one by one", f"{100 * _unpacked_waste(packing):.1f} %")),
        cards.card("Tiles skipped", f"{100 * rho.mean():.1f} %",
                   cards.row("least", f"{100 * rho.min():.1f} %") + cards.row("most", f"{100 * rho.max():.1f} %"),
                   small="exact, 128 × 128"),
        cards.card("Busiest over mean", f"{packing.imbalance:.2f}×",
                   cards.row("most pairs", f"{packing.pairs.max():,}")
                   + cards.row("fewest", f"{packing.pairs.min():,}")),
    )  # fmt: skip
    return f'<div class="fm-numbers">{"".join(parts)}</div>'


def _unpacked_waste(packing: Packing) -> float:
    """The share of padding if every example had a context of its own."""
    lengths = [example.tokens for one in packing.sequences for example in one.examples]
    return 1 - sum(lengths) / (len(lengths) * packing.context)


def gains_html(found: Packed) -> str:
    """Every policy's sequences, padding and spread; what sorting gains over the order of the dataset."""
    usual = len(found.others["in_order"].sequences)
    rows = []
    for name, packing in found.others.items():
        count = len(packing.sequences)
        saved = f"{100 * (1 - count / usual):.1f} %" if count < usual else "–"
        on = ' class="on"' if name == found.packing.policy else ""
        rows.append(
            f"<tr{on}><td>{POLICIES[name]}</td><td>{count:,}</td><td>{100 * packing.waste:.2f} %</td>"
            f"<td>{packing.imbalance:.2f}×</td><td>{saved}</td></tr>"
        )
    head = "<th>Policy</th><th>Sequences</th><th>Padding</th><th>Busiest / mean</th><th>Fewer steps</th>"
    return f'<table class="fm-gain"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def sequences_html(found: Packed, chosen: int) -> str:
    """Packed sequences as bars: prompts, the answers that share them, padding; beside them what is skipped."""
    rows = []
    for i, one in enumerate(found.packing.sequences[:MOST_DRAWN]):
        parts = []
        for example in one.examples[:_MOST_PARTS]:
            pieces = [("fm-full", example.prompt), *(("fm-partial", length) for length in example.answers)]
            inner = "".join(f'<i class="{kind}" style="flex:{n} 0 0"></i>' for kind, n in pieces if n)
            parts.append(f'<div class="example" style="flex:{example.tokens} 0 0" title="{escape(str(example))}">{inner}</div>')
        rest = one.context - sum(example.tokens for example in one.examples[:_MOST_PARTS])
        on = " on" if i == chosen else ""
        skipped = f"{100 * found.rho[i]:.0f} % skipped" if i < len(found.rho) else ""
        rows.append(
            f'<span class="{on}">{i}</span><div class="bar{on}">{"".join(parts)}<i style="flex:{rest} 0 0"></i></div>'
            f'<span class="{on}">{skipped}</span>'
        )
    return f'<div class="fm-pack">{"".join(rows)}</div>'


_DEAL_WORDS = {
    "contiguous": "neighbours together",
    "zigzag": "forth and back",
    "balanced": "heaviest chunk first",
}


def deals_html(deals: dict[str, tuple[Deal, list[RankLoad]]], key_bytes: int) -> str:
    """Every deal as two bars a rank: the pairs its queries see, and the keys it must receive."""
    most_pairs = max(1, *(load.pairs for _, all_loads in deals.values() for load in all_loads))
    best = min(deals, key=lambda name: max(load.cost for load in deals[name][1]))
    columns = []
    for name, (dealt, all_loads) in deals.items():
        pairs = [load.pairs for load in all_loads]
        rows = []
        for load in all_loads:
            rows.append(
                f"<span>rank {load.rank}</span><div>{_bar('fm-full', load.pairs, most_pairs)}"
                f"{_bar('fm-partial', load.received_keys, dealt.seqlen)}</div>"
                f"<span>{load.pairs / 1e6:,.1f} M pairs<br>{bytes_text(load.received_keys * key_bytes)}</span>"
            )
        ratio = max(pairs) * len(pairs) / max(1, sum(pairs))
        title = f"{name}{', the best here' if name == best else ''}"
        columns.append(
            f"<div><h4>{title}</h4><p>{_DEAL_WORDS[name]}; busiest rank {ratio:.2f}× the mean</p>"
            f'<div class="fm-pack">{"".join(rows)}</div></div>'
        )
    return f'<div class="fm-deals">{"".join(columns)}</div>'


def _bar(kind: str, part: int, total: int) -> str:
    return f'<div class="bar"><i class="{kind}" style="flex:{part} 0 0"></i><i style="flex:{max(0, total - part)} 0 0"></i></div>'
