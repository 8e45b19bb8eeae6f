"""Dense reference attention: the judge of every kernel, in plain torch operations and differentiable by autograd."""

from __future__ import annotations

import torch

from .masks.column_mask import ColumnMask

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
