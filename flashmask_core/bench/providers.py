"""The engines a bench compares: ours, FlexAttention, SDPA with a dense mask, SDPA without one as a ceiling.

A provider says whether it can run at all and why not, what it needs in memory, and builds a `Prepared` call for a case.
Nothing here touches CUDA before `build`; only the worker process calls it. An engine of your own stands beside them if
the environment variable FLASHMASK_ENGINES names a module that has a list ENGINES of `Provider`s.
"""

from __future__ import annotations

import importlib
import os
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import torch
import torch.nn.functional as F

from ..masks.column_mask import ColumnMask
from .config import DEFAULT_PASSES, BenchCase
from .device import CudaDevice
from .estimate import ByteEstimate, estimate_bytes
from .flex_masks import flex_mask_mod


@dataclass
class Prepared:
    """A provider ready for one case.

    call: (q, k, v) -> out, in the provider's layout; backend: the kernel behind it; mask_bytes: what it keeps on the
    device for the mask, of which borrowed_bytes are the case's own vectors; build_mask: makes the mask's form anew, to be
    timed.
    """

    call: Callable
    backend: str
    mask_bytes: int = 0
    borrowed_bytes: int = 0
    build_mask: Callable[[], object] | None = None
    detail: str | None = None


@dataclass(frozen=True)
class Provider:
    """One engine. layout "bshd": q [B, S, H, D]; "bhsd": q [B, H, S, D]. computes "mask", "full" or "causal"."""

    name: str
    label: str
    layout: str
    computes: str
    style: str  # of its memory, see `estimate_bytes`
    _build: Callable[[BenchCase, ColumnMask], Prepared] = field(repr=False)
    _refuses: Callable[[BenchCase, ColumnMask], str | None] = field(default=lambda case, mask: None, repr=False)
    _known_fault: Callable[[BenchCase], str | None] = field(default=lambda case: None, repr=False)

    def refuses(self, case: BenchCase, mask: ColumnMask) -> str | None:
        """Why it cannot do this case, or None."""
        return self._refuses(case, mask)

    def estimate(self, case: BenchCase, mask: ColumnMask) -> ByteEstimate:
        case = replace(case, passes=DEFAULT_PASSES) if case.backward else case
        return estimate_bytes(case, self.style, mask.batch, mask.heads)

    def known_fault(self, case: BenchCase) -> str | None:
        """A fault of the engine itself that is known to give NaN in the gradients of such a case, or None."""
        return self._known_fault(case) if case.backward else None

    def build(self, case: BenchCase, mask: ColumnMask) -> Prepared:
        """Make it ready; `mask` is on the GPU. Raises whatever the engine raises."""
        return self._build(case, mask)


def _flashmask(backend: str | None, case: BenchCase, mask: ColumnMask) -> Prepared:
    from ..attention import flashmask_attention
    from ..kernels import operator

    backend = backend or next(name for name, reason in _our_backends().items() if reason is None)

    def build_mask():
        anew = ColumnMask(*mask.vectors, seqlen_q=mask.seqlen_q, causal=mask.causal, bounds=mask.bounds)
        engine = operator.choose_engine(hopper=backend == "hopper", deterministic=False)
        return operator.prepare(anew, case.head_dim, dtype, case.backward, engine)

    dtype = getattr(torch, case.dtype)
    metadata = {x.data_ptr(): x.nbytes for tensors in build_mask() for x in tensors}
    vectors = {x.data_ptr() for x in mask.vectors}
    mask_bytes = mask.nbytes + sum(size for at, size in metadata.items() if at not in vectors)
    call = lambda q, k, v: flashmask_attention(q, k, v, mask, backend=backend)  # noqa: E731
    return Prepared(call, backend, mask_bytes, mask.nbytes, build_mask)


OUR_BACKENDS = ("hopper", "triton")  # on a GPU "auto" takes the first one that is available


def _our_backends() -> dict[str, str | None]:
    """Each of OUR_BACKENDS -> None if it can run here, else why not."""
    from ..attention import available_backends

    found = {entry["name"]: None if entry["available"] else entry["reason"] for entry in available_backends()}
    return {name: found.get(name, "not part of this version") for name in OUR_BACKENDS}


