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


def test_a_million_tokens(shared, capsys):
    tab = shared.go(mask="sliding_window(1)", n=2**20)
    ground = tab.pixel(0.8, 0.2)[0]
    for f in (0.1, 0.33, 0.5, 0.77, 0.9):  # the diagonal is one token wide, a pixel some 2,000
        assert any(color != ground for color in tab.pixel(f, f, reach=1))
        assert tab.pixel(f, (f + 0.4) % 1)[0] == ground
    assert "tokens" in tab.page.locator(".scale").inner_text()
    tab.point(0.4, 0.4)
    fps = tab.page.evaluate(
        """async () => {
            let frames = 0, running = true;
            const count = () => { frames++; if (running) requestAnimationFrame(count); };
            requestAnimationFrame(count);
            const shadows = [...document.querySelectorAll("*")].map((e) => e.shadowRoot).filter(Boolean);
            const canvas = shadows.map((s) => s.querySelector("canvas.over")).find(Boolean);
            const box = canvas.getBoundingClientRect(), began = performance.now();
            for (let i = 0; performance.now() - began < 2000; i++) {
                canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: i % 40 < 20 ? -60 : 60, cancelable: true,
                    clientX: box.left + 150, clientY: box.top + 150 }));
                await new Promise(requestAnimationFrame);
            }
            running = false;
            return (frames * 1000) / (performance.now() - began);
        }"""
    )
    with capsys.disabled():
        print(f"\n2^20 tokens: {fps:.0f} frames/s while zooming, exact picture in {tab.word('drawMs')} ms")
    assert fps >= 20  # 30 and more on a machine that does nothing else


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
