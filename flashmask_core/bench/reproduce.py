"""The paper's kernel tables measured again: which blocks there are, and the cases of each.

A block is one length and one head dim with the paper's twelve masks; the shapes are those of the paper's tables,
131,072 tokens in all and a hidden size of 4096. The blocks go from short to long, so that whoever stops early has whole tables.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..data import PAPER_LENGTHS, PAPER_MASKS, paper_mask_text
from .config import BenchCase
from .providers import CEILINGS, DENSE

TOKENS, HIDDEN = 131072, 4096
HEAD_DIMS = (128, 64)
ENGINES = ("flashmask", "flex")
DENSE_MASK = "causal_document"  # of the paper's masks the one that dense masks and ceilings are timed beside
_DENSE_AT = (8192, 128)  # and the block in which they are


@dataclass(frozen=True)
class Block:
    """The twelve masks at a length and a head dim."""

    seqlen: int
    head_dim: int

    @property
    def name(self) -> str:
        return f"{self.seqlen}x{self.head_dim}"

    @property
    def batch(self) -> int:
        return TOKENS // self.seqlen

    @property
    def heads(self) -> int:
        return HIDDEN // self.head_dim

    def cases(self, engines: tuple[str, ...] = ENGINES, **settings) -> list[BenchCase]:
        """A case a mask, the cheap ones first. At 8K, D 128, dense masks and ceilings too, unless engines are named.

        settings: fields of BenchCase in place of those that suit the length, such as fewer turns of a long one.
        """
        usual = dict(rounds=3, repeat_ms=100.0, warmup_ms=25.0)  # a call longer than that: once a turn, so three times
        cases = []
        for name in PAPER_MASKS:
            beside = engines == ENGINES and name == DENSE_MASK and (self.seqlen, self.head_dim) == _DENSE_AT
            cases.append(
                BenchCase(
                    paper_mask_text(name, self.seqlen), self.seqlen, batch=self.batch, heads=self.heads,
                    head_dim=self.head_dim, mask_name=name, providers=(*engines, *(DENSE + CEILINGS) * beside),
                    **{**usual, **settings},
                )  # fmt: skip
            )
        return sorted(cases, key=lambda case: _ORDER.index(case.mask_name))


BLOCKS = {block.name: block for block in (Block(n, d) for n in PAPER_LENGTHS for d in HEAD_DIMS)}
"""All blocks by name, such as "8192x128"."""

_ORDER = (
    "causal_document", "share_question", "sliding_window", "prefix_lm_document", "document", "global_sliding_window",
    "causal_blockwise", "causal", "qk_sparse", "random_eviction", "prefix_lm_causal", "full",
)  # fmt: skip


def blocks_of(names: str) -> list[Block]:
    """ "all", "none", or names with commas between; ValueError for one that does not exist."""
    wanted = list(dict.fromkeys(name.strip().lower() for name in names.split(",") if name.strip()))
    if wanted == ["none"]:
        return []
    if not wanted or "none" in wanted:
        raise ValueError(f"--reproduce: wanted all, none, or some of {', '.join(BLOCKS)}, got {names[:60]!r}")
    unknown = [name for name in wanted if name not in BLOCKS and name != "all"]
    if unknown:
        raise ValueError(f"--reproduce: {', '.join(unknown)} unknown; there are all, none, {', '.join(BLOCKS)}")
    return list(BLOCKS.values()) if "all" in wanted else [BLOCKS[name] for name in wanted]
