"""From the lengths of a dataset to packed sequences, their masks and the arrays that a training script takes.

    from flashmask_core.packing import draw, pack, read_text

    packing = pack(read_text("3000, (500, 200, 210), 1200"), context=8192, policy="best_fit")
    packing.waste, packing.imbalance, packing.sequences[0].text
    packing.arrays()                # position_ids, cu_seqlens, startend_row_indices and their causal flag
"""

from .examples import ANSWERS, MAX_EXAMPLES, Example, draw, examples_of, in_groups, read_file, read_text
from .pack import POLICIES, TOO_LONG, Packing, Sequence, pack

__all__ = ["ANSWERS", "MAX_EXAMPLES", "POLICIES", "TOO_LONG", "Example", "Packing", "Sequence", "draw", "examples_of",
           "in_groups", "pack", "read_file", "read_text"]  # fmt: skip
