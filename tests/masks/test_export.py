"""export_mask: every snippet is run, with the real library where a CPU can run it, else against its documentation."""

import importlib.util
import io
import os
import sys
import types
from typing import NamedTuple

import numpy as np
import pytest
import torch

import flashmask_core as fm
from flashmask_core.bench import cli
from flashmask_core.bench.cli import main
from flashmask_core.masks.export import TARGETS, slices
from flashmask_core.masks.export.snippets import SNIPPET_TARGETS

TEXTS = [
    ("causal & document(30, 33)", 63, 63),
    ("document(20, 40)", 63, 63),  # three tokens see nothing
    ("causal & (q - k < 9) | causal & (k < 4)", 63, 63),
    ("global_sliding_window(4, 6, 3)", 63, 63),
    ("share_question((20, 10, 12), (9, 9))", 63, 63),
    ("causal & document(50, 61)", 63, 111),
    ("causal", 111, 63),  # and here 48
    ("random_eviction(20, 3)", 63, 63),
]
IDS = [text for text, _, _ in TEXTS]


def built(case):
    text, seqlen_q, seqlen_k = case
    return fm.mask(text, seqlen_q, seqlen_k)


def two_by_two():
    """B = 2, Hm = 2, every plane another mask and none with a text."""
    rows = [["causal", "sliding_window(7)"], ["document(30, 33)", "prefix_lm(20)"]]
    planes = [fm.ColumnMask.stack([fm.mask(text, 63) for text in row], dim="head") for row in rows]
    return fm.ColumnMask.stack(planes, dim="batch")


def run(source, **replaced):
    """The names that a snippet defines, some of its constants replaced in the text first."""
    for name, value in replaced.items():
        assert f"\n{name} = 128\n" in source
        source = source.replace(f"\n{name} = 128\n", f"\n{name} = {value}\n")
    names = {}
    exec(compile(source, "exported", "exec"), names)
    return names


def tensors(mask, batch=None, heads=4, kv_heads=2, head_dim=16, seed=0):
    """q [B, Sq, H, D], k and v [B, Sk, Hk, D]."""
    generator = torch.Generator().manual_seed(seed)
    sizes = [(mask.seqlen_q, heads), (mask.seqlen_k, kv_heads), (mask.seqlen_k, kv_heads)]
    return [torch.randn(batch or mask.batch, s, h, head_dim, generator=generator) for s, h in sizes]


def swapped(*inputs):
    return [x.transpose(1, 2) for x in inputs]


