"""What the page shows, as plain numbers: the paper's row and the measured ones of each mask, and the two findings."""

from __future__ import annotations

from dataclasses import dataclass, field

from flashmask_core.bench.history import History
from flashmask_core.bench.paper import PaperRow, mean_rho, paper_rows, paper_tiles, sample_masks, shifted_document
from flashmask_core.bench.recorded import RECORDED_DEVICE, shipped_devices, shipped_results
from flashmask_core.bench.reproduce import TOKENS, Block
from flashmask_core.bench.result import BenchRow, DeviceInfo, short_name
from flashmask_core.bench.row_check import check_row
from flashmask_core.data import PAPER_LENGTHS, PAPER_MASKS, paper_samples

ENGINES = {"flashmask": "FlashMask", "flex": "FlexAttention"}


@dataclass(frozen=True)
class Times:
    """Of one mask and engine, for the paper's 131,072 tokens: ms, TFLOP/s over the tiles that are not skipped."""

    ms: float
    tflops: float
    batch: int  # that was measured; other times are scaled to the paper's
    backend: str = ""  # the kernel behind it
    source: tuple[tuple[DeviceInfo | None, str], ...] = field(default=(), compare=False)  # where and when, a pair a pass


@dataclass(frozen=True)
class Line:
    """A mask: rho as the paper prints it, as its FlashMask row's times and TFLOP/s have it, by its rule over the samples,
    and of the sample that is timed. here: None where it was not measured."""

    mask: str
    paper_rho: float
    own_rho: float
    rho: float
    timed_rho: float
    paper: dict[str, Times]  # by engine, on the A100
    here: dict[str, Times | None]

    def gain(self, whose: dict) -> float | None:
        """Percent by which FlashMask's TFLOP/s exceed FlexAttention's."""
        ours, flex = whose["flashmask"], whose["flex"]
        return 100 * (ours.tflops / flex.tflops - 1) if ours and flex else None


def measured(lines: list[Line]) -> bool:
    """Whether anything of a table was measured here."""
    return any(any(line.here.values()) for line in lines)


def lines(block: Block, time: str, rows: list[BenchRow]) -> list[Line]:
    """The table of a block; `time` is "forward", "backward" or "total"."""
    of_paper = {row.mask: row for row in paper_rows() if (row.seqlen, row.head_dim) == (block.seqlen, block.head_dim)}
    found = []
    for name in PAPER_MASKS:
        tiles, row = paper_tiles()[name, block.seqlen], of_paper[name]
        timed = tiles["default"][0] / sum(tiles["default"])
        here = {engine: _measured(rows, name, engine, block, time) for engine in ENGINES}
        paper = {engine: _of_paper(row, engine, time) for engine in ENGINES}
        found.append(Line(name, row.rho, row.own_rho(), tiles["rho"], timed, paper, here))
    return found


def _directions(time: str) -> tuple[str, ...]:
    return ("forward", "backward") if time == "total" else (time,)


