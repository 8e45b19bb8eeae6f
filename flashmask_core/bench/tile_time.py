"""About how long a mask takes, from its tiles: a rate for each kind of work, fitted to measured runs.

A kernel's time is, to a few percent, a sum over what it does:

    time = B * H * (p * PARTIAL + f * FULL + r * blocks of rows + v * vectors * (PARTIAL + FULL) + s * skipped)

with tiles of 128 x 128, or as many as the kernel's own tiles are worth where these have more rows. `vectors` is how many
vectors the mask's packing has (none for full and causal), since each is held against every computed tile. Only a kernel
that looks at every tile pays for skipped ones: the paper's does, ours and FlexAttention's get the tiles they have to
compute as a list. A mask whose fullest line of tiles would keep one multiprocessor busy for longer than the sum takes that long.

The rates, five at most, are the least squares of the relative error over the rows of one GPU, head dim and direction
(12 of a length on the H200, 36 of the paper's), none below 0, and with one thing known beforehand: a PARTIAL tile costs
as much as a FULL one and its element test, which beside the two products of D 128 is about 15 % more, give or take as
much; beside products half as long twice that, beside the five of the backward pass two fifths. Without it the masks with
few PARTIAL tiles say nothing about one with many. The error that is told is that on masks of families, and on lengths,
which the fit did not see.

Of the paper's masks the tiles are counted in the authors' samples, and then scaled to as many as the row's own time and
TFLOP/s stand for: how share_question's documents are split was not published, and ours are other ones.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from ..data import paper_mask_text
from ..masks.column_mask import ColumnMask
from ..masks.language import mask as build
from .config import BenchCase
from .estimate import estimate_bytes
from .measure import PASS_FLOPS
from .paper import DIRECTIONS, PaperRow, paper_rows, paper_tiles
from .providers import OUR_BACKENDS
from .recorded import shipped_results
from .reproduce import ENGINES, HIDDEN, TOKENS
from .result import BenchRow
from .tile_work import BLOCK, RATES, Work, packing

HBM_BYTES_PER_MS = 3.5e9  # of an H200, in practice
_MERGED_BYTES = 26  # moved an element of out for every pass that is merged, by PyTorch operations one after the other
_FEWEST_FAMILIES = 8
_TEST_SHARE = 0.15  # of a FULL tile's forward time at D 128, for the element test of a PARTIAL one, give or take as much
_TILE_ROWS = {("hopper", 64, "forward"): 192}  # where a kernel's tiles have other rows than BLOCK, as `hopper_launch` says
_MULTIPROCESSORS = {"H200": 132, "A100": 108}
GPUS = tuple(_MULTIPROCESSORS)


@dataclass(frozen=True)
class TimeModel:
    """The rates of one engine on one GPU, at a head dim and in a direction.

    rates: ms of a unit of each of RATES for one head on the whole GPU; device, backend, basis and lengths say what was
    fitted; fit_errors: relative, of every row; held_out: the worst relative error of each family of masks by the rates
    that the others give; held_out_lengths: of each length likewise, empty where there is one alone.
    """

    engine: str
    gpu: str
    head_dim: int
    direction: str
    device: str
    backend: str
    basis: str
    lengths: tuple[int, ...]
    rates: tuple[float, ...]
    fit_errors: tuple[float, ...] = field(repr=False)
    held_out: dict[str, float] = field(repr=False)
    held_out_lengths: dict[int, float] = field(repr=False)

    @property
    def worst_error(self) -> float:
        """The largest relative error on a family or a length that was left out: the error bar."""
        return max(*self.held_out.values(), *self.held_out_lengths.values())

    @property
    def mean_error(self) -> float:
        """The mean over the families of their largest relative error when left out."""
        return float(np.mean(list(self.held_out.values())))

    def covers(self, *lengths: int) -> bool:
        """Whether the lengths are within those that the rates were fitted to, so that the error bar means something."""
        return all(self.lengths[0] <= n <= self.lengths[-1] for n in lengths)

    def work(self, mask: ColumnMask) -> Work:
        """What this kernel does for a mask."""
        return Work.of(mask, _tile_rows(self.backend, self.head_dim, self.direction))

    def ms(self, work: Work, planes: int) -> float:
        """Of B x H = `planes` heads of a mask."""
        return max(self._whole_and_line(work, planes))

    def fills(self, work: Work, planes: int) -> bool:
        """Whether so many heads have work for the whole GPU, as all that were measured, and not for a line of tiles alone."""
        whole, line = self._whole_and_line(work, planes)
        return whole >= line

    def _whole_and_line(self, work: Work, planes: int) -> tuple[float, float]:
        """ms of the sum, shared by all multiprocessors, and of the fullest line of tiles on one of them."""
        whole = planes * float(np.dot(self.rates, work.amounts))
        return whole, work.fullest[self.direction == "backward"] * self.rates[1] * _MULTIPROCESSORS[self.gpu]


@lru_cache(maxsize=None, typed=True)
def time_model(head_dim: int = 128, direction: str = "forward", gpu: str = "H200", engine: str = "flashmask") -> TimeModel | None:
    """The model of our kernels or of FlexAttention on an H200, from the recorded runs, or on an A100, from the paper's tables.

    None where too few masks were measured. ValueError for a head_dim that is no positive int, a direction other than
    "forward" and "backward", a GPU that is none of GPUS, an engine that is none of ENGINES.
    """
    if type(head_dim) is not int or head_dim < 1:
        raise ValueError(f"head_dim: wanted a whole number such as 64 or 128, got {head_dim!r}")
    for name, given, allowed in (("direction", direction, DIRECTIONS), ("gpu", gpu, GPUS), ("engine", engine, ENGINES)):
        if given not in allowed:
            raise ValueError(f"{name}: wanted one of {', '.join(allowed)}, got {given!r}")
    rows, device, backend, basis = _measured(gpu, head_dim, direction, engine)
    if len({row.family for row in rows}) < _FEWEST_FAMILIES:
        return None
    amounts, times = np.array([row.amounts for row in rows]), np.array([row.ms for row in rows])
    test = _TEST_SHARE * 128 / head_dim / PASS_FLOPS[direction]

    def left_out(what) -> dict:
        """The worst relative error on the rows of each value of `what` by the rates of all others."""
        values, found = [what(row) for row in rows], {}
        for value in dict.fromkeys(values) if len(set(values)) > 1 else ():
            out = np.array([one == value for one in values])
            told = amounts[out] @ _fit(amounts[~out], times[~out], test)
            found[value] = float(abs(told / times[out] - 1).max())
        return found

    rates = _fit(amounts, times, test)
    errors = tuple((amounts @ rates / times - 1).tolist())
    lengths = tuple(sorted({row.seqlen for row in rows}))
    return TimeModel(
        engine, gpu, head_dim, direction, device, backend, basis, lengths, tuple(rates.tolist()), errors,
        left_out(lambda row: row.family), dict(sorted(left_out(lambda row: row.seqlen).items())),
    )  # fmt: skip


def dense_ms(seqlen_q: int, seqlen_k: int, heads: int, *, planes: int = 1) -> float | None:
    """About how long PyTorch's SDPA takes for a forward pass of one batch entry at head dim 128 with a dense mask of so
    many planes: scaled by the pairs from the fastest recorded run, since no pair is skipped whatever the mask.

    None where nothing was recorded, and where so large a mask does not fit the recorded GPU.
    """
    timed = [
        (row.median_ms / (row.batch * row.heads * row.seqlen_q * row.seqlen_k), row.where.total_memory_bytes)
        for row in shipped_results()
        if row.provider.startswith("sdpa_dense") and (row.direction, row.head_dim) == ("forward", 128)
    ]  # fmt: skip
    if not timed:
        return None
    ms_a_pair, memory = min(timed)
    case = BenchCase("", seqlen_q, seqlen_k, heads=heads, passes=("forward",))
    if estimate_bytes(case, "dense", 1, planes).total > memory:
        return None
    return ms_a_pair * heads * seqlen_q * seqlen_k


def _fit(amounts: np.ndarray, times: np.ndarray, test: float) -> np.ndarray:
    """The rates; those that would be below 0 are 0. test: an element test as a share of a FULL tile's time."""
    share = amounts / times[:, None]
    used = list(np.flatnonzero(share.any(0)))
    while True:
        known = np.zeros(share.shape[1])
        known[0], known[1] = 1.0, -(1 + test)
        known *= share[:, 1].max() / test
        found, *_ = np.linalg.lstsq(
            np.vstack([share, known])[:, used], np.r_[np.ones(len(times)), 0.0], rcond=None
        )  # fmt: skip
        if found.min() >= 0:
            break
        del used[int(found.argmin())]
    rates = np.zeros(share.shape[1])
    rates[used] = found
    return rates


