"""ColumnMask: an attention mask as four row numbers a key column (FlashMask, arXiv 2410.01359, section 3).

Column j of the mask hides the query rows [lts[j], lte[j]) and [uts[j], ute[j]); every other row sees key j.
Rebuilding the dense picture takes four lines:

    q = torch.arange(mask.seqlen_q)[:, None]
    hidden = (q >= mask.lts[b, h]) & (q < mask.lte[b, h])
    hidden |= (q >= mask.uts[b, h]) & (q < mask.ute[b, h])
    visible = ~hidden                                           # [Sq, Sk]
"""

from __future__ import annotations

from numbers import Integral

import numpy as np
import torch

from .arrays import check_pairs, numpy_of
from .canonical import canonical_vectors, causal_triangle, disjoint_runs
from .errors import NotRepresentableError
from .runs import MaskedRuns

# (causal, number of bounds) -> the vectors in the last dimension of startend_row_indices, in order.
PACKINGS = {
    (True, 1): ("lts",),
    (True, 2): ("lts", "lte"),
    (False, 2): ("lts", "ute"),
    (False, 4): ("lts", "lte", "uts", "ute"),
}


class ColumnMask:
    """Which keys every query may attend to, as half-open runs of masked rows a key column.

    Attributes:
        lts, lte, uts, ute: int32 tensors [B, Hm, Sk]; column j hides rows [lts, lte) and [uts, ute). A run with
            start >= end is empty.
        seqlen_q, seqlen_k: Sq and Sk in tokens.
        causal: True when [uts, ute) is exactly the causal triangle k > q + Sk - Sq, so that kernels compare
            positions and never read uts and ute.
        bounds: how many of the vectors carry information beside the flag: 1 (lts), 2 (lts, lte when causal;
            lts, ute when not) or 4.

    Build one with `flashmask_core.mask`, `from_startend_row_indices`, `from_dense` or `stack`; the vectors are
    treated as immutable, because tile metadata is cached beside them.
    """

    def __init__(self, lts, lte, uts, ute, *, seqlen_q: int, causal: bool, bounds: int):
        assert (causal, bounds) in PACKINGS and lts.dtype == torch.int32 and lts.ndim == 3
        self.lts, self.lte, self.uts, self.ute = lts, lte, uts, ute
        self.seqlen_q = int(seqlen_q)
        self.seqlen_k = lts.shape[-1]
        self.causal, self.bounds = bool(causal), int(bounds)
        self._cache: dict = {}  # tile metadata, by (what, block sizes)

    @property
    def batch(self) -> int:
        return self.lts.shape[0]

    @property
    def heads(self) -> int:
        """Mask heads Hm: 1, the number of key heads, or the number of query heads."""
        return self.lts.shape[1]

    @property
    def device(self) -> torch.device:
        return self.lts.device

    @property
    def vectors(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """(lts, lte, uts, ute), each int32 [B, Hm, Sk]."""
        return self.lts, self.lte, self.uts, self.ute

    @property
    def nbytes(self) -> int:
        """Bytes of the vectors a kernel has to be given: bounds x 4 x B x Hm x Sk."""
        return self.bounds * 4 * self.lts.numel()

    def to(self, device) -> "ColumnMask":
        """The same mask on another device (itself if it is there already)."""
        device = torch.device(device)
        if self.device == device or (device.index is None and self.device.type == device.type):
            return self
        return self._like(*(v.to(device) for v in self.vectors))

    def _like(self, lts, lte, uts, ute) -> "ColumnMask":
        return ColumnMask(lts, lte, uts, ute, seqlen_q=self.seqlen_q, causal=self.causal, bounds=self.bounds)

    def __repr__(self) -> str:
        return (
            f"ColumnMask(B={self.batch}, Hm={self.heads}, Sq={self.seqlen_q}, Sk={self.seqlen_k}, "
            f"causal={self.causal}, bounds={self.bounds}, device={self.device})"
        )

    @classmethod
    def from_startend_row_indices(cls, indices, *, causal: bool, seqlen_q: int | None = None) -> "ColumnMask":
        """Read Paddle's tensor: int32 or int64 [B, Hm, Sk, C] with its causal flag.

        C = 1 (lts) or 2 (lts, lte) with causal=True; C = 2 (lts, ute) or 4 (lts, lte, uts, ute) with causal=False.
        seqlen_q=None means Sq = Sk. Values are clipped to [0, Sq], as Paddle does. The numbers are kept as given;
        `canonical()` puts a mask into the packing that `to_startend_row_indices` writes.

        Raises TypeError for a wrong type or dtype, ValueError for a wrong shape or (causal, C) pair.
        """
        indices = _as_tensor("startend_row_indices", indices)
        if indices.dtype not in (torch.int32, torch.int64):
            raise TypeError(f"startend_row_indices: wanted int32 or int64, got {indices.dtype}")
        if indices.ndim != 4 or 0 in indices.shape[:2]:
            raise ValueError(f"startend_row_indices: wanted [B, Hm, Sk, C], got {tuple(indices.shape)}")
        if not isinstance(causal, bool):
            raise TypeError(f"causal: wanted True or False, got {causal!r}; the same numbers mean another mask")
        bounds = indices.shape[-1]
        if (causal, bounds) not in PACKINGS:
            allowed = "; ".join(f"causal={c} with C={n} ({', '.join(names)})" for (c, n), names in PACKINGS.items())
            raise ValueError(
                f"startend_row_indices: causal={causal} with C={bounds} bounds a column is no FlashMask packing; "
                f"allowed are {allowed}"
            )
        seqlen_k = indices.shape[2]
        seqlen_q = _checked_length("seqlen_q", seqlen_k if seqlen_q is None else seqlen_q)
        given = dict(zip(PACKINGS[causal, bounds], indices.clamp(0, seqlen_q).to(torch.int32).unbind(-1)))
        lts = given["lts"].contiguous()
        lte = given["lte"].contiguous() if "lte" in given else torch.full_like(lts, seqlen_q)
        if causal:
            uts, ute = causal_triangle(seqlen_q, seqlen_k, lts.device)
            uts, ute = uts.expand_as(lts).contiguous(), ute.expand_as(lts).contiguous()
        else:
            uts = given["uts"].contiguous() if "uts" in given else torch.zeros_like(lts)
            ute = given["ute"].contiguous()
        return cls(lts, lte, uts, ute, seqlen_q=seqlen_q, causal=causal, bounds=bounds)

    def to_startend_row_indices(self) -> tuple[torch.Tensor, bool]:
        """(indices int32 [B, Hm, Sk, C], causal) of the canonical packing: the fewest bounds that hold the mask."""
        mask = self.canonical()
        names = PACKINGS[mask.causal, mask.bounds]
        return torch.stack([getattr(mask, name) for name in names], dim=-1), mask.causal

    def canonical(self) -> "ColumnMask":
        """The same visibility in the canonical packing (see `masks.canonical`). Reads the vectors on the host."""
        if "canonical" not in self._cache:
            vectors, causal, bounds = canonical_vectors(*self.vectors, seqlen_q=self.seqlen_q)
            same = (causal, bounds) == (self.causal, self.bounds) and all(map(torch.equal, vectors, self.vectors))
            self._cache["canonical"] = (
                None if same else ColumnMask(*vectors, seqlen_q=self.seqlen_q, causal=causal, bounds=bounds)
            )
        return self._cache["canonical"] or self  # None: this one is canonical

    @classmethod
    def from_runs(cls, runs: MaskedRuns) -> "ColumnMask":
        """A mask with B = Hm = 1 from masked runs; NotRepresentableError if a column has more than two."""
        if (runs.counts > 2).any():
            raise NotRepresentableError.of(runs)
        lts, lte, uts, ute = (torch.from_numpy(v)[None, None] for v in runs.two_a_column())
        vectors, causal, bounds = canonical_vectors(lts, lte, uts, ute, seqlen_q=runs.seqlen_q)
        mask = cls(*vectors, seqlen_q=runs.seqlen_q, causal=causal, bounds=bounds)
        mask._cache["canonical"] = None
        return mask

    @classmethod
    def from_dense(cls, visible) -> "ColumnMask":
        """From a bool tensor or array [Sq, Sk] or [B, Hm, Sq, Sk], True where the query may attend to the key.

        Raises NotRepresentableError (a ValueError; .columns lists every column, .max_runs the most masked runs of
        one) if a column has more than two masked runs.
        """
        check_pairs(visible, "visible")
        visible = _as_tensor("visible", visible)
        if visible.dtype != torch.bool:
            raise TypeError(f"visible: wanted bool, True = may attend, got {visible.dtype}")
        if visible.ndim not in (2, 4) or 0 in visible.shape[:-2]:
            raise ValueError(f"visible: wanted [Sq, Sk] or [B, Hm, Sq, Sk], got {tuple(visible.shape)}")
        if visible.ndim == 2:
            visible = visible[None, None]
        planes = [[MaskedRuns.from_dense(plane) for plane in heads] for heads in numpy_of(visible, "visible")]
        broken = [runs for heads in planes for runs in heads if (runs.counts > 2).any()]
        if broken:
            raise NotRepresentableError.of(*broken, planes=sum(map(len, planes)))
        rows = [cls.stack([cls.from_runs(runs) for runs in heads], dim="head") for heads in planes]
        return cls.stack(rows, dim="batch").to(visible.device)

    def to_dense(self, rows: slice | None = None, columns: slice | None = None) -> torch.Tensor:
        """Visibility, bool [B, Hm, rows, columns]; a slice of rows or columns takes a part of it."""
        columns = columns if columns is not None else slice(None)
        q = torch.arange(self.seqlen_q, device=self.device)[rows if rows is not None else slice(None), None]
        lts, lte, uts, ute = (v[..., None, columns] for v in self.vectors)
        return ~(((q >= lts) & (q < lte)) | ((q >= uts) & (q < ute)))

    def visible_pairs(self) -> torch.Tensor:
        """Number of visible (query, key) pairs, int64 [B, Hm], exactly and without a dense array."""
        lts, lte, uts, ute = (v.to(torch.int64) for v in self.vectors)
        lower, upper = (lte - lts).clamp(min=0), (ute - uts).clamp(min=0)
        both = torch.where(
            (lower > 0) & (upper > 0), (torch.minimum(lte, ute) - torch.maximum(lts, uts)).clamp(min=0), 0
        )
        return (self.seqlen_q - (lower + upper - both)).sum(-1)

    def visible_keys(self) -> torch.Tensor:
        """int64 [B, Hm, Sq]: how many keys every query sees, without a dense array."""
        lts, lte, uts, ute = (v.to(torch.int64) for v in self.vectors)
        # Joined, the two runs of a column are at most two disjoint ones: count how many columns hide each row.
        overlap = (torch.maximum(lts, uts), torch.minimum(lte, ute))
        change = torch.zeros(self.batch, self.heads, self.seqlen_q + 1, dtype=torch.int64, device=self.device)
        both_there = (lte > lts) & (ute > uts)
        for (start, end), sign, there in (
            ((lts, lte), 1, lte > lts),
            ((uts, ute), 1, ute > uts),
            (overlap, -1, both_there & (overlap[1] > overlap[0])),
        ):
            weight = sign * there.to(torch.int64)
            change.scatter_add_(-1, start.clamp(0, self.seqlen_q), weight)
            change.scatter_add_(-1, end.clamp(0, self.seqlen_q), -weight)
        return self.seqlen_k - change.cumsum(-1)[..., : self.seqlen_q]

    def empty_rows(self) -> torch.Tensor:
        """bool [B, Hm, Sq]: the queries that see no key at all."""
        return self.visible_keys() == 0

    def equals(self, other: "ColumnMask") -> bool:
        """True if both show the same pairs, however they are packed (B and Hm may broadcast)."""
        if not isinstance(other, ColumnMask):
            raise TypeError(f"other: wanted a ColumnMask, got {type(other).__name__}")
        if (self.seqlen_q, self.seqlen_k) != (other.seqlen_q, other.seqlen_k):
            return False
        a, b = self.canonical(), other.canonical()
        try:
            return all(bool((x == y).all()) for x, y in zip(a.normal_vectors(), b.normal_vectors()))
        except RuntimeError:  # B or Hm that do not broadcast
            return False

    def normal_vectors(self) -> tuple[torch.Tensor, ...]:
        """The disjoint runs of every column in rising order, empty ones as (Sq, Sq): equal for equal masks."""
        return disjoint_runs(*self.vectors, seqlen_q=self.seqlen_q)

    @staticmethod
    def stack(masks: "list[ColumnMask]", dim: str) -> "ColumnMask":
        """Join masks of equal lengths along dim="batch" or dim="head" (Hm: one mask a head)."""
        masks = [None] if isinstance(masks, ColumnMask) else list(masks)
        if not all(isinstance(one, ColumnMask) for one in masks):
            raise TypeError("masks: wanted a list of ColumnMask")
        if dim not in ("batch", "head"):
            raise ValueError(f'dim: wanted "batch" or "head", got {dim!r}')
        if not masks:
            raise ValueError("masks: wanted at least one ColumnMask, got none")
        first = masks[0]
        axis = 0 if dim == "batch" else 1
        for i, m in enumerate(masks):
            same_other = (m.batch, m.heads)[1 - axis] == (first.batch, first.heads)[1 - axis]
            if (m.seqlen_q, m.seqlen_k) != (first.seqlen_q, first.seqlen_k) or not same_other:
                raise ValueError(f"masks[{i}]: {m} does not fit beside masks[0]: {first}")
        if len(masks) == 1:
            return first
        vectors = [torch.cat(vs, dim=axis) for vs in zip(*(m.vectors for m in masks))]
        causal = all(m.causal for m in masks)
        if causal:
            bounds = max(m.bounds for m in masks)
        else:
            bounds = 2 if all((m.causal, m.bounds) in ((False, 2), (True, 1)) for m in masks) else 4
        return ColumnMask(*vectors, seqlen_q=first.seqlen_q, causal=causal, bounds=bounds)


def _as_tensor(name: str, value) -> torch.Tensor:
    """A dense tensor of a tensor, an array (of any strides) or nested lists."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided:
            raise TypeError(f"{name}: wanted a dense tensor, got one of layout {value.layout}")
        return value
    try:
        return torch.from_numpy(np.ascontiguousarray(value))
    except (TypeError, ValueError):
        raise TypeError(f"{name}: wanted a tensor or an array of numbers, got {type(value).__name__}") from None


def _checked_length(name: str, value) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name}: wanted an int, got {type(value).__name__}")
    if not 0 <= value < 2**30:
        raise ValueError(f"{name}: wanted a length from 0 to 2**30 - 1, got {value}")
    return int(value)
