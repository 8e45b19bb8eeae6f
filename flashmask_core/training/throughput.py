"""A few real training steps of one task with one engine: tokens a second, peak memory, losses."""

from __future__ import annotations

import copy
import gc
import math
import os
import time
import traceback
from collections.abc import Callable
from contextlib import contextmanager
from functools import cache
from statistics import median

import torch
from torch import nn

from ..bench.apart import fault_of, with_fault
from ..bench.device import CudaDevice
from ..bench.environment import cuda_device, interpreter_device, utc_now
from ..bench.result import DeviceInfo
from ..bench.run_case import CudaFault
from ..masks.language import mask as mask_of_text
from ..packing import Example, Sequence
from ..tiles.classify import classify_tiles
from .case import TrainCase
from .decoder import Decoder, DecoderConfig
from .engines import ENGINES
from .lora import add_adapters
from .result import TrainRow
from .tasks import Batch, answer_logprobs, dpo_loss, reward_loss, sft_loss

_LONGEST_COUNTED = 2**18  # tokens of sequences whose tiles are counted
OUT_OF_MEMORY = "out of GPU memory"


class Trainer:
    """A decoder with one engine, trained step by step on packed sequences of one task."""

    def __init__(self, task: str, engine: str, config: DecoderConfig, *, device: str = "cuda", seed: int = 0,
                 deterministic: bool = False, dtype: torch.dtype = torch.bfloat16, backend: str = "auto"):  # fmt: skip
        self.task, self.engine, self.device = task, ENGINES[engine], torch.device(device)
        self.deterministic, self.backend = deterministic, backend
        torch.manual_seed(seed)
        with torch.device(self.device):
            self.model = Decoder(config, self.engine.attend).to(dtype)
            self.reward = nn.Linear(config.width, 1, bias=False).to(dtype) if task == "rm" else None
        self.adapters = add_adapters(self.model) if task == "lora" else None
        self.reference = None
        if task == "dpo":
            self.reference = copy.deepcopy(self.model).requires_grad_(False)
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        parameters += list(self.reward.parameters()) if self.reward else []
        self.optimizer = torch.optim.AdamW(parameters, lr=1e-4, fused=self.device.type == "cuda")

    def step(self, sequence: Sequence, seed: int = 0) -> float:
        """One optimizer step on one packed sequence; the loss before it."""
        batch = Batch.of(sequence, self.model.config.vocabulary, self.device, seed)
        prepared = self.engine.prepare(whole_mask(sequence).to(self.device), self.deterministic, self.backend)
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(batch, prepared)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def loss(self, batch: Batch, prepared) -> torch.Tensor:
        hidden = self.model(batch.tokens, batch.positions, prepared)
        if self.task == "rm":
            return reward_loss(self.reward(hidden[0][batch.last])[:, 0].float(), batch)
        logprobs = answer_logprobs(hidden, self.model.head, batch)
        if self.task != "dpo":
            return sft_loss(logprobs)
        with torch.no_grad():
            hidden = self.reference(batch.tokens, batch.positions, prepared)
            reference = answer_logprobs(hidden, self.reference.head, batch)
        return dpo_loss(logprobs, reference, batch)


def whole_mask(sequence: Sequence):
    """The mask of a sequence with its padding as an example of its own, so that every query of every engine sees a key."""
    padding = (Example(sequence.padding, ()),) * (sequence.padding > 0)
    return mask_of_text(Sequence((*sequence.examples, *padding), sequence.context).text, sequence.context)


def measure(case: TrainCase, engine: str, *, device: str = "cuda", backend: str = "auto",
            context: int | None = None, warmup: int | None = None, steps: int | None = None,
            on_step: Callable[[int, int], None] = lambda done, of: None) -> TrainRow:  # fmt: skip
    """Train warmup + steps steps on as many packed sequences and time the last `steps`, masks and batches included.

    backend: of `flashmask_attention`, for our engine. context, warmup, steps: in place of the case's. on_step(steps done, of how many) is called before each. Running out
    of memory, a loss that is no number, or whatever else the engine raises, becomes the row's reason; CudaFault is
    raised where the GPU can do no more in this process.
    """
    context, cuda = context or case.context, device == "cuda"
    warmup, steps = case.warmup if warmup is None else warmup, steps or case.steps
    sequences = case.sequences(warmup + steps, context)
    said = dict(context=context, warmup=warmup, steps=steps, where=where(device), date_utc=utc_now())
    direction = case.passes[0]
    trainer, times, losses = None, [], []
    before = _fresh(cuda)
    try:
        on_step(0, len(sequences))
        with _repeatable(case.deterministic):
            trainer = Trainer(case.task, engine, case.model, device=device, seed=case.seed,
                              deterministic=case.deterministic, dtype=getattr(torch, case.dtype), backend=backend)  # fmt: skip
            for number, sequence in enumerate(sequences):
                on_step(number, len(sequences))
                begun = _now(cuda)
                losses.append(trainer.step(sequence, seed=case.seed + number))
                times.append(_now(cuda) - begun)
                if not math.isfinite(losses[-1]):
                    reason = f"the loss of step {number + 1} is {losses.pop()}"
                    return TrainRow.of_case(case, engine, direction, "failed", reason=reason, losses=tuple(losses), **said)
        timed = times[warmup:]
        return TrainRow.of_case(
            case, engine, direction, **said, losses=tuple(losses), step_s=tuple(timed), adapters=trainer.adapters,
            tokens_per_s=median(one.tokens / time for one, time in zip(sequences[warmup:], timed)) if cuda else None,
            peak_memory_bytes=torch.cuda.max_memory_allocated() - before if cuda else None,
            rho=skipped(sequences[warmup:]),
        )  # fmt: skip
    except Exception as error:
        reason = _reason(error)
        _let_go(error)
        fault = fault_of(CudaDevice()) if cuda else None
        if fault:
            raise CudaFault(with_fault(reason, fault)) from None
        return TrainRow.of_case(case, engine, direction, "failed", reason=reason, losses=tuple(losses), **said)
    finally:
        del trainer
        _free(cuda)


def skipped(sequences: list[Sequence]) -> float | None:
    """The share of EMPTY tiles, mean over sequences; None for ones too long to count in a moment."""
    if not sequences or sequences[0].context > _LONGEST_COUNTED:
        return None
    shares = {one.text: float(classify_tiles(whole_mask(one), 128, 128).rho) for one in sequences}
    return sum(shares[one.text] for one in sequences) / len(sequences)


@cache
def where(device: str) -> DeviceInfo:
    """What rows say about where they were made, asked for once."""
    return cuda_device() if device == "cuda" else interpreter_device()


def _reason(error: Exception) -> str:
    line = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__).strip()[:400]
    if isinstance(error, torch.OutOfMemoryError):
        return f"{OUT_OF_MEMORY}: take a shorter context or a smaller model. {line}"
    return f"{type(error).__name__}: {line}"


def _let_go(error: BaseException | None) -> None:
    """Free the tensors that an exception, and those it came from, hold in their frames."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error.__traceback__, error = None, error.__context__


@contextmanager
def _repeatable(on: bool):
    """Deterministic algorithms of torch in this block; what has none warns and goes on."""
    if not on:
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])


def _now(cuda: bool) -> float:
    if cuda:
        torch.cuda.synchronize()
    return time.perf_counter()


def _free(cuda: bool) -> None:
    gc.collect()
    if cuda:
        torch.cuda.empty_cache()


def _fresh(cuda: bool) -> int:
    """Start weighing; what is allocated already, in bytes."""
    _free(cuda)
    if not cuda:
        return 0
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated()