class _Row(NamedTuple):
    """One measured time, with the amounts of all B x H heads."""

    family: str
    seqlen: int
    amounts: np.ndarray
    ms: float


def _measured(gpu: str, head_dim: int, direction: str, engine: str) -> tuple[list[_Row], str, str, str]:
    """(rows, device, backend, basis)."""
    if gpu == "A100":
        rows = [_paper_row(row, direction, engine) for row in paper_rows() if row.head_dim == head_dim]
        return rows, "NVIDIA A100-SXM 80GB", "the paper's", "the paper's tables"
    by_backend = defaultdict(list)
    for row in shipped_results():
        shape = (row.dtype, row.heads, row.head_dim, row.direction) == ("bfloat16", row.kv_heads, head_dim, direction)
        if row.provider.startswith(engine) and shape:
            by_backend[row.backend].append(row)
    for backend in OUR_BACKENDS if engine == "flashmask" else by_backend:
        rows = _newest(by_backend[backend])
        if rows:
            found = [_recorded_row(row) for row in rows]
            lengths = ", ".join(f"{n:,}" for n in sorted({row.seqlen for row in found}))
            return found, rows[0].where.device, backend, f"{len(rows)} recorded runs at N {lengths}"
    return [], "", "", ""


def _tile_rows(backend: str, head_dim: int, direction: str) -> int:
    return _TILE_ROWS.get((backend, head_dim, direction), BLOCK)


