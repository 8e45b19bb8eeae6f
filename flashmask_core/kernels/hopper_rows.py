"""Plain Triton kernels before and after the Hopper backward: one pass over the rows each."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .backward import delta_of_rows, owned_rows
from .common import store_tile

STORED_TERMS = 8  # a row of terms in memory, 16 bytes; the copy fills the other 8 of a matrix instruction with zeros
LSE_UNIT = {torch.bfloat16: 1.0, torch.float16: 4096.0}  # fp16 reaches 65504: a unit makes room for the largest scores


@triton.jit
def _three_terms(x, column, FIRST: tl.constexpr, LARGEST: tl.constexpr, dtype: tl.constexpr):
    """[rows, STORED_TERMS]: from FIRST on three numbers of 16 bits that sum to x [rows], otherwise zeros."""
    high = tl.clamp(x, -LARGEST, LARGEST).to(dtype)
    rest = x - high.to(tl.float32)
    middle = tl.clamp(rest, -LARGEST, LARGEST).to(dtype)
    rest = rest - middle.to(tl.float32)
    low = tl.clamp(rest, -LARGEST, LARGEST).to(dtype)
    zero = tl.zeros_like(low)[:, None]
    terms = tl.where(column == FIRST, high[:, None], tl.where(column == FIRST + 1, middle[:, None], zero))
    return tl.where(column == FIRST + 2, low[:, None], terms)


@triton.jit(do_not_specialize=("num_heads", "seqlen_q", "num_tiles"))
def row_terms_kernel(
    out_desc, dout_desc,  # [B, H, Sq, D]
    lse, dlse,  # float32 [B, H, Sq]
    lse_terms, delta_terms,  # [B, H, row_pitch, STORED_TERMS] in out's dtype, written
    dq_sums,  # float32 [B, H, row_pitch, HEAD], zeroed
    scale,
    num_heads, seqlen_q, row_pitch, num_tiles,
    HAS_DLSE: tl.constexpr,
    LARGEST: tl.constexpr,
    LSE_UNIT: tl.constexpr,
    STORED_TERMS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    HEAD: tl.constexpr,
):  # fmt: skip
    """-delta = dlse - rowsum(dO * O) and -lse / scale / LSE_UNIT as sums of three terms, -LARGEST x 3 for a row without.

    Each has its own columns of the rows of terms, see `summing`.

    A query that sees nothing, or is not there, thereby gets P = exp2(scale (S - lse)) = 0.
    """
    dtype = lse_terms.dtype.element_ty
    bh, b, h, start_m = owned_rows(num_heads, num_tiles, BLOCK_M)
    padded_at = bh.to(tl.int64) * row_pitch + (start_m + tl.arange(0, BLOCK_M))
    d, l = delta_of_rows(out_desc, dout_desc, lse, dlse, bh, b, h, start_m, seqlen_q, HAS_DLSE, BLOCK_M, HEAD)
    minus_lse = tl.where(l == float("-inf"), -3.0 * LARGEST, -l / scale / LSE_UNIT)
    column = tl.arange(0, STORED_TERMS)[None, :]
    terms_at = padded_at[:, None] * STORED_TERMS + column
    tl.store(lse_terms + terms_at, _three_terms(minus_lse, column, 3, LARGEST, dtype))
    tl.store(delta_terms + terms_at, _three_terms(-d, column, 0, LARGEST, dtype))
    sums_at = padded_at[:, None] * HEAD + tl.arange(0, HEAD)[None, :]
    tl.store(dq_sums + sums_at, tl.zeros([BLOCK_M, HEAD], tl.float32))


@triton.jit(do_not_specialize=("num_heads", "num_tiles"))
def convert_dq_kernel(dq_sums, dq_desc, scale, num_heads, row_pitch, num_tiles,
                      BLOCK_M: tl.constexpr, HEAD: tl.constexpr):  # fmt: skip
    """dq = scale * sums in dq's dtype, with the rows of every eight back in order (see `rotate_rows`)."""
    bh, b, h, start_m = owned_rows(num_heads, num_tiles, BLOCK_M)
    rows = start_m + tl.arange(0, BLOCK_M)
    stored = (rows & -8) | ((rows & 3) << 1) | ((rows >> 2) & 1)
    at = (bh.to(tl.int64) * row_pitch + stored)[:, None] * HEAD + tl.arange(0, HEAD)[None, :]
    x = tl.load(dq_sums + at) * scale
    store_tile(dq_desc, b, h, start_m, x, BLOCK_M, HEAD)
