"""The kernel's walk in a real browser: every step of it, its numbers against the library, keys, clicks and the link."""

import numpy as np
import pytest
import torch
from app_server import running_app
from canvas_driver import Screen
from playwright.sync_api import expect

import flashmask_core as fm
from flashmask_core.tiles.decide import TilePlan
from pages.ui.walk.story import dense, inputs, story

pytestmark = pytest.mark.browser

MASK = "causal & document(21, 16, 27)"


class Walk:
    """Drives the walk of a tab."""

    def __init__(self, tab):
        self.tab, self.page = tab, tab.page
        self.root = tab.page.locator(".fm-walk")

    def open(self, **query):
        self.tab.open("walk", **query)
        self.page.wait_for_selector(".fm-walk[data-ready]", timeout=30_000)
        self.page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", timeout=30_000)
        return self

    def told(self, name: str) -> str:
        return self.root.get_attribute(f"data-{name}")

    def press(self, what: str):
        self.root.locator(f"[data-do={what}]").click()

    def grid(self) -> np.ndarray:
        """The numbers of the tile, [rows, keys]; NaN for a hidden cell."""
        read = "rows => rows.map(r => [...r.cells].slice(1).map(c => c.dataset.value ?? 'nan'))"
        return np.array(self.root.locator(".cells tbody tr").evaluate_all(read), dtype=float)

    def kept(self) -> np.ndarray:
        """The numbers that the program keeps, [rows, columns]; NaN stands for an infinity."""
        read = "rows => rows.map(r => [...r.cells].slice(1).map(c => c.dataset.value))"
        rows = self.root.locator(".state tbody tr").evaluate_all(read)
        return np.array([[float(x) if x not in ("null", None) else np.nan for x in row] for row in rows])


@pytest.fixture
def walk(screen):
    return lambda *place: Walk(screen(*place))


@pytest.mark.parametrize("pass_", ["forward", "dkdv", "dq"])
def test_every_step_is_shown_and_the_last_one_is_the_dense_result(walk, pass_):
    it = walk().open(mask=MASK, n=64, step=0, line=4, **{"pass": pass_})
    mask = fm.mask(MASK, 64)
    plan, judge = TilePlan(mask, 8, 8), dense(mask, inputs(64, 64))
    loop = plan.column_loop(4) if pass_ == "dkdv" else plan.row_loop(4)
    told = story(mask, 8, 8, pass_, 4)["steps"]
    visited, lines = [], []
    for step in range(100):
        assert it.told("step") == str(step)
        assert it.root.locator(".code .now").count() == 1
        assert it.root.locator(".says").inner_text().strip()
        lines.append(it.told("line"))
        if lines[-1] == "scores":
            visited.append(int(it.told("tile")))
        written = [value for name, value in told[step][2].items() if name in ("s", "p", "dp", "ds")]
        if written:  # what the library computed in this step is what the grid shows
            np.testing.assert_array_equal(it.grid(), np.array(written[0], dtype=float))
        if it.root.locator("[data-do=step]").is_disabled():
            break
        it.page.keyboard.press("ArrowRight")
    assert visited == loop and lines[:9] == ["decide"] * 8 + ["load"]
    assert lines.count("hide") == len(loop)  # all of them PARTIAL here
    assert it.root.locator("[data-count=visited]").inner_text() == f"{len(loop)} of {len(loop)}"
    kept, rows = it.kept(), slice(32, 40)
    names = {"forward": ["out"], "dkdv": ["dk", "dv"], "dq": ["dq"]}[pass_]
    wanted = torch.cat([judge[name][rows] for name in names], 1).numpy()
    np.testing.assert_allclose(kept[:, -wanted.shape[1] :], wanted, atol=5e-6)
    if pass_ == "forward":
        np.testing.assert_allclose(kept[:, 2], judge["lse"][rows].numpy(), atol=5e-6)
    assert "dense reference" in it.root.locator(".says").inner_text()


def test_tiles_have_the_kinds_and_the_reasons_of_the_library(walk):
    it = walk().open(mask=MASK, n=64, line=4)
    plan = TilePlan(fm.mask(MASK, 64), 8, 8)
    for tile, text in enumerate(it.root.locator(".strip li").all_inner_texts()):
        decision = plan.decision(4, tile)
        word = ["skipped", "partial", "full"][decision.kind]
        assert f"{word}: {decision}" in " ".join(text.split())


def test_clicks_keys_and_the_link(walk):
    it = walk().open(mask="causal", n=64)
    assert (it.told("owner"), it.told("line")) == ("4", "hide")
    it.root.locator("[data-tile='1']").click()
    assert (it.told("tile"), it.told("line")) == ("1", "scores")
    assert it.root.locator(".tile header small").inner_text() == "full"
    it.root.locator("[data-line=out]").click()
    assert it.told("line") == "out"
    it.page.wait_for_url("**step=*")
    step = it.told("step")
    it.page.wait_for_timeout(800)  # the server hears of it
    it.page.reload()
    it.page.wait_for_selector(".fm-walk[data-ready]")
    assert it.told("step") == step

    box = it.root.locator("canvas").bounding_box()
    it.page.mouse.click(box["x"] + 0.3 * box["width"], box["y"] + 0.8 * box["height"])
    it.page.wait_for_selector(".fm-walk[data-owner='6']")
    it.root.locator("canvas").focus()
    it.page.keyboard.press("ArrowUp")
    it.page.wait_for_selector(".fm-walk[data-owner='5']")
    it.page.wait_for_function("/line=5/.test(location.search) && !/step=/.test(location.search)")
    it.page.keyboard.press("End")
    assert it.told("line") == "out"
    it.page.keyboard.press("Home")
    assert it.told("step") == "0"
    it.root.locator("select").select_option("4")
    it.page.keyboard.press("Home")
    it.press("play")
    expect(it.root).to_have_attribute("data-line", "out", timeout=30_000)
    expect(it.root.locator("[data-do=play]")).to_contain_text("play")

    pages = it.page.get_by_role("link", name="Compose").first
    pages.click()
    it.page.wait_for_selector("h1:has-text('Compose')")
    it.page.wait_for_function("!/step=|line=/.test(location.search)")
    it.page.get_by_role("link", name="Walk").first.click()
    it.page.wait_for_selector(".fm-walk[data-owner='5']")


