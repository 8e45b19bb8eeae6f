"""FlashMask as a library: attention masks as four row numbers a key column, tiles, kernels, benchmarks.

    import flashmask_core as fm

    mask = fm.mask("causal & document(333, 333, 334)", 1000)    # or from_startend_row_indices, from_dense
    fm.classify_tiles(mask).rho                                 # the share of tiles a kernel never computes
    out = fm.flashmask_attention(q, k, v, mask.to(q.device))    # q [B, Sq, H, D], k and v [B, Sk, Hk, D]

Conventions: rows are queries and columns are keys; *visible* means the query may attend to the key; the vectors hold
MASKED rows, half-open. Causal with Sq != Sk is aligned bottom-right. Source: arXiv 2410.01359.
"""

from importlib import import_module

__version__ = "0.1.0"

# Public name -> the module that defines it, imported on first use so that `import flashmask_core` stays quick.
_EXPORTS = {
    "ColumnMask": "masks.column_mask",
    "MaskedRuns": "masks.runs",
    "MaskExpr": "masks.language",
    "MaskSyntaxError": "masks.errors",
    "NotRepresentableError": "masks.errors",
    "Fit": "masks.fit",
    "fit": "masks.fit",
    "compare": "masks.compare",
    "recognise": "masks.recognise",
    "lint": "masks.lint",
    "load_mask": "masks.load",
    "export_mask": "masks.export",
    "mask": "masks.language",
    "parse": "masks.language",
    "TileMap": "tiles.classify",
    "TileKind": "tiles.classify",
    "classify_tiles": "tiles.classify",
    "flashmask_attention": "attention",
    "available_backends": "attention",
    "attention_ref": "reference",
}
__all__ = sorted(_EXPORTS)


def __getattr__(name: str):
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_EXPORTS[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(set(globals()) | set(_EXPORTS))
