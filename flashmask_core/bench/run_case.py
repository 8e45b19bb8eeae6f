"""One case from its mask to its rows: prepare every provider, check it, then time them in turns.

Runs in the worker process only. Every provider is first built, compiled, compared with the reference and weighed; then
the providers take turns, `case.rounds` times in rotating order, so that all of them meet the same clocks and heat. What
one provider cannot do becomes its own skipped or failed rows, and the others go on.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import torch

from ..masks.column_mask import ColumnMask
from ..tiles.classify import classify_tiles
from .config import DTYPES, BenchCase
from .correctness import Reference, compare, make_reference, verdict
from .environment import utc_now
from .estimate import too_large
from .measure import Quartiles, host_ms, peak_bytes, tflops, times_ms
from .providers import PROVIDERS, Prepared, Provider
from .result import BenchRow, DeviceInfo, Errors


class CudaFault(Exception):
    """The CUDA context is broken: this process can do no more GPU work."""


class Inputs:
    """Random q, k, v (and dout) of a case, in the layouts that providers want; leaves that ask for gradients."""

    def __init__(self, case: BenchCase, device: str = "cuda"):
        generator = torch.Generator(device).manual_seed(case.seed)

        def tensor(seqlen: int, heads: int) -> torch.Tensor:
            shape = (case.batch, seqlen, heads, case.head_dim)
            return torch.randn(shape, device=device, dtype=DTYPES[case.dtype], generator=generator)

        self._bshd = [
            tensor(case.seqlen_q, case.heads), tensor(case.seqlen_k, case.kv_heads),
            tensor(case.seqlen_k, case.kv_heads), tensor(case.seqlen_q, case.heads),
        ]  # fmt: skip

    @cached_property
    def bshd(self) -> list[torch.Tensor]:
        """q [B, Sq, H, D], k and v [B, Sk, Hk, D], dout."""
        return _leaves(self._bshd)

    @cached_property
    def bhsd(self) -> list[torch.Tensor]:
        """The same numbers as [B, H, S, D], contiguous."""
        return _leaves([x.detach().transpose(1, 2).contiguous() for x in self._bshd])


def _leaves(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    q, k, v, dout = tensors
    return [q.requires_grad_(), k.requires_grad_(), v.requires_grad_(), dout]


@dataclass
class _Contender:
    """A provider that is ready, and what has been found out about it."""

    provider: Provider
    prepared: Prepared
    inputs: list[torch.Tensor]
    facts: dict = field(default_factory=dict)  # fields of both rows
    peak_memory_bytes: dict[str, int] = field(default_factory=dict)  # by direction
    errors: dict[str, dict[str, Errors]] = field(default_factory=dict)
    times: dict[str, list[float]] = field(default_factory=dict)

    def forward(self) -> torch.Tensor:
        return self.prepared.call(*self.inputs[:3])

    def inference(self) -> torch.Tensor:
        with torch.no_grad():
            return self.forward()

    def gradients(self, out: torch.Tensor, dout: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(out, self.inputs[:3], dout, retain_graph=True)

    def training(self) -> tuple[torch.Tensor, ...]:
        return self.gradients(self.forward(), self.inputs[3])


class CaseRun:
    """Measures one case.

    Args:
        case: what to measure. where: the device, for the rows.
        on_row: takes each BenchRow as soon as it is final.
        on_progress: takes (provider, message, fraction of the case) before each step; the provider named last is the
            one to blame if this process dies.
        excluded: providers not to touch.
    """

    def __init__(self, case: BenchCase, where: DeviceInfo, on_row: Callable, on_progress: Callable, excluded=(),
                 device: str = "cuda"):  # fmt: skip
        self.case, self.where, self.on_row, self.on_progress = case, where, on_row, on_progress
        self.device = device
        self.providers = [PROVIDERS[name] for name in case.providers if name not in excluded]
        self.excluded = frozenset(excluded)
        self.vectors_ms: float | None = None
        self.shares: dict[str, tuple[float, float]] = {}  # what is computed -> (rho, density)
        self.steps_done, self.steps = 0, 1

    def run(self) -> None:
        """Raises CudaFault for a broken context; everything else that goes wrong becomes rows."""
        self._step("mask", "building the mask")
        try:
            mask = self._mask()
            providers = self._runnable(mask)
            self.steps = 2 + (2 + self.case.rounds) * len(providers)
            inputs = Inputs(self.case, self.device) if providers else None
        except Exception as error:
            reason = str(error) if isinstance(error, ValueError) else _settle(error)
            for provider in self.providers:
                self._end(provider, "failed", reason)
            return
        if not providers:
            return
        reference, unchecked = self._reference(mask, inputs)
        contenders = [c for p in providers if (c := self._prepare(p, mask, inputs, reference, unchecked)) is not None]
        reference = None  # its dout is as large as q
        for contender in self._take_turns(contenders):
            self._rows(contender)

    # ---- steps ---------------------------------------------------------------------------------------------------

    def _step(self, provider: str, message: str) -> None:
        self.on_progress(provider, message, min(1.0, self.steps_done / self.steps))
        self.steps_done += 1

    def _mask(self) -> ColumnMask:
        case, built = self.case, []
        self.vectors_ms = host_ms(lambda: built.append(case.build_mask().to(self.device)))
        mask = built[0]
        if mask.batch not in (1, case.batch) or mask.heads not in (1, case.kv_heads, case.heads):
            raise ValueError(
                f"mask: has B = {mask.batch} and Hm = {mask.heads}; wanted B of 1 or {case.batch} and Hm of 1, "
                f"{case.kv_heads} or {case.heads}"
            )
        self.shares["mask"] = _shares(mask)
        return mask

    def _runnable(self, mask: ColumnMask) -> list[Provider]:
        """The providers that can do the case, told before memory is allocated; skipped rows for the others."""
        free_bytes = _free_bytes()
        found = []
        for provider in self.providers:
            refusal = provider.refuses(self.case, mask)
            refusal = refusal or too_large(self.case, provider.name, provider.estimate(self.case, mask), free_bytes)
            if refusal is None:
                found.append(provider)
            else:
                self._end(provider, "skipped", refusal)
        return found

    def _reference(self, mask: ColumnMask, inputs: Inputs) -> tuple[Reference | None, str]:
        """(reference, why there is none)."""
        if not self.case.check:
            return None, "not run: not asked for"
        if "reference" in self.excluded:
            return None, "not run: the reference ended an earlier worker"
        self._step("reference", "computing the fp32 reference")
        try:
            return make_reference(self.case, mask, *inputs.bshd[:3]), ""
        except Exception as error:
            return None, f"not run: the reference failed: {_settle(error)}"

    def _prepare(self, provider, mask, inputs: Inputs, reference, unchecked: str) -> _Contender | None:
        """Build, compile, check and weigh a provider; None, with its rows written, if it fails."""
        self._step(provider.name, f"{provider.label}: building and compiling")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                contender = _Contender(
                    provider, provider.build(self.case, mask), inputs.bshd if provider.layout == "bshd" else inputs.bhsd
                )
                self._compile(contender)
                self._step(provider.name, f"{provider.label}: checking against the reference")
                self._check(contender, reference, unchecked)
                self._weigh(contender, mask)
                return contender
            except Exception as error:
                contender = None  # its tensors would live on in this frame
                reason = _settle(error)
        notes = dict.fromkeys(str(w.message).splitlines()[0] for w in said if "Triggered internally" in str(w.message))
        self._end(provider, "failed", reason + (f" ({'; '.join(notes)[:300]})" if notes else ""))
        return None

    def _compile(self, contender: _Contender) -> None:
        calls = [contender.inference] + [contender.training] * ("backward" in self.case.passes)
        first = sum(map(host_ms, calls))
        later = sum(map(host_ms, calls))
        contender.facts["compile_ms"] = max(0.0, first - later)

    def _check(self, contender: _Contender, reference: Reference | None, unchecked: str) -> None:
        if contender.provider.computes != "mask":
            unchecked, reference = "not run: computes another mask", None
        if reference is None:
            contender.facts["check"] = unchecked
            return
        swap = contender.provider.layout == "bhsd"
        dout = reference.dout.transpose(1, 2).contiguous() if swap else reference.dout
        gradients = None
        if "backward" in self.case.passes:
            out = contender.forward()
            gradients = contender.gradients(out, dout)
        out = contender.inference()  # the call that is timed
        if swap:
            out = out.transpose(1, 2)
            gradients = gradients and [g.transpose(1, 2) for g in gradients]
        contender.errors = compare(reference, out, gradients)

    def _weigh(self, contender: _Contender, mask: ColumnMask) -> None:
        """Memory of the calls and of the mask, and what it takes to make the mask's form anew."""
        prepared, facts = contender.prepared, contender.facts
        facts["mask_bytes"] = prepared.mask_bytes
        if prepared.build_mask is not None:
            facts["mask_build_ms"] = min(host_ms(prepared.build_mask) for _ in range(3))
        peaks = {"forward": contender.inference, "backward": contender.training}
        for direction in self.case.passes:
            contender.peak_memory_bytes[direction] = facts["mask_bytes"] + peak_bytes(peaks[direction])

    def _take_turns(self, contenders: list[_Contender]) -> list[_Contender]:
        """Time the contenders in rotating order; those that fail drop out with their rows written."""
        case = self.case
        times = {"warmup_ms": case.warmup_ms / case.rounds, "repeat_ms": case.repeat_ms / case.rounds}
        for turn in range(case.rounds):
            shift = turn % max(1, len(contenders))
            for contender in contenders[shift:] + contenders[:shift]:
                self._step(contender.provider.name, f"{contender.provider.label}: timing, {turn + 1} of {case.rounds}")
                out = None
                try:
                    if "forward" in case.passes:
                        found = times_ms(contender.inference, **times)
                        contender.times.setdefault("forward", []).extend(found)
                    if "backward" in case.passes:
                        out = contender.forward()
                        found = times_ms(lambda: contender.gradients(out, contender.inputs[3]), **times)
                        contender.times.setdefault("backward", []).extend(found)
                except Exception as error:
                    contenders = [c for c in contenders if c is not contender]
                    self._end(contender.provider, "failed", _settle(error))
        return contenders

    # ---- rows ----------------------------------------------------------------------------------------------------

    def _end(self, provider: Provider, status: str, reason: str) -> None:
        for direction in self.case.passes:
            self.on_row(
                BenchRow.of_case(
                    self.case, provider.name, direction, status, reason=reason, computes=provider.computes,
                    vectors_ms=self.vectors_ms, where=self.where, date_utc=utc_now(),
                )
            )  # fmt: skip

    def _rows(self, contender: _Contender) -> None:
        provider, case = contender.provider, self.case
        if provider.computes not in self.shares:
            from ..masks.language import mask

            self.shares[provider.computes] = _shares(mask(provider.computes, case.seqlen_q, case.seqlen_k))
        rho, density = self.shares[provider.computes]
        for direction in case.passes:
            time = Quartiles.of(contender.times[direction])
            errors = contender.errors.get(direction)
            self.on_row(
                BenchRow.of_case(
                    case, provider.name, direction, backend=contender.prepared.backend, computes=provider.computes,
                    detail=contender.prepared.detail, median_ms=time.median_ms, lower_quartile_ms=time.lower_ms,
                    upper_quartile_ms=time.upper_ms, repetitions=time.repetitions,
                    tflops_rho=tflops(case, 1 - rho, direction, time.median_ms),
                    tflops_density=tflops(case, density, direction, time.median_ms), rho=rho, density=density,
                    peak_memory_bytes=contender.peak_memory_bytes[direction], vectors_ms=self.vectors_ms,
                    **{"check": verdict(errors) if errors else None, **contender.facts},
                    errors=errors, where=self.where, date_utc=utc_now(),
                )
            )  # fmt: skip


def _shares(mask: ColumnMask) -> tuple[float, float]:
    """(rho of 128x128 tiles by the exact rule, density), means over B and Hm."""
    pairs = mask.visible_pairs().double().mean().item()
    return classify_tiles(mask).rho.mean().item(), pairs / (mask.seqlen_q * mask.seqlen_k)


def _free_bytes() -> int:
    """What the allocator could still hand out."""
    _release()
    return torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()


def _release() -> None:
    gc.collect()
    torch.cuda.empty_cache()


def _settle(error: Exception) -> str:
    """A reason for a row from an exception, memory given back; CudaFault if the context did not survive it."""
    text = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__).strip()[:500]
    if isinstance(error, torch.OutOfMemoryError):
        reason = f"out of GPU memory: {text} Take a smaller N, batch or number of heads, or the forward pass alone."
    else:
        reason = f"{type(error).__name__}: {text}"
    error.__traceback__ = None  # its frames hold tensors
    try:
        torch.cuda.synchronize()
        _release()
    except Exception as broken:
        raise CudaFault(f"{reason} (after it: {str(broken).splitlines()[0][:200]})") from None
    return reason