def _our_refusal(backend: str | None, case: BenchCase, mask: ColumnMask) -> str | None:
    known = _our_backends()
    wanted = OUR_BACKENDS if backend is None else (backend,)
    if any(known[name] is None for name in wanted):
        return None
    return "; ".join(f"the {name} backend: {known[name]}" for name in wanted)


def fresh_compiler() -> None:
    """Set torch.compile up for one engine of a bench."""
    import torch._dynamo
    import torch._functorch.config

    torch._dynamo.reset()  # guards of earlier masks would be gone through at every call
    torch._dynamo.config.recompile_limit = 1000
    torch._functorch.config.donated_buffer = False  # else a backward that has run once cannot keep its graph later


def _flex(backend: str, case: BenchCase, mask: ColumnMask) -> Prepared:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    fresh_compiler()
    mask_mod, written = flex_mask_mod(mask, None if case.packed else case.mask, case.heads)
    batch = None if mask.batch == 1 else case.batch
    heads = None if mask.heads == 1 else case.heads

    def build_mask():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return create_block_mask(
                mask_mod, batch, heads, case.seqlen_q, case.seqlen_k, device=mask.device, BLOCK_SIZE=case.block,
                _compile=True,
            )  # fmt: skip

    block_mask = build_mask()
    compiled = torch.compile(flex_attention, dynamic=False)
    grouped = case.heads != case.kv_heads
    tables = (
        getattr(block_mask, full + name)
        for full in ("", "full_")
        for name in ("kv_num_blocks", "kv_indices", "q_num_blocks", "q_indices")
    )
    options = {"kernel_options": {"BACKEND": "FLASH"}} if backend == "flash" else {}
    return Prepared(
        lambda q, k, v: compiled(q, k, v, block_mask=block_mask, enable_gqa=grouped, **options),
        "FlashAttention-4 (CuTe)" if backend == "flash" else "triton (inductor)",
        mask_bytes=sum(t.numel() * t.element_size() for t in tables if t is not None),
        build_mask=build_mask,
        detail=f"torch.compile, default mode; mask_mod {written}; block {case.block}x{case.block}",
    )


_FA4_MASK = re.compile(r"full|causal|sliding_window\((\d+)\)")


def _fa4_refusal(case: BenchCase, mask: ColumnMask) -> str | None:
    if case.dtype == "float32":
        return "FlashAttention-4 wants float16 or bfloat16"
    try:
        import flash_attn.cute  # noqa: F401
    except ImportError as error:
        return f"FlashAttention-4 is not installed ({error})"
    return None


def _fa4_alone_refusal(case: BenchCase, mask: ColumnMask) -> str | None:
    if case.packed or _FA4_MASK.fullmatch(case.mask.replace(" ", "")) is None:
        return "FlashAttention-4 alone knows full, causal and sliding_window(w); with a mask it is flex_fa4"
    return _fa4_refusal(case, mask)


def _fa4(case: BenchCase, mask: ColumnMask) -> Prepared:
    from flash_attn.cute import flash_attn_func

    text = case.mask.replace(" ", "")
    window = _FA4_MASK.fullmatch(text)[1]
    options = dict(causal=text != "full")
    if window is not None:
        options["window_size"] = (int(window) - 1, 0)  # the query's own key is not counted

    def call(q, k, v):
        out = flash_attn_func(q, k, v, **options)
        return out[0] if isinstance(out, tuple) else out

    return Prepared(call, "CuTe", detail=", ".join(f"{name}={value}" for name, value in options.items()))


_SDPA_BACKENDS = {
    "efficient": "EFFICIENT_ATTENTION",
    "cudnn": "CUDNN_ATTENTION",
    "flash": "FLASH_ATTENTION",
    "math": "MATH",
}


