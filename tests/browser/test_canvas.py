"""The canvas in a real browser, judged by the library."""

import random

import pytest

import flashmask_core as fm

pytestmark = pytest.mark.browser

KINDS = ("empty", "partial", "full")
MASKS = [
    dict(mask="causal & document(2481, 1388, 1978, 2345)", n=8192),
    dict(mask="global_sliding_window(30, 70, 50)", n=777, tile="64x32"),
    dict(mask="document(100, 150, 90) & ~rect(40, 90, 10, 60)", n=300, nk=340, tile="48x80", rule="paper"),
    dict(mask="random_eviction(60000, 3)", n=131072, rule="paper"),
    dict(mask="hash_sparse(5, 2)", n=65537),
]


def library(query: dict):
    n, nk = query["n"], query.get("nk", query["n"])
    mask = fm.mask(query["mask"], n, nk)
    block_m, block_n = map(int, query.get("tile", "128x128").split("x"))
    return mask, fm.classify_tiles(mask, block_m, block_n, query.get("rule", "exact")), block_m, block_n


@pytest.mark.parametrize("query", MASKS, ids=lambda query: f"{query['mask'][:22]}-{query['n']}")
def test_the_hover_line_says_what_the_library_says(shared, query):
    tab = shared.go(**query)
    mask, tiles, block_m, block_n = library(query)
    dice = random.Random(query["n"])
    tab.point(0.45, 0.47)
    for zoom in (0, 6, 6):
        for _ in range(zoom):  # deeper, around a place near a boundary
            tab.page.mouse.wheel(0, -240)
        tab.frames()
        c, w, r, h = tab.told("view")
        places = [
            (dice.uniform(0.01, 0.99), dice.uniform(0.01, 0.99), dice.choice(["matrix", "vectors"])) for _ in range(16)
        ]
        for (fx, fy, _), said in zip(places, tab.sweep(places)):
            q, k = said["q"], said["k"]
            assert abs(q - (r + fy * h)) <= 1 + h / 200 and abs(k - (c + fx * w)) <= 1 + w / 200
            assert said["visible"] == bool(mask.to_dense(slice(q, q + 1), slice(k, k + 1))[0, 0, 0, 0])
            i, j = q // block_m, k // block_n
            assert said["tile"] == [i, j]
            assert said["kind"] == KINDS[int(tiles.window(slice(i, i + 1), slice(j, j + 1))[0, 0, 0, 0])]
            assert f"Query {q}, key {k}" in said["line"] and f"Tile ({i}, {j})" in said["line"]
            assert ("visible" in said["line"].split(".")[0]) == said["visible"]


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_theme_and_width_moves_and_says_the_same(screen, theme, width):
    query = dict(mask="global_sliding_window(300, 700, 500)", n=7777, tile="64x96")
    mask, tiles, block_m, block_n = library(query)
    tab = screen(theme, width).open(**query)
    tab.keys("+", "+", "+", "ArrowRight", "ArrowDown", "-")
    dice = random.Random(width)
    for said in tab.sweep([(dice.random(), dice.random(), dice.choice(["matrix", "vectors"])) for _ in range(8)]):
        q, k = said["q"], said["k"]
        assert said["visible"] == bool(mask.to_dense(slice(q, q + 1), slice(k, k + 1)))
        i, j = q // block_m, k // block_n
        assert said["kind"] == KINDS[int(tiles.window(slice(i, i + 1), slice(j, j + 1)))]
    tab.keys("ArrowLeft")
    box = tab.box()
    tab.page.mouse.click(box["x"] + 0.6 * box["width"], box["y"] + 0.3 * box["height"])
    tab.page.wait_for_url("**at=*")
    tab.frames()
    spot = tab.told("selected")
    numbers = [int(vector[0, 0, spot["k"]]) for vector in mask.vectors]  # lts, lte, uts, ute, as the strip has them
    assert tab.page.locator(".strip .chosen").all_inner_texts() == [str(n) for n in (spot["k"], *numbers)]