def assert_out(out, mask, q, k, v):
    wanted = fm.attention_ref(q, k, v, mask)[0]
    assert not out.isnan().any()
    torch.testing.assert_close(out, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", TEXTS, ids=IDS)
def test_sdpa_runs_and_agrees(case):
    mask = built(case)
    q, k, v = tensors(mask, batch=2)
    names = run(fm.export_mask(case[0], "sdpa", *case[1:]))
    assert names["visible"].equal(mask.to_dense())
    assert_out(names["attention"](*swapped(q, k, v)).transpose(1, 2), mask, q, k, v)


@pytest.mark.parametrize("case", TEXTS, ids=IDS)
def test_numpy_runs_and_agrees(case):
    mask = built(case)
    q, k, v = tensors(mask, batch=2)
    names = run(fm.export_mask(case[0], "numpy", *case[1:]))
    np.testing.assert_array_equal(names["visible"], mask.to_dense().numpy())
    out = torch.from_numpy(names["attention"](*(x.numpy() for x in swapped(q, k, v)))).float()
    assert_out(out.transpose(1, 2), mask, q, k, v)


@pytest.mark.parametrize("case", TEXTS, ids=IDS)
def test_flex_attention_gets_the_right_blocks(case):
    mask = built(case)
    for block in (128, 16):
        block_mask = run(fm.export_mask(mask, "flex_attention"), BLOCK=block)["block_mask"]
        assert fm.load_mask(block_mask).equals(mask)  # its blocks are heeded there, as in the compiled kernel
        assert block_mask.seq_lengths == (mask.seqlen_q, mask.seqlen_k)


@pytest.mark.parametrize("case", TEXTS[1:7:2], ids=IDS[1:7:2])
def test_flex_attention_runs_and_agrees(case):
    mask = built(case)
    names = run(fm.export_mask(case[0], "flex_attention", *case[1:]))
    q, k, v = tensors(mask, batch=2)
    out = names["flex_attention"](*swapped(q, k, v), block_mask=names["block_mask"], enable_gqa=True)
    assert_out(out.transpose(1, 2), mask, q, k, v)


def test_flex_attention_skips_what_the_paper_skips():
    mask = fm.mask("causal & document(333, 333, 334)", 1000)
    block_mask = run(fm.export_mask(mask, "flex_attention"))["block_mask"]
    counts = fm.classify_tiles(mask, 128, 128, "paper").counts[0, 0].tolist()
    assert int(block_mask.kv_num_blocks.sum() + block_mask.full_kv_num_blocks.sum()) == counts[1] + counts[2]
    assert int(block_mask.full_kv_num_blocks.sum()) == counts[2]


@pytest.mark.skipif(
    not torch.cuda.is_available() and "EXPORT_COMPILED" not in os.environ,
    reason="compiling for a CPU takes half a minute; EXPORT_COMPILED=1 does it",
)
def test_flex_attention_compiled(device):
    mask = fm.mask("causal & document(130, 70)", 200)
    q, k, v = (x.to(device) for x in tensors(mask, heads=2, kv_heads=2, head_dim=32))
    mask = mask.to(device)
    out = run(fm.export_mask(mask, "flex_attention"))["attention"](*swapped(q, k, v))
    assert_out(out.transpose(1, 2), mask, q, k, v)


def test_several_batch_entries_and_mask_heads():
    mask = two_by_two()
    q, k, v = tensors(mask)
    assert_out(run(fm.export_mask(mask, "sdpa"))["attention"](*swapped(q, k, v)).transpose(1, 2), mask, q, k, v)
    out = run(fm.export_mask(mask, "numpy"))["attention"](*(x.numpy() for x in swapped(q, k, v)))
    assert_out(torch.from_numpy(out).float().transpose(1, 2), mask, q, k, v)
    names = run(fm.export_mask(mask, "flex_attention", heads=4), BLOCK=16)
    out = names["flex_attention"](*swapped(q, k, v), block_mask=names["block_mask"], enable_gqa=True)
    assert_out(out.transpose(1, 2), mask, q, k, v)
    with pytest.raises(ValueError, match="magi: its ranges hold for all heads alike, and this mask has Hm = 2 heads"):
        fm.export_mask(mask, "magi")
    with pytest.raises(ValueError, match="heads: wanted a multiple of the mask's 2 heads, got 3"):
        fm.export_mask(mask, "fa4", heads=3)


@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="needs transformers")
def test_a_random_transformers_model_with_the_exported_attention():
    from transformers import LlamaConfig, LlamaForCausalLM

    masks = [fm.mask(text, 33) for text in ("causal & document(20, 13)", "sliding_window(5)")]
    mask = fm.ColumnMask.stack(masks, dim="batch")
    run(fm.export_mask(mask, "transformers"))
    config = LlamaConfig(
        vocab_size=50, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64,
    )  # fmt: skip
    torch.manual_seed(0)
    model = LlamaForCausalLM(config).eval()
    ids = torch.randint(0, 50, (2, 33), generator=torch.Generator().manual_seed(1))
    additive = torch.where(mask.to_dense(), 0.0, torch.finfo(torch.float32).min)
    with torch.no_grad():
        model.set_attn_implementation("eager")
        wanted = model(ids, attention_mask=additive, use_cache=False).logits
        plain = model(ids, use_cache=False).logits
        model.set_attn_implementation("column_mask")
        out = model(ids, use_cache=False).logits
    torch.testing.assert_close(out, wanted, rtol=1e-4, atol=1e-4)
    assert (plain - wanted).abs().max() > 0.01  # the mask does make a difference
    model.train()
    model(ids, labels=ids, use_cache=False).loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def modules(monkeypatch, **content):
    """Stand-ins for libraries that are not here: name with _ for . -> what the module holds."""
    for name, values in content.items():
        module = types.ModuleType(name.replace("__", "."))
        module.__dict__.update(values)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        parent, _, child = module.__name__.rpartition(".")
        if parent in sys.modules:
            monkeypatch.setattr(sys.modules[parent], child, module, raising=False)


