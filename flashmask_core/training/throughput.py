"""A few real training steps of one task with one engine: tokens a second, peak memory, losses."""

from __future__ import annotations

import copy
import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field

import torch
from torch import nn

from ..masks.language import mask as mask_of_text
from ..packing import Example, Sequence, draw, pack
from .decoder import Decoder, DecoderConfig
from .engines import ENGINES
from .lora import add_adapters
from .tasks import FORMS, TASKS, Batch, answer_logprobs, dpo_loss, reward_loss, sft_loss

_STEP = 8192  # contexts that the search for the longest one looks at


@dataclass(frozen=True)
class TrainRow:
    """What came out of one task, engine and context; `error` says why there is nothing."""

    task: str
    engine: str
    context: int
    tokens_per_s: float | None = None
    peak_gib: float | None = None
    losses: tuple[float, ...] = ()
    error: str = ""
    device: str = ""
    torch_version: str = torch.__version__
    adapters: str = ""
    rho: float | None = None
    model: dict = field(default_factory=dict)

    def to_json(self) -> dict:
        return asdict(self)


def sequences_for(task: str, context: int, count: int, seed: int = 0) -> list[Sequence]:
    """`count` contexts drawn by the paper's recipe; padding is an example of its own, so that every query sees a key."""
    packing = pack(draw(context, FORMS[task], count, seed), context)
    filled = []
    for one in packing.sequences[:count]:
        padding = (Example(one.padding, ()),) * (one.padding > 0)
        filled.append(Sequence((*one.examples, *padding), context))
    return filled


class Trainer:
    """A decoder with one engine, trained step by step on packed sequences of one task."""

    def __init__(self, task: str, engine: str, config: DecoderConfig, *, device: str = "cuda", seed: int = 0,
                 deterministic: bool = False, dtype: torch.dtype = torch.bfloat16):  # fmt: skip
        if task not in TASKS:
            raise ValueError(f"task: wanted one of {', '.join(TASKS)}, got {task!r}")
        if engine not in ENGINES:
            raise ValueError(f"engine: wanted one of {', '.join(ENGINES)}, got {engine!r}")
        self.task, self.engine, self.device = task, ENGINES[engine], torch.device(device)
        self.deterministic = deterministic
        torch.manual_seed(seed)
        with torch.device(self.device):
            self.model = Decoder(config, self.engine.attend).to(dtype)
            self.reward = nn.Linear(config.width, 1, bias=False).to(dtype) if task == "rm" else None
        self.adapters = add_adapters(self.model) if task == "lora" else ""
        self.reference = None
        if task == "dpo":
            self.reference = copy.deepcopy(self.model).requires_grad_(False)
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        parameters += list(self.reward.parameters()) if self.reward else []
        self.optimizer = torch.optim.AdamW(parameters, lr=1e-4, fused=self.device.type == "cuda")

    def step(self, sequence: Sequence, seed: int = 0) -> float:
        """One optimizer step on one packed sequence; the loss before it."""
        batch = Batch.of(sequence, self.model.config.vocabulary, self.device, seed)
        mask = mask_of_text(sequence.text, sequence.context).to(self.device)
        prepared = self.engine.prepare(mask, self.deterministic)
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


def measure(task: str, engine: str, context: int, config: DecoderConfig, *, steps: int = 5, device: str = "cuda",
            deterministic: bool = False, dtype: torch.dtype = torch.bfloat16, warmup: int = 2) -> TrainRow:  # fmt: skip
    """Train `warmup` + `steps` steps on as many different packings and time the last `steps`, masks and data included.

    Running out of memory, or anything else that the engine raises, becomes the row's `error`.
    """
    cuda = device == "cuda"
    said = dict(task=task, engine=engine, context=context, model=asdict(config),
                device=torch.cuda.get_device_name() if cuda else "cpu")  # fmt: skip
    sequences = sequences_for(task, context, warmup + steps)
    trainer, losses, begun = None, [], 0.0
    _free(cuda, reset=True)
    try:
        trainer = Trainer(task, engine, config, device=device, deterministic=deterministic, dtype=dtype)
        for number, sequence in enumerate(sequences):
            if number == warmup:
                begun = _now(cuda)
            losses.append(trainer.step(sequence, seed=number))
        seconds = _now(cuda) - begun
        return TrainRow(
            **said, losses=tuple(losses), adapters=trainer.adapters,
            tokens_per_s=steps * context / seconds if steps else None,
            peak_gib=torch.cuda.max_memory_allocated() / 2**30 if cuda else None,
        )  # fmt: skip
    except torch.cuda.OutOfMemoryError:
        return TrainRow(**said, error="out of memory")
    except RuntimeError as error:  # an engine that cannot
        return TrainRow(**said, error=f"{type(error).__name__}: {str(error)[:300]}")
    finally:
        del trainer
        _free(cuda)


def longest(task: str, engine: str, config: DecoderConfig, *, most: int = 2**20, start: int = 32768,
            on_trial: Callable[[TrainRow], None] = lambda row: None) -> TrainRow:  # fmt: skip
    """The row of the longest context, a multiple of 8192, of which a step fits: doubling from `start`, then bisection
    until the next step is within an eighth. `most` bounds the search."""
    fits: TrainRow | None = None
    low, high, size = 0, most + _STEP, start
    while high - low > max(_STEP, low // 8):
        row = measure(task, engine, size, config, steps=1, warmup=0)
        on_trial(row)
        if row.error:
            high = size
        else:
            low, fits = size, row
        size = min(2 * low, most) if high > most and low < most else (low + high) // 2 // _STEP * _STEP
        if size <= low or size >= high:
            break
    if fits:
        return measure(task, engine, fits.context, config, steps=1, warmup=1)
    return TrainRow(task, engine, start, error="not even the shortest context fits", model=asdict(config))


def rows(tasks, engines, contexts, config: DecoderConfig, **options) -> Iterator[TrainRow]:
    """`measure` for every combination."""
    for task in tasks:
        for context in contexts:
            for engine in engines:
                yield measure(task, engine, context, config, **options)


def _now(cuda: bool) -> float:
    if cuda:
        torch.cuda.synchronize()
    return time.perf_counter()


def _free(cuda: bool, reset: bool = False) -> None:
    gc.collect()
    if cuda:
        torch.cuda.empty_cache()
        if reset:
            torch.cuda.reset_peak_memory_stats()
