"""Cases that differ in one thing: the length, how sparse the mask is, the head dim, the tile, or the mask itself.

    sweep_cases(BenchCase("causal & document(500, 524)", 1024), "seqlen", (1024, 4096))
"""

from __future__ import annotations

from dataclasses import replace

from ..data import PAPER_MASKS, paper_mask_text
from ..masks.arguments import shortened
from ..masks.expr import MAX_SEQLEN, Hidden, Joined, MaskExpr, PatternExpr
from ..masks.language import parse
from ..masks.patterns import PATTERNS
from .config import BenchCase

AXES = {  # name -> what is swept, and the values that are offered
    "seqlen": ("sequence length N", (1024, 2048, 4096, 8192, 16384, 32768)),
    "sparsity": ("sparsity: causal documents of equal length", (1, 2, 4, 8, 16, 32)),
    "head_dim": ("head dim D", (32, 64, 128, 256)),
    "block": ("tile side", (64, 128, 256)),
    "mask": ("the paper's masks", PAPER_MASKS),
}
MAX_CASES = 64


def sweep_cases(base: BenchCase, axis: str, values) -> tuple[BenchCase, ...]:
    """One case a value, all else as in `base`.

    "seqlen": the text at another length, its lists of tokens scaled along (`scaled_text`), so every engine's mask is
    built anew; "sparsity": `value` causal documents of equal length in place of the mask, so 1 - rho falls from 1/2
    towards 0; "head_dim"; "block": the tiles that rho counts and that FlexAttention's block mask has, while our kernels
    keep the tiles they are tuned for; "mask": the paper's masks by name, or texts.

    Raises ValueError for an axis or a value that cannot be.
    """
    if axis not in AXES:
        raise ValueError(f"sweep: wanted one of {', '.join(AXES)}, got {axis!r}")
    values = tuple(dict.fromkeys(values))
    if not 0 < len(values) <= MAX_CASES:
        raise ValueError(f"sweep: wanted 1 to {MAX_CASES} values, got {len(values)}")
    return tuple(_case(base, axis, value) for value in values)


def _case(base: BenchCase, axis: str, value) -> BenchCase:
    if axis == "mask":
        if value in PAPER_MASKS:
            return replace(base, mask=paper_mask_text(value, base.seqlen_q), mask_name=value, packed=None)
        return replace(base, mask=str(value), mask_name="", packed=None)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"sweep over {axis}: wanted numbers of 1 or more, got {value!r}")
    if axis == "seqlen":
        if base.packed is not None:
            raise ValueError("sweep over seqlen: an uploaded mask has one length; write the mask as a text")
        if value > MAX_SEQLEN:
            raise ValueError(f"sweep over seqlen: wanted at most {MAX_SEQLEN:,} tokens, got {value:,}")
        keys = max(1, round(base.seqlen_k * value / base.seqlen_q))
        return replace(base, mask=scaled_text(base.mask, base.seqlen_k, keys), seqlen_q=value, seqlen_k=keys)
    if axis == "sparsity":
        if value > base.seqlen_k:
            raise ValueError(f"sweep over sparsity: {value:,} documents do not fit into {base.seqlen_k:,} tokens")
        lengths = _shares((1,) * value, value, base.seqlen_k)
        text = str(parse(f"causal & document({', '.join(map(str, lengths))})"))
        return replace(base, mask=text, mask_name=f"{value} document{'s' * (value > 1)}", packed=None)
    return replace(base, **{axis: value})


def scaled_text(text: str, old: int, new: int) -> str:
    """A mask text of `old` keys at `new`: what lists tokens (documents, examples, runs, frames) keeps its share of the
    sequence; windows, sinks and other single numbers stay."""
    return text if old == new else str(_scaled(parse(text), old, new))


def _scaled(expr: MaskExpr, old: int, new: int) -> MaskExpr:
    if isinstance(expr, Joined):
        return Joined.of(expr.operator, [_scaled(mask, old, new) for mask in expr.masks])
    if isinstance(expr, Hidden):
        return Hidden(_scaled(expr.mask, old, new))
    if not isinstance(expr, PatternExpr) or not expr.arguments:
        return expr
    values, kind = expr.values(), PATTERNS[expr.name].parameters[0].kind
    if expr.name == "frames":
        values = (values[0], max(1, values[1] * new // old), *values[2:])
    elif expr.name == "block_diffusion":
        values = (values[0] * new // old, *values[1:])
    elif expr.name == "qk_sparse":
        values = tuple(tuple(number * new // old for number in run) for run in values)
    elif expr.name == "prefix_lm_document":
        lengths = _shares([length for _, length in values], old, new)
        values = tuple((min(p * new // old, length), length) for (p, _), length in zip(values, lengths))
    elif kind == "lengths":
        values = tuple(_shares(values, old, new))
    elif kind == "tuples":
        flat = iter(_shares([length for item in values for length in item], old, new))
        values = tuple(tuple(next(flat) for _ in item) for item in values)
    else:
        return expr
    return PatternExpr(expr.name, tuple(shortened(list(values))))


def _shares(lengths, old: int, new: int) -> list[int]:
    """Consecutive lengths scaled by new / old, rounded where they end, so that no token is lost on the way."""
    ends, end = [0], 0
    for length in lengths:
        end += length
        ends.append(end * new // old)
    return [b - a for a, b in zip(ends, ends[1:])]


