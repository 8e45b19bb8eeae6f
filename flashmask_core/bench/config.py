"""What to measure: a frozen BenchCase, and jobs of one or more cases as they travel to the worker process.

A case says everything the worker needs as plain JSON values. Its mask is a text of the mask language, or, for a mask
that has none (a file, a painted one), the packed vectors themselves.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import asdict, dataclass, field, fields

import numpy as np
import torch

from ..masks.column_mask import ColumnMask

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
PASSES = ("forward", "backward", "both")
DEFAULT_PASSES = PASSES[:2]
JOB_KINDS = ("bench", "check", "device", "train", "train_check")
INTERPRETED = ("check", "train_check")  # without a GPU, Triton kernels through the interpreter
TIME_LIMIT_S = 240.0  # the usual one of a step
CHECK_MAX_LENGTH = 256
"""Longest sequence that a "check" job runs through the Triton interpreter, in tokens."""


@dataclass(frozen=True)
class PackedMask:
    """A mask without a text: the canonical startend_row_indices, compressed, as JSON can carry it."""

    data: str  # base64 of zlib of int32 little-endian, C order
    shape: tuple[int, int, int, int]  # [B, Hm, Sk, C]
    causal: bool

    @classmethod
    def of(cls, mask: ColumnMask) -> "PackedMask":
        indices, causal = mask.to_startend_row_indices()
        raw = indices.cpu().numpy().astype("<i4").tobytes()
        return cls(base64.b64encode(zlib.compress(raw, 1)).decode("ascii"), tuple(indices.shape), causal)

    def mask(self, seqlen_q: int) -> ColumnMask:
        raw = zlib.decompress(base64.b64decode(self.data))
        indices = torch.from_numpy(np.frombuffer(raw, "<i4").reshape(self.shape).astype(np.int32))
        return ColumnMask.from_startend_row_indices(indices, causal=self.causal, seqlen_q=seqlen_q)


@dataclass(frozen=True)
class BenchCase:
    """One mask, one shape, and the providers to time on it, alternately, in one process.

    Lengths are in tokens. kv_heads=None means as many as `heads`, seqlen_k=None means seqlen_q.

    Raises ValueError or TypeError, naming the field, for a size, dtype, pass or provider that cannot be.
    """

    mask: str  # a text of the mask language; with `packed`, only what to call the mask
    seqlen_q: int
    seqlen_k: int | None = None
    batch: int = 1
    heads: int = 8
    kv_heads: int | None = None
    head_dim: int = 128
    dtype: str = "bfloat16"
    passes: tuple[str, ...] = DEFAULT_PASSES
    providers: tuple[str, ...] = ("flashmask",)
    mask_name: str = ""  # a short name for tables, such as the paper's; not used to build anything
    packed: PackedMask | None = None
    warmup_ms: float = 25.0  # of every provider and pass, before its repetitions
    repeat_ms: float = 100.0  # of every provider and pass, over all rounds
    rounds: int = 3  # how often the providers take turns
    check: bool = True  # compare with the reference first
    block: int = 128  # side of the tiles that rho counts, and of FlexAttention's block mask
    seed: int = 0
    time_limit_s: float = TIME_LIMIT_S  # a step: one engine tried in its own process, or checked, or timed in one turn

    def __post_init__(self):
        set_ = object.__setattr__  # frozen: defaults that depend on other fields, and lists that came from JSON
        set_(self, "seqlen_k", self.seqlen_q if self.seqlen_k is None else self.seqlen_k)
        set_(self, "kv_heads", self.heads if self.kv_heads is None else self.kv_heads)
        set_(self, "passes", tuple(self.passes))
        set_(self, "providers", tuple(self.providers))
        for name in ("seqlen_q", "seqlen_k", "batch", "heads", "kv_heads", "head_dim", "rounds", "block"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name}: wanted an int, got {type(value).__name__}")
            if value < 1:
                raise ValueError(f"{name}: wanted 1 or more, got {value}")
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads: wanted a divisor of heads = {self.heads}, got {self.kv_heads}")
        if self.head_dim > 256:
            raise ValueError(f"head_dim: wanted at most 256, got {self.head_dim}")
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype: wanted one of {', '.join(DTYPES)}, got {self.dtype!r}")
        if not self.passes or set(self.passes) - set(PASSES):
            raise ValueError(f"passes: wanted some of {', '.join(PASSES)}, got {', '.join(self.passes) or 'none'}")
        if not self.providers:
            raise ValueError("providers: wanted at least one, got none")
        if not (self.warmup_ms > 0 and self.repeat_ms > 0 and self.time_limit_s > 0):
            raise ValueError("warmup_ms, repeat_ms, time_limit_s: wanted more than 0")

    @property
    def backward(self) -> bool:
        """Whether gradients are asked for."""
        return "backward" in self.passes or "both" in self.passes

    @classmethod
    def of_mask(cls, mask: ColumnMask, name: str, **settings) -> "BenchCase":
        """A case for a mask that has no text; `name` is what rows call it."""
        return cls(name, mask.seqlen_q, mask.seqlen_k, packed=PackedMask.of(mask), **settings)

    def build_mask(self) -> ColumnMask:
        """The mask on the CPU. Raises what `flashmask_core.mask` raises for a wrong text."""
        if self.packed is not None:
            return self.packed.mask(self.seqlen_q)
        from ..masks.language import mask

        return mask(self.mask, self.seqlen_q, self.seqlen_k)

    def to_json(self) -> dict:
        return asdict(self)

    @classmethod
    def from_json(cls, record: dict) -> "BenchCase":
        """The case written by `to_json`; TypeError for fields it does not know."""
        packed = record.get("packed")
        if packed is not None:
            packed = PackedMask(packed["data"], tuple(packed["shape"]), packed["causal"])
        unknown = set(record) - {f.name for f in fields(cls)}
        if unknown:
            raise TypeError(f"case: unknown fields {', '.join(sorted(unknown))}")
        return cls(**{**record, "packed": packed})


@dataclass(frozen=True)
class BenchJob:
    """What one visit to the queue does.

    kind "bench": time every case. "check": run our Triton kernel on every case, which must be small, and compare it
    with the reference; on a machine without a GPU through the Triton interpreter. "device": only say what GPU is there.
    "train" and "train_check": the same two for training steps; their cases are TrainCases.
    """

    kind: str = "bench"
    cases: tuple[BenchCase, ...] = ()
    title: str = ""  # what the queue calls it
    # (case index, provider, reason): not to be run again, since it brought down or hung an earlier worker of this job.
    excluded: tuple[tuple[int, str, str], ...] = field(default=())
    done: tuple[int, ...] = ()  # case indices whose rows an earlier worker of this job has delivered
    parallel: int = 1  # engines tried at once, each in its own process, before any timing; compile_ms is then not told
    cold: bool = True  # compile anew, so that compile_ms is that of a first time; False: what was compiled once is used

    def __post_init__(self):
        if self.kind not in JOB_KINDS:
            raise ValueError(f"kind: wanted one of {', '.join(JOB_KINDS)}, got {self.kind!r}")
        if self.kind != "device" and not self.cases:
            raise ValueError("cases: wanted at least one, got none")
        if self.kind == "check":
            for case in self.cases:
                if max(case.seqlen_q, case.seqlen_k) > CHECK_MAX_LENGTH:
                    raise ValueError(
                        f"seqlen: a check through the interpreter takes at most {CHECK_MAX_LENGTH} tokens, got "
                        f"{case.seqlen_q} x {case.seqlen_k}; check_cases(mask) crops a mask"
                    )

    def to_json(self) -> dict:
        return {**asdict(self), "cases": [case.to_json() for case in self.cases]}

    @classmethod
    def from_json(cls, record: dict) -> "BenchJob":
        cases = tuple(case_type(record["kind"]).from_json(case) for case in record["cases"])
        excluded = tuple(tuple(entry) for entry in record["excluded"])
        rest = {"excluded": excluded, "done": tuple(record["done"])}
        return cls(**{**record, **rest, "cases": cases})


def case_type(kind: str) -> type:
    """What the cases of a job of a kind are: all of them have providers, passes and a time limit."""
    if kind in ("train", "train_check"):
        from ..training.case import TrainCase

        return TrainCase
    return BenchCase


def check_cases(mask: ColumnMask, name: str, dtypes: tuple[str, ...] = ("float16", "float32")) -> tuple[BenchCase, ...]:
    """Cases of a "check" job: the mask's top left corner of at most CHECK_MAX_LENGTH tokens, one case a dtype."""
    rows, columns = min(mask.seqlen_q, CHECK_MAX_LENGTH), min(mask.seqlen_k, CHECK_MAX_LENGTH)
    corner = row_strip(mask, 0, rows, columns)
    shape = "" if (rows, columns) == (mask.seqlen_q, mask.seqlen_k) else f", first {rows} x {columns}"
    return tuple(
        BenchCase.of_mask(
            corner, name + shape, batch=corner.batch, heads=2 if corner.heads == 1 else corner.heads,
            kv_heads=1 if corner.heads == 1 else corner.heads, head_dim=32, dtype=dtype,
        )
        for dtype in dtypes
    )  # fmt: skip


def row_strip(mask: ColumnMask, first: int, last: int, columns: int | None = None) -> ColumnMask:
    """The rows [first, last) and the first `columns` keys of a mask, as a mask of its own."""
    vectors = [v[..., :columns].clamp(first, last) - first for v in mask.vectors]
    indices = torch.stack(vectors, dim=-1)  # lts, lte, uts, ute: all four, whatever the packing was
    return ColumnMask.from_startend_row_indices(indices, causal=False, seqlen_q=last - first)
