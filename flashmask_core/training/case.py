"""What to train: a frozen TrainCase, plain values all through, as it travels to the worker process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from hashlib import sha256

from ..checks import whole
from ..masks.expr import MAX_SEQLEN
from ..packing import MAX_EXAMPLES, POLICIES, TOO_LONG, Example, Sequence, draw, pack, read_text
from .names import ENGINE_LABELS, FORMS, TASKS
from .decoder import DecoderConfig

MAX_STEPS = 48
CHECK_MAX_CONTEXT = 512
"""Longest context of a "train_check" job, which runs on the CPU, our kernels through the Triton interpreter."""
SHORTEST = 256
DTYPES = ("bfloat16", "float16", "float32")
_LONGEST_WORTH = 300_000  # tokens that the search for the longest context counts as in a job's progress
_START_WORTH = 16_000  # and what it takes to make a model and compile


@dataclass(frozen=True)
class TrainCase:
    """One task at one context, and the engines to train with, one after the other on the same batches.

    lengths: examples as `packing.read_text` takes them, packed by policy and too_long and repeated where they are too
    few; "" draws them by the paper's recipe. longest: search the longest context of which a step fits, up to `context`,
    in place of timing steps of `context` tokens. deterministic: repeatable losses where an engine has them.

    Raises TypeError or ValueError naming what cannot be, examples that the task cannot take among it.
    """

    task: str
    context: int
    engines: tuple[str, ...]
    model: DecoderConfig = field(default_factory=DecoderConfig)
    lengths: str = ""
    policy: str = "in_order"
    too_long: str = "refuse"
    steps: int = 5  # timed
    warmup: int = 2  # before them, not timed
    dtype: str = "bfloat16"
    deterministic: bool = False
    seed: int = 0
    longest: bool = False
    time_limit_s: float = 600.0  # for every step of one engine, compiling included

    def __post_init__(self):
        set_ = object.__setattr__  # frozen: values that came from JSON
        set_(self, "engines", tuple(self.engines))
        if isinstance(self.model, dict):
            set_(self, "model", DecoderConfig(**self.model))
        for name, value, allowed in (("task", self.task, TASKS), ("dtype", self.dtype, DTYPES),
                                     ("policy", self.policy, POLICIES), ("too_long", self.too_long, TOO_LONG)):  # fmt: skip
            if value not in allowed:
                raise ValueError(f"{name}: wanted one of {', '.join(allowed)}, got {value!r}")
        unknown = [engine for engine in self.engines if engine not in ENGINE_LABELS]
        if unknown or not self.engines:
            raise ValueError(f"engines: wanted some of {', '.join(ENGINE_LABELS)}, got {', '.join(unknown) or 'none'}")
        whole("context", self.context, SHORTEST, MAX_SEQLEN)
        whole("steps", self.steps, 1, MAX_STEPS)
        whole("warmup", self.warmup, 0, MAX_STEPS)
        whole("seed", self.seed, 0, 2**31 - 1)
        if not self.time_limit_s > 0:
            raise ValueError(f"time_limit_s: wanted more than 0, got {self.time_limit_s}")
        if self.lengths:
            check_examples(self.task, _examples(self.lengths))

    @property
    def providers(self) -> tuple[str, ...]:
        """The engines, as every job's case names what it measures."""
        return self.engines

    @property
    def passes(self) -> tuple[str, ...]:
        """What is measured of each: a step, or the longest context."""
        return ("longest",) if self.longest else ("step",)

    @property
    def worth(self) -> int:
        """About how long it takes, in tokens of one step, for a job's progress."""
        return _START_WORTH + (_LONGEST_WORTH if self.longest else (self.steps + self.warmup) * self.context)

    @property
    def data(self) -> str:
        """What is trained on, in words; the same for the same examples."""
        if not self.lengths:
            return f"drawn by the paper's recipe, seed {self.seed}"
        name = sha256(f"{self.lengths}|{self.policy}|{self.too_long}".encode()).hexdigest()[:8]
        return f"{len(_examples(self.lengths)):,} examples of one's own, {POLICIES[self.policy]} ({name})"

    def check(self) -> None:
        """ValueError naming an example that does not fit into the context, or that there is none to train on."""
        examples = _examples(self.lengths) if self.lengths else ()
        if examples and not any(0 < example.tokens <= self.context for example in examples):
            self.sequences(1)
        long = [example for example in examples if example.tokens > self.context]
        if long and self.too_long != "drop":
            self.sequences(1)

    def sequences(self, count: int, context: int | None = None) -> list[Sequence]:
        """`count` packed sequences of the case, or of another context; ValueError for examples that do not fit."""
        context = context or self.context
        if not self.lengths:
            return list(pack(draw(context, FORMS[self.task], count, self.seed), context).sequences[:count])
        examples = list(_examples(self.lengths))
        tokens = sum(example.tokens for example in examples)
        times = min(-(-count * context // max(1, tokens)), MAX_EXAMPLES // len(examples))
        found = pack(examples * max(1, times), context, self.policy, self.too_long).sequences
        return [found[i % len(found)] for i in range(count)]

    def to_json(self) -> dict:
        return asdict(self)

    @classmethod
    def from_json(cls, record: dict) -> "TrainCase":
        """The case written by `to_json`; TypeError for fields it does not know."""
        unknown = set(record) - {f.name for f in fields(cls)}
        if unknown:
            raise TypeError(f"case: unknown fields {', '.join(sorted(unknown))}")
        return cls(**record)


@lru_cache(maxsize=4)
def _examples(lengths: str) -> tuple[Example, ...]:
    """Read once for all cases of a job."""
    return tuple(read_text(lengths))


def check_examples(task: str, examples: Iterable[Example]) -> None:
    """ValueError naming the first example whose answers the task's loss cannot take."""
    fewest, most, wants = {"dpo": (2, 2, "2 answers, chosen and rejected"), "rm": (2, None, "2 answers or more, the best "
                           "first")}.get(task, (0, 1, "a document, or a prompt with 1 answer"))  # fmt: skip
    for i, example in enumerate(examples):
        count = len(example.answers)
        if count < fewest or (most is not None and count > most):
            raise ValueError(
                f"lengths[{i}]: {task} wants {wants}; {example} has {count or 'none'}. Leave {task} out, or give it "
                "examples of its form"
            )
