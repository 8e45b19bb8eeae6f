"""Engines that misbehave, on a GPU as on the stand-in device: `FLASHMASK_ENGINES=stand_ins` puts them beside the others.

right: correct. wrong, nan: not. leaky: keeps memory for ever. late: queues 50 ms of work and returns at once. full: runs
out of memory. fault: an illegal access. hang: never returns. killed: its process is ended by a signal. turns_fault and
turns_killed do so only where they take turns with others, not where they are tried apart.
"""

import multiprocessing
import os
import signal
import time

import torch

from flashmask_core.bench.providers import Prepared, Provider

KEPT = []  # what the leaky engine never gives back
LEAK_BYTES = 32 * 2**20
LATE_MS = 50.0
_LATE_CYCLES = 110_000_000  # 50 ms and more at up to 2.2 GHz


class Ledger:
    """What tensors take on the stand-in device; engines tell it, since nothing else can."""

    held = peak = 0

    @classmethod
    def take(cls, count: int) -> None:
        cls.held += count
        cls.peak = max(cls.peak, cls.held)


def attention(q, k, v, visible):
    """q [B, H, Sq, D], visible broadcasting to [B, H, Sq, Sk]; apart from the reference, with the softmax written out."""
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    scores = (q.float() @ k.float().transpose(-1, -2)) / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~visible, -1e30)
    p = scores.softmax(-1) * visible
    return (p @ v.float()).to(q.dtype)


class _NoNumber(torch.autograd.Function):
    """The identity, with a gradient that has a NaN."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone()
        gradient[0, 5] = float("nan")
        return gradient


def _same(q, k, v, attend):
    return attend(q, k, v)


def _wrong(q, k, v, attend):
    return attend(q, k, v) * 1.1


def no_number(q, k, v, attend):
    return attend(_NoNumber.apply(q), k, v)


def _leaky(q, k, v, attend):
    if not KEPT:
        KEPT.append(torch.empty(LEAK_BYTES, dtype=torch.uint8, device=q.device))
        Ledger.take(LEAK_BYTES)
    return attend(q, k, v)


def _late(q, k, v, attend):
    out = attend(q, k, v)
    if q.is_cuda:
        torch.cuda._sleep(_LATE_CYCLES)
    else:
        from cpu_stand_ins import STREAM

        STREAM.run(lambda: time.sleep(LATE_MS / 1e3))
    return out


def _full(q, k, v, attend):
    if q.is_cuda:
        held = [torch.empty(2**33, dtype=torch.uint8, device=q.device) for _ in range(1000)]
        return held[0]
    raise torch.OutOfMemoryError("out of memory. Tried to allocate 8.00 GiB.")


def _fault(q, k, v, attend):
    if not q.is_cuda:
        os.kill(os.getpid(), signal.SIGSEGV)
    from out_of_bounds import write_out_of_bounds

    write_out_of_bounds(q)
    return attend(q, k, v)


def _hang(q, k, v, attend):
    if q.is_cuda:
        torch.cuda._sleep(10**13)
        torch.cuda.synchronize()
    time.sleep(10**6)


def _killed(q, k, v, attend):
    os.kill(os.getpid(), signal.SIGKILL)


def _in_turns(act):
    def change(q, k, v, attend):
        apart = multiprocessing.parent_process() is not None
        return attend(q, k, v) if apart else act(q, k, v, attend)

    return change


def engine(name: str, act=_same, *, layout="bshd", computes="mask", visible_of=lambda mask: mask.to_dense(), **more):
    """A provider that computes the mask with plain torch and lets `act` (q, k, v, attend) have its way."""

    def build(case, mask):
        visible = visible_of(mask) if computes == "mask" else torch.ones(1, dtype=torch.bool, device=mask.device)
        visible = visible.repeat_interleave(case.heads // visible.shape[1], 1) if visible.ndim == 4 else visible

        def attend(q, k, v):
            if layout == "bshd":
                q, k, v = (x.transpose(1, 2) for x in (q, k, v))
            out = attention(q, k, v, visible)
            Ledger.take(out.nbytes)
            Ledger.take(-out.nbytes)
            return out.transpose(1, 2) if layout == "bshd" else out

        return Prepared(lambda q, k, v: act(q, k, v, attend), "stand-in", mask.nbytes, 0, lambda: visible_of(mask))

    return Provider(name, name.replace("_", " ").capitalize(), layout, computes, "vectors", build, **more)


ENGINES = [
    engine("right"), engine("right_bhsd", layout="bhsd"), engine("wrong", _wrong), engine("nan", no_number),
    engine("leaky", _leaky), engine("late", _late), engine("full", _full), engine("fault", _fault),
    engine("hang", _hang), engine("killed", _killed), engine("turns_fault", _in_turns(_fault)),
    engine("turns_killed", _in_turns(_killed)), engine("ceiling", computes="full"),
]  # fmt: skip
