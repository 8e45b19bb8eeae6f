"""flashmask_attention: checks, choice of backend, the registered operator and its gradient."""

from __future__ import annotations

import functools
from numbers import Real

import torch
from torch import Tensor

from .masks.canonical import causal_triangle
from .masks.column_mask import ColumnMask
from .reference import attention_ref

BACKENDS = ("hopper", "triton", "reference")
_LARGEST_SCALE = 1e30  # scores of single precision overflow beyond
_REFUSED = {
    "dropout": "dropout is not implemented", "dropout_p": "dropout is not implemented",
    "softcap": "logit soft-capping is not implemented", "softmax_softcap": "logit soft-capping is not implemented",
    "window_size": "a window belongs into the mask, flashmask_core.mask('sliding_window(w)', ...) with w = window + 1",
}  # fmt: skip


def flashmask_attention(q, k, v, mask=None, *, startend_row_indices=None, causal: bool = False,
                        softmax_scale: float | None = None, return_lse: bool = False, deterministic: bool = False,
                        backend: str = "auto", **unsupported):  # fmt: skip
    """Exact attention under a column mask, in memory linear in the sequence length; differentiable, lse included.

    Args:
        q: [B, Sq, H, D]; k, v: [B, Sk, Hk, D] with H % Hk == 0 and D <= 256; fp16, bf16 or fp32, any strides (a
            tensor whose last stride is not 1, or whose strides are no multiples of 16 bytes, is copied first). In a
            torch.autocast region they are taken in its dtype.
        mask: a ColumnMask on q's device with batch 1 or B and 1, Hk or H heads, or a list of such passes whose visible
            pairs are disjoint (from `fit(...).passes`), merged by their lse. None: see the next two.
        startend_row_indices: Paddle's int32 tensor [1 or B, Hm, Sk, C], read together with `causal`.
        causal: without a mask, causal attention aligned bottom-right (True) or none (False).
        softmax_scale: None means D ** -0.5.
        return_lse: also return the log-sum-exp, float32 [B, H, Sq], natural log, -inf for a query that sees nothing.
        deterministic: ask for bitwise repeatable gradients. The "triton" backend always is; "hopper" then takes the
            portable kernels for its backward (it otherwise adds dq up in whatever order the tiles come).
        backend: "auto" takes the fastest available; "hopper" the kernels for compute capability 9.0 in fp16 and
            bf16; "triton" the portable kernels; "reference" dense torch operations, which is also what "auto" takes on
            a CPU.

    Returns:
        out [B, Sq, H, D] in q's dtype, or (out, lse). A query that sees nothing gets out = 0 and no gradient. There is
        no second derivative and no vmap rule.

    Raises:
        TypeError, ValueError: naming the argument, what was wanted and what was given. Dropout, soft-capping and fp8
        are refused by name.
    """
    for name in unsupported:
        reason = _REFUSED.get(name)
        if reason is None:
            raise TypeError(f"flashmask_attention got an unexpected argument {name!r}")
        given = unsupported[name]
        if given is not None and not (isinstance(given, (int, float)) and given == 0):
            raise ValueError(f"{name}: {reason}; leave it out or pass {'None' if name == 'window_size' else 0}")
    if not isinstance(causal, bool):
        raise TypeError(f"causal: wanted True or False, got {causal!r}")
    q, k, v = _autocast(q, k, v)
    _check_tensors(q, k, v)
    scale = _checked_scale(softmax_scale, q.shape[3])
    passes = _passes(q, k, mask, startend_row_indices, causal)
    backend = _choose_backend(backend, q)
    if backend == "reference":
        out, lse = attention_ref(q, k, v, passes, softmax_scale=scale)
        out = out.to(q.dtype)
    else:
        from .kernels import operator  # Triton is there on Linux alone; the reference does without

        options = dict(hopper=backend == "hopper", deterministic=deterministic)
        out, lse = _merge([operator.attend(q, k, v, one, scale, **options) for one in passes])
    return (out, lse) if return_lse else out


def available_backends() -> list[dict]:
    """What this machine can run: [{"name", "available", "reason"}], fastest first."""
    triton_reason = None
    try:
        from .kernels import launch

        if not torch.cuda.is_available() and not launch.interpreted():
            triton_reason = "no CUDA GPU (TRITON_INTERPRET=1, set before Python starts, runs the kernels on the CPU)"
        elif launch.interpreted():
            triton_reason = launch.interpreter_problem()
        elif torch.cuda.is_available() and torch.cuda.get_device_capability() < (8, 0):
            triton_reason = f"wanted compute capability 8.0 or newer, got {torch.cuda.get_device_capability()}"
    except ImportError as error:
        triton_reason = f"Triton cannot be imported: {error}"
    rows = (
        ("hopper", _hopper_reason(triton_reason)),
        ("triton", triton_reason),
        ("reference", None),
    )
    return [dict(name=name, available=reason is None, reason=reason or "") for name, reason in rows]


