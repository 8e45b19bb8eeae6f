"""load_mask: every kind with a small input whose answer is known, every format, and what is refused with which words."""

import io
import json
import struct
import zipfile
import zlib

import numpy as np
import pytest
import torch

import flashmask_core as fm
from flashmask_core.masks.load import files, png
from flashmask_core.masks.mask_json import record_text

TRIL = np.tril(np.ones((8, 8), np.float32))
ADDITIVE = np.where(TRIL == 1, 0.0, -np.inf)


def pairs(mask):
    return mask.visible_pairs().flatten().tolist()


def npy(array, **options):
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def npz(**arrays):
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


@pytest.mark.parametrize(
    "kind, values, wanted",
    [
        ("position_ids", [0, 1, 2, 3, 0, 1, 0, 1, 2, 3], [23]),
        ("position_ids", [5, 6, 7, 0, 1], [9]),
        ("position_ids", [[0, 1, 2], [0, 1, 0]], [6, 4]),
        ("attention_mask", [1, 1, 2, 2, 2, 0], [9]),
        ("attention_mask", [[0, 0, 1], [0, 1, 1]], [1, 3]),
        ("attention_mask", [[1, 1, 0], [True, True, True]], [3, 6]),
        ("lengths", [4, 0, 4], [20]),
        ("lengths", (4, 4), [20]),
        ("lengths", [333, 333, 334], [167167]),
        ("cu_seqlens", [0, 4, 4, 8], [20]),
        ("cu_seqlens", torch.tensor([0, 4, 4, 8], dtype=torch.int32), [20]),
        ("attention_mask", np.array([1.0, 1.0, 0.0]), [3]),
    ],
)
def test_packed_sequences(kind, values, wanted):
    assert pairs(fm.load_mask(values, kind=kind)) == wanted


@pytest.mark.parametrize(
    "text, lengths, wanted",
    [
        ("sliding_window(3)", (6,), 15),
        ("sliding_window(2048)", (4096,), 6_292_480),
        ("causal & document(333, 333, 334)", (1000,), 167_167),
        ("share_question((4, 3, 2, 5))", (16,), 74),
        ("causal & document(64, 64)", (64, 128), 2_080),
        ("causal", (5, 2), 3),
        ("causal", (2, 5), 9),
        ("causal", (128, 127), 8_128),
        ("causal", (127, 128), 8_255),
        ("not (q < k)", (8,), 36),
        ("q >= k and q - k < 4", (8,), 26),
        ("document(4, 0, 4) & causal", (8,), 20),
        ("frames(8, 16, 1, (0, 4))", (128,), 8_448),
        ("block_diffusion(64, 4)", (128,), 4_352),
    ],
)
def test_known_masks_are_the_same_by_text_dense_rows_and_file(text, lengths, wanted):
    mask = fm.mask(text, *lengths)
    assert pairs(mask) == [wanted]
    indices, causal = mask.to_startend_row_indices()
    sources = [(record_text(mask), {}), (mask.to_dense(), {"polarity": "visible"})]
    sources.append((indices, {"kind": "startend_row_indices", "causal": causal, "seqlen_q": mask.seqlen_q}))
    for source, options in sources:
        assert fm.load_mask(source, **options).equals(mask)


def test_the_other_small_answers():
    assert fm.mask("sliding_window(3)", 6).lts[0, 0].tolist() == [3, 4, 5, 6, 6, 6]
    for window in (63, 64):
        indices, causal = fm.mask(f"sliding_window({window})", 63).to_startend_row_indices()
        assert causal and indices.equal(fm.mask("causal", 63).to_startend_row_indices()[0])
    counts = fm.classify_tiles(fm.load_mask([333, 333, 334], kind="lengths")).counts[0, 0].tolist()
    assert counts[0] == 44 and counts[1] + counts[2] == 20
    assert fm.mask("share_question((4, 3, 2, 5))", 16).empty_rows()[0, 0].nonzero().flatten().tolist() == [14, 15]
    assert any("7" in note for note in fm.parse("q + 1 <= k").notes(8))


