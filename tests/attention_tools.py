"""Inputs, masks and the judge of the attention tests."""

import torch

import flashmask_core as fm


def random_mask(kind: str, batch: int, heads: int, seqlen_q: int, seqlen_k: int, device, seed: int = 0) -> fm.ColumnMask:
    """A mask of the packing named by `kind`: full, causal, causal1, causal2, two or four (bounds), with empty rows."""
    g = torch.Generator().manual_seed(seed)
    shape = (batch, heads, seqlen_k)
    if kind in ("full", "causal"):
        mask = fm.mask(kind, seqlen_q, seqlen_k)
        return mask.stack([mask.stack([mask] * heads, "head")] * batch, "batch").to(device)
    # Neighbouring columns mostly agree, as in real masks, so that tiles of all three kinds occur.
    blocks = torch.randint(0, seqlen_q + 1, (batch, heads, -(-seqlen_k // 16), 4), generator=g).sort(-1).values
    rows = blocks.repeat_interleave(16, dim=2)[:, :, :seqlen_k]
    loose = torch.randint(0, seqlen_q + 1, (*shape, 4), generator=g).sort(-1).values
    rows = torch.where((torch.rand(*shape, 1, generator=g) < 0.05), loose, rows)
    picked = {"causal1": [3], "causal2": [1, 2], "two": [3, 0], "four": [2, 3, 0, 1]}[kind]
    indices = rows[..., picked].to(torch.int32)
    return fm.ColumnMask.from_startend_row_indices(
        indices.to(device), causal=kind.startswith("causal"), seqlen_q=seqlen_q
    )


def inputs(batch, seqlen_q, seqlen_k, heads, kv_heads, head_dim, dtype, device, seed=0):
    """q, k, v with gradients and dout, all random normal."""
    g = torch.Generator().manual_seed(seed)
    new = lambda s, h: torch.randn(batch, s, h, head_dim, generator=g).to(device, dtype)  # noqa: E731
    q, k, v, dout = new(seqlen_q, heads), new(seqlen_k, kv_heads), new(seqlen_k, kv_heads), new(seqlen_q, heads)
    return q.requires_grad_(), k.requires_grad_(), v.requires_grad_(), dout


def results(call, q, k, v, dout, dlse=None):
    """dict of out, lse, dq, dk, dv of call(q, k, v) -> (out, lse)."""
    out, lse = call(q, k, v)
    outputs, grads = [out], [dout.to(out.dtype)]
    if dlse is not None:
        outputs.append(torch.where(lse.isinf(), 0.0, lse))
        grads.append(dlse.to(lse.dtype))
    dq, dk, dv = torch.autograd.grad(outputs, (q, k, v), grads)
    return dict(out=out.detach(), lse=lse.detach(), dq=dq, dk=dk, dv=dv)


def check(got: dict, q, k, v, dout, mask, dlse=None, scale=None):
    """`got` against the reference in double precision: at most twice the error of naive torch in q's dtype.

    A floor of a few roundings of the largest value, and of single precision, keeps exact naive results (one visible key, say) from demanding
    exactness of another order of summation.
    """
    exact = results(
        lambda q, k, v: fm.attention_ref(q, k, v, mask, softmax_scale=scale, dtype=torch.float64), q, k, v, dout, dlse
    )
    naive = results(lambda q, k, v: fm.attention_ref(q, k, v, mask, softmax_scale=scale, dtype=q.dtype), q, k, v, dout, dlse)  # fmt: skip
    for name, x in got.items():
        want = exact[name].double()
        assert x.shape == want.shape, (name, x.shape, want.shape)
        assert not x.isnan().any(), f"{name}: {int(x.isnan().sum())} NaN"
        dead = want == float("-inf")
        assert torch.equal(x == float("-inf"), dead), f"{name}: -inf differs"
        error = torch.where(dead, 0.0, (x.double() - want)).abs()
        naive_error = torch.where(dead, 0.0, (naive[name].double() - want)).nan_to_num(0.0, 0.0, 0.0).abs()
        rounding = torch.finfo(torch.float32 if name == "lse" else q.dtype).eps
        largest = torch.where(dead, 0.0, want).abs().max().item() if want.numel() else 0.0
        limit = 2 * naive_error.max().item() + 4 * rounding * largest + 1e-5 if want.numel() else 0.0
        worst = error.max().item() if want.numel() else 0.0
        place = tuple(int(i) for i in torch.unravel_index(error.argmax(), error.shape)) if want.numel() else ()
        assert worst <= limit, f"{name}: error max {worst:.3g} mean {error.mean():.3g} at {place}, limit {limit:.3g}"
