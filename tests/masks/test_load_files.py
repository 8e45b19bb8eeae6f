"""load_mask from files: every format from every kind of source, limits, and files that are damaged or hostile."""

import io
import json
import struct
import sys
import zipfile
import zlib

import numpy as np
import pytest
import torch

import flashmask_core as fm
from flashmask_core.masks.load import files, png
from flashmask_core.masks.mask_json import record_text

TRIL = np.tril(np.ones((8, 8), np.float32))


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
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):  # what a spreadsheet calls Unicode text; tabs, with its mark
        mark = "" if encoding == "utf-16" else "\ufeff"
        unicode = f"{mark}id\ttext\ttokens\r\n1\ta, ü\t4\r\n2\tc\t4\r\n".encode(encoding)
        assert pairs(fm.load_mask(unicode, kind="lengths", column="tokens")) == [20]
        assert pairs(fm.load_mask(f"{mark}1\t0\r\n1\t1\r\n".encode(encoding))) == [3]
    with pytest.raises(ValueError, match="the first line is 'id, text, tokens'"):
        fm.load_mask(table, kind="lengths", column="length")
    with pytest.raises(ValueError, match="column: wanted a column of numbers"):
        fm.load_mask(b"tokens\n" + b"4" * 200_000, kind="lengths", column="tokens")
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
        paeth = [min((i, j, o), key=lambda v: abs(i + j - o - v)) for i, j, o in zip(a, b, c)]
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
    for damaged in (b"\x93NUMPY\x01\x00\xff\xff{", npy(TRIL).replace(b"}", b" ")):
        with pytest.raises(ValueError, match="no readable .npy header"):
            fm.load_mask(damaged)
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("mask.npy", "w", force_zip64=True) as entry:
            entry.write(header((2**30,), "|b1"))
    with pytest.raises(ValueError, match=r"an array of shape \[1073741824\]"):
        fm.load_mask(bomb.getvalue())
    damaged = bytearray(npz(mask=np.tri(500)))
    damaged[100:110] = b"\xff" * 10
    for archive in (b"PK\x03\x04 cut short", bytes(damaged)):
        with pytest.raises(ValueError, match="no readable .npz"):
            fm.load_mask(archive)


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
        ({"vectors": {"lts": [[[3, 0, 5]]]}}, "counts that add up to 6"),
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


def test_damaged_files_are_refused_and_nothing_else_happens():
    rng = np.random.default_rng(0)
    good = [npy(TRIL), npz(mask=TRIL), make_png(np.where(TRIL == 1, 255, 0), 8, 0, (4, 3, 2, 1, 0)), b"1,0\n1,1\n",
            record_text(fm.mask("causal & document(3, 3)", 8)).encode()]  # fmt: skip
    for _ in range(1500):
        content = bytearray(good[rng.integers(len(good))])
        for place in rng.integers(len(content), size=rng.integers(1, 5)):
            content[place] = rng.integers(256)
        if rng.random() < 0.3:
            del content[rng.integers(len(content)) :]
        try:
            assert isinstance(fm.load_mask(bytes(content), polarity="visible"), fm.ColumnMask)
        except (ValueError, TypeError):
            pass


def test_safetensors():
    pytest.importorskip("safetensors")
    from safetensors.numpy import save

    one = save({"mask": TRIL.astype(np.float32)})
    assert fm.load_mask(one).equals(fm.mask("causal", 8)) and fm.load_mask(io.BytesIO(one)).equals(fm.mask("causal", 8))
    two = save({"mask": TRIL.astype(np.int64), "rows": np.full((1, 1, 6, 1), 6, np.int32)})
    assert fm.load_mask(two, array="rows", kind="startend_row_indices", causal=True).equals(fm.mask("causal", 6))
    for data, options, message in (
        (two, {}, "say which array with array=; it has mask, rows"),
        (two, {"array": "k"}, "has no 'k'; it has mask, rows"),
        (one[:-3], {}, "no readable .safetensors"),
        (one[:9] + b"}" + one[10:], {}, "no readable .safetensors"),
        (save({"mask": np.ones((1, 1, 1, 2, 2), np.float32)}), {}, "an array of shape .* is not taken"),
    ):
        with pytest.raises(ValueError, match=message):
            fm.load_mask(data, **options)


def test_safetensors_needs_its_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ValueError, match="takes the package safetensors"):
        fm.load_mask(b"\x02\0\0\0\0\0\0\0{}  ")
