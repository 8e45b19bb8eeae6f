"""The paper's kernel tables beside what its samples say: its rows by our names, the tiles of its masks, two findings.

Counting the tiles of twelve masks at three lengths over five samples takes half a minute, so the counts are shipped in
data/paper_tiles.json; `python -m flashmask_core.bench.paper` makes that file anew.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch

from ..data import DATA, PAPER_LENGTHS, PAPER_MASKS, PaperSample, default_sample, paper_mask_text, paper_samples, read
from ..masks.column_mask import ColumnMask
from ..masks.language import mask as build
from ..tiles.classify import classify_tiles
from .measure import PASS_FLOPS
from .reproduce import ENGINES, HIDDEN, TOKENS

DIRECTIONS = ("forward", "backward")
_TABLE_NAMES = dict(
    zip(
        ("Full", "Causal", "Sliding Window", "Causal Document Mask", "Document Mask", "Share Question Mask",
         "Global Sliding Window", "Causal Blockwise Mask", "Prefix LM Document Mask", "Prefix LM Causal Mask",
         "QK-sparse Mask", "Random Eviction Mask"),
        PAPER_MASKS,
    )
)  # fmt: skip
_OF_SAMPLES = ("causal_document", "document", "share_question", "causal_blockwise", "prefix_lm_document", "qk_sparse")


@dataclass(frozen=True)
class PaperRow:
    """A row of the paper's tables, on an A100: times in ms and TFLOP/s by (engine, direction), rho with two digits."""

    mask: str  # one of PAPER_MASKS
    seqlen: int
    head_dim: int
    rho: float
    ms: dict[tuple[str, str], float]
    tflops: dict[tuple[str, str], float]

    def own_rho(self, engine: str = "flashmask", direction: str = "forward") -> float:
        """The share of skipped tiles that its time and TFLOP/s stand for, to more digits than `rho`."""
        whole = 4 * TOKENS * self.seqlen * HIDDEN * PASS_FLOPS[direction] / self.ms[engine, direction] / 1e9
        return 1 - self.tflops[engine, direction] / whole


@cache
def paper_rows() -> tuple[PaperRow, ...]:
    """All 72, in the paper's order."""
    rows = []
    for row in read("paper_kernel_tables.json")["rows"]:
        both = {
            what: {(engine, d): row[f"{engine}_{what}"][i] for engine in ENGINES for i, d in enumerate(DIRECTIONS)}
            for what in ("ms", "tflops")
        }
        rows.append(PaperRow(_TABLE_NAMES[row["mask"]], row["seqlen"], row["head_dim"], row["rho"], **both))
    return tuple(rows)


def shifted_document(sample: PaperSample) -> ColumnMask:
    """The document mask that the paper's table matches: the upper end moves on by the next document's length.

    Documents of lengths l0, l1, …: the columns of document i hide the rows before l1 + … + li in place of those before
    l0 + … + l(i-1).
    """
    lengths = np.array(sample.document_lengths)
    ends, upper = np.cumsum(lengths), np.cumsum(lengths) - lengths[0]
    packed = np.stack([np.repeat(ends, lengths), np.repeat(upper, lengths)], axis=-1)
    indices = torch.from_numpy(packed.astype(np.int32))[None, None]
    return ColumnMask.from_startend_row_indices(indices, causal=False, seqlen_q=sample.seqlen)


def mean_rho(masks, rule: str = "paper") -> float:
    """Of 128 x 128 tiles, over several masks."""
    return float(np.mean([classify_tiles(mask, 128, 128, rule).rho[0, 0] for mask in masks]))


def sample_masks(name: str, seqlen: int) -> list[ColumnMask]:
    """A mask of the paper for each of the authors' five samples, or the one that does not depend on them."""
    samples = paper_samples(seqlen) if name in _OF_SAMPLES else [default_sample(seqlen)]
    return [build(paper_mask_text(name, seqlen, sample), seqlen) for sample in samples]


@cache
def paper_tiles() -> dict[tuple[str, int], dict]:
    """(name, seqlen) -> counts of 128 x 128 tiles, as data/paper_tiles.json has them.

    "mean": [EMPTY, PARTIAL, FULL] over the five samples, "default": those of the sample that is timed; "rho": the mean
    by the paper's rule, "exact": by ours. The name "shifted_document" is `shifted_document`'s mask.
    """
    rows = read("paper_tiles.json")["rows"]
    return {(row["mask"], row["seqlen"]): {k: v for k, v in row.items() if k not in ("mask", "seqlen")} for row in rows}


def count_tiles(name: str, seqlen: int) -> dict:
    """The entry of `paper_tiles`, counted."""
    if name == "shifted_document":
        masks = [shifted_document(sample) for sample in paper_samples(seqlen)]
        default = shifted_document(default_sample(seqlen))
    else:
        masks, default = sample_masks(name, seqlen), build(paper_mask_text(name, seqlen), seqlen)
    count = lambda mask: classify_tiles(mask).counts[0, 0].tolist()  # noqa: E731
    return {
        "mean": np.mean([count(mask) for mask in masks], axis=0).round(2).tolist(),
        "default": count(default),
        "rho": round(mean_rho(masks), 4),
        "exact": round(mean_rho(masks, "exact"), 4),
    }


def _write() -> None:
    rows = [
        {"mask": name, "seqlen": n, **count_tiles(name, n)}
        for n in PAPER_LENGTHS for name in (*PAPER_MASKS, "shifted_document")
    ]  # fmt: skip
    about = "Tiles of 128 x 128 of the paper's masks; see flashmask_core.bench.paper.paper_tiles, which also wrote it."
    lines = ",\n".join(json.dumps(row) for row in rows)
    (DATA / "paper_tiles.json").write_text(f'{{"about": {json.dumps(about)}, "rows": [\n{lines}\n]}}\n', "utf-8")


if __name__ == "__main__":
    _write()
