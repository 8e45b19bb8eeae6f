"""Positions in the key sequence: q = q_idx + Sk - Sq, so that the last query meets the last key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .runs import MaskedRuns


@dataclass(frozen=True)
class Positions:
    """The positions of Sq queries and Sk keys, and masks from the queries that see each key.

    Rows before the first key (q < 0, with Sq > Sk) may come out any way: the language hides them afterwards.
    """

    seqlen_q: int
    seqlen_k: int

    @property
    def offset(self) -> int:
        """Sk - Sq: what has to be added to a row number to get its position q."""
        return self.seqlen_k - self.seqlen_q

    @property
    def first_q(self) -> int:
        """The lowest position q >= 0 that there is; the highest is Sk - 1."""
        return max(0, self.offset)

    @property
    def q(self) -> np.ndarray:
        """int64: the positions q >= 0 that there are, one row below the other."""
        return np.arange(self.first_q, self.seqlen_k)

    @property
    def k(self) -> np.ndarray:
        """int64 [Sk]: the key positions."""
        return np.arange(self.seqlen_k)

    def show(self, first, last) -> MaskedRuns:
        """Every key is seen by the queries at the positions first <= q < last; arrays [Sk] or numbers."""
        rows = (np.subtract(first, self.offset), np.subtract(last, self.offset))
        return MaskedRuns.show(*rows, seqlen_q=self.seqlen_q, seqlen_k=self.seqlen_k)

    def hide(self, first, last) -> MaskedRuns:
        """Every key is hidden from the queries at the positions first <= q < last; arrays [Sk] or numbers."""
        rows = (np.subtract(first, self.offset), np.subtract(last, self.offset))
        return MaskedRuns.hide(*rows, seqlen_q=self.seqlen_q, seqlen_k=self.seqlen_k)