def test_eight_tokens_read_as_in_a_textbook(shared):
    tab = shared.go(mask="causal", n=8)
    corner = tab.point(0.97, 0.03)
    assert (corner["q"], corner["k"], corner["visible"]) == (0, 7, False)
    assert "hidden by the causal diagonal" in tab.page.locator(".readout").inner_text()
    assert tab.point(0.05, 0.9) | {"tile": 0} == {"q": 7, "k": 0, "visible": True, "tile": 0, "kind": "partial"}


def test_wheel_drag_keys_and_buttons_move_the_view(shared):
    tab = shared.go(mask="causal", n=8192)
    whole = tab.told("view")
    before = tab.point(0.4, 0.45)
    for _ in range(12):
        tab.page.mouse.wheel(0, -200)
    tab.frames()
    zoomed, after = tab.told("view"), tab.told("says")
    assert zoomed[1] < whole[1] / 20
    assert abs(after["q"] - before["q"]) <= 20 and abs(after["k"] - before["k"]) <= 20  # about the pointer

    box = tab.box()
    tab.page.mouse.down()
    tab.page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.3 * box["height"], steps=4)
    tab.page.mouse.up()
    tab.frames()
    dragged = tab.told("view")
    assert dragged[1] == zoomed[1] and dragged[0] == pytest.approx(zoomed[0] + 0.2 * zoomed[1], rel=0.02)

    tab.keys("ArrowLeft", "ArrowUp")
    panned = tab.told("view")
    assert panned[0] == pytest.approx(dragged[0] - 0.1 * dragged[1]) and panned[2] < dragged[2]
    tab.keys("+", "-")
    assert tab.told("view")[1] == pytest.approx(panned[1])
    tab.keys(*["+"] * 40)
    c, w, r, h = tab.told("view")
    assert 5 < w < 20 and w == h  # the largest cells, square
    tab.keys("0")
    assert tab.told("view") == whole
    tab.page.locator(".tools button[data-do=in]").click()
    tab.frames()
    assert tab.told("view")[1] < whole[1]
    box = tab.box()
    tab.page.mouse.dblclick(box["x"] + 50, box["y"] + 50)
    tab.frames()
    assert tab.told("view") == whole


def test_a_click_selects_everywhere_and_enters_the_link(shared):
    tab = shared.go(mask="causal & document(2481, 1388, 1978, 2345)", n=8192)
    box = tab.box("vectors")
    tab.page.mouse.click(box["x"] + 0.7 * box["width"], box["y"] + 0.9 * box["height"])
    tab.page.wait_for_url("**at=*")
    spot = tab.told("selected")
    assert f"at={spot['q']}%2C{spot['k']}" in tab.page.url
    mask = fm.mask("causal & document(2481, 1388, 1978, 2345)", 8192)
    chosen = tab.page.locator(".strip .chosen").all_inner_texts()
    assert chosen == [str(spot["k"]), str(int(mask.lts[0, 0, spot["k"]]))]
    assert tab.page.locator(".readout").inner_text().startswith(f"Column {spot['k']}:")
    tab.keys("Shift+ArrowLeft", "Shift+ArrowDown")
    assert tab.told("selected") == {"q": min(8191, spot["q"] + 1), "k": spot["k"] - 1}
    tab.page.reload()
    tab.settled()
    assert tab.told("selected") in (spot, {"q": spot["q"] + 1, "k": spot["k"] - 1})


@pytest.mark.parametrize("wait_ms", [0, 420, 480, 510])  # while the view comes to rest, and when it is told
def test_another_address_right_behind_a_zoom_wins(shared, wait_ms):
    tab = shared.go(mask="sliding_window(9)", n=64)
    tab.point(0.4, 0.45)
    tab.page.mouse.wheel(0, -400)
    tab.page.wait_for_timeout(wait_ms)
    tab.page.evaluate(
        "() => { history.pushState({}, '', '?mask=full&n=64'); dispatchEvent(new PopStateEvent('popstate')); }"
    )
    tab.shows("full", 64)
    tab.rested()
    assert tab.told("view") == [0, 64, 0, 64] and "view=" not in tab.page.url


