"""Hugging Face Transformers: FlashMask as the attention of an ordinary model, with its packing, padding and windows.

    from flashmask_core.integrations import transformers as flashmask
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation=flashmask.register())

Whatever mask the model's own code asks for (causal, packed position_ids, 2-D padding, sliding windows, prefixes, a cache)
is turned into column vectors once a forward pass and shared by every layer that uses it. Packed sequences are told from
position_ids that start again, as everywhere in Transformers: no attention_mask, and no cache (use_cache=False).
"""

from __future__ import annotations

from functools import lru_cache

import torch

from ..attention import flashmask_attention
from ..masks.column_mask import ColumnMask
from ..masks.errors import NotRepresentableError
from ..masks.language import mask as mask_of_text

NAME = "column_mask"
_STRIP_ELEMENTS = 1 << 26  # pairs whose visibility is looked at together


def register(name: str = NAME, backend: str = "auto") -> str:
    """Make `attn_implementation=name` known to Transformers; returns the name.

    A name with "flash" in it would be taken for a FlashAttention package by Transformers, and is refused. `backend` is
    `flashmask_attention`'s.
    """
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    if "flash" in name:
        raise ValueError(
            f"name: Transformers takes every name with 'flash' in it for a FlashAttention package that it would load, got "
            f"{name!r}; use attn_implementation={NAME!r}, which register() gives"
        )

    def attention(module, query, key, value, attention_mask=None, scaling=None, dropout=0.0, is_causal=None, **kwargs):
        """query [B, H, Sq, D], key and value [B, Hk, Sk, D] -> (out [B, Sq, H, D], None)."""
        for refused in ("softcap", "position_bias", "s_aux"):
            if kwargs.get(refused) is not None:
                raise ValueError(f"{refused}: {name} does not have it; use attn_implementation='eager'")
        if attention_mask is None:
            causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
            attention_mask = _plain("causal" if causal else "full", query.shape[2], key.shape[2], query.device)
        elif not isinstance(attention_mask, ColumnMask):
            attention_mask = _of_tensor(attention_mask, key.shape[2])
        q, k, v = (x.transpose(1, 2) for x in (query, key, value))
        out = flashmask_attention(
            q, k, v, attention_mask, softmax_scale=scaling, dropout=dropout if module.training else 0.0, backend=backend
        )
        return out, None

    AttentionInterface.register(name, attention)
    AttentionMaskInterface.register(name, column_mask)
    return name


def column_mask(batch_size, q_length, kv_length, q_offset=0, kv_offset=0, mask_function=None, attention_mask=None,
                device="cpu", use_vmap=False, **kwargs) -> ColumnMask:  # fmt: skip
    """The mask that Transformers describes by a function of (batch, head, q, k), as a ColumnMask on `device`.

    attention_mask: bool [B, kv_length], False where a key is padding, or None. Signature and meaning are those of the
    functions behind Transformers' AttentionMaskInterface.

    Raises NotRepresentableError where a column hides more than two runs of rows.
    """
    from transformers.masking_utils import causal_mask_function

    q_offset = int(q_offset)
    if attention_mask is not None:
        attention_mask = attention_mask[:, kv_offset : kv_offset + kv_length]
        missing = kv_length - attention_mask.shape[1]  # of a cache with room for more
        attention_mask = torch.nn.functional.pad(attention_mask, (0, missing)).to(device=device, dtype=torch.bool)
        if attention_mask.all():
            attention_mask = None
    plain = mask_function is None or mask_function is causal_mask_function
    if plain and attention_mask is None and q_offset + q_length == kv_offset + kv_length:
        return _plain("causal", q_length, kv_length, torch.device(device))
    mask_function = causal_mask_function if mask_function is None else mask_function
    if use_vmap:  # a function that somebody wrote for single indices
        for dims in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0, None, None, None)):
            mask_function = torch.vmap(mask_function, in_dims=dims)

    b, h = torch.arange(batch_size, device=device), torch.zeros(1, dtype=torch.int64, device=device)
    q, k = (torch.arange(n, device=device) for n in (q_length, kv_length))

    def visible(columns: slice) -> torch.Tensor:
        indices = (b, h, q + q_offset, k[columns] + kv_offset)
        if not use_vmap:
            indices = (b[:, None, None, None], h[None, :, None, None], indices[2][:, None], indices[3][None, :])
        seen = torch.as_tensor(mask_function(*indices), device=device)
        seen = seen.broadcast_to(batch_size, 1, q_length, len(k[columns]))[:, 0]
        return seen if attention_mask is None else seen & attention_mask[:, None, columns]

    return _of_strips(visible, batch_size, q_length, kv_length)


@lru_cache(maxsize=16)
def _plain(text: str, seqlen_q: int, seqlen_k: int, device: torch.device) -> ColumnMask:
    """Kept, so that its tile metadata is built once for all layers and steps."""
    return mask_of_text(text, seqlen_q, seqlen_k).to(device)


def _of_tensor(x: torch.Tensor, seqlen_k: int) -> ColumnMask:
    """Of a dense mask that the caller gave: [B, 1 or H, Sq, Sk], bool (True: visible) or additive."""
    visible = (x if x.dtype == torch.bool else x > torch.finfo(x.dtype).min / 2)[..., :seqlen_k]
    rows = [_of_strips(lambda c, y=y: y[:, :, c], len(y), *y.shape[1:]) for y in visible.unbind(1)]
    return rows[0] if len(rows) == 1 else ColumnMask.stack(rows, "head")


def _of_strips(visible, batch: int, seqlen_q: int, seqlen_k: int) -> ColumnMask:
    """Of visible(columns) -> bool [batch, Sq, columns], looked at in strips of columns: no Sq x Sk array."""
    width = max(1, _STRIP_ELEMENTS // max(1, batch * seqlen_q))
    strips = [_runs(~visible(slice(at, at + width))) for at in range(0, seqlen_k, width)]
    count, *vectors = (torch.cat(parts, -1) for parts in zip(*strips))
    if (count > 2).any():
        broken = (count > 2).any(0).nonzero()[:, 0]
        raise NotRepresentableError(broken.tolist(), int(count.max()))
    uts, ute, lts, lte = (v.to(torch.int32)[:, None] for v in vectors)
    return ColumnMask(lts, lte, uts, ute, seqlen_q=seqlen_q, causal=False, bounds=4).canonical()


def _runs(hidden: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """(runs a column, first start, first end, last start, last end) of hidden [B, Sq, columns]; a single run is last."""
    edges = torch.diff(torch.nn.functional.pad(hidden, (0, 0, 1, 1)).to(torch.int8), dim=1)  # row r: +1 starts, -1 ends
    row = torch.arange(edges.shape[1], device=hidden.device)[:, None]
    starts, ends = edges > 0, edges < 0
    count, past = starts.sum(1), edges.shape[1]
    first = [torch.where(at, row, past).amin(1) for at in (starts, ends)]
    last = [torch.where(at, row, 0).amax(1) for at in (starts, ends)]
    none = count < 2
    return count, *(x.masked_fill(none, 0) for x in first), *last
