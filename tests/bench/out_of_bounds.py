"""A kernel that writes where nothing is, to see what an illegal access does."""

import triton
import triton.language as tl


@triton.jit
def _write(pointer, distance):
    tl.store(pointer + distance + tl.arange(0, 128), 1.0)


def write_out_of_bounds(x) -> None:
    """Write a terabyte behind x."""
    _write[(1,)](x, 2**39)