def test_the_same_cell_can_be_chosen_again_after_the_length_changed(shared):
    """The server forgets the cell at N = 16; it must hear of it again, though it is what it heard last."""
    tab = shared.go(mask="causal", n=64)
    box = tab.box()

    def choose():
        tab.page.mouse.click(box["x"] + 0.16 * box["width"], box["y"] + 0.32 * box["height"])
        tab.page.wait_for_url("**at=*")
        tab.frames()
        return tab.told("selected")

    def enter(label, text, *shown):
        field = tab.page.get_by_label(label, exact=True)
        field.fill(text)
        field.press("Enter")
        tab.shows(*shown)

    spot = choose()
    enter("Tokens N", "8", "causal", 8)
    enter("Tokens N", "64", "causal", 64)
    assert choose() == spot
    tab.page.wait_for_timeout(400)  # a text typed faster than that behind a click may be lost
    enter("Mask", "causal & (q - k < 30)", "causal & (q - k < 30)", 64)
    assert tab.told("selected") == spot and "at=" in tab.page.url


def test_a_million_tokens(shared, capsys):
    tab = shared.go(mask="sliding_window(1)", n=2**20)
    ground = tab.pixel(0.8, 0.2)[0]
    for f in (0.1, 0.33, 0.5, 0.77, 0.9):  # the diagonal is one token wide, a pixel some 2,000
        assert any(color != ground for color in tab.pixel(f, f, reach=1))
        assert tab.pixel(f, (f + 0.4) % 1)[0] == ground
    assert "tokens" in tab.page.locator(".scale").inner_text()
    tab.point(0.4, 0.4)
    rate = tab.frame_rate(1.5)
    with capsys.disabled():
        print(f"\n2^20 tokens: {rate:.0f} frames/s while zooming, exact picture in {tab.word('drawMs')} ms")
    assert rate >= 4  # whatever else the machine does; `python -m tests.browser.measure` prints the figures


def test_the_two_pictures_stand_level_and_long_numbers_are_not_cut(shared):
    tab = shared.go(mask="sliding_window(1048576)", n=2**20)
    try:
        for width in (1440, 1150):
            tab.page.set_viewport_size({"width": width, "height": 900})
            tab.rested()
            matrix, vectors = tab.box("matrix"), tab.box("vectors")
            assert matrix["y"] == pytest.approx(vectors["y"], abs=0.5)
            assert matrix["width"] == pytest.approx(vectors["width"], abs=0.5)
            assert matrix["x"] + matrix["width"] < vectors["x"]
        number = tab.page.get_by_label("w of layer 1", exact=True)
        assert number.evaluate("e => e.scrollWidth <= e.clientWidth")
    finally:
        tab.page.set_viewport_size({"width": 1440, "height": 900})


@pytest.mark.parametrize("n", [65537, 131072])
def test_causal_draws_just_above_what_a_square_could_hold(shared, n):
    tab = shared.go(mask="causal", n=n)
    full, empty = tab.pixel(0.2, 0.8)[0], tab.pixel(0.8, 0.2)[0]
    assert full != empty
    for f in (0.0, 0.25, 0.5, 0.75):
        assert tab.pixel(f + 0.02, f + 0.1)[0] == full and tab.pixel(f + 0.1, f + 0.02)[0] == empty


@pytest.mark.parametrize(
    "query",
    [
        dict(mask="causal", n=1),
        dict(mask="full", n=100, tile="512x512"),
        dict(mask="~full", n=100, tile="7x300"),
        dict(mask="document(repeat(1, 1048576))", n=2**20),
    ],
    ids=lambda query: f"{query['mask'][:16]}-{query['n']}",
)
def test_strange_sizes_have_a_picture(shared, query):
    tab = shared.go(**query)
    mask, tiles, _, _ = library(query)
    said = tab.point(0.5, 0.5)
    assert said["visible"] == bool(mask.to_dense(slice(said["q"], said["q"] + 1), slice(said["k"], said["k"] + 1)))
    tab.page.wait_for_function("(n) => document.body.innerText.includes(n)", arg=f"{int(tiles.counts[0, 0, 2]):,}")
    tab.page.locator(".why b").filter(has_text="Tile (").wait_for()


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_all_visible_and_all_hidden_keep_their_colours(shared, theme):
    tab = shared
    tab.page.emulate_media(color_scheme=theme)
    tab.page.wait_for_selector(f".fm-canvas[data-theme={theme}]")  # the canvas follows the change
    colors = []
    for mask in ("full", "~full"):
        tab.go(mask=mask, n=100)
        colors.append((tab.pixel(0.3, 0.8)[0], tab.pixel(0.3, 0.8, "vectors")[0]))
    wanted = {"light": [(0x00, 0x44, 0x88), (0xED, 0xED, 0xED)], "dark": [(0x9C, 0xD3, 0xF5), (0x26, 0x2B, 0x33)]}[
        theme
    ]
    assert [tuple(matrix) for matrix, _ in colors] == wanted
    assert colors[0][1] != colors[1][1]


