"""What flashmask_attention refuses, and in which words."""

import pytest
import torch

import flashmask_core as fm


def tensors(**changes):
    shapes = dict(q=(1, 8, 4, 16), k=(1, 8, 2, 16), v=(1, 8, 2, 16)) | changes
    return {name: torch.randn(shape) for name, shape in shapes.items()}


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(q=(8, 4, 16)), r"q: wanted \[B, Sq, H, D\], got \(8, 4, 16\)"),
        (dict(k=(1, 8, 16)), r"k: wanted \[B, Sk, Hk, D\], got \(1, 8, 16\)"),
        (dict(k=(2, 8, 2, 16)), r"k: wanted \[B=1, Sk, Hk, D=16\], got \(2, 8, 2, 16\)"),
        (dict(v=(1, 8, 2, 24)), r"v: wanted k's head dim D = 16, got 24; head dims that differ .* are not implemented"),
        (dict(v=(1, 9, 2, 16)), r"v: wanted k's shape .*\(1, 8, 2, 16\), got \(1, 9, 2, 16\)"),
        (dict(q=(1, 8, 6, 16), k=(1, 8, 4, 16), v=(1, 8, 4, 16)), "divides H = 6, got Hk = 4"),
        (dict(q=(1, 8, 4, 264), k=(1, 8, 2, 264), v=(1, 8, 2, 264)), "head dim D from 1 to 256, got 264"),
    ],
)
def test_wrong_shapes(changes, message):
    with pytest.raises(ValueError, match=message):
        fm.flashmask_attention(**tensors(**changes))


def test_wrong_types_and_dtypes():
    x = tensors()
    with pytest.raises(TypeError, match="q: wanted a torch tensor, got list"):
        fm.flashmask_attention([1], x["k"], x["v"])
    with pytest.raises(TypeError, match="q: wanted float16, bfloat16 or float32, got torch.int64"):
        fm.flashmask_attention(x["q"].long(), x["k"], x["v"])
    with pytest.raises(TypeError, match="fp8 is not implemented"):
        fm.flashmask_attention(*(t.to(torch.float8_e4m3fn) for t in x.values()))
    with pytest.raises(TypeError, match="k: wanted q's dtype torch.float32, got torch.float16"):
        fm.flashmask_attention(x["q"], x["k"].half(), x["v"])
    with pytest.raises(ValueError, match="k: wanted q's device cpu, got meta"):
        fm.flashmask_attention(x["q"], x["k"].to("meta"), x["v"])


@pytest.mark.parametrize(
    "mask, message",
    [
        (fm.mask("causal", 9), r"mask: wanted \(Sq, Sk\) = \(8, 8\) as q and k have, got \(9, 9\)"),
        (fm.ColumnMask.stack([fm.mask("causal", 8)] * 3, "batch"), "mask: wanted a batch of 1 or B = 1, got 3"),
        (fm.ColumnMask.stack([fm.mask("causal", 8)] * 3, "head"), "wanted 1, Hk = 2 or H = 4 mask heads, got Hm = 3"),
        (fm.mask("causal", 8).to("meta"), "mask: wanted q's device cpu, got meta; move it once"),
        ([], "at least one pass"),
    ],
    ids=["length", "batch", "heads", "device", "no pass"],
)
def test_masks_that_do_not_fit(mask, message):
    with pytest.raises(ValueError, match=message):
        fm.flashmask_attention(**tensors(), mask=mask)


def test_arguments_that_exclude_each_other():
    mask, x = fm.mask("causal", 8), tensors()
    indices, causal = mask.to_startend_row_indices()
    with pytest.raises(ValueError, match="mask and startend_row_indices were both given"):
        fm.flashmask_attention(**x, mask=mask, startend_row_indices=indices)
    with pytest.raises(ValueError, match="mask and causal=True were both given"):
        fm.flashmask_attention(**x, mask=mask, causal=True)
    with pytest.raises(TypeError, match="mask: wanted a ColumnMask or a list of them, got str"):
        fm.flashmask_attention(**x, mask="causal")
    with pytest.raises(ValueError, match="causal=False with C=1"):
        fm.flashmask_attention(**x, startend_row_indices=indices, causal=False)


