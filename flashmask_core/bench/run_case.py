"""One case from its mask to its rows: try every provider in a process of its own, check it, then time them in turns.

Runs in the worker process only. Every provider is first tried apart (see `apart`), where its memory is measured; those
that came through are built here, compared with the reference, and then take turns, `case.rounds` times in rotating
order, so that all of them meet the same clocks and heat. What one provider cannot do becomes its own skipped or failed
rows, and the others go on.
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from ..masks.column_mask import ColumnMask
from ..tiles.classify import classify_tiles
from .apart import APART_LIMIT, Calls, Inputs, Tried, fault_of, reason_of, refusal, try_apart, with_fault
from .config import BenchCase
from .correctness import Reference, compare, make_reference, verdict
from .environment import utc_now
from .estimate import dense_mask_bytes, vector_bytes
from .measure import Quartiles, host_ms, tflops, times_ms
from .peaks import doubt
from .providers import PROVIDERS, Provider
from .result import BenchRow, DeviceInfo, Errors


class CudaFault(Exception):
    """The CUDA context is broken: this process can do no more GPU work. best: a row that was found before, or None."""

    best = None


@dataclass
class _Contender:
    """A provider that is ready, and what has been found out about it."""

    provider: Provider
    calls: Calls
    tried: Tried
    check: str = ""
    errors: dict[str, dict[str, Errors]] = field(default_factory=dict)
    times: dict[str, list[float]] = field(default_factory=dict)


class CaseRun:
    """Measures one case.

    Args:
        case: what to measure. where: the device, for the rows.
        on_row: takes each BenchRow as soon as it is final.
        on_progress: takes (provider, message, fraction of the case) before each step; the provider named last is the
            one to blame if this process dies.
        device: see `device`.
        excluded: providers not to touch.
        try_provider: (case, provider name) -> Tried.
    """

    def __init__(self, case: BenchCase, where: DeviceInfo, on_row: Callable, on_progress: Callable, device, excluded=(),
                 try_provider: Callable[[BenchCase, str], Tried] | None = None):  # fmt: skip
        self.case, self.where, self.on_row, self.on_progress = case, where, on_row, on_progress
        self.device = device
        self.providers = [PROVIDERS[name] for name in case.providers if name not in excluded]
        self.excluded = frozenset(excluded)
        self.try_provider = try_provider or (lambda case, name: try_apart(case, name, APART_LIMIT * case.time_limit_s))
        self.facts: dict = {}  # fields of every row of the case
        self.inputs: dict[str, list[torch.Tensor]] = {}  # by layout
        self.shares: dict[str, tuple[float, float]] = {}  # what is computed -> (rho, density)
        self.steps_done, self.steps = 0, 1

    def run(self) -> None:
        """Raises CudaFault for a broken context; everything else that goes wrong becomes rows."""
        self._step("mask", "building the mask")
        try:
            mask = self._mask()
            providers = self._runnable(mask)
        except Exception as error:
            reason = str(error) if isinstance(error, ValueError) else self._settle(error)
            for provider in self.providers:
                self._end(provider, "failed", reason)
            return
        self.steps = 2 + (3 + self.case.rounds) * len(providers)
        tried = [(p, t) for p in providers if (t := self._try(p)) is not None]
        if not tried:
            return
        reference, unchecked = self._reference(mask)
        ready = [c for p, t in tried if (c := self._prepare(p, t, mask, reference, unchecked)) is not None]
        reference = None  # its dout is as large as q
        for contender in self._take_turns(ready):
            self._rows(contender)

    # ---- steps ---------------------------------------------------------------------------------------------------

    def _step(self, provider: str, message: str) -> None:
        self.on_progress(provider, message, min(1.0, self.steps_done / self.steps))
        self.steps_done += 1

    def _mask(self) -> ColumnMask:
        """The mask on the device; what every row of the case says about it."""
        case, built = self.case, []
        vectors_ms = host_ms(self.device, lambda: built.append(case.build_mask().to(self.device.name)))
        mask = built[0]
        self.facts = {
            "vectors_ms": vectors_ms,
            "vector_bytes": vector_bytes(case, mask.batch, mask.heads),
            "dense_mask_bytes": dense_mask_bytes(case, mask.batch, mask.heads),
        }
        if mask.batch not in (1, case.batch) or mask.heads not in (1, case.kv_heads, case.heads):
            raise ValueError(
                f"mask: has B = {mask.batch} and Hm = {mask.heads}; wanted B of 1 or {case.batch} and Hm of 1, "
                f"{case.kv_heads} or {case.heads}"
            )
        self.shares["mask"] = self._shares(mask)
        return mask

    def _runnable(self, mask: ColumnMask) -> list[Provider]:
        """The providers that can do the case, told before memory is allocated; skipped rows for the others."""
        free_bytes, found = self.device.free_bytes(), []
        for provider in self.providers:
            reason = refusal(self.case, mask, provider, free_bytes)
            if reason is None:
                found.append(provider)
            else:
                self._end(provider, "skipped", reason)
        return found

    def _try(self, provider: Provider) -> Tried | None:
        """How it went in a process of its own; None, with its rows written, if it did not come through."""
        self._step(provider.name, f"{provider.label}: compiling and weighing, in a process of its own")
        tried = self.try_provider(self.case, provider.name)
        if tried.status == "ok":
            return tried
        self._end(provider, tried.status, tried.reason)
        return None

    def _reference(self, mask: ColumnMask) -> tuple[Reference | None, str]:
        """(reference, why there is none)."""
        if not self.case.check:
            return None, "not run: not asked for"
        if "reference" in self.excluded:
            return None, "not run: the reference ended an earlier worker"
        self._step("reference", "computing the fp32 reference")
        try:
            return make_reference(self.case, mask, *self._inputs("bshd")[:3]), ""
        except Exception as error:
            return None, f"not run: the reference failed: {self._settle(error)}"

    def _inputs(self, layout: str) -> list[torch.Tensor]:
        if layout not in self.inputs:
            self.inputs[layout] = Inputs(self.case, self.device.name, layout).tensors
        return self.inputs[layout]

    def _prepare(self, provider, tried: Tried, mask: ColumnMask, reference, unchecked: str) -> _Contender | None:
        """Build, warm up and check a provider; None, with its rows written, if it fails."""
        self._step(provider.name, f"{provider.label}: building")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                calls = Calls(provider.build(self.case, mask), self._inputs(provider.layout))
                for direction in self.case.passes:
                    calls.whole(direction)()
                self.device.synchronize()
                self._step(provider.name, f"{provider.label}: checking against the reference")
                contender = _Contender(provider, calls, tried)
                self._check(contender, reference, unchecked)
                return contender
            except Exception as error:
                contender = calls = None  # their tensors would live on in this frame
                reason = self._settle(error)
        notes = dict.fromkeys(str(w.message).splitlines()[0] for w in said if "Triggered internally" in str(w.message))
        self._end(provider, "failed", reason + (f" ({'; '.join(notes)[:300]})" if notes else ""))
        return None

    def _check(self, contender: _Contender, reference: Reference | None, unchecked: str) -> None:
        if contender.provider.computes != "mask":
            unchecked, reference = "not run: computes another mask", None
        contender.check = unchecked
        if reference is None:
            return
        calls, swap = contender.calls, contender.provider.layout == "bhsd"
        dout = reference.dout.transpose(1, 2).contiguous() if swap else reference.dout
        gradients = None
        if self.case.backward:
            gradients = calls.gradients(calls.forward(), dout)
        out = calls.inference()  # the call that is timed
        self.device.synchronize()
        if swap:
            out = out.transpose(1, 2)
            gradients = gradients and [g.transpose(1, 2) for g in gradients]
        contender.errors = compare(reference, out, gradients)

    def _take_turns(self, contenders: list[_Contender]) -> list[_Contender]:
        """Time the contenders in rotating order; those that fail drop out with their rows written."""
        for turn in range(self.case.rounds):
            shift = turn % max(1, len(contenders))
            for contender in contenders[shift:] + contenders[:shift]:
                label, rounds = contender.provider.label, self.case.rounds
                self._step(contender.provider.name, f"{label}: timing, turn {turn + 1} of {rounds}")
                try:
                    self._turn(contender)
                except Exception as error:
                    contenders = [c for c in contenders if c is not contender]
                    provider = contender.provider
                    contender = None
                    self._end(provider, "failed", self._settle(error))
        return contenders

    def _turn(self, contender: _Contender) -> None:
        case, calls, out = self.case, contender.calls, None
        for direction in case.passes:
            if direction == "backward":
                out = calls.forward()
                call = lambda: calls.gradients(out, calls.inputs[3])  # noqa: B023, E731
            else:
                call = calls.whole(direction)
            known = contender.times.setdefault(direction, [])
            about_ms = statistics.median(known) if known else None
            warmup_ms, repeat_ms = case.warmup_ms / case.rounds, case.repeat_ms / case.rounds
            known.extend(times_ms(self.device, call, warmup_ms, repeat_ms, about_ms))

    # ---- rows ----------------------------------------------------------------------------------------------------

    def _end(self, provider: Provider, status: str, reason: str) -> None:
        for direction in self.case.passes:
            self.on_row(
                BenchRow.of_case(
                    self.case, provider.name, direction, status, reason=reason, computes=provider.computes,
                    **self.facts, where=self.where, date_utc=utc_now(),
                )
            )  # fmt: skip

    def _rows(self, contender: _Contender) -> None:
        provider, case, tried = contender.provider, self.case, contender.tried
        if provider.computes not in self.shares:
            from ..masks.language import mask

            self.shares[provider.computes] = self._shares(mask(provider.computes, case.seqlen_q, case.seqlen_k))
        rho, density = self.shares[provider.computes]
        for direction in case.passes:
            time = Quartiles.of(contender.times[direction])
            errors = contender.errors.get(direction)
            rates = {
                "tflops_rho": tflops(case, 1 - rho, direction, time.median_ms),
                "tflops_density": tflops(case, density, direction, time.median_ms),
            }
            peak = tried.peak_memory_bytes.get(direction)
            warning = doubt(self.where, case.dtype, **rates)
            if peak is not None and peak <= 0:  # an output is never nothing: this was not measured
                peak, warning = None, warning or "no memory was seen to be allocated, so its peak is not known"
            self.on_row(
                BenchRow.of_case(
                    case, provider.name, direction, backend=contender.calls.prepared.backend,
                    computes=provider.computes, detail=contender.calls.prepared.detail, median_ms=time.median_ms,
                    lower_quartile_ms=time.lower_ms, upper_quartile_ms=time.upper_ms, repetitions=time.repetitions,
                    **rates, rho=rho, density=density, peak_memory_bytes=peak, mask_bytes=tried.mask_bytes or None,
                    mask_build_ms=tried.mask_build_ms, compile_ms=tried.compile_ms,
                    check=self._verdict(provider, errors) if errors else contender.check, warning=warning,
                    errors=errors, **self.facts, where=self.where, date_utc=utc_now(),
                )
            )  # fmt: skip

    def _verdict(self, provider: Provider, errors: dict[str, Errors]) -> str:
        said = verdict(errors)
        fault = provider.known_fault(self.case)
        if fault and any(name in errors and errors[name].max_error is None for name in ("dq", "dk", "dv")):
            return f"{said}. {fault}"
        return said

    def _shares(self, mask: ColumnMask) -> tuple[float, float]:
        """(rho of block x block tiles by the exact rule, density), means over B and Hm."""
        pairs = mask.visible_pairs().double().mean().item()
        rho = classify_tiles(mask, self.case.block, self.case.block).rho.mean().item()
        return rho, pairs / (mask.seqlen_q * mask.seqlen_k)

    def _settle(self, error: Exception) -> str:
        """A reason for a row from an exception, memory given back; CudaFault if the context did not survive it."""
        reason = reason_of(error, self.device)
        error.__traceback__ = None  # its frames hold tensors
        fault = fault_of(self.device)
        if fault:
            raise CudaFault(with_fault(reason, fault)) from None
        return reason
