"""Everything the browser needs to walk through one loop: the mask, the tiles with their reasons, every step's numbers.

The numbers are those of `flashmask_core.reference`: D = 4, queries, keys and values with one decimal.
"""

from __future__ import annotations

import torch

import flashmask_core as fm
from flashmask_core.masks.column_mask import PACKINGS
from flashmask_core.reference import attention_ref, dkdv_steps, dq_steps, forward_steps
from flashmask_core.tiles.decide import TilePlan

HEAD_DIM = 4
SCALE = HEAD_DIM**-0.5
_DIGITS = 7


def inputs(seqlen_q: int, seqlen_k: int) -> dict[str, torch.Tensor]:
    """q and dout [Sq, D], k and v [Sk, D], float32 with one decimal, always the same for the same lengths."""
    g = torch.Generator().manual_seed(3)
    draw = lambda length: torch.randn(length, HEAD_DIM, generator=g).mul(10).round().div(10)  # noqa: E731
    return {"q": draw(seqlen_q), "k": draw(seqlen_k), "v": draw(seqlen_k), "dout": draw(seqlen_q)}


def dense(mask: "fm.ColumnMask", x: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """out, lse, dq, dk and dv of the dense reference."""
    q, k, v = (x[name][None, :, None].clone().requires_grad_() for name in "qkv")
    out, lse = attention_ref(q, k, v, mask)
    grads = torch.autograd.grad(out, (q, k, v), x["dout"][None, :, None])
    found = {"out": out.detach()[0, :, 0], "lse": lse.detach()[0, 0]}
    return found | {name: grad[0, :, 0] for name, grad in zip(("dq", "dk", "dv"), grads)}


def story(mask: "fm.ColumnMask", block_m: int, block_n: int, pass_: str, line: int) -> dict:
    """The loop of one row tile (pass "forward" or "dq") or one column tile ("dkdv") of a mask with B = Hm = 1.

    JSON, at most some 400 KB; an infinity is None (only hidden scores and lse have one).
    """
    x = inputs(mask.seqlen_q, mask.seqlen_k)
    plan, visible = TilePlan(mask, block_m, block_n), mask.to_dense()[0, 0]
    judge = dense(mask, x)
    if pass_ == "forward":
        steps = forward_steps(x["q"], x["k"], x["v"], plan, visible, line, SCALE)
        names, place = ("out", "lse"), plan.rows(line)
    else:
        x["lse"], x["delta"] = judge["lse"], (judge["out"] * x["dout"]).sum(-1)
        make = dkdv_steps if pass_ == "dkdv" else dq_steps
        steps = make(*x.values(), plan, visible, line, SCALE)
        names, place = (("dk", "dv"), plan.columns(line)) if pass_ == "dkdv" else (("dq",), plan.rows(line))
    steps = list(steps)
    told = [[s.line, s.tile, {name: _plain(value) for name, value in s.wrote.items()}] for s in steps]
    worst = max(_difference(steps[-1].wrote[name], judge[name][place]) for name in names)
    vectors = {name: getattr(mask, name)[0, 0].tolist() for name in PACKINGS[mask.causal, mask.bounds]}
    return {
        "pass": pass_,
        "line": line,
        "seqlen_q": mask.seqlen_q,
        "seqlen_k": mask.seqlen_k,
        "causal": mask.causal,
        "vectors": vectors,
        "block_m": block_m,
        "block_n": block_n,
        "kinds": plan.kinds.tolist(),
        "scale": SCALE,
        "inputs": {name: _plain(value) for name, value in x.items()},
        "steps": told,
        "worst": worst,
    }


def _difference(a: torch.Tensor, b: torch.Tensor) -> float:
    both = a == b  # two infinities too
    return float(torch.where(both, 0.0, (a - b).abs()).max()) if a.numel() else 0.0


def _plain(value):
    if isinstance(value, torch.Tensor):
        return _rounded(value.tolist())
    return {"kind": int(value.kind), "why": str(value)}


def _rounded(numbers):
    if isinstance(numbers, list):
        return [_rounded(n) for n in numbers]
    return None if abs(numbers) == float("inf") else float(f"{numbers:.{_DIGITS}g}")
