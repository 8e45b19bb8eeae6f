"""A screen is its URL: there and back, damaged links, switches of pages, undo."""

from types import SimpleNamespace

import pytest
from page_tools import html_of, link_of, press, told

from pages.ui import state
from pages.ui.link import DEFAULT_TEXT, MAX_LINK, Screen, parse_tile
from pages.ui.measure.trial import Trial

SCREENS = [
    Screen(),
    Screen(mask="causal", seqlen_q=384, block_m=64, block_n=64),
    Screen(mask="document(3, 4) | ~causal", seqlen_q=7, seqlen_k=9, rule="paper", heads=6, at=(6, 8)),
    Screen(mask="causal & (q - k < 5) # + % é", seqlen_q=2**20, block_m=1, block_n=2**20, at=(0, 0)),
    Screen(mask="full", seqlen_q=100, at=(3, 4), view=(10.25, 30.5, 0.0, 100.0)),
    Screen(file="0123456789abcdef01234567", plane=(1, 3), case="89abcdef"),
    Screen(trial=Trial(4, 8, 64, "float16", ("backward",), ("flashmask", "flex"))),
    Screen(trial=Trial(passes=(), engines=())),
]


@pytest.mark.parametrize("screen", SCREENS)
def test_there_and_back(screen):
    assert Screen.from_query(screen.to_query(page="measure")) == (screen, [])


def test_the_first_screen_needs_no_parameters():
    assert Screen().to_query() == {}
    assert Screen.from_query({}) == (Screen(), [])


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"n": "-3"}, ["n"]),
        ({"n": "0", "nk": "0"}, ["n", "nk"]),
        ({"n": "9" * 30, "nk": "x"}, ["n", "nk"]),
        ({"tile": "128x"}, ["tile"]),
        ({"tile": "0x64", "rule": "best"}, ["tile", "rule"]),
        ({"at": "9000,1"}, ["at"]),
        ({"heads": "1.5"}, ["heads"]),
        ({"n": "\u0663", "tile": "\u0663x64", "at": "\u0663,1"}, ["n", "tile", "at"]),
        ({"view": "0,1,2"}, ["view"]),
        ({"view": "0,nan,0,10"}, ["view"]),
        ({"view": "9000,10,0,10"}, ["view"]),
        ({"view": "0,-5,0,10"}, ["view"]),
        ({"file": "../../etc/passwd", "plane": "x"}, ["file", "plane"]),
        ({"case": "<b>"}, ["case"]),
        ({"batch": "0", "kv": "-1", "dim": "65", "dtype": "int8"}, ["batch", "kv", "dim", "dtype"]),
        ({"passes": "forward,backward,sideways"}, ["passes: there is no 'sideways'"]),
        ({"mask": "  "}, []),
        ({"unknown": "1"}, []),
    ],
)
def test_damaged_links_give_the_nearest_valid_screen(query, names):
    screen, problems = Screen.from_query(query)
    assert screen == Screen()
    assert [problem.split("=")[0] for problem in problems] == names


def test_a_text_too_long_for_a_link_is_named_in_it():
    query = Screen(mask="causal & (" + "q + " * MAX_LINK + "1 > k)").to_query()
    assert "mask" not in query and len(query["file"]) == 24


def test_links_between_pages_leave_the_place_to_the_session():
    screen = Screen(mask="full", seqlen_q=100, at=(3, 4), view=(10.0, 30.0, 0.0, 100.0))
    assert screen.to_query(place=False) == {"mask": "full", "n": "100"}


def test_a_view_is_cut_to_the_mask():
    screen, problems = Screen.from_query({"n": "100", "view": "40,500,0,100"})
    assert screen.view == (40, 100, 0, 100) and not problems


def test_another_length_shows_all_of_it_again(open_app):
    app = open_app(mask="causal", n=100, view="10,20,10,20", at="99,3")
    assert app.session_state["screen"].view == (10, 20, 10, 20)
    app.text_input(key="w_mask").set_value("full").run()
    assert link_of(app) == {"mask": "full", "n": "100", "view": "10,20,10,20", "at": "99,3"}
    app.number_input(key="w_n").set_value(50).run()
    assert link_of(app) == {"mask": "full", "n": "50"}


@pytest.mark.parametrize(
    ("text", "tile"),
    [
        ("128 × 64", (128, 64)),
        ("96x32", (96, 32)),
        (" 7 * 9 ", (7, 9)),
        ("64", (64, 64)),
        ("", None),
        ("ax3", None),
        ("0x3", None),
        ("3x9999999", None),
    ],
)
def test_tiles_may_be_typed(text, tile):
    assert parse_tile(text) == tile


def test_widgets_write_the_link(open_app):
    app = open_app()
    assert dict(app.query_params) == {}
    app.number_input(key="w_n").set_value(384).run()
    app.text_input(key="w_mask").set_value("sliding_window(37)").run()
    app.selectbox(key="w_tile").set_value("64 × 64").run()
    app.selectbox(key="w_rule").set_value("paper").run()
    assert link_of(app) == {"mask": "sliding_window(37)", "n": "384", "tile": "64x64", "rule": "paper"}