@pytest.mark.parametrize("mask", [built(case) for case in TEXTS] + [two_by_two()], ids=[*IDS, "B = Hm = 2"])
def test_paddle_gets_its_tensor_and_flag(mask, monkeypatch):
    """query, key, value, startend_row_indices [B, 1 or Hk, Sk, 1 | 2 | 4] int32, causal: Paddle's documentation."""
    called = []

    def flashmask_attention(query, key, value, startend_row_indices=None, *, dropout=0.0, causal=False,
                            window_size=None, softmax_scale=None, block_mask=None):  # fmt: skip
        called.append((startend_row_indices, causal))
        return query

    def to_tensor(data, dtype=None):
        assert dtype == data.dtype == np.int32
        return data

    functional = {"flashmask_attention": flashmask_attention}
    modules(monkeypatch, paddle={"to_tensor": to_tensor}, paddle__nn={}, paddle__nn__functional=functional)
    run(fm.export_mask(mask, "paddle"))["attention"](1, 2, 3)
    indices, causal = called[0]
    again = fm.ColumnMask.from_startend_row_indices(torch.from_numpy(indices), causal=causal, seqlen_q=mask.seqlen_q)
    assert again.equals(mask) and indices.shape[:3] == (mask.batch, mask.heads, mask.seqlen_k)


