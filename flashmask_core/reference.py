"""References in plain torch: the dense one, which judges every kernel, and the tiled one, which shows its steps.

The dense one is differentiable by autograd. The tiled one goes through the tiles as the portable kernels do, forward
and backward, and yields every line that it executes with what the line wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch

from .masks.column_mask import ColumnMask
from .tiles.classify import TileKind
from .tiles.decide import TilePlan

_SCORES_LIMIT = 2**32  # score elements; beyond, the dense reference is refused before it takes the memory


def attention_ref(q, k, v, mask=None, *, softmax_scale: float | None = None, dtype: torch.dtype = torch.float32):
    """(out [B, Sq, H, D] in `dtype`, lse [B, H, Sq] in `dtype`, natural log), computed densely in `dtype`.

    q [B, Sq, H, D], k and v [B, Sk, Hk, D]; query head h uses key head h // (H / Hk) and mask head h // (H / Hm).
    mask: a ColumnMask, a list of passes (visible where any of them is), or None for no restriction. A query that sees
    nothing gets out = 0, lse = -inf and gradient 0. softmax_scale=None means D ** -0.5.

    Raises ValueError when B x H x Sq x Sk scores are more than 2 ** 32.
    """
    batch, seqlen_q, heads, head_dim = q.shape
    seqlen_k, kv_heads = k.shape[1], k.shape[2]
    scores = batch * heads * seqlen_q * seqlen_k
    if scores > _SCORES_LIMIT:
        raise ValueError(
            f"attention_ref: {batch} x {heads} x {seqlen_q} x {seqlen_k} = {scores:,} dense scores are more than "
            f"{_SCORES_LIMIT:,}; compare fewer heads or a shorter sequence, or use a kernel backend"
        )
    scale = head_dim**-0.5 if softmax_scale is None else softmax_scale
    q, k, v = q.to(dtype), k.to(dtype), v.to(dtype)
    k, v = (x.repeat_interleave(heads // kv_heads, dim=2) for x in (k, v))
    s = torch.einsum("bqhd,bkhd->bhqk", q, k) * scale
    if mask is None:
        visible = torch.ones(1, 1, seqlen_q, seqlen_k, dtype=torch.bool, device=q.device)
    else:
        visible = _dense_visible(mask, heads, (seqlen_q, seqlen_k))
    # Rows that see nothing go through the softmax unmasked and are zeroed behind it, so that no NaN is formed.
    sees = visible.any(-1)  # [B or 1, H or 1, Sq]
    s = s.masked_fill(~visible & sees[..., None], float("-inf"))
    lse = torch.logsumexp(s, dim=-1) if seqlen_k else torch.zeros(s.shape[:3], dtype=dtype, device=q.device)
    p = torch.exp(s - lse[..., None]) * sees[..., None]
    out = torch.einsum("bhqk,bkhd->bqhd", p, v)
    return out, lse.masked_fill(~sees, float("-inf"))


def _dense_visible(mask, heads: int, lengths: tuple[int, int]) -> torch.Tensor:
    """bool [B or 1, H or 1, Sq, Sk] of a mask or a list of passes."""
    passes = [mask] if isinstance(mask, ColumnMask) else list(mask)
    for one in passes:
        if (one.seqlen_q, one.seqlen_k) != lengths:
            raise ValueError(f"mask: wanted (Sq, Sk) = {lengths} as q and k have, got ({one.seqlen_q}, {one.seqlen_k})")
    visible = passes[0].to_dense()
    for other in passes[1:]:
        visible = visible | other.to_dense()
    return visible if visible.shape[1] == 1 else visible.repeat_interleave(heads // visible.shape[1], dim=1)


class Step(NamedTuple):
    """One line of a tiled algorithm as it was executed.

    line: its name ("decide", "load", "scores", "hide", …). tile: the tile along the owner's loop, None before and
    behind the loop. wrote: what the line wrote, by the names of the kernels; "decide" writes the Decision alone.
    """

    line: str
    tile: int | None
    wrote: dict[str, object]


_LEAST = -1e30  # where the running maximum starts: finite, so that -inf - -inf is never formed


def forward_steps(q, k, v, plan: TilePlan, visible, i: int, scale: float) -> Iterator[Step]:
    """The online softmax of row tile i of one head, step by step (arXiv 2410.01359, algorithm 1).

    q [Sq, D], k and v [Sk, D] of one dtype; visible bool [Sq, Sk] is the mask that `plan` was made of. The last step
    is "out" and writes out [rows, D] and lse [rows]. The kernel takes exp2 in place of exp, all else is the same.
    """
    yield from (Step("decide", j, {"decision": plan.decision(i, j)}) for j in range(plan.shape[1]))
    rows = plan.rows(i)
    q_i = q[rows]
    m_i = torch.full_like(q_i[:, 0], _LEAST)
    l_i, acc = torch.zeros_like(m_i), torch.zeros_like(q_i)
    yield Step("load", None, {"q": q_i, "m_i": m_i, "l_i": l_i, "acc": acc})
    for j in plan.row_loop(i):
        columns = plan.columns(j)
        s = q_i @ k[columns].T * scale  # [rows, columns]
        yield Step("scores", j, {"s": s})
        if plan.kinds[i, j] == TileKind.PARTIAL:
            s = s.masked_fill(~visible[rows, columns], float("-inf"))
            yield Step("hide", j, {"s": s})
        m_new = torch.maximum(m_i, s.amax(1))
        yield Step("max", j, {"m_new": m_new})
        p, alpha = torch.exp(s - m_new[:, None]), torch.exp(m_i - m_new)
        yield Step("exp", j, {"p": p, "alpha": alpha})
        l_i = l_i * alpha + p.sum(1)
        yield Step("sum", j, {"l_i": l_i})
        acc, m_i = acc * alpha[:, None] + p @ v[columns], m_new
        yield Step("acc", j, {"acc": acc, "m_i": m_i})
    sees = l_i > 0
    out = acc * torch.where(sees, 1 / l_i, 0)[:, None]
    lse = torch.where(sees, m_i + torch.log(l_i), float("-inf"))
    yield Step("out", None, {"out": out, "lse": lse})


def dkdv_steps(q, k, v, dout, lse, delta, plan: TilePlan, visible, j: int, scale: float) -> Iterator[Step]:
    """dK and dV of column tile j of one head, step by step (algorithm 2). The last step, "store", writes dk and dv.

    q and dout [Sq, D], k and v [Sk, D], lse and delta [Sq]; delta = rowsum(dout * out).
    """
    yield from (Step("decide", i, {"decision": plan.decision(i, j)}) for i in range(plan.shape[0]))
    columns = plan.columns(j)
    dk, dv = torch.zeros_like(k[columns]), torch.zeros_like(v[columns])
    yield Step("load", None, {"k": k[columns], "v": v[columns], "dk": dk, "dv": dv})
    for i in plan.column_loop(j):
        rows, p = plan.rows(i), None
        for step in _gradient_of_tile(q, k, v, dout, lse, delta, plan, visible, i, j, scale):
            yield Step(step.line, i, step.wrote)
            p = step.wrote.get("p", p)
            if step.line == "dp":
                dv = dv + p.T @ dout[rows]
                yield Step("dv", i, {"dv": dv})
            if step.line == "ds":
                dk = dk + step.wrote["ds"].T @ q[rows]
                yield Step("dk", i, {"dk": dk})
    yield Step("store", None, {"dk": dk * scale, "dv": dv})


def dq_steps(q, k, v, dout, lse, delta, plan: TilePlan, visible, i: int, scale: float) -> Iterator[Step]:
    """dQ of row tile i of one head, step by step; arguments as in `dkdv_steps`. The last step, "store", writes dq."""
    yield from (Step("decide", j, {"decision": plan.decision(i, j)}) for j in range(plan.shape[1]))
    rows = plan.rows(i)
    dq = torch.zeros_like(q[rows])
    yield Step("load", None, {"q": q[rows], "dq": dq})
    for j in plan.row_loop(i):
        for step in _gradient_of_tile(q, k, v, dout, lse, delta, plan, visible, i, j, scale):
            yield Step(step.line, j, step.wrote)
            if step.line == "ds":
                dq = dq + step.wrote["ds"] @ k[plan.columns(j)]
                yield Step("dq", j, {"dq": dq})
    yield Step("store", None, {"dq": dq * scale})


def _gradient_of_tile(q, k, v, dout, lse, delta, plan, visible, i, j, scale) -> Iterator[Step]:
    """P and dS of one tile, recomputed from lse; a query that sees nothing has P = 0."""
    rows, columns = plan.rows(i), plan.columns(j)
    s = q[rows] @ k[columns].T * scale
    yield Step("scores", None, {"s": s})
    if plan.kinds[i, j] == TileKind.PARTIAL:
        s = s.masked_fill(~visible[rows, columns], float("-inf"))
        yield Step("hide", None, {"s": s})
    p = torch.exp(s - torch.where(lse[rows].isinf(), float("inf"), lse[rows])[:, None])
    yield Step("exp", None, {"p": p})
    dp = dout[rows] @ v[columns].T
    yield Step("dp", None, {"dp": dp})
    yield Step("ds", None, {"ds": p * (dp - delta[rows, None])})


def attention_tiled(q, k, v, mask: ColumnMask, *, block_m: int = 128, block_n: int = 128,
                    softmax_scale: float | None = None, dtype: torch.dtype = torch.float32):  # fmt: skip
    """(out, lse) as `attention_ref` returns them, computed tile by tile in the order of the kernels.

    The same arguments; block_m, block_n: query rows and key columns of a tile. Every step is one of `forward_steps`.
    """
    out, lse = torch.zeros(q.shape, dtype=dtype), torch.zeros(q.shape[0], q.shape[2], q.shape[1], dtype=dtype)
    for b, h, hk, plan, visible in _heads(q, k, mask, block_m, block_n):
        one = (q[b, :, h].to(dtype), k[b, :, hk].to(dtype), v[b, :, hk].to(dtype), plan, visible)
        for i in range(plan.shape[0]):
            *_, last = forward_steps(*one, i, _scale(q, softmax_scale))
            out[b, plan.rows(i), h], lse[b, h, plan.rows(i)] = last.wrote["out"], last.wrote["lse"]
    return out, lse


def attention_tiled_backward(dout, q, k, v, mask: ColumnMask, *, block_m: int = 128, block_n: int = 128,
                             softmax_scale: float | None = None, dtype: torch.dtype = torch.float32):  # fmt: skip
    """(dq, dk, dv) of sum(out * dout), shaped as q, k and v: dk and dv by column tiles, then dq by row tiles."""
    blocks = dict(block_m=block_m, block_n=block_n)
    out, lse = attention_tiled(q, k, v, mask, **blocks, softmax_scale=softmax_scale, dtype=dtype)
    delta = (out * dout.to(dtype)).sum(-1)  # [B, Sq, H]
    dq, dk, dv = (torch.zeros(x.shape, dtype=dtype) for x in (q, k, v))
    for b, h, hk, plan, visible in _heads(q, k, mask, **blocks):
        one = [x.to(dtype) for x in (q[b, :, h], k[b, :, hk], v[b, :, hk], dout[b, :, h])]
        one += [lse[b, h], delta[b, :, h], plan, visible]
        for j in range(plan.shape[1]):
            *_, last = dkdv_steps(*one, j, _scale(q, softmax_scale))
            dk[b, plan.columns(j), hk] += last.wrote["dk"]
            dv[b, plan.columns(j), hk] += last.wrote["dv"]
        for i in range(plan.shape[0]):
            *_, last = dq_steps(*one, i, _scale(q, softmax_scale))
            dq[b, plan.rows(i), h] = last.wrote["dq"]
    return dq, dk, dv


def _scale(q, softmax_scale: float | None) -> float:
    return q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale


def _heads(q, k, mask: ColumnMask, block_m: int, block_n: int):
    """(b, h, its key head, its TilePlan, its visibility bool [Sq, Sk]) of every query head."""
    batch, _, heads, _ = q.shape
    for b in range(batch):
        for h in range(heads):
            plane = (b if mask.batch > 1 else 0, h * mask.heads // heads)
            plan = TilePlan(mask, block_m, block_n, batch=plane[0], head=plane[1])
            yield b, h, h * k.shape[2] // heads, plan, mask.to_dense()[plane]
