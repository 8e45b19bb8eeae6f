"""A FlexAttention BlockMask as a ColumnMask: what its kernel would show, pair by pair."""

from __future__ import annotations

import torch

from ..column_mask import ColumnMask
from ..errors import NotRepresentableError
from ..expr import MAX_SEQLEN
from ..runs import MaskedRuns

MAX_PAIRS = 1 << 28
_STRIP_CELLS = 1 << 22


def mask_of_block_mask(block_mask) -> ColumnMask:
    """The mask, on the BlockMask's device.

    A pair is visible if its block is listed as full, or if it is listed as partial and mask_mod says so. mask_mod is
    called under vmap, as FlexAttention does, for a strip of keys at a time.

    Raises NotRepresentableError, or ValueError for more than 2^28 pairs in all.
    """
    batch, heads, _, _ = block_mask.shape
    seqlen_q, seqlen_k = block_mask.seq_lengths
    if batch * heads * seqlen_q * seqlen_k > MAX_PAIRS or max(seqlen_q, seqlen_k) > MAX_SEQLEN:
        raise ValueError(
            f"block_mask: {batch} x {heads} x {seqlen_q:,} x {seqlen_k:,} pairs are too many to ask its mask_mod for; "
            f"wanted at most {MAX_PAIRS:,}"
        )
    rows = []
    for b in range(batch):
        planes = [_plane(block_mask, b, h, seqlen_q, seqlen_k) for h in range(heads)]
        broken = [runs for runs in planes if (runs.counts > 2).any()]
        if broken:
            raise NotRepresentableError.of(*broken, planes=batch * heads)
        rows.append(ColumnMask.stack([ColumnMask.from_runs(runs) for runs in planes], dim="head"))
    return ColumnMask.stack(rows, dim="batch").to(block_mask.kv_indices.device)


def _plane(block_mask, b: int, h: int, seqlen_q: int, seqlen_k: int) -> MaskedRuns:
    device = block_mask.kv_indices.device
    block_q, block_k = block_mask.BLOCK_SIZE
    partial = _listed(block_mask.kv_num_blocks, block_mask.kv_indices, b, h)
    full = torch.zeros_like(partial)
    if block_mask.full_kv_num_blocks is not None:
        full = _listed(block_mask.full_kv_num_blocks, block_mask.full_kv_indices, b, h)
    q = torch.arange(seqlen_q, device=device)
    q_block = torch.div(q, block_q, rounding_mode="floor")[:, None]
    pair = torch.vmap(torch.vmap(block_mask.mask_mod, (None, None, None, 0)), (None, None, 0, None))
    head = (torch.tensor(b, device=device), torch.tensor(h, device=device))
    strips = []
    width = max(1, _STRIP_CELLS // max(1, seqlen_q))
    for first in range(0, seqlen_k, width):
        k = torch.arange(first, min(first + width, seqlen_k), device=device)
        k_block = torch.div(k, block_k, rounding_mode="floor")[None, :]
        with torch.no_grad():
            said = pair(*head, q, k)
        visible = full[q_block, k_block] | (partial[q_block, k_block] & said)
        strips.append(MaskedRuns.from_dense(visible.cpu().numpy()))
    return MaskedRuns.concatenate(strips)


def _listed(counts: torch.Tensor, indices: torch.Tensor, b: int, h: int) -> torch.Tensor:
    """bool [query blocks, key blocks]: the first counts[q] of indices[q] are the blocks listed for query block q."""
    counts, indices = counts[b, h], indices[b, h].long()
    listed = torch.arange(indices.shape[-1], device=indices.device) < counts[:, None]
    blocks = torch.zeros(indices.shape, dtype=torch.int8, device=indices.device)
    return blocks.scatter_reduce(1, indices.clamp(0, indices.shape[-1] - 1), listed.to(torch.int8), "amax").bool()
