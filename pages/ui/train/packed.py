"""What the place says, packed: kept for every screen of the server that asks the same."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from random import Random

import numpy as np
import streamlit as st

from flashmask_core.distributed import POLICIES as DEALS
from flashmask_core.distributed import Deal, RankLoad, deal, loads
from flashmask_core.packing import POLICIES, Packing, Sequence, draw, pack, read_text
from flashmask_core.tiles.classify import classify_tiles

from .place import PackPlace

MOST_DRAWN = 40  # sequences as bars
_LONGEST_CLASSIFIED = 2**22  # tokens of sequences whose tiles are counted


@dataclass(frozen=True)
class Packed:
    """A packing with the share of skipped tiles of its first sequences, and the packings of all policies."""

    packing: Packing
    rho: np.ndarray  # [sequences that were counted]
    others: dict[str, Packing]


@st.cache_resource(max_entries=4, show_spinner="Packing …")
def packed(lengths: str, form: str, context: int, count: int, seed: int, policy: str, long: str) -> Packed:
    """Raises ValueError or TypeError naming what cannot be packed."""
    examples = read_text(lengths) if lengths else draw(context, form, count, seed)
    if not lengths:
        Random(seed).shuffle(examples)  # a dataset does not come in contexts that are full already
    others = {one: pack(examples, context, one, long) for one in POLICIES}
    packing = others[policy]
    counted = packing.sequences[: max(1, _LONGEST_CLASSIFIED // context)][:MOST_DRAWN]
    rho = np.array([float(classify_tiles(one.mask, 128, 128).rho) for one in counted])
    return Packed(packing, rho, others)


def of(place: PackPlace) -> Packed:
    return packed(place.lengths, place.form, place.context, place.count, place.seed, place.policy, place.long)


@st.cache_resource(max_entries=16, show_spinner="Dealing …")
def dealt(text: str, context: int, ranks: int, _sequence: Sequence) -> dict[str, tuple[Deal, list[RankLoad]]]:
    """Deal policy -> the deal and every rank's load. Raises ValueError for more ranks than chunks."""
    mask = _sequence.mask
    deals = {policy: deal(mask, ranks, policy=policy) for policy in DEALS}
    return {policy: (one, loads(mask, one)) for policy, one in deals.items()}


def files_of(packing: Packing) -> dict[str, bytes]:
    """Name -> content of the files that hold a packing: all arrays in one, and each as .npy."""
    made = {"packing.npz": packing.npz()}
    for name, array in packing.arrays().items():
        if name != "causal":
            out = BytesIO()
            np.save(out, array)
            made[f"{name}.npy"] = out.getvalue()
    return made