def _sdpa(backend: str, computes: str, case: BenchCase, mask: ColumnMask) -> Prepared:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    pinned = getattr(SDPBackend, _SDPA_BACKENDS[backend])
    # The efficient backend has no grouped heads: whoever uses it repeats k and v.
    repeats = case.heads // case.kv_heads if backend == "efficient" else 1
    grouped = case.heads != case.kv_heads and repeats == 1

    def build_mask():
        visible = mask.to_dense()
        return visible if mask.heads in (1, case.heads) else visible.repeat_interleave(case.heads // mask.heads, 1)

    visible = build_mask() if computes == "mask" else None

    def call(q, k, v):
        if repeats > 1:
            k, v = k.repeat_interleave(repeats, dim=1), v.repeat_interleave(repeats, dim=1)
        with sdpa_kernel(pinned):
            return F.scaled_dot_product_attention(
                q, k, v, attn_mask=visible, is_causal=computes == "causal", enable_gqa=grouped
            )

    if visible is None:
        return Prepared(call, backend, detail="no mask tensor")
    return Prepared(
        call, backend, mask_bytes=visible.numel(), build_mask=build_mask, detail="dense bool mask, True where visible"
    )


def _cudnn_fault(case: BenchCase) -> str | None:
    if case.seqlen_k % 128 != 64:
        return None
    return (
        f"cuDNN's SDPA backward is known to give NaN in dq under a mask where S % 128 == 64 (S = {case.seqlen_k:,}; "
        "PyTorch issue 196678): the baseline's own fault, not the mask's"
    )


def _causal_refusal(case: BenchCase, mask: ColumnMask) -> str | None:
    if case.seqlen_q != case.seqlen_k:
        return f"is_causal aligns top-left, which is another mask where Sq = {case.seqlen_q} != Sk = {case.seqlen_k}"
    return None


def _all_providers() -> dict[str, Provider]:
    found = [Provider("flashmask", "FlashMask", "bshd", "mask", "vectors", partial(_flashmask, None),
                      partial(_our_refusal, None))]  # fmt: skip
    for backend in ("hopper", "triton"):
        found.append(
            Provider(f"flashmask_{backend}", f"FlashMask ({backend})", "bshd", "mask", "vectors",
                     partial(_flashmask, backend), partial(_our_refusal, backend))  # fmt: skip
        )
    found.append(Provider("flex", "FlexAttention (compiled)", "bhsd", "mask", "blocks", partial(_flex, "triton")))
    found.append(Provider("flex_fa4", "FlexAttention (FlashAttention-4)", "bhsd", "mask", "blocks",
                          partial(_flex, "flash"), _fa4_refusal))  # fmt: skip
    found.append(Provider("fa4", "FlashAttention-4", "bshd", "mask", "none", _fa4, _fa4_alone_refusal))
    for backend in ("efficient", "cudnn", "math"):
        found.append(
            Provider(f"sdpa_dense_{backend}", f"SDPA, dense mask ({backend})", "bhsd", "mask",
                     "scores" if backend == "math" else "dense", partial(_sdpa, backend, "mask"),
                     _known_fault=_cudnn_fault if backend == "cudnn" else lambda case: None)  # fmt: skip
        )
    for computes in ("full", "causal"):
        for backend in ("flash", "cudnn"):
            found.append(
                Provider(f"sdpa_{computes}_{backend}", f"SDPA {computes}, no mask ({backend})", "bhsd", computes,
                         "none", partial(_sdpa, backend, computes),
                         _causal_refusal if computes == "causal" else lambda case, mask: None)  # fmt: skip
            )
    return {provider.name: provider for provider in [*found, *getattr(_engine_module(), "ENGINES", ())]}


def _engine_module():
    """The module that FLASHMASK_ENGINES names, or None."""
    name = os.environ.get("FLASHMASK_ENGINES")
    return importlib.import_module(name) if name else None


def bench_device():
    """The device to measure on: CUDA's, unless the module of FLASHMASK_ENGINES brings one as DEVICE."""
    return getattr(_engine_module(), "DEVICE", CudaDevice)()


PROVIDERS: dict[str, Provider] = _all_providers()
"""Every provider by name. `flashmask` is ours with the backend that "auto" takes, named in the row."""

CEILINGS = ("sdpa_full_flash", "sdpa_full_cudnn", "sdpa_causal_flash", "sdpa_causal_cudnn")
DENSE = ("sdpa_dense_efficient", "sdpa_dense_cudnn")
DEFAULT_PROVIDERS = ("flashmask", "flex", *DENSE, *CEILINGS)


def check_provider_names(names) -> tuple[str, ...]:
    """The names as a tuple; ValueError naming those that do not exist and those that do."""
    unknown = [name for name in names if name not in PROVIDERS]
    if unknown:
        raise ValueError(f"providers: {', '.join(unknown)} unknown; there are {', '.join(PROVIDERS)}")
    return tuple(names)
