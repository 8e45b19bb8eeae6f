"""The running softmax of the Hopper forward: one tile of scores, and the output that was summed before it."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl

SLACK: gl.constexpr = gl.constexpr(8.0)  # in log2 units, see `softmax_step`


@gluon.jit
def softmax_step(s, m_i, l_i, scale_log2):
    """(P, maximum, sum, factor of what was summed before). l_i [ROWS, 8] are partial sums: no shuffle in the loop.

    The maximum is let lag behind by up to SLACK (in log2 units): P then reaches 2 ** SLACK, its rounding is relative,
    and the factor is 1 in nearly every step.
    """
    SUMS: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 8, 16])
    top = gl.max(s, 1) * scale_log2
    m_new = gl.where(top > m_i + SLACK, top, m_i)
    p = gl.exp2(s * scale_log2 - m_new[:, None])
    alpha = gl.exp2(m_i - m_new)
    sums = gl.convert_layout(gl.sum(p.reshape([s.shape[0], s.shape[1] // 8, 8]), 1), SUMS, assert_trivial=True)
    l_i = l_i * gl.convert_layout(alpha, gl.SliceLayout(1, SUMS))[:, None] + sums
    return p, m_new, l_i, alpha


@gluon.constexpr_function
def _rescale_ptx(n):
    """PTX that multiplies n numbers by their factors, of which numbers 0 and 2 are its rows', unless the warp's are 1."""
    test = f"setp.ne.f32 p, ${2 * n}, 0f3F800000; setp.ne.or.f32 p, ${2 * n + 2}, 0f3F800000, p;"
    products = " ".join(f"mul.f32 ${i}, ${i}, ${2 * n + i};" for i in range(n))
    return f"{{ .reg .pred p; {test} vote.sync.any.pred p, p, 0xffffffff; @!p bra UNCHANGED; {products} UNCHANGED: }}"


@gluon.constexpr_function
def _rescale_operands(n):
    return ",".join(["=f"] * n + [str(i) for i in range(n)] + ["f"] * n)


@gluon.jit
def rescale(acc, alpha, HEAD: gl.constexpr):
    """acc [ROWS, HEAD] times alpha [ROWS]; a warp whose factors are all 1 does nothing."""
    O: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, HEAD, 16])
    factor = gl.convert_layout(alpha, gl.SliceLayout(1, O))[:, None].broadcast_to(acc.shape)
    N: gl.constexpr = HEAD // 2  # numbers of acc in a thread
    return gl.inline_asm_elementwise(
        _rescale_ptx(N), _rescale_operands(N), [acc, factor], dtype=gl.float32, is_pure=False, pack=N
    )
