"""Portable forward kernel: online softmax over the tiles that are not EMPTY (arXiv 2410.01359, algorithm 1).

A program owns BLOCK_M queries of one head. It walks the PARTIAL key tiles with the element test, then the FULL ones
without: softmax does not care for the order, so the FULL loop is free of any mask arithmetic. A query that sees
nothing never leaves l = 0 and gets out = 0, lse = -inf. The running maximum starts at a finite value, so that
-inf - -inf is never formed.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .common import SIZES, first_tile, hidden_pairs, load_tile, mask_plane, next_tile, owned_tile, store_tile

LOG2E: tl.constexpr = tl.constexpr(1.4426950408889634)
LN2: tl.constexpr = tl.constexpr(0.6931471805599453)


@triton.jit
def _walk(acc, l_i, m_i, run, tile, end, num_tiles, q, k_desc, v_desc, b, hk, rows, lts, lte, uts, ute, scale_log2,
          offset, MASKED: tl.constexpr, CAUSAL: tl.constexpr, BOUNDS: tl.constexpr,
          BLOCK_N: tl.constexpr, HEAD: tl.constexpr):  # fmt: skip
    """Take `num_tiles` key tiles into the running softmax; m_i is in log2 units."""
    for _ in tl.range(0, num_tiles):
        start_n = tile * BLOCK_N
        k = load_tile(k_desc, b, hk, start_n, BLOCK_N, HEAD)
        qk = tl.dot(q, k.T, input_precision="ieee")  # [BLOCK_M, BLOCK_N]
        if MASKED:
            cols = start_n + tl.arange(0, BLOCK_N)
            hidden = hidden_pairs(rows, cols, lts, lte, uts, ute, offset, CAUSAL, BOUNDS, 1)
            qk = tl.where(hidden, float("-inf"), qk)
        m_new = tl.maximum(m_i, tl.max(qk, 1) * scale_log2)
        p = tl.exp2(qk * scale_log2 - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = load_tile(v_desc, b, hk, start_n, BLOCK_N, HEAD)
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="ieee")
        m_i = m_new
        run, tile, end = next_tile(run, tile, end)
    return acc, l_i, m_i, run, tile, end


@triton.jit(do_not_specialize=SIZES)
def forward_kernel(
    q_desc, k_desc, v_desc, out_desc,  # [B, H or Hk, S, D]
    lse,  # float32 [B, H, Sq], natural log
    lts, lte, uts, ute,  # padded_vectors, int32 [Bm, Hm, pitch]
    runs, counts, order,  # TileRuns of the row tiles
    scale_log2,
    num_batch, num_heads, group, mask_batch, mask_heads, seqlen_q, offset, pitch, num_tiles, heads_per_section,
    CAUSAL: tl.constexpr,
    BOUNDS: tl.constexpr,
    MAX_RUNS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    HEAD: tl.constexpr,
):  # fmt: skip
    b, h, tile_m = owned_tile(
        tl.program_id(0), order, num_tiles, num_batch, num_heads, 1, mask_batch, mask_heads, heads_per_section
    )
    hk = h // group
    plane = mask_plane(b, h, num_heads, mask_batch, mask_heads)
    at = plane * pitch
    line = plane * num_tiles + tile_m
    start_m = tile_m * BLOCK_M
    rows = start_m + tl.arange(0, BLOCK_M)
    q = load_tile(q_desc, b, h, start_m, BLOCK_M, HEAD)
    num_partial = tl.load(counts + 2 * line)
    num_full = tl.load(counts + 2 * line + 1)
    run, tile, end = first_tile(runs + line * (2 * MAX_RUNS))

    acc = tl.zeros([BLOCK_M, HEAD], tl.float32)
    l_i = tl.zeros([BLOCK_M], tl.float32)
    m_i = tl.full([BLOCK_M], -1e30, tl.float32)
    acc, l_i, m_i, run, tile, end = _walk(
        acc, l_i, m_i, run, tile, end, num_partial, q, k_desc, v_desc, b, hk, rows, lts + at, lte + at, uts + at,
        ute + at, scale_log2, offset, True, CAUSAL, BOUNDS, BLOCK_N, HEAD,
    )  # fmt: skip
    acc, l_i, m_i, run, tile, end = _walk(
        acc, l_i, m_i, run, tile, end, num_full, q, k_desc, v_desc, b, hk, rows, lts + at, lte + at, uts + at,
        ute + at, scale_log2, offset, False, CAUSAL, BOUNDS, BLOCK_N, HEAD,
    )  # fmt: skip

    sees = l_i > 0
    store_tile(out_desc, b, h, start_m, acc * tl.where(sees, 1.0 / l_i, 0.0)[:, None], BLOCK_M, HEAD)
    log_sum = tl.where(sees, (m_i + tl.log2(l_i)) * LN2, float("-inf"))
    tl.store(lse + (b * num_heads + h).to(tl.int64) * seqlen_q + rows, log_sum, mask=rows < seqlen_q)