def _of_paper(row: PaperRow, engine: str, time: str) -> Times:
    parts = [(row.ms[engine, d], row.tflops[engine, d]) for d in _directions(time)]
    return _together(parts, TOKENS // row.seqlen)


def _measured(rows: list[BenchRow], name: str, engine: str, block: Block, time: str) -> Times | None:
    """The newest rows of the paper's shape, else of one that differs in the batch alone."""
    parts, batch, backend, source = [], block.batch, "", []
    for direction in _directions(time):
        fit = [
            row for row in rows
            if row.mask_name == name and row.provider.startswith(engine) and row.direction == direction
            and (row.seqlen_q, row.seqlen_k, row.head_dim) == (block.seqlen, block.seqlen, block.head_dim)
            and row.heads == row.kv_heads == block.heads and row.dtype == "bfloat16"
            and row.sound and (engine == "flashmask" or row.provider == "flex")
        ]  # fmt: skip
        if not fit:
            return None
        best = max(fit, key=lambda row: (row.batch == block.batch, row.backend == "hopper", row.date_utc or ""))
        batch, backend = best.batch, best.backend or ""
        source.append((best.where, (best.date_utc or "")[:10]))
        parts.append((best.median_ms * block.batch / batch, best.tflops_rho))
    return _together(parts, batch, backend, tuple(source))


def _together(parts: list[tuple[float, float]], batch: int, backend: str = "", source=()) -> Times:
    ms = sum(part[0] for part in parts)
    return Times(ms, sum(part[0] * part[1] for part in parts) / ms, batch, backend, source)


def sources(lines: list[Line]) -> list[tuple[DeviceInfo | None, str]]:
    """Where and on which day the measured times of a table were taken, each once, the newest first."""
    found = dict.fromkeys(one for line in lines for times in line.here.values() if times for one in times.source)
    return sorted(found, key=lambda one: one[1], reverse=True)


def recorded() -> dict[str, list[BenchRow]]:
    """ "H200, recorded" -> the shipped rows of the paper's masks; behind it each other GPU that the recording holds."""
    devices = dict.fromkeys((RECORDED_DEVICE, *shipped_devices()))
    return {
        f"{short_name(device)}, recorded": [r for r in shipped_results(device) if r.mask_name in PAPER_MASKS]
        for device in devices
    }


def device_of(rows: list[BenchRow]) -> str:
    """What columns and curves of a source are called: the short name of its GPU; of none yet the one that is recorded."""
    return next((row.where.short_name for row in rows if row.where), short_name(RECORDED_DEVICE))


def local() -> dict[str, list[BenchRow]]:
    """ "GPU, this machine" or "GPU, from a file" -> rows of the paper's masks in the history, the latest last; empty where
    nothing can be read."""
    found: dict[str, list[BenchRow]] = {}
    try:
        history = History()
        for run in reversed(history.runs()):
            origin = "this machine" if run.origin == "here" else f"from {run.origin}"
            for row in _readable(history, run.id) if run.device else ():
                if _of_paper_shape(row) and row.where and row.sound and _can_be_right(row):
                    found.setdefault(f"{row.where.device}, {origin}", []).append(row)
    except ValueError:
        return {}
    return found


def _of_paper_shape(row: BenchRow) -> bool:
    return row.mask_name in PAPER_MASKS and row.seqlen_q in PAPER_LENGTHS


def _can_be_right(row: BenchRow) -> bool:
    """Whether a row, which may be of somebody's file, can be counted with."""
    try:
        check_row(row)
    except ValueError:
        return False
    return True


def _readable(history: History, run_id: str) -> list[BenchRow]:
    try:
        return history.rows(run_id)
    except ValueError:  # Measure, where the run can be chosen, says why
        return []


@dataclass(frozen=True)
class DocumentFinding:
    """At a length: rho as the paper prints it for document, the least and the most its rows stand for, those of two masks."""

    seqlen: int
    printed: float
    paper: tuple[float, float]
    document: float
    shifted: float

    @property
    def tells(self) -> bool:
        """Whether the two masks lie further apart than the paper's own rows, so that these say which it is."""
        low, high = self.paper
        return abs(self.shifted - self.document) > high - low


def _row(mask: str, seqlen: int):
    """The paper's own row of a mask at head dim 128."""
    return next(row for row in paper_rows() if (row.mask, row.seqlen, row.head_dim) == (mask, seqlen, 128))


def document_finding(seqlen: int) -> DocumentFinding:
    """Counted over the five samples."""
    shifted = [shifted_document(sample) for sample in paper_samples(seqlen)]
    return _document_finding(seqlen, mean_rho(sample_masks("document", seqlen)), mean_rho(shifted))


def document_elsewhere(seqlen: int) -> list[DocumentFinding]:
    """At the paper's other lengths, from the counts that are shipped."""
    return [
        _document_finding(n, paper_tiles()["document", n]["rho"], paper_tiles()["shifted_document", n]["rho"])
        for n in PAPER_LENGTHS if n != seqlen
    ]  # fmt: skip


def _document_finding(seqlen: int, document: float, shifted: float) -> DocumentFinding:
    rows = [row for row in paper_rows() if (row.mask, row.seqlen) == ("document", seqlen)]
    own = [row.own_rho("flashmask", direction) for row in rows for direction in _directions("total")]
    return DocumentFinding(seqlen, rows[0].rho, (min(own), max(own)), document, shifted)


@dataclass(frozen=True)
class ExactFinding:
    """qk_sparse at a length: rho by the exact rule and by equation 4, and those that the paper's own rows stand for."""

    seqlen: int
    exact: float
    minmax: float
    paper_flex: float
    paper_flashmask: float


def exact_finding(seqlen: int) -> ExactFinding:
    """Counted over the five samples."""
    row = _row("qk_sparse", seqlen)
    masks = sample_masks("qk_sparse", seqlen)
    return ExactFinding(seqlen, mean_rho(masks, "exact"), mean_rho(masks), row.own_rho("flex"), row.own_rho())