def test_presses_faster_than_the_server_all_count_and_a_tile_can_be_asked_for_again(walk):
    it = walk().open(mask="causal", n=64)

    def owner(line):
        it.page.wait_for_selector(f".fm-walk[data-owner='{line}']", timeout=15_000)

    it.root.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp"):
        it.page.keyboard.press(key)
    owner(6)
    it.page.wait_for_function("/line=6/.test(location.search)")
    it.page.get_by_role("radio", name="Backward: dQ").click()
    owner(4)
    it.press("below")
    owner(5)
    it.press("below")  # the tile that the forward was asked for
    owner(6)
    it.page.wait_for_url("**line=6*")
    it.page.go_back()
    owner(5)
    it.press("below")
    owner(6)


def test_no_press_is_lost_whenever_it_comes(walk):
    """Presses and changes of the pass at any moment after an answer, while it is on its way and long after."""
    it, dice = walk().open(mask="causal", n=64, line=4), np.random.default_rng(6)
    line, passes = 4, ("Backward: dQ", "Forward")
    for turn in range(40):
        it.page.wait_for_timeout(int(dice.integers(0, 600)) if turn % 2 else 0)
        if turn % 4 == 3:  # begins anew in the middle
            name, line = passes[turn // 4 % 2], 4
            it.page.get_by_role("radio", name=name).click()
            expect(it.root.locator(".code")).to_contain_text("dq ←" if name.startswith("Back") else "acc ←")
        else:
            down = line < 2 or (line < 6 and dice.integers(2))
            line += 1 if down else -1
            it.press("below" if down else "above")
        it.page.wait_for_selector(f".fm-walk[data-owner='{line}']", timeout=10_000)
    it.page.wait_for_function(f"(new URL(location.href).searchParams.get('line') ?? '4') === '{line}'")


def test_sentences_say_what_is_computed_in_this_step_alone(walk):
    it = walk().open(mask=MASK, n=64, step=0, line=3, **{"pass": "dkdv"})
    pair, says = it.root.locator("p.cell"), it.root.locator(".says")
    assert "hidden by" in pair.inner_text() and "s =" not in pair.inner_text()
    it.press("end")
    assert "dV is not" in says.inner_text()
    it.tab.open("walk", mask=MASK, n=64, line=4, step=9)
    it.page.wait_for_selector(".fm-walk[data-step='9'][data-line='scores']")
    hidden = it.root.locator(".cells td[data-q='32'][data-k='16']")
    hidden.hover()
    assert "s = 0.5" in pair.inner_text() and "−∞" not in pair.inner_text()
    it.press("step")
    assert "then −∞" in pair.inner_text()


def test_other_settings_walk_anew_and_a_score_says_where_it_comes_from(walk):
    it = walk().open(mask="causal", n=64, line=1, step=3)
    tile = it.page.get_by_label("Tile", exact=True)
    tile.fill("5x7")
    tile.press("Enter")
    it.page.wait_for_url("**block=5x7*")
    expect(it.root.locator(".where .hint")).to_contain_text("tiles 5 × 7")
    it.page.get_by_text("Backward: dK, dV").click()
    it.page.wait_for_url("**pass=dkdv*")
    expect(it.root.locator(".code")).to_contain_text("dk ← dk + dsᵀ Q[i]")
    x, cell = inputs(64, 64), it.root.locator(".cells td").last
    follow = it.root.locator("[data-own]").filter(has_text="30").first
    follow.focus()
    it.page.keyboard.press("Enter")
    expect(it.root.locator(".state tr.followed")).to_contain_text("30")
    expect(follow).to_be_focused()
    cell.hover()
    q, k = int(cell.get_attribute("data-q")), int(cell.get_attribute("data-k"))
    said = it.root.locator("p.cell").inner_text()
    assert f"Query {q}, key {k}" in said
    score = float(said.split("= ")[-1].removesuffix(", then −∞").replace("−", "-"))
    assert score == pytest.approx(float(x["q"][q] @ x["k"][k]) / 2, abs=0.006)


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_every_theme_and_width(walk, theme, width):
    it = walk(theme, width).open()
    assert it.told("theme") == theme
    assert it.page.locator("[data-testid=stMain]").evaluate("e => e.scrollWidth <= e.clientWidth")
    assert it.root.locator("[data-do=play]").is_visible()  # the bar is on the screen without scrolling
    for selector in (".code", ".cells", ".strip"):
        box = it.root.locator(selector).bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width


def test_the_first_visit_of_a_server_may_go_straight_to_a_page(contexts):
    with running_app() as address:
        it = Walk(Screen(contexts("light", 1440).new_page(), address)).open(mask="causal", n=64, line=6)
        assert it.told("owner") == "6" and it.tab.errors == []
        it.page.close()
