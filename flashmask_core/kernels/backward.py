"""Portable backward kernels: delta, then dK and dV by column tiles, then dQ by row tiles (arXiv 2410.01359, alg. 2).

Every gradient tile has one owner that keeps it in registers, so there are no atomics and the result is bitwise
repeatable. With P = exp(S - lse), dP = dO V^T and delta = rowsum(dO * O) - dlse:
dS = P * (dP - delta), dV = P^T dO, dK = scale * dS^T Q, dQ = scale * dS K.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .common import SIZES, first_tile, hidden_pairs, load_tile, mask_plane, next_tile, owned_tile, store_tile
from .forward import LOG2E


@triton.jit
def owned_rows(num_heads, num_tiles, BLOCK_M: tl.constexpr):
    """(batch x head, batch entry, head, first row) of a program of a grid over batch x heads x row tiles."""
    bh = tl.program_id(0) // num_tiles
    return bh, bh // num_heads, bh % num_heads, (tl.program_id(0) % num_tiles) * BLOCK_M


@triton.jit
def delta_of_rows(out_desc, dout_desc, lse, dlse, bh, b, h, start_m, seqlen_q,
                  HAS_DLSE: tl.constexpr, BLOCK_M: tl.constexpr, HEAD: tl.constexpr):  # fmt: skip
    """(delta as above, lse), float32 [BLOCK_M]; 0 and -inf for a row that is not there."""
    rows = start_m + tl.arange(0, BLOCK_M)
    exists = rows < seqlen_q
    at = bh.to(tl.int64) * seqlen_q + rows
    out = load_tile(out_desc, b, h, start_m, BLOCK_M, HEAD).to(tl.float32)
    dout = load_tile(dout_desc, b, h, start_m, BLOCK_M, HEAD).to(tl.float32)
    d = tl.sum(out * dout, 1)
    l = tl.load(lse + at, mask=exists, other=float("-inf"))
    if HAS_DLSE:
        d -= tl.where(l == float("-inf"), 0.0, tl.load(dlse + at, mask=exists, other=0.0))
    return d, l


@triton.jit(do_not_specialize=SIZES)
def delta_kernel(
    out_desc, dout_desc,  # [B, H, Sq, D]
    lse, dlse,  # float32 [B, H, Sq]
    delta, lse_log2,  # float32 [B, H, row_pitch], written
    num_heads, seqlen_q, row_pitch, num_tiles,
    HAS_DLSE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    HEAD: tl.constexpr,
):  # fmt: skip
    """delta as above; lse in log2 units, +inf for a query that sees nothing or is not there: P comes out 0."""
    bh, b, h, start_m = owned_rows(num_heads, num_tiles, BLOCK_M)
    padded_at = bh.to(tl.int64) * row_pitch + (start_m + tl.arange(0, BLOCK_M))
    d, l = delta_of_rows(out_desc, dout_desc, lse, dlse, bh, b, h, start_m, seqlen_q, HAS_DLSE, BLOCK_M, HEAD)
    tl.store(delta + padded_at, d)
    tl.store(lse_log2 + padded_at, tl.where(l == float("-inf"), float("inf"), l * LOG2E))


@triton.jit
def _walk_rows(dk, dv, run, tile, end, num_tiles, k, v, q_desc, dout_desc, lse_log2, delta, b, h, cols,
               lts, lte, uts, ute, scale_log2, offset,
               MASKED: tl.constexpr, CAUSAL: tl.constexpr, BOUNDS: tl.constexpr,
               BLOCK_M: tl.constexpr, HEAD: tl.constexpr):  # fmt: skip
    """Add `num_tiles` row tiles to dk and dv [BLOCK_N, HEAD]; everything is transposed: S^T is [BLOCK_N, BLOCK_M]."""
    for _ in tl.range(0, num_tiles):
        start_m = tile * BLOCK_M
        rows = start_m + tl.arange(0, BLOCK_M)
        q = load_tile(q_desc, b, h, start_m, BLOCK_M, HEAD)
        lse_m = tl.load(lse_log2 + rows)
        qk_t = tl.dot(k, q.T, input_precision="ieee")
        if MASKED:
            hidden = hidden_pairs(rows, cols, lts, lte, uts, ute, offset, CAUSAL, BOUNDS, 0)
            qk_t = tl.where(hidden, float("-inf"), qk_t)
        p_t = tl.exp2(qk_t * scale_log2 - lse_m[None, :])
        dout = load_tile(dout_desc, b, h, start_m, BLOCK_M, HEAD)
        delta_m = tl.load(delta + rows)
        # dP before dV: its result is waited for, dV's is not, so dV runs beside the arithmetic on dS.
        dp_t = tl.dot(v, dout.T, input_precision="ieee")
        dv = tl.dot(p_t.to(dout.dtype), dout, dv, input_precision="ieee")
        ds_t = p_t * (dp_t - delta_m[None, :])
        dk = tl.dot(ds_t.to(q.dtype), q, dk, input_precision="ieee")
        run, tile, end = next_tile(run, tile, end)
    return dk, dv, run, tile, end


@triton.jit(do_not_specialize=SIZES)
def dkdv_kernel(
    q_desc, k_desc, v_desc, dout_desc, dk_desc, dv_desc,  # [B, H or Hk, S, D]
    lse_log2, delta,  # float32 [B, H, row_pitch]
    lts, lte, uts, ute,  # padded_vectors, int32 [Bm, Hm, pitch]
    runs, counts, order,  # TileRuns of the column tiles
    scale, scale_log2,
    num_batch, num_heads, group, mask_batch, mask_heads, offset, pitch, row_pitch, num_tiles, heads_per_section,
    CAUSAL: tl.constexpr,
    BOUNDS: tl.constexpr,
    MAX_RUNS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    HEAD: tl.constexpr,
):  # fmt: skip
    """dK and dV of BLOCK_N keys of one key head; `group` query heads share it and are taken one after the other."""
    b, hk, tile_n = owned_tile(
        tl.program_id(0), order, num_tiles, num_batch, num_heads // group, group, mask_batch, mask_heads,
        heads_per_section,
    )  # fmt: skip
    start_n = tile_n * BLOCK_N
    cols = start_n + tl.arange(0, BLOCK_N)
    k = load_tile(k_desc, b, hk, start_n, BLOCK_N, HEAD)
    v = load_tile(v_desc, b, hk, start_n, BLOCK_N, HEAD)
    dk = tl.zeros([BLOCK_N, HEAD], tl.float32)
    dv = tl.zeros([BLOCK_N, HEAD], tl.float32)
    for h in tl.range(hk * group, hk * group + group):
        plane = mask_plane(b, h, num_heads, mask_batch, mask_heads)
        at = plane * pitch
        rows_at = (b * num_heads + h).to(tl.int64) * row_pitch
        line = plane * num_tiles + tile_n
        num_partial = tl.load(counts + 2 * line)
        num_full = tl.load(counts + 2 * line + 1)
        run, tile, end = first_tile(runs + line * (2 * MAX_RUNS))
        dk, dv, run, tile, end = _walk_rows(
            dk, dv, run, tile, end, num_partial, k, v, q_desc, dout_desc, lse_log2 + rows_at, delta + rows_at, b, h,
            cols, lts + at, lte + at, uts + at, ute + at, scale_log2, offset,
            True, CAUSAL, BOUNDS, BLOCK_M, HEAD,
        )  # fmt: skip
        dk, dv, run, tile, end = _walk_rows(
            dk, dv, run, tile, end, num_full, k, v, q_desc, dout_desc, lse_log2 + rows_at, delta + rows_at, b, h,
            cols, lts + at, lte + at, uts + at, ute + at, scale_log2, offset,
            False, CAUSAL, BOUNDS, BLOCK_M, HEAD,
        )  # fmt: skip
    store_tile(dk_desc, b, hk, start_n, dk * scale, BLOCK_N, HEAD)
    store_tile(dv_desc, b, hk, start_n, dv, BLOCK_N, HEAD)


@triton.jit
def _walk_columns(dq, run, tile, end, num_tiles, q, dout, lse_m, delta_m, k_desc, v_desc, b, hk, rows,
                  lts, lte, uts, ute, scale_log2, offset,
                  MASKED: tl.constexpr, CAUSAL: tl.constexpr, BOUNDS: tl.constexpr,
                  BLOCK_N: tl.constexpr, HEAD: tl.constexpr):  # fmt: skip
    """Add `num_tiles` key tiles to dq [BLOCK_M, HEAD]."""
    for _ in tl.range(0, num_tiles):
        start_n = tile * BLOCK_N
        k = load_tile(k_desc, b, hk, start_n, BLOCK_N, HEAD)
        qk = tl.dot(q, k.T, input_precision="ieee")  # [BLOCK_M, BLOCK_N]
        if MASKED:
            cols = start_n + tl.arange(0, BLOCK_N)
            hidden = hidden_pairs(rows, cols, lts, lte, uts, ute, offset, CAUSAL, BOUNDS, 1)
            qk = tl.where(hidden, float("-inf"), qk)
        p = tl.exp2(qk * scale_log2 - lse_m[:, None])
        v = load_tile(v_desc, b, hk, start_n, BLOCK_N, HEAD)
        dp = tl.dot(dout, v.T, input_precision="ieee")
        ds = p * (dp - delta_m[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision="ieee")
        run, tile, end = next_tile(run, tile, end)
    return dq, run, tile, end


@triton.jit(do_not_specialize=SIZES)
def dq_kernel(
    q_desc, k_desc, v_desc, dout_desc, dq_desc,  # [B, H or Hk, S, D]
    lse_log2, delta,  # float32 [B, H, row_pitch]
    lts, lte, uts, ute,  # padded_vectors, int32 [Bm, Hm, pitch]
    runs, counts, order,  # TileRuns of the row tiles
    scale, scale_log2,
    num_batch, num_heads, group, mask_batch, mask_heads, offset, pitch, row_pitch, num_tiles, heads_per_section,
    CAUSAL: tl.constexpr,
    BOUNDS: tl.constexpr,
    MAX_RUNS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    HEAD: tl.constexpr,
):  # fmt: skip
    """dQ of BLOCK_M queries of one head."""
    b, h, tile_m = owned_tile(
        tl.program_id(0), order, num_tiles, num_batch, num_heads, 1, mask_batch, mask_heads, heads_per_section
    )
    hk = h // group
    plane = mask_plane(b, h, num_heads, mask_batch, mask_heads)
    at = plane * pitch
    line = plane * num_tiles + tile_m
    start_m = tile_m * BLOCK_M
    rows = start_m + tl.arange(0, BLOCK_M)
    rows_at = (b * num_heads + h).to(tl.int64) * row_pitch + rows
    q = load_tile(q_desc, b, h, start_m, BLOCK_M, HEAD)
    dout = load_tile(dout_desc, b, h, start_m, BLOCK_M, HEAD)
    lse_m = tl.load(lse_log2 + rows_at)
    delta_m = tl.load(delta + rows_at)
    num_partial = tl.load(counts + 2 * line)
    num_full = tl.load(counts + 2 * line + 1)
    run, tile, end = first_tile(runs + line * (2 * MAX_RUNS))
    dq = tl.zeros([BLOCK_M, HEAD], tl.float32)
    dq, run, tile, end = _walk_columns(
        dq, run, tile, end, num_partial, q, dout, lse_m, delta_m, k_desc, v_desc, b, hk, rows,
        lts + at, lte + at, uts + at, ute + at, scale_log2, offset, True, CAUSAL, BOUNDS, BLOCK_N, HEAD,
    )  # fmt: skip
    dq, run, tile, end = _walk_columns(
        dq, run, tile, end, num_full, q, dout, lse_m, delta_m, k_desc, v_desc, b, hk, rows,
        lts + at, lte + at, uts + at, ute + at, scale_log2, offset, False, CAUSAL, BOUNDS, BLOCK_N, HEAD,
    )  # fmt: skip
    store_tile(dq_desc, b, h, start_m, dq * scale, BLOCK_M, HEAD)
