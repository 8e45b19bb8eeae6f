"""What a provider computes, held against the fp32 reference on the very inputs it is timed with.

One key head and up to MAX_QUERY_HEADS of its query heads are compared, of the first batch entry and, where every
sample has a mask of its own, of the last one too. The reference goes through the rows in strips, each a dense
attention of its own with `row_strip` of the mask, so that memory stays bounded; at long N only some strips are taken,
and dout is 0 in all other rows, so dk and dv still compare in full.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from ..masks.column_mask import ColumnMask
from .config import BenchCase, row_strip
from .result import PLACES, Errors

STRIP_PAIRS = 2**26  # pairs of one head in a strip: 256 MiB of fp32 scores
MAX_STRIPS = 16
MAX_QUERY_HEADS = 2


@dataclass(frozen=True)
class Reference:
    """The reference for the compared heads.

    rows: int64, the compared query rows; dout: [B, Sq, H, D], 0 outside the compared part; truth and naive: out (the
    compared rows), dq (likewise), dk and dv (all keys of the key head), fp32 [samples, heads, rows or Sk, D].
    """

    rows: torch.Tensor
    samples: tuple[int, ...]
    query_heads: int
    dout: torch.Tensor
    truth: dict[str, torch.Tensor]
    naive: dict[str, torch.Tensor]


def make_reference(case: BenchCase, mask: ColumnMask, q, k, v) -> Reference:
    """Compute it from q [B, Sq, H, D], k and v [B, Sk, Hk, D] on their device."""
    heads = min(MAX_QUERY_HEADS, case.heads // case.kv_heads, case.heads // mask.heads)  # they share a mask head
    samples = (0,) if mask.batch == 1 else tuple(sorted({0, case.batch - 1}))
    strips = _strips(case)
    rows = torch.cat([torch.arange(a, b, device=q.device) for a, b in strips])
    dout = torch.zeros_like(q)
    generator = torch.Generator(q.device).manual_seed(case.seed + 1)
    truth, naive = [], []
    for sample in samples:
        part = torch.randn(len(rows), heads, case.head_dim, device=q.device, dtype=q.dtype, generator=generator)
        dout[sample, rows, :heads] = part
        one = slice(sample, sample + 1)
        plane = _plane(mask, sample), strips, heads, q[one], k[one], v[one], dout[one]
        truth.append(_by_strips(case, *plane, torch.float32))
        naive.append(_by_strips(case, *plane, q.dtype))
    stacked = ({name: torch.stack([one[name] for one in parts]) for name in parts[0]} for parts in (truth, naive))
    return Reference(rows, samples, heads, dout, *stacked)


def compare(reference: Reference, out, gradients) -> dict[str, dict[str, Errors]]:
    """{"forward": {"out": Errors}, "backward": {"dq": ..., "dk": ..., "dv": ...}} of a provider's tensors.

    out [B, Sq, H, D]; gradients (dq, dk, dv) in the same layout, made with `reference.dout`, or None.
    """
    rows, samples, heads = reference.rows, list(reference.samples), reference.query_heads
    queries = lambda x: x[samples][:, rows, :heads].transpose(1, 2)  # noqa: E731
    keys = lambda x: x[samples][:, :, :1].transpose(1, 2)  # noqa: E731
    errors = {"forward": {"out": _errors(reference, "out", queries(out))}}
    if gradients is not None:
        dq, dk, dv = gradients
        errors["backward"] = {
            "dq": _errors(reference, "dq", queries(dq)),
            "dk": _errors(reference, "dk", keys(dk)),
            "dv": _errors(reference, "dv", keys(dv)),
        }
        errors["both"] = errors["forward"] | errors["backward"]
    return errors


def verdict(errors: dict[str, Errors]) -> str:
    """ "passed", or "failed: ..." naming the worst tensor and its numbers."""
    for name, error in errors.items():
        if error.max_error is None:
            return f"failed: {name} holds NaN or infinity"
        if not error.passed:
            return (
                f"failed: {name} is off by {error.max_error:.3g}, more than {error.limit:.3g} "
                f"(twice the error {error.naive_max_error:.3g} of plain torch in the same dtype)"
            )
    return "passed"


def _strips(case: BenchCase) -> list[tuple[int, int]]:
    """Row ranges to compare: all rows if they make few strips, else MAX_STRIPS evenly spread, first and last in."""
    height = max(1, min(case.seqlen_q, STRIP_PAIRS // case.seqlen_k))
    count = -(-case.seqlen_q // height)
    if count <= MAX_STRIPS:
        return [(i * height, min((i + 1) * height, case.seqlen_q)) for i in range(count)]
    last = case.seqlen_q - height
    starts = [i * last // (MAX_STRIPS - 1) for i in range(MAX_STRIPS)]
    return [(start, start + height) for start in starts]


def _plane(mask: ColumnMask, sample: int) -> ColumnMask:
    """The mask of a batch entry and mask head 0, which every compared query head uses."""
    sample = min(sample, mask.batch - 1)
    vectors = (v[sample : sample + 1, :1] for v in mask.vectors)
    return ColumnMask(*vectors, seqlen_q=mask.seqlen_q, causal=mask.causal, bounds=mask.bounds)


def _by_strips(case, mask, strips, heads, q, k, v, dout, dtype) -> dict[str, torch.Tensor]:
    """out, dq, dk, dv of one sample by dense attention in `dtype`, as fp32 [heads, rows or Sk, D]."""
    from ..reference import attention_ref

    backward = case.backward
    keys = [x[:1, :, :1].detach().to(dtype).requires_grad_(backward) for x in (k, v)]
    outs, dqs = [], []
    dk, dv = (torch.zeros(1, x.shape[1], case.head_dim, device=q.device) for x in (k, v))
    for first, last in strips:
        rows = slice(first, last)
        queries = q[:1, rows, :heads].detach().to(dtype).requires_grad_(backward)
        with torch.set_grad_enabled(backward):
            out, _ = attention_ref(queries, *keys, row_strip(mask, first, last), dtype=dtype)
        outs.append(out[0].detach().float())
        if backward:
            dq, dk_part, dv_part = torch.autograd.grad(out, (queries, *keys), dout[:1, rows, :heads].to(out.dtype))
            dqs.append(dq[0].float())
            dk += dk_part[0].transpose(0, 1).float()
            dv += dv_part[0].transpose(0, 1).float()
    result = {"out": torch.cat(outs).transpose(0, 1)}
    if backward:
        result |= {"dq": torch.cat(dqs).transpose(0, 1), "dk": dk, "dv": dv}
    return result


def _errors(reference: Reference, name: str, got: torch.Tensor) -> Errors:
    truth = reference.truth[name]
    difference = (got.float() - truth).abs()  # [samples, heads, rows or Sk, D]
    rows = reference.rows if name in ("out", "dq") else torch.arange(truth.shape[2], device=truth.device)
    length = reference.dout.shape[1] if name in ("out", "dq") else truth.shape[2]
    return Errors(
        _largest(difference), _largest((reference.naive[name] - truth).abs()), truth.abs().max().item(),
        places=_places(difference, rows, length), worst=_worst(reference, difference, rows),
    )  # fmt: skip


def _largest(difference: torch.Tensor) -> float | None:
    value = difference.max().item()
    return value if math.isfinite(value) else None


def _places(difference: torch.Tensor, rows: torch.Tensor, length: int) -> tuple[float | None, ...]:
    """The largest difference in each of up to PLACES equal parts of the sequence, as `Errors.places` has it."""
    count = min(PLACES, length)
    by_row = difference.amax(dim=(0, 1, 3))
    by_row = torch.where(by_row.isfinite(), by_row, torch.inf)
    part = torch.div(rows * count, length, rounding_mode="floor")
    found = torch.full((count,), -1.0, device=by_row.device).scatter_reduce(0, part, by_row, "amax")
    return tuple(None if x < 0 else -1.0 if math.isinf(x) else float(f"{x:.3g}") for x in found.tolist())


def _worst(reference: Reference, difference: torch.Tensor, rows: torch.Tensor) -> tuple[int, int, int, int]:
    """(batch entry, head, position, channel) of the largest difference, or of the first that is no number."""
    at = int(torch.where(difference.isfinite(), difference, torch.inf).argmax())
    place = []
    for size in reversed(difference.shape):
        at, rest = divmod(at, size)
        place.append(rest)
    channel, row, head, sample = place
    return reference.samples[sample], head, int(rows[row]), channel