@pytest.mark.parametrize("mask", [built(case) for case in TEXTS] + [two_by_two()], ids=[*IDS, "B = Hm = 2"])
def test_fa4_gets_a_mask_mod_and_block_lists(mask, monkeypatch):
    """mask_mod(b, h, q_idx, kv_idx, seqlen_info, aux_tensors) with one-element indices, and counts and key blocks of
    every query block, int32: as PyTorch's own FlashAttention-4 template calls it."""

    class BlockSparseTensorsTorch(NamedTuple):
        mask_block_cnt: torch.Tensor
        mask_block_idx: torch.Tensor
        full_block_cnt: torch.Tensor
        full_block_idx: torch.Tensor
        cu_total_m_blocks: torch.Tensor | None = None
        cu_block_idx_offsets: torch.Tensor | None = None
        block_size: tuple[int, int] | None = None

    seen = {}

    def flash_attn_func(q, k, v, mask_mod=None, aux_tensors=None, block_sparse_tensors=None, return_lse=False):
        seen.update(mod=mask_mod, aux=aux_tensors, lists=block_sparse_tensors)
        return q, None

    modules(
        monkeypatch, cutlass={"Int32": int}, cutlass__cute={"jit": lambda function: function}, flash_attn={},
        flash_attn__cute={}, flash_attn__cute__utils={"scalar_to_ssa": lambda value, kind: int(value)},
        flash_attn__cute__block_sparsity={"BlockSparseTensorsTorch": BlockSparseTensorsTorch},
        flash_attn__cute__interface={"flash_attn_func": flash_attn_func},
    )  # fmt: skip
    heads, dense = 2 * mask.heads, mask.to_dense()
    source = fm.export_mask(mask, "fa4", heads=heads).replace(" else 128\n", " else 16\n")
    run(source, BLOCK_K=8)["attention"](1, 2, 3)
    lists, (tile_q, tile_k) = seen["lists"], seen["lists"].block_size
    assert (tile_q, tile_k) == (16, 8) and all(x.dtype == torch.int32 for x in (*seen["aux"], *lists[:4]))
    rng = np.random.default_rng(0)
    for _ in range(300):
        b, h = int(rng.integers(mask.batch)), int(rng.integers(heads))
        q, k = int(rng.integers(mask.seqlen_q)), int(rng.integers(mask.seqlen_k))
        visible = bool(dense[b, h // 2 if mask.heads > 1 else 0, q, k])
        mod = seen["mod"](*(np.array([n]) for n in (b, h, q, k)), None, seen["aux"])
        assert bool(mod) == visible
        row = lists.mask_block_cnt.shape[1] > 1 and h or 0
        kinds = [
            k // tile_k in index[b, row, q // tile_q, : count[b, row, q // tile_q]]
            for count, index in (lists[:2], lists[2:4])
        ]
        assert sum(kinds) <= 1 and (visible or not kinds[1]) and (any(kinds) or not visible)


def slice_picture(found, seqlen_q, seqlen_k):
    """How many slices show each pair, from MagiAttention's own description of the four types."""
    shown = np.zeros((seqlen_q, seqlen_k), int)
    for r0, r1, k0, k1, kind in found:
        assert 0 <= r0 < r1 <= seqlen_q and 0 <= k0 < k1 <= seqlen_k
        row, key = np.arange(r1 - r0)[:, None], np.arange(k1 - k0)
        part = np.ones((r1 - r0, k1 - k0), bool)
        if kind in (1, 3):
            part &= key <= row + (k1 - k0) - (r1 - r0)
        if kind in (2, 3):
            part &= key >= row
        shown[r0:r1, k0:k1] += part
    return shown


def test_magi_slices_show_each_pair_once():
    generator = torch.Generator().manual_seed(0)
    cases = [built(case) for case in TEXTS]
    cases += [fm.mask(f"band({left}, {right})", n, m) for left, right in [(3, 2), (20, 0), (0, 0), (9, -2), (60, 40)]
              for n, m in [(40, 40), (17, 40), (40, 17)]]  # fmt: skip
    for seqlen_q, seqlen_k in [(1, 1), (5, 3), (7, 12)] * 20:
        indices = torch.randint(0, seqlen_q + 1, (1, 1, seqlen_k, 4), generator=generator)
        cases.append(fm.ColumnMask.from_startend_row_indices(indices, causal=False, seqlen_q=seqlen_q))
    for mask in cases:
        picture = slice_picture(slices.slices_of(mask), mask.seqlen_q, mask.seqlen_k)
        np.testing.assert_array_equal(picture, mask.to_dense()[0, 0].int().numpy())


def test_magi_slices_are_few_where_the_mask_is_plain(monkeypatch):
    found = {text: slices.slices_of(fm.mask(text, 4096)) for text in ("causal", "sliding_window(512)")}
    assert found["causal"] == [(0, 4096, 0, 4096, 1)] and len(found["sliding_window(512)"]) <= 4
    assert slices.slices_of(fm.mask("causal & document(2000, 2096)", 4096)) == [
        (0, 2000, 0, 2000, 1), (2000, 4096, 2000, 4096, 1),
    ]  # fmt: skip
    assert len(slices.slices_of(fm.mask("sliding_window(4096)", 2**17))) <= 4
    monkeypatch.setattr(slices, "MAX_SLICES", 100)
    with pytest.raises(ValueError, match="more than 100 pairs of ranges"):
        fm.export_mask("random_eviction(500, 0)", "magi", 1000)


def test_magi_lays_batch_entries_end_to_end(monkeypatch):
    masks = [fm.mask("causal", 9, 12), fm.mask("document(5, 4, 3)", 9, 12)]
    mask = fm.ColumnMask.stack(masks, dim="batch")
    seen = {}

    def flex_flash_attn_func(q, k, v, q_ranges, k_ranges, attn_type_map=None):
        seen.update(found=torch.cat([q_ranges, k_ranges, attn_type_map[:, None]], dim=1))
        assert all(x.dtype == torch.int32 and x.is_contiguous() for x in (q_ranges, k_ranges, attn_type_map))
        return q, None

    modules(monkeypatch, magi_attention={}, magi_attention__api={"flex_flash_attn_func": flex_flash_attn_func})
    run(fm.export_mask(mask, "magi"))["attention"](torch.zeros(18, 1, 1), 2, 3)
    picture = slice_picture(seen["found"].tolist(), 18, 24)
    assert not picture[:9, 12:].any() and not picture[9:, :12].any()
    for b, plane in enumerate((picture[:9, :12], picture[9:, 12:])):
        np.testing.assert_array_equal(plane, mask.to_dense()[b, 0].int().numpy())


@pytest.mark.parametrize("mask", [built(case) for case in TEXTS] + [two_by_two()], ids=[*IDS, "B = Hm = 2"])
def test_json_and_npy_come_back_as_the_same_mask_and_bytes(mask):
    for target in ("json", "npy"):
        content = fm.export_mask(mask, target)
        again = fm.load_mask(content)
        assert again.equals(mask) and (again.batch, again.heads) == (mask.batch, mask.heads)
        assert fm.export_mask(again, target) == content
    indices, causal = mask.to_startend_row_indices()
    np.testing.assert_array_equal(np.load(io.BytesIO(content), allow_pickle=False), indices.numpy())
    assert fm.load_mask(content, kind="startend_row_indices", causal=causal).equals(mask)
    with pytest.raises(ValueError, match=f"the file itself says causal={causal}"):
        fm.load_mask(content, causal=not causal)


def test_json_of_random_vectors_and_of_nothing():
    generator = torch.Generator().manual_seed(0)
    for causal, bounds in [(True, 1), (True, 2), (False, 2), (False, 4)]:
        indices = torch.randint(0, 60, (2, 3, 50, bounds), generator=generator)
        mask = fm.ColumnMask.from_startend_row_indices(indices, causal=causal, seqlen_q=59)
        text = fm.export_mask(mask, "json")
        assert fm.load_mask(text).equals(mask) and fm.export_mask(fm.load_mask(text.encode()), "json") == text
    for lengths in [(0, 0), (0, 5), (5, 0)]:
        assert fm.load_mask(fm.export_mask("causal", "json", *lengths)).equals(fm.mask("causal", *lengths))
        with pytest.raises(ValueError, match="leave nothing to run"):
            fm.export_mask("causal", "sdpa", *lengths)


def test_long_vectors_are_loaded_from_the_npy_beside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mask = fm.mask("random_eviction(20, 3)", 63)
    (tmp_path / "my mask.npy").write_bytes(fm.export_mask(mask, "npy"))
    source = fm.export_mask(mask, "sdpa", npy="my mask.npy")
    assert "np.load('my mask.npy')" in source and "column(" not in source
    assert run(source)["visible"].equal(mask.to_dense())
    monkeypatch.setattr("flashmask_core.masks.export.snippets.MAX_PIECES", 5)
    assert "np.load('mask.npy')" in fm.export_mask(mask, "paddle")
    assert "column(" in fm.export_mask("causal", "paddle", 63)


def test_every_snippet_begins_with_its_caveats_and_its_mask():
    for target in SNIPPET_TARGETS:
        first, second, _ = fm.export_mask("causal & document(3, 3)", target, 6).split("\n", 2)
        assert first.startswith("# ") and "$" not in first and len(first) < 240
        assert second == "# 6 queries x 6 keys, B = 1, Hm = 1: causal & document(3, 3)"
        if target in ("sdpa", "numpy"):  # too many pairs for a dense mask
            continue
        source = fm.export_mask(fm.mask("sliding_window(700)", 2**17), target)
        assert len(source) < 6000  # a long sequence is no long snippet
        assert all(len(line) <= 120 for line in source.splitlines()[1:])


@pytest.mark.parametrize(
    "arguments, options, words",
    [
        (("causal", "jax", 8), {}, "target: wanted one of paddle, flex_attention"),
        (("causal", "sdpa"), {}, "seqlen_q: a text is a mask only with its number of queries"),
        ((fm.mask("causal", 8), "sdpa", 9), {}, "seqlen_q: the mask has 8, got 9"),
        (([fm.mask("causal", 8)], "sdpa"), {}, "exported pass by pass"),
        ((3, "sdpa"), {}, "mask_or_text: wanted a ColumnMask or a text, got int"),
        (("causal", "sdpa", 8), {"heads": 2}, "heads: has no meaning for sdpa"),
        (("causal", "magi", 8), {"npy": "a.npy"}, "npy: has no meaning for magi"),
        (("causal", "sdpa", 2**17), {}, "sdpa: its dense mask would take 17,179,869,184 bytes"),
        (("causal & (q % 3 < 1)", "json", 30), {}, "masked runs"),
        (("caus", "json", 30), {}, "caus"),
    ],
)
def test_refused(arguments, options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        fm.export_mask(*arguments, **options)


def test_the_command_line_exports(capsys, tmp_path):
    assert cli._TARGETS == ", ".join(TARGETS)
    arguments = ["export", "causal & document(3, 3)", "--seqlen", "6"]
    assert main([*arguments, "--to", "sdpa"]) == 0
    assert capsys.readouterr().out == fm.export_mask("causal & document(3, 3)", "sdpa", 6)
    assert main([*arguments, "--json"]) == 0
    assert fm.load_mask(capsys.readouterr().out).equals(fm.mask("causal & document(3, 3)", 6))
    assert main([*arguments, "--seqlen-k", "8", "--to", "npy", "--out", str(tmp_path / "mask.npy")]) == 0
    assert fm.load_mask(tmp_path / "mask.npy").equals(fm.mask("causal & document(3, 3)", 6, 8))
    assert main([*arguments, "--to", "paddle", "--npy", "mask.npy"]) == 0
    assert "np.load('mask.npy')" in capsys.readouterr().out
    for wrong, words in [([], "--to: wanted one of paddle"), (["--to", "jax"], "target: wanted one of paddle"),
                         (["--to", "npy", "--json"], "--json: the same as --to json")]:  # fmt: skip
        assert main([*arguments, *wrong]) == 2
        assert capsys.readouterr().err.startswith("flashmask_core export: " + words)
