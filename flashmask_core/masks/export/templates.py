"""The snippets as data: one template a target, filled in by `snippets.snippet`; $NAME stands for what it computes."""

PLACES = """\


def column(*pieces):  # row numbers in pieces of (first, step, count)
    return np.concatenate([first + step * np.arange(count) for first, step, count in pieces])


$LISTS
startend_row_indices = np.stack([$NAMES], axis=-1).reshape($BATCH, $MASK_HEADS, $SK, $BOUNDS).astype(np.int32)
"""

LOADED = """\

startend_row_indices = np.load($NPY)  # int32 [$BATCH, $MASK_HEADS, $SK, $BOUNDS], the file of export_mask(mask, "npy")
"""

VECTORS = """\
device = "cuda" if torch.cuda.is_available() else "cpu"
$UNPACKED = torch.from_numpy(np.moveaxis(startend_row_indices, -1, 0).copy()).to(device)  # each int32 [B, Hm, Sk]
"""

BLOCKS = '''\
runs = (  # masked rows [start, end) of every column, each [B, Hm, Sk]
    $LOWER,
    $UPPER,
)


def block_lists(block_q, block_k):
    """(partial counts, partial key blocks, full counts, full key blocks) of every query block, int32."""
    q_first = torch.arange(0, $SQ, block_q, device=device)[:, None]
    q_last = (q_first + block_q).clamp(max=$SQ)
    columns = torch.arange(-(-$SK // block_k) * block_k, device=device).clamp(max=$LAST)
    hidden, shown = False, True
    for start, end in runs:
        start, end = (x[..., columns].unflatten(-1, (-1, block_k)) for x in (start, end))
        hidden |= (start.amax(-1)[..., None, :] <= q_first) & (end.amin(-1)[..., None, :] >= q_last)
        shown &= (start.amin(-1)[..., None, :] >= q_last) | (end.amax(-1)[..., None, :] <= q_first)
    lists = []
    for chosen in (~hidden & ~shown, shown & ~hidden):
        chosen = chosen$GROUPED.to(torch.int8)
        lists += [chosen.sum(-1, dtype=torch.int32), chosen.argsort(dim=-1, descending=True, stable=True).int()]
    return lists
'''