@pytest.mark.parametrize("page", ["compose", "measure"])
def test_a_link_fills_the_widgets(open_app, page):
    app = open_app(page, mask="sliding_window(37)", n=384, nk=400, tile="64x64", rule="paper", heads=6)
    assert app.text_input(key="w_mask").value == "sliding_window(37)"
    assert (app.number_input(key="w_n").value, app.number_input(key="w_nk").value) == (384, 400)
    assert (app.selectbox(key="w_tile").value, app.selectbox(key="w_rule").value) == ("64 × 64", "paper")
    if page == "compose":
        assert app.number_input(key="w_heads").value == 6


def test_a_damaged_link_says_so_once(open_app):
    app = open_app(n="many", tile="64x64")
    assert "nearest valid screen" in app.warning[0].value and "n='many'" in app.warning[0].value
    assert app.session_state["screen"] == Screen(block_m=64, block_n=64)
    app.text_input(key="w_mask").set_value("causal").run()
    assert not app.warning


def test_undo_and_redo_bring_back_the_text(open_app):
    app = open_app()
    assert not told(app, "undo")["undo"] and not told(app, "undo")["redo"]
    app.text_input(key="w_mask").set_value("causal").run()
    app.text_input(key="w_mask").set_value("full").run()
    press(app, "undo")
    assert app.text_input(key="w_mask").value == "causal"
    press(app, "undo")
    assert app.text_input(key="w_mask").value == DEFAULT_TEXT
    assert "fm-error" not in html_of(app)
    for text in ("causal", "full"):
        press(app, "redo")
        assert app.text_input(key="w_mask").value == text
    assert not told(app, "undo")["redo"]
    press(app, "undo")
    app.text_input(key="w_mask").set_value("sliding_window(9)").run()  # a change ends what could be redone
    assert not told(app, "undo")["redo"]
    press(app, "undo")
    assert app.text_input(key="w_mask").value == "causal"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("causal & document(2000, 6192) & (q - k < 700)", "Replaced 3 layers"),
        ("sliding_window(77)", "Replaced 1 layer"),
        ("causal &", "Replaced the text"),
        (DEFAULT_TEXT, None),
        ("prefix_lm(2730)", None),
    ],
)
def test_what_an_example_or_a_chip_replaces_is_said_and_can_be_undone(open_app, text, says):
    app = open_app(mask=text, n=8192, tile="64x128")
    for press_one in (
        lambda: app.button(key="example_Decoding").click().run(),
        lambda: app.button_group(key="w_preset").set_value("eviction").run(),
    ):
        press_one()
        assert app.session_state["screen"].mask != text
        assert (told(app, "undo")["replaced"] or {}).get("says") == says
        press(app, "undo")
        screen = app.session_state["screen"]
        assert (screen.mask, screen.seqlen_q, screen.seqlen_k, screen.tile) == (text, 8192, None, "64 × 128")
        assert told(app, "undo")["replaced"] is None
    press(app, "redo")
    app.text_input(key="w_mask").set_value("full").run()  # another change: one press would not bring it back
    assert told(app, "undo")["replaced"] is None


def test_undo_leaves_lengths_that_were_changed_by_themselves(open_app):
    app = open_app(mask="causal", n=8192)
    app.text_input(key="w_mask").set_value("full").run()
    app.number_input(key="w_n").set_value(66).run()
    press(app, "undo")
    assert app.session_state["screen"] == Screen(mask="causal", seqlen_q=66)


def test_two_tabs_do_not_touch_each_other(open_app):
    first, second = open_app(mask="causal", n=64), open_app(mask="full", n=65)
    first.number_input(key="w_n").set_value(66).run()
    second.run()
    assert second.session_state["screen"] == Screen(mask="full", seqlen_q=65)


def test_a_value_that_we_have_replaced_is_no_change_while_the_browser_has_not_heard_of_it(monkeypatch):
    class Session(dict):
        __getattr__ = dict.__getitem__

    session, query = Session(sent={"lesson": "3"}), {"lesson": "2"}
    monkeypatch.setattr(state.st, "session_state", session)
    monkeypatch.setattr(state.st, "query_params", SimpleNamespace(to_dict=lambda: dict(query)))
    state.seed("pill", 2)
    state.seed("pill", 3)
    session["pill"] = 2
    assert state.is_late("pill")  # the request was made before our 3 arrived
    session["pill"] = 5
    assert not state.is_late("pill")  # somebody pressed it
    state.seed("pill", 3)
    session["pill"] = 2
    query["lesson"] = "3"
    assert not state.is_late("pill")  # they have seen the 3, and go back
    assert state.is_late("of a page that was left")
    session["made_for_presses"] = True
    assert state.is_late("pill")  # the request was made for a press, and only brings the 2 along
    session["made_for_presses"] = False
    assert not state.is_late("pill")
