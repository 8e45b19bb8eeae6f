"""Attention engines for the decoder: each says how it keeps a mask and how it attends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from ..attention import flashmask_attention
from ..masks.column_mask import ColumnMask


@dataclass(frozen=True)
class Engine:
    """prepare(mask on the device, deterministic) -> what attend(q, k, v, prepared) takes, q [B, S, H, D]."""

    label: str
    prepare: Callable
    attend: Callable


def _our_attend(q, k, v, prepared):
    mask, deterministic = prepared
    return flashmask_attention(q, k, v, mask, deterministic=deterministic)


def _dense_attend(q, k, v, visible):
    repeats = q.shape[2] // k.shape[2]  # the memory-efficient kernel has no grouped heads
    q, k, v = (x.transpose(1, 2) for x in (q, k.repeat_interleave(repeats, 2), v.repeat_interleave(repeats, 2)))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=visible).transpose(1, 2)


def _flex_prepare(mask: ColumnMask, deterministic: bool):
    from torch.nn.attention.flex_attention import create_block_mask

    from ..bench.flex_masks import flex_mask_mod

    mod, _ = flex_mask_mod(mask)
    size = mask.seqlen_q
    return create_block_mask(mod, None, None, size, size, device=mask.device, _compile=mask.device.type == "cuda")


def _flex_attend(q, k, v, block_mask):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return _flex(q.is_cuda)(q, k, v, block_mask=block_mask, enable_gqa=q.shape[1] != k.shape[1]).transpose(1, 2)


def _flex(compiled: bool, kept: dict = {}):  # noqa: B006
    from torch.nn.attention.flex_attention import flex_attention

    if not compiled:
        return flex_attention
    if "flex" not in kept:
        kept["flex"] = torch.compile(flex_attention, dynamic=False)
    return kept["flex"]


ENGINES = {
    "flashmask": Engine("FlashMask", lambda mask, deterministic: (mask, deterministic), _our_attend),
    "dense": Engine("SDPA, dense mask", lambda mask, deterministic: mask.to_dense(), _dense_attend),
    "flex": Engine("FlexAttention (compiled)", _flex_prepare, _flex_attend),
}
