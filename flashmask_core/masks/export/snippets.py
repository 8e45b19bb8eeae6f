"""Fills in the templates: the vectors as pieces, and visibility as comparisons of the packing that the mask has."""

from __future__ import annotations

import textwrap
from string import Template

from ..column_mask import PACKINGS, ColumnMask
from ..progressions import pieces_of
from .slices import slices_of
from .templates import BLOCKS, LOADED, PLACES, TEMPLATES, VECTORS

SNIPPET_TARGETS = tuple(TEMPLATES)
MAX_PIECES = 2_000
MAX_DENSE_PAIRS = 1 << 32

# Visibility by packing; "causal" stands for the comparison with the diagonal.
_VISIBLE = {
    (True, 1): "{causal} & ({q} < {lts})",
    (True, 2): "{causal} & (({q} < {lts}) | ({q} >= {lte}))",
    (False, 2): "({q} >= {ute}) & ({q} < {lts})",
    (False, 4): "(({q} < {lts}) | ({q} >= {lte})) & (({q} < {uts}) | ({q} >= {ute}))",
}


def snippet(mask: ColumnMask, text: str | None, target: str, heads: int, npy: str | None) -> str:
    """Python source for a canonical mask on the CPU; see `export_mask`."""
    if not mask.seqlen_q or not mask.seqlen_k:
        raise ValueError(f"mask_or_text: {mask.seqlen_q} queries and {mask.seqlen_k} keys leave nothing to run")
    pairs = mask.batch * mask.heads * mask.seqlen_q * mask.seqlen_k
    if target in ("sdpa", "numpy") and pairs > MAX_DENSE_PAIRS:
        raise ValueError(f"{target}: its dense mask would take {pairs:,} bytes, more than {MAX_DENSE_PAIRS:,}")
    caveats, source = TEMPLATES[target]
    names = PACKINGS[mask.causal, mask.bounds]
    fields = {
        "BATCH": mask.batch, "MASK_HEADS": mask.heads, "SQ": mask.seqlen_q, "SK": mask.seqlen_k,
        "CAUSAL": mask.causal, "BOUNDS": mask.bounds, "NAMES": ", ".join(names),
        "UNPACKED": ", ".join(names) if len(names) > 1 else f"({names[0]},)",
        "HEADS": f"H = {heads}" if mask.heads > 1 else "any H",
    }  # fmt: skip
    if target == "magi":
        fields["SLICES"] = _wrapped(", ".join(map(str, slices_of(mask))) + ",")
    else:
        fields["PLACES"] = _places(mask, names, fields, npy)
        fields["VECTORS"] = Template(VECTORS).substitute(fields).rstrip()
        fields.update(_comparisons(mask, names, heads))
        fields["BLOCKS"] = Template(BLOCKS).substitute(fields, **_block_fields(mask, heads // mask.heads)).rstrip()
    about = f"{mask.seqlen_q:,} queries x {mask.seqlen_k:,} keys, B = {mask.batch}, Hm = {mask.heads}"
    about += f": {textwrap.shorten(text, 300, placeholder=' …')}" if text else ""
    return f"# {Template(caveats).substitute(fields)}\n# {about}\n{Template(source).substitute(fields)}"


def _places(mask: ColumnMask, names, fields: dict, npy: str | None) -> str:
    """Source that defines startend_row_indices, int32 [B, Hm, Sk, C]."""
    lists = {}
    if npy is None:
        left = MAX_PIECES
        for name in names:
            lists[name] = [pieces_of(row) for row in getattr(mask, name).flatten(0, 1).numpy()]
            left -= sum(map(len, lists[name]))
    if npy is not None or left < 0:
        return Template(LOADED).substitute(fields, NPY=repr(npy or "mask.npy")).rstrip()
    columns = {name: ", ".join(f"column({str(pieces)[1:-1]})" for pieces in rows) for name, rows in lists.items()}
    source = "\n".join(
        f"{name} = [{value}]" if len(value) < 100 else f"{name} = [\n{_wrapped(value + ',')}\n]"
        for name, value in columns.items()
    )
    return Template(PLACES).substitute(fields, LISTS=source).rstrip()


def _wrapped(items: str) -> str:
    return textwrap.fill(items, 116, initial_indent="    ", subsequent_indent="    ", break_long_words=False)


def _comparisons(mask: ColumnMask, names, heads: int) -> dict[str, str]:
    """Visibility for a mask_mod, for a dense mask, and in CuTe with the loads it needs."""
    visible, shift = _VISIBLE[mask.causal, mask.bounds], mask.seqlen_k - mask.seqlen_q
    moved = f"q_idx {'+' if shift > 0 else '-'} {abs(shift)}" if shift else "q_idx"
    group = heads // mask.heads
    batch, head = "b" if mask.batch > 1 else "0", "0" if mask.heads == 1 else f"h // {group}" if group > 1 else "h"
    cute_batch, cute_head = batch.replace("b", "b[0]"), head.replace("h", "h[0]")
    plain = {"q": "q_idx", "causal": f"(k_idx <= {moved})"}
    loads = [
        f"    {name} = utils.scalar_to_ssa(aux_tensors[{n}][{cute_batch}, {cute_head}, k_idx[0]], cutlass.Int32)"
        for n, name in enumerate(names)
    ]
    cute = dict(plain)
    if shift:
        loads.append(f"    shift = utils.scalar_to_ssa({shift}, cutlass.Int32)  # Sk - Sq")
        cute["causal"] = "(k_idx <= q_idx + shift)"
    return {
        "MASK_MOD": visible.format(**plain, **{name: f"{name}[{batch}, {head}, k_idx]" for name in names}),
        "DENSE": visible.format(**plain, **{name: f"{name}[..., None, :]" for name in names}),
        "CUTE": visible.format(**cute, **{name: name for name in names}),
        "AUX": "\n".join(loads),
    }


def _block_fields(mask: ColumnMask, group: int) -> dict[str, object]:
    """What BLOCKS needs: the two masked runs of every column as pairs of tensors [B, Hm, Sk]."""
    sq, sk = mask.seqlen_q, mask.seqlen_k
    lower_end = "lte" if "lte" in PACKINGS[mask.causal, mask.bounds] else f"torch.full_like(lts, {sq})"
    upper_start = "uts" if mask.bounds == 4 else "torch.zeros_like(lts)"
    diagonal = f"torch.arange({sk}, device=device)"
    if sq != sk:
        diagonal = f"({diagonal} - {sk - sq}).clamp(0, {sq})"
    upper_end = f"{diagonal}.expand_as(lts)" if mask.causal else "ute"
    return {
        "LOWER": f"(lts, {lower_end})", "UPPER": f"({upper_start}, {upper_end})", "LAST": sk - 1,
        "GROUPED": f".repeat_interleave({group}, dim=1)" if group > 1 else "",
    }  # fmt: skip
