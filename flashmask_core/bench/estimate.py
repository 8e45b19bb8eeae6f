"""How many bytes a provider will want on the GPU, before anything is allocated."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .config import DTYPES, BenchCase

VECTORS = 4  # int32 numbers a key column: lts, lte, uts, ute


@dataclass(frozen=True)
class ByteEstimate:
    """Bytes on the device.

    inputs: q, k, v and dout, in both layouts that providers want, since all providers of a case are ready at once;
    mask: in the provider's form; work: outputs, gradients and scratch space.
    """

    inputs: int
    mask: int
    work: int

    @property
    def total(self) -> int:
        return self.inputs + self.mask + self.work


def dense_mask_bytes(case: BenchCase, mask_batch: int = 1, mask_heads: int = 1) -> int:
    """A bool mask [Bm, Hm, Sq, Sk], one byte a pair."""
    return mask_batch * mask_heads * case.seqlen_q * case.seqlen_k


def vector_bytes(case: BenchCase, mask_batch: int = 1, mask_heads: int = 1) -> int:
    """The four int32 vectors [Bm, Hm, Sk]."""
    return mask_batch * mask_heads * VECTORS * 4 * case.seqlen_k


def estimate_bytes(case: BenchCase, style: str, mask_batch: int = 1, mask_heads: int = 1) -> ByteEstimate:
    """What a provider of a style needs.

    style "vectors": our kernels; "blocks": FlexAttention; "none": SDPA without a mask; "dense": SDPA fed a bool mask,
    which PyTorch widens to the dtype of q; "scores": SDPA's math backend, which also keeps the score matrix.
    """
    backward = "backward" in case.passes
    width = torch.finfo(DTYPES[case.dtype]).bits // 8
    rows = case.batch * case.seqlen_q * case.heads  # of q, out, dout, dq
    keys = case.batch * case.seqlen_k * case.kv_heads  # of k and v
    inputs = 2 * width * case.head_dim * (rows + 2 * keys + (rows if backward else 0))
    work = width * case.head_dim * rows + 4 * rows  # out, lse
    if backward:
        # dq, dk, dv, the sums out * dout, and a dq (or dk, dv) gathered in fp32
        work += width * case.head_dim * (rows + 2 * keys) + 4 * rows + 4 * case.head_dim * max(rows, 2 * keys)
    dense = dense_mask_bytes(case, mask_batch, mask_heads)
    match style:
        case "vectors":
            mask = vector_bytes(case, mask_batch, mask_heads) * 2  # and as much again for the runs of tiles
        case "blocks":
            tiles = mask_batch * mask_heads * -(-case.seqlen_q // 128) * -(-case.seqlen_k // 128)
            mask = 4 * 4 * tiles  # int32 tables of partial and full blocks, by rows and by columns
        case "dense" | "scores":
            mask = dense
            work += (width + 3) * dense  # widened, and what it takes to build it
            if style == "scores":
                scores = case.batch * case.heads * case.seqlen_q * case.seqlen_k
                work += scores * (width + 4) * (3 if backward else 2)
        case _:
            mask = 0
    return ByteEstimate(inputs, mask, work)


def too_large(case: BenchCase, provider: str, estimate: ByteEstimate, free_bytes: int) -> str | None:
    """Why a provider will not be run for want of memory, and the way out; None if it fits."""
    if estimate.total <= free_bytes:
        return None
    reason = (
        f"{provider} needs about {estimate.total:,} bytes of GPU memory ({estimate.inputs:,} for q, k, v and their "
        f"copies, {estimate.mask:,} for its mask) and {free_bytes:,} are free"
    )
    dense = estimate.mask >= dense_mask_bytes(case) > vector_bytes(case)
    if dense and estimate_bytes(case, "vectors").total <= free_bytes:
        return f"{reason}: flashmask keeps the same mask in {vector_bytes(case):,} bytes; or take a smaller N"
    return f"{reason}: take a smaller N, batch or number of heads, or the forward pass alone"