def test_the_view_is_in_the_link(shared):
    tab = shared.go(mask="sliding_window(37)", n=8192)
    tab.keys("+", "+", "+", "+", "ArrowRight", "ArrowDown")
    view = tab.told("view")
    assert "view=" in tab.page.url
    tab.page.wait_for_timeout(500)  # the server hears of it
    tab.settled()
    link = tab.page.url
    tab.page.get_by_role("link", name="Measure").first.click()
    tab.page.wait_for_selector("h1:has-text('Measure')")
    tab.page.wait_for_url("**view=*")
    tab.page.get_by_role("link", name="Compose").first.click()
    tab.settled()
    assert tab.told("view") == pytest.approx(view, abs=0.01)
    tab.page.wait_for_url("**view=*")
    tab.page.goto(link)
    tab.settled()
    assert tab.told("view") == pytest.approx(view, abs=0.01)
    tab.keys("0")
    assert "view=" not in tab.page.url


def test_the_minimap_goes_elsewhere(shared):
    tab = shared.go(mask="causal", n=8192)
    assert tab.page.locator(".minimap").is_hidden()
    tab.keys(*["+"] * 8)
    box = tab.page.locator(".minimap").bounding_box()
    tab.page.mouse.click(box["x"] + 0.25 * box["width"], box["y"] + 0.75 * box["height"])
    tab.rested()
    c, w, r, h = tab.told("view")
    assert c + w / 2 == pytest.approx(2048, abs=60) and r + h / 2 == pytest.approx(6144, abs=60)


def test_tile_map_loops_and_numbers_choose_the_same_cell(shared):
    tab = shared.go(mask="causal & document(2481, 1388, 1978, 2345)", n=8192)
    tiles = fm.classify_tiles(fm.mask("causal & document(2481, 1388, 1978, 2345)", 8192))
    tab.page.locator(".why b").filter(has_text="Tile (").wait_for()

    def click(selector, fx, fy):
        tab.page.locator(selector).scroll_into_view_if_needed()
        box = tab.page.locator(selector).bounding_box()
        tab.page.mouse.click(box["x"] + fx * box["width"], box["y"] + fy * box["height"])
        tab.page.mouse.move(5, 5)
        tab.frames()
        spot = tab.told("selected")
        return spot["q"] // 128, spot["k"] // 128

    assert click(".tilemap", 10.5 / 64, 50.5 / 64) == (50, 10)
    assert click(".loop[data-loop=row]", 44.5 / 64, 0.5) == (50, 44)
    says = tab.page.locator("[data-says=row] small").inner_text()
    kinds = tiles.window(slice(50, 51))[0, 0, 0].tolist()
    assert says == (
        f"computes {kinds.count(1) + kinds.count(2)} of 64: {kinds.count(1)} partial, {kinds.count(2)} full; "
        f"skips {kinds.count(0)}"
    )
    assert click(".loop[data-loop=column]", 47.5 / 64, 0.5) == (47, 44)
    assert tab.page.locator(".why b").inner_text().startswith("Tile (47, 44) is")
    tab.page.locator(".strip [data-k]").nth(2).hover()
    key = int(tab.page.locator(".strip [data-k]").nth(2).get_attribute("data-k"))
    tab.frames()
    assert tab.told("says")["k"] == key
    tab.page.wait_for_url("**at=*")
