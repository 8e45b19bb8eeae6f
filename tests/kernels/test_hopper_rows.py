"""The plain Triton kernels around the Hopper backward, which run in the interpreter too."""

import pytest
import torch

pytest.importorskip("triton")
from flashmask_core.kernels import hopper_rows, launch  # noqa: E402

pytestmark = pytest.mark.skipif(launch.interpreter_problem() is not None, reason=launch.interpreter_problem() or "")


@pytest.mark.parametrize("has_dlse", [True, False])
def test_terms_sum_to_delta_and_lse_and_the_sums_are_cleared(has_dlse, device):
    batch, seqlen, heads, head_dim, rows, pitch, scale = 2, 100, 3, 64, 64, 128, 0.3
    new = lambda *shape: torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape))).to(device)  # noqa: E731
    out, dout = new(batch, seqlen, heads, head_dim).half(), new(batch, seqlen, heads, head_dim).half().flip(1)
    lse, dlse = 50 * new(batch, heads, seqlen), new(batch, heads, seqlen).flip(2)
    lse[:, :, 7] = float("-inf")
    lse_terms, delta_terms = (
        torch.full((batch * heads, pitch, hopper_rows.STORED_TERMS), 7.0, device=device).half() for _ in range(2)
    )
    sums = torch.full((batch * heads * pitch, head_dim), 7.0, device=device)
    unit, largest = hopper_rows.LSE_UNIT[torch.float16], torch.finfo(torch.float16).max
    hopper_rows.row_terms_kernel[(batch * heads * pitch // rows,)](
        launch.describe(out, rows, head_dim), launch.describe(dout, rows, head_dim), lse, dlse if has_dlse else lse,
        lse_terms, delta_terms, sums, scale=scale, num_heads=heads, seqlen_q=seqlen, row_pitch=pitch,
        num_tiles=pitch // rows, HAS_DLSE=has_dlse, LARGEST=largest, LSE_UNIT=unit,
        STORED_TERMS=hopper_rows.STORED_TERMS, BLOCK_M=rows, HEAD=head_dim, num_warps=4,
    )  # fmt: skip
    told = lambda terms: terms.double().sum(-1).reshape(batch, heads, pitch)  # noqa: E731
    delta = (out.double() * dout.double()).sum(-1).transpose(1, 2)
    if has_dlse:
        delta -= torch.where(lse.isinf(), 0.0, dlse).double()
    torch.testing.assert_close(told(delta_terms)[..., :seqlen], -delta, rtol=1e-6, atol=1e-6)
    assert (told(delta_terms)[..., seqlen:] == 0).all()
    dead = torch.ones(batch, heads, pitch, dtype=torch.bool, device=device)
    dead[..., :seqlen] = lse.isinf()
    assert (told(lse_terms)[dead] == -3 * largest).all()
    torch.testing.assert_close(
        unit * told(lse_terms)[~dead], -(lse[~lse.isinf()] / scale).double(), rtol=1e-5, atol=unit * 1e-7
    )
    assert (lse_terms[..., :3] == 0).all() and (lse_terms[..., 6:] == 0).all()
    assert (delta_terms[..., 3:] == 0).all() and (sums == 0).all()


def test_dq_comes_back_in_order(device):
    batch, seqlen, heads, head_dim, rows, pitch = 2, 100, 3, 64, 64, 128
    right = torch.randn(batch, heads, pitch, head_dim).to(device)
    bits = torch.arange(pitch)
    stored = (bits & -8) | ((bits & 3) << 1) | ((bits >> 2) & 1)  # row r lies where `rotate_rows` puts it
    sums = torch.empty_like(right)
    sums[:, :, stored] = right
    dq = torch.full((batch, seqlen, heads, head_dim), 7.0, dtype=torch.float16, device=device)
    hopper_rows.convert_dq_kernel[(batch * heads * 2,)](
        sums.reshape(-1, head_dim), launch.describe(dq, rows, head_dim), scale=0.5, num_heads=heads, row_pitch=pitch,
        num_tiles=2, BLOCK_M=rows, HEAD=head_dim, num_warps=4,
    )  # fmt: skip
    assert torch.equal(dq, (0.5 * right[:, :, :seqlen]).half().transpose(1, 2))