def test_what_is_not_implemented_is_refused_by_name():
    x = tensors()
    with pytest.raises(ValueError, match="dropout: dropout is not implemented"):
        fm.flashmask_attention(**x, dropout=0.1)
    with pytest.raises(ValueError, match="softcap: logit soft-capping is not implemented"):
        fm.flashmask_attention(**x, softcap=30.0)
    with pytest.raises(TypeError, match="unexpected argument 'window'"):
        fm.flashmask_attention(**x, window=3)
    assert fm.flashmask_attention(**x, dropout=0.0).shape == x["q"].shape


def test_a_flag_is_a_bool():
    x = tensors()
    with pytest.raises(TypeError, match="causal: wanted True or False, got 'no'"):
        fm.flashmask_attention(**x, causal="no")
    with pytest.raises(TypeError, match="causal: wanted True or False, got 2; the same numbers mean another mask"):
        fm.ColumnMask.from_startend_row_indices(torch.zeros(1, 1, 8, 2, dtype=torch.int32), causal=2)


def test_a_window_is_part_of_the_mask():
    with pytest.raises(ValueError, match=r"window_size: a window belongs into the mask.*w = window \+ 1"):
        fm.flashmask_attention(**tensors(), window_size=4)
    with pytest.raises(ValueError, match="softcap: logit soft-capping"):
        fm.flashmask_attention(**tensors(), softcap=torch.ones(2))
    assert fm.flashmask_attention(**tensors(), window_size=None).shape == (1, 8, 4, 16)


def test_the_reference_names_a_mask_of_other_lengths():
    x = tensors()
    with pytest.raises(ValueError, match=r"mask: wanted \(Sq, Sk\) = \(8, 8\) as q and k have, got \(9, 9\)"):
        fm.attention_ref(*x.values(), fm.mask("causal", 9))


def test_scale_and_backend():
    x = tensors()
    with pytest.raises(ValueError, match="softmax_scale: wanted a finite number of at most 1e.30, got 1e.300"):
        fm.flashmask_attention(**x, softmax_scale=1e300)
    with pytest.raises(TypeError, match="softmax_scale: wanted a Python float or None, got complex"):
        fm.flashmask_attention(**x, softmax_scale=1j)
    with pytest.raises(ValueError, match="softmax_scale: wanted a finite number of at most 1e.30, got nan"):
        fm.flashmask_attention(**x, softmax_scale=float("nan"))
    with pytest.raises(TypeError, match="softmax_scale: wanted a Python float or None, got Tensor"):
        fm.flashmask_attention(**x, softmax_scale=torch.ones(()))
    with pytest.raises(ValueError, match="backend: wanted one of auto, hopper, triton, reference, got 'cuda'"):
        fm.flashmask_attention(**x, backend="cuda")


@pytest.mark.skipif(torch.cuda.is_available(), reason="about the interpreter")
def test_bfloat16_on_the_interpreter_is_refused_by_name():
    x = {name: t.bfloat16() for name, t in tensors().items()}
    with pytest.raises(ValueError, match="bfloat16 on the Triton interpreter gives wrong products"):
        fm.flashmask_attention(**x, backend="triton")
    assert fm.flashmask_attention(**x).dtype == torch.bfloat16  # auto is the reference on a CPU


def test_a_reference_that_would_not_fit_is_refused():
    q = torch.zeros(1, 1, 1, 8).expand(1, 70_000, 1, 8)
    with pytest.raises(ValueError, match="4,900,000,000 dense scores are more than"):
        fm.attention_ref(q, q, q)


def test_available_backends_say_why_not():
    rows = {row["name"]: row for row in fm.available_backends()}
    assert list(rows) == ["hopper", "triton", "reference"]
    assert rows["reference"]["available"] and all(row["available"] or row["reason"] for row in rows.values())
