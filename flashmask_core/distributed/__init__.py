"""Context parallel attention on torch.distributed, and how a sequence is best dealt to its ranks.

    from flashmask_core.distributed import ContextParallel      # under torchrun, after init_process_group

    cp = ContextParallel(mask)                                  # the whole mask, the same on every rank
    x = embed(cp.shard(tokens))                                 # this rank's tokens; cp.positions for rotary embeddings
    out = cp.attention(q, k, v)                                 # [B, tokens held, H, D], differentiable

`deal(mask, ranks)` and `loads(mask, deal)` need no process group: they say who would hold and receive what.
"""

from .deals import POLICIES, Deal, RankLoad, deal, loads, needed_chunks, rank_mask
from .parallel import ContextParallel

__all__ = ["POLICIES", "ContextParallel", "Deal", "RankLoad", "deal", "loads", "needed_chunks", "rank_mask"]
