"""flashmask_attention through the portable kernels: on a GPU as compiled, elsewhere through Triton's interpreter."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import flashmask_core as fm
from tests.attention_tools import check, inputs, random_mask, results

ON_GPU = torch.cuda.is_available()
DTYPES = [torch.float32, torch.float16] + ([torch.bfloat16] if ON_GPU else [])
dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: str(d).removeprefix("torch."))


BACKENDS = ["triton"] + (["hopper"] if ON_GPU and torch.cuda.get_device_capability() == (9, 0) else [])


@pytest.fixture(params=BACKENDS)
def attend(request):
    """attend(mask, ...) -> call(q, k, v) -> (out, lse), for every backend that runs here."""

    def with_mask(mask, **kwargs):
        def call(q, k, v):
            if request.param == "hopper" and q.dtype == torch.float32:
                pytest.skip("the hopper backend takes fp16 and bf16")
            return fm.flashmask_attention(q, k, v, mask, return_lse=True, backend=request.param, **kwargs)

        return call

    return with_mask


def assert_same(one: dict, two: dict):
    """Bit for bit but for dq, which the Hopper backward adds up in any order."""
    for name in one:
        tolerance = 2e-3 if name == "dq" and "hopper" in BACKENDS else 0
        torch.testing.assert_close(one[name], two[name], rtol=tolerance, atol=tolerance, msg=lambda m, n=name: f"{n}: {m}")


# (B, Sq, Sk, H, Hk, Bm, Hm, D, mask)
CASES = [
    (1, 63, 63, 2, 2, 1, 1, 64, "causal"),
    (2, 111, 111, 2, 1, 1, 1, 40, "causal1"),
    (1, 127, 65, 2, 2, 1, 2, 64, "causal2"),
    (2, 65, 97, 2, 1, 2, 2, 16, "two"),
    (1, 70, 90, 4, 2, 1, 4, 33, "four"),
    (1, 1, 128, 2, 1, 1, 1, 64, "causal"),
    (1, 5, 2, 1, 1, 1, 1, 24, "causal"),
    (1, 1, 1, 1, 1, 1, 1, 8, "full"),
    (1, 70, 70, 1, 1, 1, 1, 96, "four"),
    (1, 40, 40, 1, 1, 1, 1, 256, "causal1"),
]
LARGE_CASES = [
    (2, 1000, 1000, 4, 2, 2, 4, 128, "four"),
    (2, 1025, 1025, 4, 4, 1, 1, 64, "causal"),
    (1, 2048, 2048, 8, 1, 1, 8, 128, "causal2"),
    (1, 513, 1500, 4, 2, 1, 2, 192, "two"),
    (1, 1500, 513, 4, 2, 1, 1, 256, "causal1"),
    (2, 700, 900, 4, 1, 2, 4, 256, "four"),
    (1, 900, 700, 6, 2, 1, 2, 160, "causal2"),
    (3, 777, 777, 6, 3, 3, 6, 80, "two"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(map(str, c)))
@dtypes
def test_out_lse_and_gradients_match_the_reference(case, dtype, device, poisoned, attend):
    batch, seqlen_q, seqlen_k, heads, kv_heads, mask_batch, mask_heads, head_dim, kind = case
    mask = random_mask(kind, mask_batch, mask_heads, seqlen_q, seqlen_k, device)
    q, k, v, dout = inputs(batch, seqlen_q, seqlen_k, heads, kv_heads, head_dim, dtype, device)
    dlse = torch.randn(batch, heads, seqlen_q, device=device)
    check(results(attend(mask), q, k, v, dout, dlse), q, k, v, dout, mask, dlse)


@pytest.mark.gpu
@pytest.mark.parametrize("case", LARGE_CASES, ids=lambda c: "-".join(map(str, c)))
@dtypes
def test_large_cases_match_the_reference(case, dtype, device, poisoned, attend):
    test_out_lse_and_gradients_match_the_reference(case, dtype, device, poisoned, attend)


@pytest.mark.parametrize("seqlen", [8, 130])
def test_queries_that_see_only_themselves_return_v(seqlen, device, attend):
    indices = torch.arange(1, seqlen + 1, dtype=torch.int32, device=device)[None, None, :, None]
    q, k, v, dout = inputs(1, seqlen, seqlen, 2, 2, 32, torch.float16, device)
    mask = fm.ColumnMask.from_startend_row_indices(indices, causal=True)
    got = results(attend(mask), q, k, v, dout)
    assert torch.equal(got["out"], v)
    assert torch.equal(got["dv"], dout)
    out = fm.flashmask_attention(q, k, v, startend_row_indices=indices, causal=True, backend="triton")
    assert torch.equal(out, v)


@pytest.mark.parametrize("seqlen, empty", [(4, slice(1, 2)), (64, slice(10, 21))], ids=["4", "64"])
def test_empty_rows_are_zero_and_leave_no_trace_in_the_gradients(seqlen, empty, device, attend):
    visible = torch.ones(seqlen, seqlen, dtype=torch.bool).tril()
    visible[empty] = False
    mask = fm.ColumnMask.from_dense(visible).to(device)
    q, k, v, dout = inputs(1, seqlen, seqlen, 1, 1, 16, torch.float32, device)
    got = results(attend(mask), q, k, v, dout)
    assert (got["out"][:, empty] == 0).all() and (got["dq"][:, empty] == 0).all()
    assert (got["lse"][..., empty] == float("-inf")).all()
    rest = torch.ones(seqlen, dtype=torch.bool)
    rest[empty] = False
    without = fm.ColumnMask.from_dense(visible[rest]).to(device)
    shorter = results(attend(without), q[:, rest].detach().requires_grad_(), k, v, dout[:, rest])
    for name in ("dk", "dv"):
        assert got[name].isfinite().all()
        torch.testing.assert_close(got[name], shorter[name], rtol=1e-5, atol=1e-5)


def test_keys_hidden_from_everybody_get_exactly_no_gradient(device, attend):
    mask = fm.mask("causal & ~((k >= 128) & (k < 256))", 512).to(device)
    assert mask.visible_pairs().item() == 90_304
    assert fm.classify_tiles(mask).counts[0, 0].tolist()[0] == 16 - 7
    q, k, v, dout = inputs(1, 512, 512, 1, 1, 16, torch.float16, device)
    got = results(attend(mask), q, k, v, dout)
    assert (got["dk"][:, 128:256] == 0).all() and (got["dv"][:, 128:256] == 0).all()
    check(got, q, k, v, dout, mask)


def test_a_window_sends_dout_of_one_row_to_its_own_keys(device, attend):
    mask = fm.mask("sliding_window(37)", 300).to(device)
    assert mask.visible_pairs().item() == 10_434
    assert 25 - fm.classify_tiles(mask, 64, 64).counts[0, 0, 0].item() == 9
    q, k, v, dout = inputs(1, 300, 300, 1, 1, 16, torch.float16, device)
    only = torch.zeros_like(dout)
    only[:, 137] = dout[:, 137]
    dv = results(attend(mask), q, k, v, only)["dv"]
    assert (dv[:, 100] == 0).all() and (dv[:, 101:138] != 0).any(-1).all() and (dv[:, 138:] == 0).all()


@pytest.mark.parametrize("head_dim", [64, 128])
def test_causal_as_a_flag_and_as_vectors_is_the_same(head_dim, device, attend):
    n = 96
    q, k, v, dout = inputs(1, n, n, 1, 1, head_dim, torch.float16, device)
    vectors = torch.stack([torch.full((n,), n), torch.arange(n)], -1).to(torch.int32)[None, None].to(device)
    as_vectors = fm.ColumnMask.from_startend_row_indices(vectors, causal=False)
    one = results(attend(fm.mask("causal", n).to(device)), q, k, v, dout)
    two = results(attend(as_vectors), q, k, v, dout)
    for name in one:
        torch.testing.assert_close(two[name], one[name], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("heads, kv_heads", [(6, 2), (8, 2), (14, 1)], ids=["6-2", "8-2", "14-1"])
def test_grouped_heads(heads, kv_heads, device, attend):
    n = 217 if ON_GPU else 47
    mask = random_mask("causal1", 1, 1, n, n, device)
    q, k, v, dout = inputs(1, n, n, heads, kv_heads, 16, torch.float16, device)
    check(results(attend(mask), q, k, v, dout), q, k, v, dout, mask)


def test_fused_projection_views_equal_contiguous_copies(device, attend):
    batch, n, heads, d = 2, 333 if ON_GPU else 65, 4 if ON_GPU else 2, 16
    qkv = torch.randn(batch, n, 3, heads, d).half().to(device)
    mask = fm.mask("causal", n).to(device)
    dout = torch.randn(batch, n, heads, d).half().to(device)
    views = [x.detach().requires_grad_() for x in qkv.unbind(2)]
    copies = [x.detach().contiguous().requires_grad_() for x in qkv.unbind(2)]
    assert not views[0].is_contiguous()
    assert_same(results(attend(mask), *views, dout), results(attend(mask), *copies, dout))


@pytest.mark.parametrize("layout", ["broadcast", "transposed", "last stride 2"])
def test_any_stride_of_dout(layout, device, attend):
    n, d = 40, 16
    q, k, v, _ = inputs(1, n, n, 2, 2, d, torch.float16, device)
    dout = {
        "broadcast": lambda: torch.ones((), dtype=q.dtype, device=device).expand(1, n, 2, d),
        "transposed": lambda: torch.randn(1, 2, d, n, dtype=q.dtype, device=device).permute(0, 3, 1, 2),
        "last stride 2": lambda: torch.randn(1, n, 2, 2 * d, dtype=q.dtype, device=device)[..., ::2],
    }[layout]()
    mask = fm.mask("sliding_window(20)", n).to(device)
    assert_same(results(attend(mask), q, k, v, dout), results(attend(mask), q, k, v, dout.contiguous()))


@pytest.mark.parametrize("scale", [0.3, -0.5, 0.0])
def test_softmax_scale(scale, device, attend):
    mask = random_mask("two", 1, 1, 50, 50, device)
    q, k, v, dout = inputs(1, 50, 50, 1, 1, 16, torch.float16, device)
    check(results(attend(mask, softmax_scale=scale), q, k, v, dout), q, k, v, dout, mask, scale=scale)


def test_single_precision_uses_no_tf32(device, attend):
    q, k, v, dout = inputs(1, 128, 128, 1, 1, 32, torch.float32, device)
    got = results(attend(fm.mask("causal", 128).to(device)), q, k, v, dout)
    want = results(
        lambda q, k, v: fm.attention_ref(q, k, v, fm.mask("causal", 128).to(device), dtype=torch.float64), q, k, v, dout
    )
    for name in ("dq", "dk", "dv"):
        assert (got[name] - want[name]).abs().max().item() < 1e-4


def test_documents_do_not_depend_on_memory_behind_the_vectors(device, poisoned, attend):
    n = 1000 if ON_GPU else 130
    text = "document(333, 333, 334)" if ON_GPU else "document(43, 43, 44)"
    mask = fm.mask(text, n)
    behind = torch.full((4, 1, 1, n + 77), -12345, dtype=torch.int32)
    behind[..., :n] = torch.stack(mask.vectors)
    views = [x[..., :n].to(device) if device.type == "cuda" else x[..., :n] for x in behind]
    odd = fm.ColumnMask(*views, seqlen_q=n, causal=mask.causal, bounds=mask.bounds)
    q, k, v, dout = inputs(1, n, n, 1, 1, 16, torch.float16, device)
    one, two = (results(attend(x, deterministic=True), q, k, v, dout) for x in (odd, mask.to(device)))
    for name in one:
        assert torch.equal(one[name], two[name]), name


def test_gradients_are_bitwise_repeatable(device, attend):
    mask = random_mask("four", 1, 1, 90, 90, device)
    q, k, v, dout = inputs(1, 90, 90, 2, 1, 16, torch.float16, device)
    one, two = (results(attend(mask, deterministic=True), q, k, v, dout) for _ in range(2))
    for name in one:
        assert torch.equal(one[name], two[name]), name


@pytest.mark.parametrize("shape", [(1, 0, 4), (1, 4, 0), (0, 4, 4)], ids=["no queries", "no keys", "no batch"])
def test_empty_inputs(shape, device):
    batch, seqlen_q, seqlen_k = shape
    q = torch.randn(batch, seqlen_q, 2, 16, device=device, requires_grad=True)
    k = torch.randn(batch, seqlen_k, 2, 16, device=device, requires_grad=True)
    out, lse = fm.flashmask_attention(q, k, k, return_lse=True, backend="triton")
    assert out.shape == q.shape and lse.shape == (batch, 2, seqlen_q)
    assert (out == 0).all() and (lse == float("-inf")).all()
    out.sum().backward()
    assert (q.grad == 0).all() and (k.grad == 0).all()


@pytest.mark.parametrize("backend", ["triton", "reference"])
def test_passes_are_merged_by_their_lse(backend, device):
    n = 20
    g = torch.Generator().manual_seed(1)
    visible = torch.rand(n, n, generator=g) < 0.5
    visible[7] = False
    passes = [one.to(device) for one in fm.fit(visible).passes]
    assert len(passes) > 1
    q, k, v, dout = inputs(1, n, n, 2, 1, 16, torch.float32, device)
    dlse = torch.randn(1, 2, n, device=device)
    call = lambda q, k, v: fm.flashmask_attention(q, k, v, passes, return_lse=True, backend=backend)  # noqa: E731
    check(results(call, q, k, v, dout, dlse), q, k, v, dout, passes, dlse)


def test_plain_and_causal_without_a_mask(device):
    q, k, v, dout = inputs(1, 33, 40, 2, 1, 16, torch.float32, device)
    for causal in (False, True):
        mask = fm.mask("causal", 33, 40).to(device) if causal else None
        call = lambda q, k, v: fm.flashmask_attention(q, k, v, causal=causal, return_lse=True, backend="triton")  # noqa: B023, E731
        check(results(call, q, k, v, dout), q, k, v, dout, mask)


def test_indices_keep_their_metadata_until_they_change(device):
    indices = torch.full((1, 1, 40, 1), 40, dtype=torch.int32, device=device)
    q, k, v, _ = inputs(1, 40, 40, 1, 1, 16, torch.float32, device)
    call = lambda: fm.flashmask_attention(q, k, v, startend_row_indices=indices, causal=True, backend="triton")  # noqa: E731
    before = call()
    assert torch.equal(before, call())
    indices.copy_(torch.arange(1, 41, dtype=torch.int32)[None, None, :, None])
    assert torch.equal(call(), v)


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
def test_compiles_without_a_graph_break(warm, device, attend):
    n = 64
    mask = fm.mask("causal & document(20, 44)", n).to(device)
    q, k, v, dout = inputs(1, n, n, 2, 1, 16, torch.float16, device)
    want = results(attend(mask if warm else fm.mask("causal & document(20, 44)", n).to(device)), q, k, v, dout)
    backend = "inductor" if ON_GPU else "aot_eager"
    compiled = torch.compile(attend(mask), fullgraph=True, backend=backend)
    assert_same(results(compiled, q, k, v, dout), want)


def test_a_mask_first_used_in_inference_mode_can_be_trained_with(device):
    q, k, v, dout = inputs(1, 20, 20, 1, 1, 16, torch.float32, device)
    with torch.inference_mode():
        mask = fm.ColumnMask.from_startend_row_indices(
            torch.arange(1, 21, dtype=torch.int32, device=device)[None, None, :, None], causal=True
        )
        fm.flashmask_attention(q, k, v, mask, backend="triton")
        fm.flashmask_attention(q, k, v, causal=True, backend="triton")
    for masks in (mask, None):
        call = lambda q, k, v: fm.flashmask_attention(  # noqa: E731
            q, k, v, masks, causal=masks is None, return_lse=True, backend="triton"  # noqa: B023
        )
        results(call, q, k, v, dout)


@pytest.mark.gpu
def test_offsets_beyond_32_bits(device, attend):
    """A batch view and a head view whose strides reach past 2 ** 31 elements."""
    n, d = 256, 64
    mask = fm.mask("causal", n).to(device)
    far = torch.empty(2**31 + 2 * n * d, dtype=torch.float16, device=device)
    data = torch.randn(2, n, 1, d, dtype=torch.float16, device=device)
    for shape_and_stride in (((2, n, 1, d), (2**31, d, d, 1)), ((1, n, 2, d), (1, d, 2**31, 1))):
        x = far.as_strided(*shape_and_stride)
        x.copy_(data if shape_and_stride[0][0] == 2 else data.permute(2, 1, 0, 3))
        near = x.contiguous()
        one, two = attend(mask)(x, x, x), attend(mask)(near, near, near)
        assert torch.equal(one[0], two[0]) and torch.equal(one[1], two[1])


@pytest.mark.gpu
def test_a_long_window(device, attend):
    n = 16_500
    mask = fm.mask("sliding_window(512)", n).to(device)
    q, k, v, dout = inputs(1, n, n, 1, 1, 128, torch.bfloat16, device)
    check(results(attend(mask), q, k, v, dout), q, k, v, dout, mask)


def test_a_call_under_a_fake_mode_leaves_nothing_behind():
    def call():
        q = torch.randn(1, 31, 2, 8)
        return fm.flashmask_attention(q, q, q, causal=True)

    with FakeTensorMode():
        assert call().shape == (1, 31, 2, 8)
    assert torch.isfinite(call()).all()
