"""One engine tried in a process of its own, before it takes its turns with the others.

There it is compiled, and its memory is measured: nothing that another engine allocated, compiled or left behind is in
that process, so the figures do not depend on the order, and what breaks there breaks nothing else. The processes are
forked from one that has imported everything and touched no GPU, so each is there in a moment.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import multiprocessing.forkserver
import os
import threading
from dataclasses import dataclass, field
from functools import cache

import torch

from ..masks.column_mask import ColumnMask
from .config import DTYPES, BenchCase
from .device import CudaDevice
from .environment import death
from .estimate import too_large
from .measure import host_ms, peak_bytes
from .providers import PROVIDERS, Prepared, Provider, bench_device

APART_LIMIT = 0.9  # of the time limit of a step, so that a hang ends that process and not the worker
_REBUILDS = 3


@dataclass(frozen=True)
class Tried:
    """How it went. status "ok", or "skipped" or "failed" with a reason.

    peak_memory_bytes: by direction, the most that was allocated at a time above the inputs and the case's vectors, the
    engine's form of the mask among it. compile_ms: first build and calls less later ones. mask_build_ms: the mask's
    form made anew from the vectors, once everything is compiled.
    """

    status: str = "ok"
    reason: str | None = None
    mask_bytes: int | None = None
    mask_build_ms: float | None = None
    compile_ms: float | None = None
    peak_memory_bytes: dict[str, int] = field(default_factory=dict)


class Inputs:
    """Random q, k, v (and dout) of a case in a provider's layout; q, k, v are leaves that ask for gradients.

    The numbers are the same in every layout. `tensors`: q [B, Sq, H, D], k and v [B, Sk, Hk, D], dout like q; or with
    the two middle dimensions swapped.
    """

    def __init__(self, case: BenchCase, device: str, layout: str = "bshd"):
        generator = torch.Generator(device).manual_seed(case.seed)

        def tensor(seqlen: int, heads: int) -> torch.Tensor:
            shape = (case.batch, seqlen, heads, case.head_dim)
            x = torch.randn(shape, device=device, dtype=DTYPES[case.dtype], generator=generator)
            return x if layout == "bshd" else x.transpose(1, 2).contiguous()

        rows, keys = (case.seqlen_q, case.heads), (case.seqlen_k, case.kv_heads)
        q, k, v, dout = (tensor(*size) for size in (rows, keys, keys, rows))
        self.tensors = [q.requires_grad_(), k.requires_grad_(), v.requires_grad_(), dout]


class Calls:
    """The calls of a prepared engine on its inputs, by what is timed and weighed."""

    def __init__(self, prepared: Prepared, inputs: list[torch.Tensor]):
        self.prepared, self.inputs = prepared, inputs

    def forward(self) -> torch.Tensor:
        return self.prepared.call(*self.inputs[:3])

    def inference(self) -> torch.Tensor:
        with torch.no_grad():
            return self.forward()

    def gradients(self, out: torch.Tensor, dout: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(out, self.inputs[:3], dout, retain_graph=True)

    def training(self) -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(self.forward(), self.inputs[:3], self.inputs[3])

    def whole(self, direction: str):
        """The call whose memory counts for a direction: a backward pass needs its forward."""
        return self.inference if direction == "forward" else self.training


def reason_of(error: BaseException, device) -> str:
    """An exception as the reason of a row: one line of it, and the way out of an out-of-memory."""
    text = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__).strip()[:500]
    if isinstance(error, device.OutOfMemory):
        return f"out of GPU memory: {text} Take a smaller N, batch or number of heads, or the forward pass alone."
    return f"{type(error).__name__}: {text}"


def fault_of(device) -> str | None:
    """What the device says has broken it, after an error that may only be a consequence; None if it works and has got its
    memory back."""
    try:
        device.synchronize()
        device.release()
    except Exception as broken:
        return str(broken).splitlines()[0][:200]
    return None


def with_fault(reason: str, fault: str | None) -> str:
    return reason if fault is None or fault in reason else f"{reason} (after it: {fault})"


def refusal(case: BenchCase, mask: ColumnMask, provider: Provider, free_bytes: int) -> str | None:
    """Why a provider is not to be run on a case, told before memory is allocated; None if it can be."""
    return provider.refuses(case, mask) or too_large(case, provider.name, provider.estimate(case, mask), free_bytes)


def try_here(case: BenchCase, provider: Provider, device) -> Tried:
    """Try it in this process. Raises what the engine raises."""
    mask = case.build_mask()
    problem = refusal(case, mask, provider, device.free_bytes())
    if problem:
        return Tried("skipped", problem)
    mask = mask.to(device.name)
    inputs = Inputs(case, device.name, provider.layout).tensors
    device.synchronize()
    before = device.allocated_bytes()
    prepared: list[Prepared] = []
    compile_ms = host_ms(device, lambda: prepared.append(provider.build(case, mask)))
    calls = Calls(prepared[0], inputs)
    build, build_ms = calls.prepared.build_mask, None
    if build is not None:
        build_ms = min(host_ms(device, build) for _ in range(_REBUILDS))
        compile_ms -= build_ms
    for direction in dict.fromkeys(("forward", *case.passes)):
        first, later = (host_ms(device, calls.whole(direction)) for _ in range(2))
        compile_ms += first - later
    peaks = {}
    for direction in case.passes:
        device.release()
        peaks[direction] = peak_bytes(device, calls.whole(direction)) - before + calls.prepared.borrowed_bytes
    return Tried("ok", None, calls.prepared.mask_bytes, build_ms, max(0.0, compile_ms), peaks)


def try_apart(case: BenchCase, name: str, limit_s: float) -> Tried:
    """Try a provider of PROVIDERS in a process of its own; whatever ends that process is the reason of a failed one."""
    here, there = _context().Pipe()
    process = _context().Process(target=_child, args=(there, case.to_json(), name), daemon=False)
    process.start()
    there.close()
    try:
        found = here.recv() if here.poll(limit_s) else None
    except EOFError:  # it died without a word
        process.join(5)
        found = Tried("failed", f"its process {death(process.exitcode)}")
    finally:
        process.kill()
        process.join()
        here.close()
    return found or Tried("failed", f"stopped at the time limit of {case.time_limit_s:g} s, in a process of its own")


def _child(pipe, case: dict, name: str) -> None:
    threading.Thread(target=_end_with_worker, daemon=True).start()
    pipe.send(_tried(BenchCase.from_json(case), name))
    pipe.close()
    os._exit(0)  # the ordinary way out would wait for a device that may be broken


def _tried(case: BenchCase, name: str) -> Tried:
    device = None
    try:
        device = bench_device()
        return try_here(case, PROVIDERS[name], device)
    except ValueError as error:
        return Tried("failed", str(error))
    except Exception as error:
        return Tried("failed", with_fault(reason_of(error, device or CudaDevice), device and fault_of(device)))


def _end_with_worker() -> None:
    """End this process, whatever it is at, when the worker that asked for it is gone."""
    multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)


def get_ready() -> None:
    """Start the process that the others are forked from, without waiting for its imports."""
    _context()
    if "forkserver" in multiprocessing.get_all_start_methods():
        multiprocessing.forkserver.ensure_running()


@cache
def _context():
    """Forked from a process that has imported this module and opened no GPU; made anew where that is not known."""
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if "forkserver" in methods:
        context.set_forkserver_preload([__name__])
    return context