def _hopper_reason(triton_reason: str | None) -> str | None:
    if triton_reason is not None:
        return triton_reason
    if not torch.cuda.is_available():
        return "the interpreter runs the portable kernels alone"
    if not _is_hopper():
        return f"wanted compute capability 9.0 (H100, H200), got {torch.cuda.get_device_capability()}"
    return None


def _is_hopper(device: torch.device | None = None) -> bool:
    return torch.cuda.get_device_capability(device) == (9, 0)


def _autocast(*tensors):
    """In the dtype of the autocast region that this is called in, if it is in one, as scaled_dot_product_attention."""
    if not all(isinstance(x, Tensor) and x.is_floating_point() for x in tensors):
        return tensors
    device = tensors[0].device.type
    if not torch.is_autocast_enabled(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    return tuple(x if x.dtype == torch.float64 else x.to(dtype) for x in tensors)


def _check_tensors(q, k, v) -> None:
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: wanted a torch tensor, got {type(x).__name__}")
        wanted = "[B, Sq, H, D]" if name == "q" else "[B, Sk, Hk, D]"
        if x.ndim != 4:
            raise ValueError(f"{name}: wanted {wanted}, got {tuple(x.shape)}")
        if x.dtype not in (torch.float16, torch.bfloat16, torch.float32):
            fp8 = " (fp8 is not implemented)" if "float8" in str(x.dtype) else ""
            raise TypeError(f"{name}: wanted float16, bfloat16 or float32, got {x.dtype}{fp8}")
        if x.dtype != q.dtype:
            raise TypeError(f"{name}: wanted q's dtype {q.dtype}, got {x.dtype}")
        if x.device != q.device:
            raise ValueError(f"{name}: wanted q's device {q.device}, got {x.device}")
    batch, _, heads, head_dim = q.shape
    if k.shape[0] != batch or k.shape[3] != head_dim:
        raise ValueError(f"k: wanted [B={batch}, Sk, Hk, D={head_dim}], got {tuple(k.shape)}")
    if v.shape[:3] == k.shape[:3] and v.shape[3] != k.shape[3]:
        raise ValueError(
            f"v: wanted k's head dim D = {k.shape[3]}, got {v.shape[3]}; head dims that differ between q, k and v are not "
            "implemented, pad v with zeros and cut the output"
        )
    if v.shape != k.shape:
        raise ValueError(f"v: wanted k's shape [B, Sk, Hk, D] = {tuple(k.shape)}, got {tuple(v.shape)}")
    if not 1 <= head_dim <= 256:
        raise ValueError(f"q: wanted a head dim D from 1 to 256, got {head_dim}")
    if k.shape[2] == 0 or heads % k.shape[2]:
        raise ValueError(f"k: wanted a number of key heads Hk that divides H = {heads}, got Hk = {k.shape[2]}")


def _checked_scale(softmax_scale, head_dim: int) -> float:
    if softmax_scale is None:
        return head_dim**-0.5
    if isinstance(softmax_scale, (Tensor, bool)) or not isinstance(softmax_scale, Real):
        raise TypeError(f"softmax_scale: wanted a Python float or None, got {type(softmax_scale).__name__}")
    if not abs(softmax_scale) <= _LARGEST_SCALE:  # NaN too
        raise ValueError(f"softmax_scale: wanted a finite number of at most {_LARGEST_SCALE:g}, got {softmax_scale}")
    return float(softmax_scale)


def _passes(q, k, mask, startend_row_indices, causal) -> list[ColumnMask]:
    """The masks to run, checked against q and k."""
    if mask is not None:
        if startend_row_indices is not None or causal:
            extra = "startend_row_indices" if startend_row_indices is not None else "causal=True"
            raise ValueError(f"mask and {extra} were both given; a mask says all there is, so give one of the two")
        passes = [mask] if isinstance(mask, ColumnMask) else mask
        if not isinstance(passes, (list, tuple)) or not all(isinstance(one, ColumnMask) for one in passes):
            raise TypeError(f"mask: wanted a ColumnMask or a list of them, got {type(mask).__name__}")
        if not passes:
            raise ValueError("mask: wanted at least one pass, got an empty list")
    elif startend_row_indices is not None:
        passes = [_mask_of_indices(startend_row_indices, causal, q.shape[1])]
    else:
        passes = [_plain_mask(causal, q.shape[1], k.shape[1], q.device)]
    name = "mask" if startend_row_indices is None else "startend_row_indices"
    for one in passes:
        _check_mask(name, one, q, k)
    return list(passes)


def _check_mask(name: str, mask: ColumnMask, q, k) -> None:
    batch, seqlen_q, heads, _ = q.shape
    seqlen_k, kv_heads = k.shape[1], k.shape[2]
    if (mask.seqlen_q, mask.seqlen_k) != (seqlen_q, seqlen_k):
        raise ValueError(
            f"{name}: wanted (Sq, Sk) = ({seqlen_q}, {seqlen_k}) as q and k have, "
            f"got ({mask.seqlen_q}, {mask.seqlen_k})"
        )
    if mask.batch not in (1, batch):
        raise ValueError(f"{name}: wanted a batch of 1 or B = {batch}, got {mask.batch}")
    if mask.heads not in (1, kv_heads, heads):
        raise ValueError(f"{name}: wanted 1, Hk = {kv_heads} or H = {heads} mask heads, got Hm = {mask.heads}")
    if mask.device != q.device:
        raise ValueError(f"{name}: wanted q's device {q.device}, got {mask.device}; move it once with mask.to(q.device)")


def _mask_of_indices(indices, causal: bool, seqlen_q: int) -> ColumnMask:
    """The mask of a caller's tensor, kept beside the tensor so that every layer shares its tile metadata."""
    if torch.compiler.is_compiling() or not isinstance(indices, Tensor) or indices.is_inference():
        return ColumnMask.from_startend_row_indices(indices, causal=causal, seqlen_q=seqlen_q)
    key = (indices._version, causal, seqlen_q)
    kept = getattr(indices, "_flashmask", None)
    if kept is None or kept[0] != key:
        kept = (key, ColumnMask.from_startend_row_indices(indices, causal=causal, seqlen_q=seqlen_q))
        indices._flashmask = kept
    return kept[1]


def _plain_mask(causal: bool, seqlen_q: int, seqlen_k: int, device: torch.device) -> ColumnMask:
    """Causal, or everything visible. What is made while compiling or under a fake mode is of no use to a later call."""
    if torch.compiler.is_compiling() or type(torch.empty(0)) is not torch.Tensor:
        return _build_plain_mask(causal, seqlen_q, seqlen_k, device)
    return _kept_plain_mask(causal, seqlen_q, seqlen_k, device)


def _build_plain_mask(causal, seqlen_q, seqlen_k, device) -> ColumnMask:
    end = torch.full((1, 1, seqlen_k), seqlen_q, dtype=torch.int32, device=device)
    uts, ute = causal_triangle(seqlen_q, seqlen_k, device)
    if not causal:
        ute = torch.zeros_like(ute)
    return ColumnMask(end, end, uts[None, None], ute[None, None], seqlen_q=seqlen_q, causal=causal,
                      bounds=1 if causal else 2)  # fmt: skip


_kept_plain_mask = functools.lru_cache(maxsize=16)(_build_plain_mask)


def _choose_backend(backend: str, q) -> str:
    if backend not in ("auto", *BACKENDS):
        raise ValueError(f"backend: wanted one of auto, {', '.join(BACKENDS)}, got {backend!r}")
    hopper_runs = q.is_cuda and _is_hopper(q.device)
    if backend == "auto":
        if not q.is_cuda:
            return "reference"
        return "hopper" if hopper_runs and q.dtype != torch.float32 else "triton"
    if backend == "hopper":
        if not hopper_runs:
            raise ValueError(f"backend: hopper cannot run on {q.device}: {_reason('hopper') or 'q is not on the GPU'}")
        if q.dtype == torch.float32:
            raise TypeError("q: the hopper backend wants float16 or bfloat16, got torch.float32; backend='triton' takes it")
    if backend == "triton" and not q.is_cuda:
        from .kernels import launch

        if not launch.interpreted():
            raise ValueError(f"backend: triton cannot run on {q.device}: {_reason('triton') or 'q is not on the GPU'}")
        if launch.interpreter_problem():
            raise ValueError(f"backend: triton cannot run here: {launch.interpreter_problem()}")
        if q.dtype == torch.bfloat16:
            raise ValueError(
                "q: bfloat16 on the Triton interpreter gives wrong products without an error; use float16 or float32"
            )
    return backend


def _reason(name: str) -> str:
    return next(row["reason"] for row in available_backends() if row["name"] == name)


def _merge(parts):
    """One (out, lse) of the (out, lse) of passes with disjoint visible pairs."""
    if len(parts) == 1:
        return parts[0]
    lses = torch.stack([lse for _, lse in parts])  # [P, B, H, Sq]
    top = lses.detach().amax(0)
    top = torch.where(top == float("-inf"), 0.0, top)
    weights = torch.exp(lses - top)
    total = weights.sum(0)
    sees = total > 0
    total = torch.where(sees, total, 1.0)
    shares = (weights / total).transpose(2, 3)[..., None]  # [P, B, Sq, H, 1]
    out = sum(share * out.float() for share, (out, _) in zip(shares, parts)).to(parts[0][0].dtype)
    return out, torch.where(sees, top + torch.log(total), float("-inf"))
