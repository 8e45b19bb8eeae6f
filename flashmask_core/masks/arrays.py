"""What every function that takes somebody's array asks of it before it reads or copies it."""

from __future__ import annotations

import numpy as np
import torch

MAX_DENSE_PAIRS = 1 << 32  # of a dense mask that is handed over as an array: 65,536 x 65,536


def check_pairs(visible, name: str) -> None:
    """ValueError if `visible` has more pairs than a dense mask may; an expanded array has many and no memory."""
    shape = getattr(visible, "shape", ())
    pairs = int(np.prod(shape, dtype=object))
    if pairs > MAX_DENSE_PAIRS:
        raise ValueError(
            f"{name}: a dense mask of {list(shape)} has {pairs:,} pairs, more than {MAX_DENSE_PAIRS:,}; write it as a "
            f"text (flashmask_core.mask) or as startend_row_indices"
        )


def numpy_of(tensor: torch.Tensor, name: str) -> np.ndarray:
    """The numbers of a tensor on any device; TypeError naming `name` for one that has none to read."""
    if tensor.layout != torch.strided:
        raise TypeError(f"{name}: wanted a dense tensor, got one of layout {tensor.layout}; call .to_dense() first")
    if tensor.is_meta or tensor.is_quantized:
        raise TypeError(f"{name}: wanted a tensor that holds numbers, got {tensor.dtype} on {tensor.device}")
    try:
        return tensor.detach().cpu().numpy()
    except (RuntimeError, NotImplementedError) as error:  # a subclass that holds none: a fake or functional tensor
        raise TypeError(f"{name}: wanted a plain tensor, got {type(tensor).__name__} ({str(error)[:100]})") from None
