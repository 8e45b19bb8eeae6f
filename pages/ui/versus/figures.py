"""The table of a comparison: both masks, line by line, and the second as a multiple of the first."""

from __future__ import annotations

from .. import estimate
from ..link import Screen
from ..words import bytes_text, percent_text, ratio_text
from .sides import Cost, Side


def table_html(sides: tuple[Side, Side], costs: tuple[Cost, Cost]) -> str:
    """A row a number: what it is, A, B, and B as a multiple of A where that says something."""
    size = sides[0].runs.seqlen_q * sides[0].runs.seqlen_k
    rows = [
        ("visible pairs", [s.pairs for s in sides], [f"{s.pairs:,}" for s in sides]),
        ("density", None, [f"{percent_text(s.pairs, size)} %" for s in sides]),
        ("tiles computed", [_computed(c) for c in costs], [_count(_computed(c)) for c in costs]),
        ("of them partial", None, [_count(c.tiles and c.tiles[1]) for c in costs]),
        ("tiles skipped, ρ", None, [_rho(c) for c in costs]),
        ("vectors", None, [_stored(s) for s in sides]),
        ("forward, about", [c.forward_ms for c in costs], [_ms(c.forward_ms) for c in costs]),
        ("backward, about", [c.backward_ms for c in costs], [_ms(c.backward_ms) for c in costs]),
    ]
    lines = "".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{text}</td>" for text in texts)}<td>{_times(numbers)}</td></tr>'
        for name, numbers, texts in rows
    )
    return (
        '<table class="fm-versus-table"><thead><tr><td></td><th scope="col">A</th><th scope="col">B</th>'
        f'<th scope="col">B : A</th></tr></thead><tbody>{lines}</tbody></table>'
    )


def basis(screen: Screen) -> str:
    """What the numbers of the table rest on."""
    tiles = f"Tiles of {screen.tile}, {screen.rule} rule."
    return f"{tiles} {estimate.basis(screen)}".strip()


def _computed(cost: Cost) -> int | None:
    return cost.tiles and cost.tiles[1] + cost.tiles[2]


def _count(number: int | None) -> str:
    return "too many" if number is None else f"{number:,}"


def _rho(cost: Cost) -> str:
    return "" if cost.tiles is None else f"{percent_text(cost.tiles[0], sum(cost.tiles))} %"


def _stored(side: Side) -> str:
    if side.pass_count > 1 or side.passes is None:
        return f"does not fit: {side.pass_count:,} passes"
    mask = side.passes[0].canonical()
    return f"{mask.bounds} a key, {bytes_text(4 * mask.bounds * mask.seqlen_k)}"


def _ms(value: float | None) -> str:
    if value is None:
        return "not known"
    return f"{value:.3g} ms" if value >= estimate.LEAST_MS else f"below {estimate.LEAST_MS} ms"


def _times(numbers: list | None) -> str:
    if not numbers or None in numbers or not numbers[0]:
        return ""
    return f"{ratio_text(numbers[1] / numbers[0])}×"
