"""Pictures of masks: the kinds of their blocks, files that other programs read, and what is too large to draw."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import flashmask_core as fm
from flashmask_core.masks.load.png import read_png
from flashmask_core.masks.picture import ALL, NONE, SOME, THEMES, block_kinds, fitting_block, png_of


def test_kinds_of_blocks_match_brute_force():
    rng = np.random.default_rng(2)
    for _ in range(150):
        sq, sk = rng.integers(1, 20, 2)
        visible = np.repeat(rng.random((sq, sk)) < rng.random(), rng.integers(1, 4), axis=0)
        block_m, block_n = (int(n) for n in rng.integers(1, 9, 2))
        got = block_kinds(fm.MaskedRuns.from_dense(visible), block_m, block_n)
        for i, j in np.ndindex(got.shape):
            block = visible[i * block_m : (i + 1) * block_m, j * block_n : (j + 1) * block_n]
            assert got[i, j] == (ALL if block.all() else SOME if block.any() else NONE)
        assert got.shape == (-(-len(visible) // block_m), -(-sk // block_n))


def test_kinds_of_tiles_are_those_of_the_exact_rule():
    mask = fm.mask("causal & document(333, 333, 334)", 1000)
    wanted = fm.classify_tiles(mask).kinds[0, 0].numpy()
    np.testing.assert_array_equal(
        block_kinds(fm.parse("causal & document(333, 333, 334)").runs(1000), 128, 128), wanted
    )


def test_a_png_has_the_colours_of_its_blocks_and_its_text():
    text = "causal & (k < 9)"
    data = fm.export_mask(text, "png", 700, tile=(1, 1))
    assert data.startswith(b"\x89PNG") and b"Description\0causal & (k < 9)" in data
    bright = read_png(data, "it")  # hidden pixels are the brighter ones
    np.testing.assert_array_equal(~bright, fm.mask(text, 700).to_dense()[0, 0].numpy())
    again = fm.load_mask(data, polarity="masked")
    assert again.equals(fm.mask(text, 700))
    tiles = fm.export_mask("causal & document(300, 400)", "png", 700)  # its tones say "some" of a tile
    assert fm.load_mask(tiles).equals(fm.mask("causal & document(300, 400)", 700)), "and it carries the mask"
    with pytest.raises(ValueError, match="two tones"):
        fm.load_mask(tiles, polarity="masked")
    damaged = tiles.replace(b"flashmask\0\0", b"flashmask\0x")
    with pytest.raises(ValueError, match="cut short or damaged"):
        fm.load_mask(damaged)
    assert fm.export_mask(text, "png", 700, theme="dark") != fm.export_mask(text, "png", 700)
    assert read_png(png_of(np.array([[0, 1]], np.uint8), ["#000000", "#FFFFFF"]), "it").tolist() == [[False, True]]


def test_an_svg_is_xml_with_title_axes_and_a_shape_for_each_kind():
    root = ElementTree.fromstring(
        fm.export_mask("causal & (q - k < 100) & ~(q < 3)", "svg", 1000, tile=(32, 32), theme="dark")
    )
    words = "".join(root.itertext())
    for part in ("causal & (q - k < 100) & ~(q < 3)", "1,000 queries × 1,000 keys", "visible pairs", "query 0", "999"):
        assert part in words
    space = "{http://www.w3.org/2000/svg}"
    fills = [path.get("fill") for path in root.iter(f"{space}path") if path.get("d")]
    assert "url(#some)" in fills and THEMES["dark"][-1] in fills
    assert "drawn in blocks of 512 × 512" in fm.export_mask("causal", "svg", 1 << 17)


def test_long_masks_make_small_pictures():
    mask = fm.mask("sliding_window(500) | causal & (k < 16)", 1 << 20)
    assert len(fm.export_mask(mask, "png")) < 50_000 and len(fm.export_mask(mask, "svg")) < 300_000
    assert fitting_block(1 << 20, 128, 256) == 4096 and fitting_block(100, 128, 256) == 128


def test_what_cannot_be_drawn():
    two = fm.ColumnMask.stack([fm.mask("causal", 4)] * 2, "head")
    cases = [
        (two, {}, "wanted one plane, B = Hm = 1, got B = 1, Hm = 2"),
        (fm.mask("causal", 4), {"tile": (0, 4)}, "tile: wanted two whole numbers of 1 or more"),
        (fm.mask("causal", 4), {"theme": "blue"}, "theme: wanted one of light, dark, got 'blue'"),
        (fm.mask("causal", 0, 4), {}, "0 queries and 4 keys leave nothing to draw"),
        (fm.mask("causal", 4), {"heads": 2}, "heads: has no meaning for png"),
    ]
    for mask, options, message in cases:
        with pytest.raises(ValueError, match=message):
            fm.export_mask(mask, "png", **options)
    with pytest.raises(ValueError, match="tile: has no meaning for npy; it belongs to png, svg"):
        fm.export_mask(fm.mask("causal", 4), "npy", tile=(1, 1))