TEMPLATES = {
    "paddle": (
        "Paddle, fp16/bf16 on a GPU: these numbers belong to causal=$CAUSAL and mean another mask under the other "
        "flag; causal aligns bottom-right; window_size, not needed here, is w - 1 for a window w; Hm must be 1 or Hk.",
        '''\
import numpy as np
import paddle
import paddle.nn.functional as F
$PLACES
startend_row_indices = paddle.to_tensor(startend_row_indices, dtype="int32")


def attention(q, k, v):
    """q [B, Sq, H, D], k and v [B, Sk, Hk, D] -> [B, Sq, H, D], with Sq = $SQ and Sk = $SK."""
    return F.flashmask_attention(q, k, v, startend_row_indices, causal=$CAUSAL)
''',
    ),
    "flex_attention": (
        "FlexAttention: made for exactly Sq = $SQ and Sk = $SK; causal is in mask_mod and aligns bottom-right; blocks "
        "are 128 x 128 (BLOCK), judged by minima and maxima of the vectors; only compiled code skips blocks.",
        '''\
import numpy as np
import torch
from torch.nn.attention.flex_attention import BlockMask, flex_attention
$PLACES
$VECTORS
BLOCK = 128


def mask_mod(b, h, q_idx, k_idx):  # True: the query may attend to the key
    return $MASK_MOD


$BLOCKS


block_mask = BlockMask.from_kv_blocks(
    *block_lists(BLOCK, BLOCK), BLOCK_SIZE=BLOCK, mask_mod=mask_mod, seq_lengths=($SQ, $SK)
)
compiled = torch.compile(flex_attention)


def attention(q, k, v):
    """q [B, H, Sq, D], k and v [B, Hk, Sk, D] on `device` -> [B, H, Sq, D]; $HEADS."""
    return compiled(q, k, v, block_mask=block_mask, enable_gqa=q.shape[1] != k.shape[1])
''',
    ),
    "sdpa": (
        "SDPA: the dense mask takes B x Hm x Sq x Sk bytes and no pair is skipped; True is visible; leave is_causal "
        "False (it aligns top-left, this mask bottom-right); a query that sees nothing gets 0 from PyTorch 2.5 on.",
        '''\
import numpy as np
import torch
import torch.nn.functional as F
$PLACES
$VECTORS
q_idx = torch.arange($SQ, device=device)[:, None]
k_idx = torch.arange($SK, device=device)
visible = $DENSE  # bool [B, Hm, Sq, Sk]


def attention(q, k, v):
    """q [B, H, Sq, D], k and v [B, Hk, Sk, D] on `device` -> [B, H, Sq, D]."""
    attn_mask = visible if visible.shape[1] == 1 else visible.repeat_interleave(q.shape[1] // visible.shape[1], dim=1)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask, enable_gqa=q.shape[1] != k.shape[1])
''',
    ),
    "numpy": (
        "NumPy, for checking: dense and in float64; causal is aligned bottom-right; a query that sees nothing gets 0.",
        '''\
import numpy as np
$PLACES
$UNPACKED = np.moveaxis(startend_row_indices, -1, 0)  # each [B, Hm, Sk]
q_idx = np.arange($SQ)[:, None]
k_idx = np.arange($SK)
visible = $DENSE  # bool [B, Hm, Sq, Sk]


def attention(q, k, v):
    """q [B, H, Sq, D], k and v [B, Hk, Sk, D] -> [B, H, Sq, D]."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    shown = np.broadcast_to(np.repeat(visible, q.shape[1] // visible.shape[1], axis=1), (*q.shape[:3], k.shape[2]))
    scores = np.where(shown, q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5, -np.inf)
    top = scores.max(-1, keepdims=True, initial=-np.inf)
    weights = np.where(shown, np.exp(scores - np.where(np.isfinite(top), top, 0)), 0)
    return weights @ v / np.maximum(weights.sum(-1, keepdims=True), 1e-300)
''',
    ),
    "fa4": (
        "FlashAttention-4: leave causal and window_size out (mask_mod has it all; window_size is w - 1 for a window of "
        "w); BLOCK_K must be the kernel's key tile, BLOCK_Q a multiple of its query tile; the backward skips no block.",
        '''\
import cutlass
import cutlass.cute as cute
import numpy as np
import torch
from flash_attn.cute import utils
from flash_attn.cute.block_sparsity import BlockSparseTensorsTorch
from flash_attn.cute.interface import flash_attn_func
$PLACES
$VECTORS
BLOCK_Q = 256 if torch.cuda.is_available() and torch.cuda.get_device_capability()[0] == 10 else 128
BLOCK_K = 128


@cute.jit
def mask_mod(b, h, q_idx, k_idx, seqlen_info, aux_tensors):  # True: the query may attend to the key
$AUX
    return $CUTE


$BLOCKS


block_sparse_tensors = BlockSparseTensorsTorch(*block_lists(BLOCK_Q, BLOCK_K), block_size=(BLOCK_Q, BLOCK_K))


def attention(q, k, v):
    """q [B, Sq, H, D], k and v [B, Sk, Hk, D], fp16 or bf16 -> [B, Sq, H, D]; $HEADS."""
    out, lse = flash_attn_func(
        q, k, v, mask_mod=mask_mod, aux_tensors=[$NAMES], block_sparse_tensors=block_sparse_tensors, return_lse=True
    )
    return out
''',
    ),
    "magi": (
        "MagiAttention: types are 0 full, 1 causal (aligned bottom-right in each slice), 2 inverse causal (top-left), "
        "3 both; the slices do not overlap; batch entries are laid end to end; a query in no slice sees nothing.",
        '''\
import torch
from magi_attention.api import flex_flash_attn_func

slices = torch.tensor([  # first query, query behind the last, first key, key behind the last, type
$SLICES
], dtype=torch.int32).reshape(-1, 5)


def attention(q, k, v):
    """q [B * Sq, H, D], k and v [B * Sk, Hk, D] -> [B * Sq, H, D], with B = $BATCH, Sq = $SQ and Sk = $SK."""
    q_ranges, k_ranges, types = (x.contiguous() for x in slices.to(q.device).split((2, 2, 1), dim=1))
    out, meta = flex_flash_attn_func(q, k, v, q_ranges=q_ranges, k_ranges=k_ranges, attn_type_map=types[:, 0])
    return out
''',
    ),
    "transformers": (
        "Transformers: for whole sequences of exactly Sq = $SQ, so pass use_cache=False; the mask replaces the model's "
        "own causal mask, window and padding; numbers belong to causal=$CAUSAL; attention dropout is refused.",
        '''\
import numpy as np
import torch
from transformers import AttentionInterface

import flashmask_core as fm
$PLACES
mask = fm.ColumnMask.from_startend_row_indices(torch.from_numpy(startend_row_indices), causal=$CAUSAL, seqlen_q=$SQ)
masks = {}  # by device


def column_mask(module, query, key, value, attention_mask=None, scaling=None, dropout=0.0, **kwargs):
    """query [B, H, Sq, D], key and value [B, Hk, Sk, D] -> (out [B, Sq, H, D], None)."""
    if query.device not in masks:
        masks[query.device] = mask.to(query.device)
    q, k, v = (x.transpose(1, 2) for x in (query, key, value))
    out = fm.flashmask_attention(q, k, v, masks[query.device], softmax_scale=scaling, dropout=dropout)
    return out, None


AttentionInterface.register("column_mask", column_mask)  # a name with flash in it is taken for FlashAttention
# model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="column_mask")
''',
    ),
}
"""target -> (its caveats, its source). Every source but magi's starts from startend_row_indices ($PLACES)."""