def test_packed_sequences_in_both_directions_and_the_row_that_sees_nothing():
    assert pairs(fm.load_mask([4, 4], kind="lengths", causal=False)) == [32]
    mask = fm.load_mask([1, 1, 2, 2, 2, 0], kind="attention_mask")
    assert mask.empty_rows().tolist() == [[[False] * 5 + [True]]]
    assert fm.load_mask([4, 0, 4], kind="lengths").equals(fm.mask("causal_document(4, 4)", 8))
    assert fm.load_mask([3, 2], kind="lengths", causal=False).equals(fm.mask("document(3, 2)", 5))


def test_attention_masks_with_holes_and_returning_numbers_against_the_definition():
    rng = np.random.default_rng(0)
    fitted = 0
    for _ in range(300):
        numbers, causal = rng.integers(0, 3, rng.integers(1, 9)), bool(rng.integers(2))
        visible = (numbers[:, None] == numbers) & (numbers > 0)
        if causal:
            visible &= np.tri(len(numbers), dtype=bool)
        try:
            mask = fm.load_mask(numbers, kind="attention_mask", causal=causal)
        except fm.NotRepresentableError as error:
            assert error.columns == fm.fit(visible).columns
            continue
        fitted += 1
        np.testing.assert_array_equal(mask.to_dense()[0, 0].numpy(), visible)
    assert fitted > 150


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.uint8, np.int64, ">i4"])
def test_zero_and_one_of_any_dtype(dtype):
    assert pairs(fm.load_mask(TRIL.astype(dtype))) == [36]
    assert pairs(fm.load_mask(npy(TRIL.astype(dtype)))) == [36]
    assert pairs(fm.load_mask(TRIL.astype(dtype), polarity="masked")) == [28]


@pytest.mark.parametrize("hidden", [-np.inf, -1e4, np.finfo(np.float32).min, -65504.0])
def test_additive_matrices(hidden):
    assert pairs(fm.load_mask(np.where(TRIL == 1, 0, hidden))) == [36]


def test_dense_shapes_and_libraries():
    visible = torch.rand(2, 3, 5, 7, generator=torch.Generator().manual_seed(0)) > 0.1
    visible = visible.cummin(-2).values  # one run a column
    mask = fm.load_mask(visible, polarity="visible")
    assert mask.to_dense().equal(visible)
    assert fm.load_mask((~visible).numpy(), polarity="masked").equals(mask)
    assert fm.load_mask(visible[:, 0].numpy(), kind="dense", polarity="visible").to_dense().equal(visible[:, :1])
    assert fm.load_mask(visible.to(torch.bfloat16)).equals(mask)
    assert fm.load_mask(visible[0, 0].tolist(), kind="dense", polarity="visible").to_dense()[0, 0].equal(visible[0, 0])
    assert fm.load_mask(visible[0, 0].float(), kind="dense").to_dense()[0, 0].equal(visible[0, 0])
    assert fm.load_mask(npy(np.asfortranarray(TRIL))).equals(fm.load_mask(TRIL))
    assert pairs(fm.load_mask(np.zeros((3, 3), np.uint8))) == [0]
    assert pairs(fm.load_mask(np.zeros((3, 3)), polarity="masked")) == [9]


def test_a_large_matrix_goes_in_strips(monkeypatch):
    from flashmask_core.masks.load import dense

    monkeypatch.setattr(dense, "_STRIP_CELLS", 100)
    wanted = fm.mask("causal & document(30, 33) | causal & (k < 4)", 63)
    visible = wanted.to_dense()[0, 0]
    assert fm.load_mask(visible, polarity="visible").equals(wanted)
    assert fm.load_mask(torch.where(visible, 0.0, -1e9)).equals(wanted)
    broken = visible.clone()
    broken[1::2, 40:] = False
    with pytest.raises(fm.NotRepresentableError) as caught:
        fm.load_mask(broken, polarity="visible")
    assert caught.value.columns == fm.fit(broken.numpy()).columns and caught.value.max_runs > 2