def _recorded_row(row: BenchRow) -> _Row:
    rows = _tile_rows(row.backend, row.head_dim, row.direction)
    amounts = np.array(recorded_work(row, rows).amounts)
    amounts[RATES.index("skipped")] = 0.0  # neither engine comes by them
    return _Row(row.mask_name or row.mask, row.seqlen_k, row.batch * row.heads * amounts, row.median_ms)


def _paper_row(row: PaperRow, direction: str, engine: str) -> _Row:
    """The mean of its samples, scaled to the row's own rho; its document rows are those of another mask."""
    counts = paper_tiles()["shifted_document" if row.mask == "document" else row.mask, row.seqlen]["mean"]
    scale = (1 - row.own_rho(engine, direction)) * sum(counts) / (sum(counts) - counts[0])
    work = Work.counted((0, *(scale * count for count in counts[1:])), row.seqlen, row.seqlen, *_paper_packing(row.mask))
    planes = TOKENS // row.seqlen * HIDDEN // row.head_dim
    amounts = np.array(work.amounts)
    if engine == "flex":
        amounts[RATES.index("skipped")] = 0.0
    return _Row(row.mask, row.seqlen, planes * amounts, row.ms[engine, direction])


def _newest(rows):
    """The rows of the newest version of the kernels that has enough of them; else none."""
    commits = defaultdict(list)
    for row in rows:
        commits[row.where.commit].append(row)
    enough = [some for some in commits.values() if len({row.mask for row in some}) >= _FEWEST_FAMILIES]
    return max(enough, key=lambda some: max(row.date_utc or "" for row in some), default=[])


def recorded_work(row: BenchRow, rows: int = BLOCK) -> Work:
    """The work of a recorded mask, by tiles of `rows` x 128; kept, and for the paper's masks of 128 rows not counted."""
    return _recorded_work(row.mask, row.mask_name, row.seqlen_q, row.seqlen_k, rows)


@cache
def _recorded_work(text: str, name: str, seqlen_q: int, seqlen_k: int, rows: int) -> Work:
    """Of a recorded mask; the tiles of the paper's are counted already."""
    if rows == BLOCK and seqlen_q == seqlen_k and (name, seqlen_q) in paper_tiles() and text == paper_mask_text(name, seqlen_q):
        return Work.counted(paper_tiles()[name, seqlen_q]["default"], seqlen_q, seqlen_k, *_paper_packing(name))
    return Work.of(build(text, seqlen_q, seqlen_k), rows)


@cache
def _paper_packing(name: str) -> tuple[bool, int]:
    return packing(build(paper_mask_text(name, 8192), 8192).canonical())


def merge_ms(passes: int, batch: int, seqlen_q: int, heads: int, head_dim: int) -> float:
    """Milliseconds to merge the outputs of so many passes by their lse; 0 for one."""
    elements = batch * seqlen_q * heads * head_dim
    return passes * elements * _MERGED_BYTES / HBM_BYTES_PER_MS if passes > 1 else 0.0
