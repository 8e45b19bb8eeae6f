"""Worked examples: masks that people ask for, each as one line of text at a size at which its numbers can be checked.

for example in EXAMPLES.values():
    assert example.mask().visible_pairs().item() == example.pairs
"""

from __future__ import annotations

from dataclasses import dataclass

from .column_mask import ColumnMask
from .language import mask


@dataclass(frozen=True)
class Example:
    """A real case.

    Attributes:
        name: as in a menu. about: one or two sentences that say what it is for and what to look at.
        text, seqlen_q, seqlen_k: the mask (seqlen_k None: as many keys as queries). tile: a tile that suits its size.
        pairs: its visible pairs.
    """

    name: str
    about: str
    text: str
    seqlen_q: int
    pairs: int
    seqlen_k: int | None = None
    tile: tuple[int, int] = (16, 16)

    def mask(self) -> ColumnMask:
        return mask(self.text, self.seqlen_q, self.seqlen_k)


EXAMPLES = {
    example.name: example
    for example in (
        Example(
            "Packed fine-tuning",
            "Three conversations in one sequence, each causal and blind to the others. Of 64 tiles of 128 × 128, 20 "
            "are computed.",
            "causal & document(333, 333, 334)", 1000, 167_167, tile=(128, 128),
        ),
        Example(
            "DPO with a shared prompt",
            "Two prompts, each with a chosen and a rejected answer. The prompt is computed once; the answers do not "
            "see each other.",
            "share_question((96, 80, 64), (128, 72, 72))", 512, 55_744, tile=(32, 32),
        ),
        Example(
            "Prefix-LM documents",
            "Documents whose prompt sees itself to both sides and whose answer is causal.",
            "prefix_lm_document((64, 160), (32, 96), (128, 256))", 512, 61_072, tile=(32, 32),
        ),
        Example(
            "Video frames",
            "8 frames of 16 tokens. A frame sees its neighbours, and everybody sees the key frames 0 and 4.",
            "frames(8, 16, 1, (0, 4))", 128, 8_448,
        ),
        Example(
            "Attention sink and window",
            "A streaming decoder: the last 128 keys, and the first 4 for ever.",
            "sliding_window(128) | causal & (k < 4)", 1024, 126_522, tile=(64, 64),
        ),
        Example(
            "Chunked causal",
            "Both directions inside a chunk of 2, causal from chunk to chunk.",
            "chunk_causal(2)", 200, 20_200,
        ),
        Example(
            "Block diffusion",
            "64 noisy tokens, then the 64 clean ones: a noisy block of 4 sees itself and the clean blocks before it.",
            "block_diffusion(64, 4)", 128, 4_352, tile=(8, 8),
        ),
        Example(
            "Tree decoding",
            "A prompt of 48, and a tree of draft tokens in depth-first order: two branches, each with two leaves. "
            "Depth first, every subtree is one run of rows, so it fits; a node sees the prompt and its ancestors.",
            "causal & ~rect(56, 64, 48, 56) & ~rect(54, 56, 52, 54) & ~rect(62, 64, 60, 62)", 64, 2_008, tile=(8, 8),
        ),
        Example(
            "Decoding",
            "One query and a cache of 777 keys in three documents: bottom-right alignment makes the query the last "
            "token.",
            "causal & document(256, 256, 265)", 1, 265, seqlen_k=777, tile=(1, 64),
        ),
        Example(
            "A chunk of prefill",
            "64 new queries over 128 keys. Aligned bottom-right, they are the second of two documents.",
            "causal & document(64, 64)", 64, 2_080, seqlen_k=128,
        ),
    )
}  # fmt: skip
"""name -> Example, in the order of a menu."""
