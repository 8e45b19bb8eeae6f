"""The paper's benchmark data, shipped with the library: packings, rho, and its twelve masks as mask language.

The packings are the authors' own (`source` in paper_samples.json): for each of three lengths five samples of document
lengths, prefix lengths and QK-sparse flags.

    sample = paper_samples(8192)[1]
    fm.mask(paper_mask_text("causal_document", 8192, sample), 8192)
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DATA = Path(__file__).parent
PAPER_LENGTHS = (8192, 32768, 131072)

PAPER_MASKS = (
    "full",
    "causal",
    "sliding_window",
    "causal_document",
    "document",
    "share_question",
    "global_sliding_window",
    "causal_blockwise",
    "prefix_lm_document",
    "prefix_lm_causal",
    "qk_sparse",
    "random_eviction",
)
"""The paper's twelve masks, in the order of its tables."""

DEFAULT_SAMPLE = {8192: 1, 32768: 2, 131072: 2}
"""Which of the five samples our own timings use: the one with the median number of documents."""


@dataclass(frozen=True)
class PaperSample:
    """One packing of documents; the three tuples have one entry a document."""

    document_lengths: tuple[int, ...]
    prefix_lengths: tuple[int, ...]
    qk_sparse_flags: tuple[bool, ...]  # True: the document's own lower triangle is hidden by qk_sparse

    @property
    def seqlen(self) -> int:
        """Tokens of all documents together."""
        return sum(self.document_lengths)

    def scaled(self, seqlen: int) -> "PaperSample":
        """The same packing shrunk or stretched to another total length; each document keeps its share of it."""
        if seqlen < len(self.document_lengths):
            raise ValueError(f"seqlen: wanted at least one token for each of {len(self.document_lengths)} documents")
        ends, end = [], 0
        for length in self.document_lengths:
            end += length
            ends.append(end * seqlen // self.seqlen)
        lengths = [b - a for a, b in zip([0] + ends, ends)]
        prefixes = [p * new // old for p, new, old in zip(self.prefix_lengths, lengths, self.document_lengths)]
        return PaperSample(tuple(lengths), tuple(prefixes), self.qk_sparse_flags)


def paper_samples(seqlen: int) -> list[PaperSample]:
    """The authors' five packings of `seqlen` tokens; ValueError for a length they did not publish."""
    if seqlen not in PAPER_LENGTHS:
        raise ValueError(
            f"seqlen: the paper has samples of {', '.join(map(str, PAPER_LENGTHS))} tokens, not of {seqlen}; "
            f"paper_samples(8192)[i].scaled({seqlen}) makes one"
        )
    return [
        PaperSample(
            tuple(sample["document_lengths"]),
            tuple(sample["prefix_lengths"]),
            tuple(map(bool, sample["qk_sparse_flags"])),
        )
        for sample in read("paper_samples.json")["samples"][str(seqlen)]
    ]


def default_sample(seqlen: int) -> PaperSample:
    """The packing our own timings use at this length; at a length that is not the paper's, the 8192 one scaled."""
    if seqlen in PAPER_LENGTHS:
        return paper_samples(seqlen)[DEFAULT_SAMPLE[seqlen]]
    return paper_samples(8192)[DEFAULT_SAMPLE[8192]].scaled(seqlen)


def paper_rho() -> dict:
    """Mean rho of the five samples at 128x128 by the paper's rule: {"seqlen": [...], mask name: [a value a length]}."""
    return read("paper_rho.json")


def paper_mask_text(name: str, seqlen: int, sample: PaperSample | None = None) -> str:
    """One of PAPER_MASKS as a text of the mask language; sample=None takes `default_sample(seqlen)`.

    Window and prefix sizes follow the paper's benchmark: windows of seqlen/16 keys (the query's own among them), 16
    global tokens, a prefix of seqlen/2. Where the authors' samples are silent: each document of share_question is a
    question of length // 4 and three answers of equal length, the last of which takes the rest; random_eviction begins
    at row seqlen/2, with seed 0.
    """
    if name not in PAPER_MASKS:
        raise ValueError(f"name: wanted one of {', '.join(PAPER_MASKS)}, got {name!r}")
    sample = default_sample(seqlen) if sample is None else sample
    if sample.seqlen != seqlen:
        raise ValueError(f"sample: its documents have {sample.seqlen} tokens together, not seqlen = {seqlen}")
    window = seqlen // 16
    documents = ", ".join(map(str, sample.document_lengths))
    match name:
        case "sliding_window":
            return f"sliding_window({window})"
        case "causal_document" | "document" | "causal_blockwise":
            return f"{name}({documents})"
        case "share_question":
            return f"share_question({', '.join(str(_question_and_answers(n)) for n in sample.document_lengths)})"
        case "global_sliding_window":
            return f"global_sliding_window(16, {window}, {window})"
        case "prefix_lm_document":
            pairs = zip(sample.prefix_lengths, sample.document_lengths)
            return f"prefix_lm_document({', '.join(map(str, pairs))})"
        case "prefix_lm_causal":
            return f"prefix_lm({seqlen // 2})"
        case "qk_sparse":
            runs, offset = [], 0
            for length, flag in zip(sample.document_lengths, sample.qk_sparse_flags):
                if flag:
                    runs.append((offset, length))
                offset += length
            return f"qk_sparse({', '.join(map(str, runs))})" if runs else "causal"
        case "random_eviction":
            return f"random_eviction({seqlen // 2}, 0)"
        case _:  # full, causal
            return name


def _question_and_answers(length: int) -> tuple[int, int, int, int]:
    """(question, answer, answer, answer) of a document, where the authors' samples are silent."""
    question = length // 4
    answer = (length - question) // 3
    return question, answer, answer, length - question - 2 * answer


@cache
def read(name: str) -> dict:
    """A JSON file of this folder."""
    return json.loads((DATA / name).read_text(encoding="utf-8"))