def test_startend_row_indices():
    indices = np.broadcast_to(np.int32([3, 5]), (1, 1, 6, 2))
    assert [pairs(fm.load_mask(indices, kind="startend_row_indices", causal=c))[0] for c in (True, False)] == [12, 0]
    assert pairs(fm.load_mask(indices.astype(np.uint8), causal=True)) == [12]  # 4-D, not 0/1: it can only be rows
    mask = fm.load_mask(torch.full((2, 1, 4, 1), 9), kind="startend_row_indices", causal=True, seqlen_q=9)
    assert (mask.batch, mask.seqlen_q, mask.seqlen_k) == (2, 9, 4)
    wrong = np.full((1, 2, 6, 2), 3)
    wrong[0, 1, 4, 1] = 7
    with pytest.raises(ValueError, match=r"column 4 \(batch 0, head 1\) has lte = 7, and rows go from 0 to Sq = 6"):
        fm.load_mask(wrong, causal=True)
    with pytest.raises(ValueError, match="causal=True with C=4"):
        fm.load_mask(np.full((1, 1, 6, 4), 3), kind="startend_row_indices", causal=True)
    with pytest.raises(ValueError, match="causal: startend_row_indices mean another mask under the other flag"):
        fm.load_mask(indices)


def test_files_are_read_twice_from_a_path_bytes_and_an_open_file(tmp_path):
    contents = {
        "mask.npy": npy(TRIL), "mask.npz": npz(mask=TRIL), "mask.json": record_text(fm.mask("causal", 8)).encode(),
        "mask.csv": "\n".join(",".join(str(int(v)) for v in row) for row in TRIL).encode(),
    }  # fmt: skip
    for name, content in contents.items():
        path, file = tmp_path / name, io.BytesIO(content)
        path.write_bytes(content)
        for _ in range(2):
            for source in (path, str(path), content, file):
                assert pairs(fm.load_mask(source)) == [36], name
    with pytest.raises(OSError):
        fm.load_mask(tmp_path / "none.npy")
    with pytest.raises(ValueError, match="wanted a file"):
        fm.load_mask(tmp_path)


def test_npz_with_several_arrays():
    both = npz(first=TRIL, second=TRIL.T.copy())
    with pytest.raises(ValueError, match="say which array with array=; it has first, second"):
        fm.load_mask(both)
    assert fm.load_mask(both, array="second").equals(fm.load_mask(TRIL.T))
    with pytest.raises(ValueError, match="has no 'third'"):
        fm.load_mask(both, array="third")


def test_csv_matrices_and_columns():
    assert pairs(fm.load_mask(b"1;0\n1;1\n")) == [3]
    assert pairs(fm.load_mask(b"0 -inf\r\n0 0\r\n")) == [3]
    assert pairs(fm.load_mask(b"True,False\nTrue,True", polarity="visible")) == [3]
    with pytest.raises(ValueError, match="polarity"):
        fm.load_mask(b"True,False\nTrue,True")
    assert pairs(fm.load_mask(b"4\n0\n4\n", kind="lengths")) == [20]
    table = b'id,text,"tokens"\n1,"a, b",4\n2,c,4\n'
    assert pairs(fm.load_mask(table, kind="lengths", column="tokens")) == [20]
    assert pairs(fm.load_mask(table, kind="lengths", column=2)) == [20]
    with pytest.raises(ValueError, match="the first line is 'id, text, tokens'"):
        fm.load_mask(table, kind="lengths", column="length")
    with pytest.raises(ValueError, match="a table with a heading needs column="):
        fm.load_mask(table, kind="lengths")


def make_png(pixels, depth, colour, filters=(0,), extra=b"", interlaced=0):
    """A PNG of samples [height, row bytes], with its filters taking turns; `step` bytes a pixel."""
    step = max(1, {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour] * depth // 8)
    height, row_bytes = pixels.shape
    framed = np.zeros((height + 1, row_bytes + step), int)
    framed[1:, step:] = pixels
    rows = b""
    for n in range(height):
        kind = filters[n % len(filters)]
        x, a = framed[n + 1, step:], framed[n + 1, :-step]
        b, c = framed[n, step:], framed[n, :-step]
        paeth = [min((i, j, l), key=lambda v: abs(i + j - l - v)) for i, j, l in zip(a, b, c)]
        guess = (0 * x, a, b, (a + b) // 2, np.array(paeth))[kind]
        rows += bytes([kind]) + ((x - guess) % 256).astype(np.uint8).tobytes()

    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    width = row_bytes * 8 // (depth * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour])
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b""))  # fmt: skip


