"""export_mask: a mask as code or a file for the library that is to run it.

export_mask("causal & document(3, 3)", "flex_attention", 6)    # Python source, ready to run
export_mask(mask, "npy")                                       # the bytes of an .npy
"""

from __future__ import annotations

import io

import numpy as np

from ..column_mask import ColumnMask
from ..compare import runs_of
from ..expr import MaskExpr
from ..language import mask as build
from ..language import parse
from ..load.files import NOTE
from ..mask_json import record_text
from ..picture import THEMES, png, svg
from .snippets import SNIPPET_TARGETS, snippet

TARGETS = (*SNIPPET_TARGETS, "npy", "json", "png", "svg")


def export_mask(
    mask_or_text,
    target: str,
    seqlen_q: int | None = None,
    seqlen_k: int | None = None,
    *,
    heads: int | None = None,
    npy: str | None = None,
    tile: tuple[int, int] | None = None,
    theme: str | None = None,
) -> str | bytes:
    """The mask for another library, as a str of Python source, or as the content of a file.

    Args:
        mask_or_text: a ColumnMask, or a text or MaskExpr with its lengths.
        target: one of
            "paddle": paddle.nn.functional.flashmask_attention with its tensor and flag.
            "flex_attention": a mask_mod of two to five comparisons, its BlockMask from the vectors, compiled.
            "sdpa": torch's scaled_dot_product_attention with a dense bool mask (up to 2^32 pairs).
            "numpy": attention in float64 with the dense mask, to check others by.
            "fa4": FlashAttention-4's mask_mod in CuTe with block sparsity.
            "magi": MagiAttention's q_ranges, k_ranges and attn_type_map (one mask head, up to 20,000 slices).
            "transformers": an attention function registered with AttentionInterface, run by this library.
            "npy": int32 [B, Hm, Sk, C] startend_row_indices as bytes; the header carries causal and Sq as a comment,
                which `numpy.load` skips and `load_mask` reads.
            "json": our own file; `load_mask` gives the same mask, and exporting that gives the same text.
            "png", "svg": a picture of blocks that are visible wholly, in part or not at all (B = Hm = 1); the .png
                carries the mask, and `load_mask` reads it back.
        seqlen_q, seqlen_k: lengths for a text (seqlen_k=None: as many keys as queries); not for a ColumnMask.
        heads: query heads H, for "flex_attention" and "fa4" with Hm > 1 mask heads; None means Hm.
        npy: the name of the file of `export_mask(mask, "npy")` for a snippet to load. None: the vectors are written
            into the snippet as (first, step, count) pieces if 2,000 of them are enough, else "mask.npy" is loaded.
        tile: queries and keys of a picture's block, None: (128, 128); it is doubled while there are too many to draw.
        theme: "light" (None) or "dark", of a picture.

    Every snippet defines `attention(q, k, v)` (transformers: the function `column_mask`), states the layout of its
    tensors, and has its caveats in its first line.

    Raises MaskSyntaxError and NotRepresentableError as `fm.mask` does; TypeError or ValueError naming the argument.
    """
    if target not in TARGETS:
        raise ValueError(f"target: wanted one of {', '.join(TARGETS)}, got {target!r}")
    mask, text = _mask_and_text(mask_or_text, seqlen_q, seqlen_k)
    takers_of = {"heads": ("flex_attention", "fa4"), "npy": _VECTOR_TARGETS, "tile": _PICTURES, "theme": _PICTURES}
    for (name, takers), value in zip(takers_of.items(), (heads, npy, tile, theme)):
        if value is not None and target not in takers:
            raise ValueError(f"{name}: has no meaning for {target}; it belongs to {', '.join(takers)}")
    if heads is not None and (not isinstance(heads, int) or heads < 1 or heads % mask.heads):
        raise ValueError(f"heads: wanted a multiple of the mask's {mask.heads} heads, got {heads!r}")
    if target == "json":
        return record_text(mask)
    if target == "npy":
        return _npy(mask)
    if target in _PICTURES:
        return _picture(mask, text or "", target, tile or (128, 128), theme or "light")
    return snippet(mask, text, target, heads or mask.heads, npy)


_PICTURES = ("png", "svg")
_VECTOR_TARGETS = tuple(target for target in SNIPPET_TARGETS if target != "magi")


def _mask_and_text(mask_or_text, seqlen_q, seqlen_k) -> tuple[ColumnMask, str | None]:
    if isinstance(mask_or_text, ColumnMask):
        given = {"seqlen_q": (seqlen_q, mask_or_text.seqlen_q), "seqlen_k": (seqlen_k, mask_or_text.seqlen_k)}
        for name, (asked, own) in given.items():
            if asked not in (None, own):
                raise ValueError(f"{name}: the mask has {own}, got {asked}; leave it out")
        return mask_or_text.to("cpu").canonical(), None
    if not isinstance(mask_or_text, (str, MaskExpr)):
        extra = "; a mask in several passes is exported pass by pass" if isinstance(mask_or_text, (list, tuple)) else ""
        raise TypeError(f"mask_or_text: wanted a ColumnMask or a text, got {type(mask_or_text).__name__}{extra}")
    if seqlen_q is None:
        raise ValueError("seqlen_q: a text is a mask only with its number of queries, so it must be given")
    expr = mask_or_text if isinstance(mask_or_text, MaskExpr) else parse(mask_or_text)
    return build(expr, seqlen_q, seqlen_k), str(expr)


def _picture(mask: ColumnMask, text: str, target: str, tile, theme: str) -> str | bytes:
    if theme not in THEMES:
        raise ValueError(f"theme: wanted one of {', '.join(THEMES)}, got {theme!r}")
    if len(tile) != 2 or not all(isinstance(n, int) and n >= 1 for n in tile):
        raise ValueError(f"tile: wanted two whole numbers of 1 or more, got {tile!r}")
    runs = runs_of(mask, "mask_or_text")
    if target == "svg":
        return svg(runs, *tile, theme, text)
    try:
        record = record_text(mask)
    except ValueError:  # too long a text to be read back
        record = ""
    return png(runs, *tile, theme, text, record)


def _npy(mask: ColumnMask) -> bytes:
    """An .npy of format 1.0 whose header ends in a comment with the flag and Sq that the numbers belong to."""
    indices, causal = mask.to_startend_row_indices()
    array = np.ascontiguousarray(indices.numpy(), "<i4")
    header = repr({"descr": "<i4", "fortran_order": False, "shape": array.shape})
    header += "  # " + NOTE.format(causal=causal, seqlen_q=mask.seqlen_q)
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    file = io.BytesIO()
    file.write(np.lib.format.magic(1, 0) + len(header).to_bytes(2, "little") + header.encode("ascii"))
    file.write(array.tobytes())
    return file.getvalue()
