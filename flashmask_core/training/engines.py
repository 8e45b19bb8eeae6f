"""Attention engines for the decoder: each says how it keeps a mask and how it attends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

import torch
import torch.nn.functional as F

from ..attention import flashmask_attention
from ..masks.column_mask import ColumnMask
from .names import ENGINE_LABELS

_STRIP_ROWS = 4096


@dataclass(frozen=True)
class Engine:
    """prepare(mask on the device, deterministic, backend of ours) -> what attend(q, k, v, prepared) takes, q [B, S, H, D].

    compiles: its first step of a context is much slower than the next.
    """

    prepare: Callable
    attend: Callable
    compiles: bool = False


def _our_prepare(mask: ColumnMask, deterministic: bool, backend: str):
    return mask, deterministic, backend


def _our_attend(q, k, v, prepared):
    mask, deterministic, backend = prepared
    return flashmask_attention(q, k, v, mask, deterministic=deterministic, backend=backend)


def _dense_attend(q, k, v, visible):
    repeats = q.shape[2] // k.shape[2]  # the memory-efficient kernel has no grouped heads
    q, k, v = (x.transpose(1, 2) for x in (q, k.repeat_interleave(repeats, 2), v.repeat_interleave(repeats, 2)))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=visible).transpose(1, 2)


def _dense_prepare(mask: ColumnMask, deterministic: bool, backend: str) -> torch.Tensor:
    """bool [B, Hm, S, S], made in strips so that nothing but itself is as large."""
    size = mask.seqlen_q
    visible = torch.empty(mask.batch, mask.heads, size, size, dtype=torch.bool, device=mask.device)
    for at in range(0, size, _STRIP_ROWS):
        visible[:, :, at : at + _STRIP_ROWS] = mask.to_dense(rows=slice(at, at + _STRIP_ROWS))
    return visible


@lru_cache(maxsize=4)
def _flex_mask(size: int, device: torch.device):
    """(mask_mod, the vector that it reads) of a causal mask with one bound: kept, so that another mask never recompiles."""
    end = torch.empty(size, dtype=torch.int32, device=device)
    return (lambda b, h, q, k: (q >= k) & (q < end[k])), end


def _flex_prepare(mask: ColumnMask, deterministic: bool, backend: str):
    """A block mask of its own for every batch."""
    from torch.nn.attention.flex_attention import create_block_mask

    mask = mask.canonical()
    if not mask.causal or mask.bounds != 1 or mask.batch * mask.heads != 1:
        raise ValueError(f"mask: the flex engine of training takes packed examples, causal with one bound, got {mask}")
    mod, end = _flex_mask(mask.seqlen_q, mask.device)
    end.copy_(mask.lts[0, 0])
    size = mask.seqlen_q
    return create_block_mask(mod, None, None, size, size, device=mask.device, _compile=mask.device.type == "cuda")


def _flex_attend(q, k, v, block_mask):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return _flex(q.is_cuda)(q, k, v, block_mask=block_mask, enable_gqa=q.shape[1] != k.shape[1]).transpose(1, 2)


@cache
def _flex(compiled: bool):
    from torch.nn.attention.flex_attention import flex_attention

    if not compiled:
        return flex_attention
    import torch._dynamo

    torch._dynamo.config.recompile_limit = 1000  # a shape a context; past the limit it would run uncompiled, and dense
    return torch.compile(flex_attention, dynamic=False)


ENGINES = {
    "flashmask": Engine(_our_prepare, _our_attend),
    "dense": Engine(_dense_prepare, _dense_attend),
    "flex": Engine(_flex_prepare, _flex_attend, compiles=True),
}
assert ENGINES.keys() == ENGINE_LABELS.keys()