@pytest.mark.parametrize("filters", [(0,), (1,), (2,), (3,), (4,), (4, 0, 3, 1, 2)])
@pytest.mark.parametrize("depth, colour", [(8, 0), (16, 0), (8, 2), (8, 4), (8, 6), (1, 0), (4, 0)])
def test_png_of_every_filter_and_kind(depth, colour, filters):
    rng = np.random.default_rng(depth + colour)
    visible = rng.random((9, 16)) < 0.8
    visible = np.minimum.accumulate(visible, 0)
    channels = {0: 1, 2: 3, 4: 2, 6: 4}[colour]
    if depth < 8:
        bits = np.repeat(visible, depth, axis=1)
        samples = np.packbits(bits, axis=1)
    else:
        samples = np.where(visible[..., None], 250, 7) + np.zeros(channels, int)
        if colour in (4, 6):
            samples[..., -1] = 255
        samples = np.repeat(samples.reshape(9, -1), depth // 8, axis=1)
    picture = make_png(samples, depth, colour, filters)
    np.testing.assert_array_equal(png.read_png(picture, "it"), visible)
    assert fm.load_mask(picture, polarity="masked").to_dense()[0, 0].equal(torch.from_numpy(~visible))


def test_png_as_pillow_writes_it():
    image = pytest.importorskip("PIL.Image")
    for mode in ("1", "L", "P", "RGB", "RGBA"):
        file = io.BytesIO()
        image.fromarray((TRIL * 255).astype(np.uint8)).convert(mode).save(file, "PNG")
        assert pairs(fm.load_mask(file, polarity="visible")) == [36], mode


def test_png_refusals():
    grey = np.array([[0, 255], [128, 255]])
    with pytest.raises(ValueError, match="two tones"):
        fm.load_mask(make_png(grey, 8, 0), polarity="visible")
    with pytest.raises(ValueError, match="not interlaced"):
        fm.load_mask(make_png(grey, 8, 0, interlaced=1), polarity="visible")
    with pytest.raises(ValueError, match="which tone of a picture is visible cannot be told"):
        fm.load_mask(make_png(grey * 0, 8, 0))
    with pytest.raises(ValueError, match="cut short or damaged"):
        fm.load_mask(make_png(grey, 8, 0)[:-20], polarity="visible")
    with pytest.raises(ValueError, match="a picture is a dense mask, not lengths"):
        fm.load_mask(make_png(grey * 0, 8, 0), kind="lengths")
    huge = bytearray(make_png(grey, 8, 0))
    huge[16:24] = struct.pack(">II", 2**30, 2**30)
    huge[29:33] = struct.pack(">I", zlib.crc32(bytes(huge[12:29])))
    with pytest.raises(ValueError, match="1073741824 x 1073741824 pixels"):
        fm.load_mask(bytes(huge), polarity="visible")


@pytest.mark.parametrize(
    "values, options, words",
    [
        (TRIL - 0.5 * np.eye(8), {}, "row 0, column 0 is 0.5; wanted only 0 and 1"),
        (np.where(TRIL == 1, 0, -5.0), {}, "row 0, column 1 is -5.0"),
        (TRIL + np.where(np.eye(8) == 1, np.nan, 0), {}, "row 0, column 0 is nan"),
        (TRIL * 255, {}, "is 255.0"),
        (np.where(TRIL == 1, 1, -1e9), {}, "neither 0/1 nor additive"),
        (np.zeros((4, 4), np.float32), {}, "0 everywhere"),
        (TRIL == 1, {}, 'say "visible" or "masked"'),
        (ADDITIVE, {"polarity": "visible"}, "polarity: an additive matrix says it itself"),
        (TRIL, {"polarity": "keep"}, 'wanted "visible" or "masked", got \'keep\''),
        (TRIL, {"causal": True}, "causal: has no meaning for a dense source"),
        (TRIL, {"kind": "matrix"}, "kind: wanted one of auto, dense"),
        ([3, 2], {}, "can be several things; say which with kind="),
        ([[1, 1, 0], [1, 1, 1]], {}, "can be several things"),
        (np.ones((2, 1, 6, 2), int), {}, "can be several things"),
        ([[1], [1, 2]], {"kind": "lengths"}, "do not make an array"),
        ([], {"kind": "lengths"}, "wanted numbers in 1-D"),
        ([[1, 2]], {"kind": "lengths"}, r"lengths: wanted numbers in 1-D, got \[1, 2\]"),
        ([3, -2], {"kind": "lengths"}, "lengths: number 1 is -2"),
        ([2**20, 2**20], {"kind": "lengths"}, "2,097,152 tokens in all"),
        ([2**62, 2**62], {"kind": "lengths"}, "number 0 is 4611686018427387904"),
        ([1.5], {"kind": "lengths"}, "wanted whole numbers, got 1.5"),
        ([0, 4, 3], {"kind": "cu_seqlens"}, "number 2 is 3 after 4"),
        ([1, 4], {"kind": "cu_seqlens"}, "wanted a first value of 0, got 1"),
        ([0, 2**40], {"kind": "cu_seqlens"}, "1,099,511,627,776 tokens in all"),
        ([0, -1e9], {"kind": "attention_mask"}, "additive values are of kind dense"),
        (np.float64([[[[1.5]]]]), {"kind": "startend_row_indices", "causal": True}, "wanted integers, got float64"),
    ],
)
def test_refused_with_the_accepted_forms(values, options, words):
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        fm.load_mask(values, **options)
    if not {"polarity", "causal"} & set(options) and options.get("kind") != "matrix":
        assert "accepted are" in str(caught.value)


@pytest.mark.parametrize("source", [None, 3, {"lts": [1]}, np.array(["a"]), np.array([1j]), object()])
def test_things_that_are_no_source(source):
    with pytest.raises(TypeError, match="source: wanted"):
        fm.load_mask(source)


def test_pickles_are_refused_by_name(tmp_path):
    path = tmp_path / "mask.pt"
    torch.save(torch.ones(3, 3), path)
    for source in (path, path.read_bytes(), b"\x80\x04K\x01."):
        with pytest.raises(ValueError, match="a pickle .* can run code when it is loaded, so none is"):
            fm.load_mask(source)
    with pytest.raises(ValueError, match="a pickle"):
        fm.load_mask(npy(np.array([{}], object), allow_pickle=True))


def test_limits_are_judged_by_what_a_file_declares():
    def header(shape, descr="<f8"):
        file = io.BytesIO()
        np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
        return file.getvalue()

    for shape in [(2**20, 2**20), (2**63, 1), (1, 1, 1, 1, 1), (-1, 4)]:
        with pytest.raises(ValueError, match="an array of shape"):
            fm.load_mask(header(shape))
    with pytest.raises(ValueError, match="cut short, its header announces 800 bytes and 0 are there"):
        fm.load_mask(header((10, 10)))
    with pytest.raises(ValueError, match="wanted bool, integers or floats"):
        fm.load_mask(header((2,), "<U4") + b"\0" * 32)
    with pytest.raises(ValueError, match="no readable .npy header"):
        fm.load_mask(b"\x93NUMPY\x01\x00\xff\xff{")
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("mask.npy", "w", force_zip64=True) as entry:
            entry.write(header((2**30,), "|b1"))
    with pytest.raises(ValueError, match=r"an array of shape \[1073741824\]"):
        fm.load_mask(bomb.getvalue())
    with pytest.raises(ValueError, match="no readable .npz"):
        fm.load_mask(b"PK\x03\x04 cut short")


def test_an_npz_that_declares_too_many_bytes_is_not_unpacked(monkeypatch):
    monkeypatch.setattr(files, "MAX_BYTES", 3000)
    assert len(npz(mask=np.ones((64, 64), np.uint8))) < 3000
    with pytest.raises(ValueError, match="mask in the bytes, unpacked,: 4,224 bytes are more than the 3,000"):
        fm.load_mask(npz(mask=np.ones((64, 64), np.uint8)))
    with pytest.raises(ValueError, match="are more than the 3,000 that are read"):
        fm.load_mask(b"0" * 3001)
    monkeypatch.setattr(files, "MAX_TEXT_BYTES", 10)
    with pytest.raises(ValueError, match="of text are more than the 10"):
        fm.load_mask(b'{"format": "flashmask"}')


def test_json_is_checked_field_by_field():
    good = json.loads(record_text(fm.mask("causal & document(3, 3)", 6)))
    vectors = good["vectors"]
    for change, words in [
        ({"format": "other"}, "this JSON is no mask of ours"),
        ({"version": 2}, "this program reads version 1, and the file is 2"),
        ({"seqlen_q": -1}, "seqlen_q: wanted 0 to"),
        ({"seqlen_k": 10**12}, "seqlen_k: wanted 0 to"),
        ({"batch": True}, "batch: wanted 1 to"),
        ({"heads": 2}, "lts: wanted 2 vectors"),
        ({"causal": 1}, "no FlashMask packing"),
        ({"causal": False}, "no FlashMask packing"),
        ({"extra": 1}, "unknown: extra"),
        ({"vectors": {"lts": [[[3, 0, 10**9]]]}}, "lts, vector 0: wanted"),
        ({"vectors": {"lts": [[[3, 0, 3], [7, 0, 3]]]}}, "column 3 is 7, outside 0 to Sq = 6"),
        ({"vectors": {"lts": [[[3, 0, 5]]]}}, "counts add up to 6"),
        ({"vectors": {"lts": "3"}}, "lts: wanted 1 vectors"),
        ({"vectors": {"lts": [[["3", 0, 6]]]}}, "lts, vector 0: wanted"),
        ({"batch": 2**20, "heads": 2**20}, "are more than"),
    ]:
        with pytest.raises(ValueError, match=words):
            fm.load_mask(json.dumps({**good, **change}))
    assert vectors == good["vectors"]
    for text, words in [("[1]", "no|wanted"), ("{", "no readable JSON"), ('{"a":' * 10**5, "no readable JSON")]:
        with pytest.raises(ValueError, match=words):
            fm.load_mask(text.encode())
    with pytest.raises(ValueError, match="causal: has no meaning for a json source"):
        fm.load_mask(json.dumps(good), causal=True)


def test_a_block_mask_object_with_heads_and_a_ragged_end():
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    document = torch.tensor([0] * 50 + [1] * 90)

    def mask_mod(b, h, q, k):
        return (q >= k) & (document[q] == document[k]) & (q - k < 40 + 20 * h + b)

    block_mask = flex.create_block_mask(mask_mod, 2, 2, 140, 140, device="cpu", BLOCK_SIZE=32)
    q, k = torch.arange(140)[:, None], torch.arange(140)
    wanted = torch.stack([torch.stack([mask_mod(b, h, q, k) for h in range(2)]) for b in range(2)])
    mask = fm.load_mask(block_mask)
    assert mask.to_dense().equal(wanted)
    # Blocks that are listed without a mask_mod are visible as a whole, others not at all.
    counts, indices = torch.tensor([[[1, 2]]], dtype=torch.int32), torch.tensor([[[[0, 1], [1, 0]]]], dtype=torch.int32)
    listed = flex.BlockMask.from_kv_blocks(counts, indices, BLOCK_SIZE=32, seq_lengths=(64, 60))
    assert pairs(fm.load_mask(listed, kind="block_mask")) == [32 * 32 + 32 * 60]
    with pytest.raises(ValueError, match="asked for dense, and the source is a block_mask"):
        fm.load_mask(listed, kind="dense")
    with pytest.raises(TypeError, match="wanted a FlexAttention BlockMask object, got ndarray"):
        fm.load_mask(TRIL, kind="block_mask")
