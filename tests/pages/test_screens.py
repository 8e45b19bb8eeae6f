"""Every page with every preset, and with texts and lengths that are wrong."""

import sys

import pytest
from page_tools import html_of
from streamlit.delta_generator import DeltaGenerator

import flashmask_core as fm
from flashmask_core.masks.examples import EXAMPLES
from flashmask_core.masks.patterns import PATTERNS
from pages.ui.bar import shortened
from pages.ui.presets import PRESETS, argument_texts, matching

PAGES = ["compose", "measure"]


@pytest.mark.parametrize("page", PAGES)
def test_every_page_shows_every_preset_and_pattern(open_app, page):
    n = 700
    app = open_app(page, mask="causal", n=n)
    presets = [make(n) for make in PRESETS.values()]
    patterns = [f"{name}({', '.join(t for t in argument_texts(name, n) if t)})".replace("()", "") for name in PATTERNS]
    for text in [*presets, *patterns]:
        app.text_input(key="w_mask").set_value(text).run()
        assert not app.exception, text
        assert "fm-error" not in html_of(app), text
        assert app.session_state["screen"].mask == text


@pytest.mark.parametrize("page", ["learn", "walk"])
@pytest.mark.parametrize("text", [make(700) for make in PRESETS.values()], ids=list(PRESETS))
def test_the_pages_without_a_text_field_open_with_every_preset(open_app, page, text):
    app = open_app(page, mask=text, n=700)
    assert not app.exception and "fm-error" not in html_of(app)
    assert app.session_state["screen"].mask == text


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("n", [1, 2, 7, 100, 8192])
def test_presets_fit_every_length(preset, n):
    assert matching(PRESETS[preset](n), n)
    if preset == "block diffusion" and n % 2 and n > 1:  # the odd token is padding, which needs a third run
        with pytest.raises(fm.NotRepresentableError):
            fm.mask(PRESETS[preset](n), n)
    else:
        fm.mask(PRESETS[preset](n), n)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("causal & q - k < 512", "parenthes"),
        ("causal & (", ""),
        ("__import__('os').system('true')", ""),
        ("document(5000, 5000)", "10,000"),
        ("nonsense(3)", "nonsense"),
        ("causal &&& full", ""),
        ("(" * 500 + "causal" + ")" * 500, ""),
        ("<script>alert(1)</script>", ""),
        ("q // 0 == k", ""),
    ],
    ids=[
        "comparison of a mask",
        "cut off",
        "python",
        "too long a list",
        "unknown name",
        "operators",
        "deep",
        "html",
        "division",
    ],
)
@pytest.mark.parametrize("page", PAGES)
def test_a_wrong_text_is_one_message_and_nothing_is_lost(open_app, page, text, says):
    app = open_app(page)
    app.text_input(key="w_mask").set_value(text).run()
    assert not app.exception
    page_html = html_of(app)
    assert page_html.count('class="fm-error"') == 1 and says in page_html
    assert "<script>" not in page_html
    assert app.text_input(key="w_mask").value == text
    assert app.session_state["last_valid"].mask.startswith("causal & document")
    app.text_input(key="w_mask").set_value("causal").run()
    assert not app.exception and "fm-error" not in html_of(app)


def test_a_wrong_text_is_pointed_at(open_app):
    app = open_app(mask="causal & wrong(3)", n=100)
    assert "causal &amp; wrong(3)\n         <i>^</i>" in html_of(app)


def test_a_mask_that_does_not_fit_offers_the_nearest_ones(open_app):
    text = "(k < 100) | (q // 64 % 2 == 0)"
    app = open_app(mask=text, n=512)
    assert not app.exception
    assert "412 of 512 columns" in html_of(app) and "passes" in html_of(app)
    assert "pairs hidden that should be seen" in html_of(app)
    for way in ("way_wider", "way_passes", "way_narrower"):
        app.button(key=way).click().run()
        assert not app.exception and app.button(key=way).disabled == (way != "way_passes")
    app.button(key="way_passes").click().run()
    assert "Next" in app.button(key="way_passes").label and app.session_state["way_on"] == "pass 1"


def test_a_bar_shows_while_pairs_are_evaluated_and_goes(open_app, monkeypatch):
    shares = []
    monkeypatch.setattr("pages.ui.working._AFTER_S", -1.0)
    monkeypatch.setattr("pages.ui.working._EVERY_S", -1.0)
    progress = DeltaGenerator.progress
    monkeypatch.setattr(
        DeltaGenerator, "progress", lambda self, share, text: shares.append(share) or progress(self, share, text)
    )
    app = open_app(mask="q * k % (q + 7) < 2 * q", n=3000)
    assert not app.exception and len(shares) > 3 and shares == sorted(shares) and shares[-1] == 1.0
    assert not app.get("progress") and app.session_state["screen"].mask.startswith("q * k")


def test_an_example_takes_mask_lengths_and_tile(open_app):
    app = open_app(mask="causal", n=8192)
    for example in EXAMPLES.values():
        app.button(key=f"example_{example.name}").click().run()
        screen = app.session_state["screen"]
        assert (screen.mask, screen.seqlen_q, screen.seqlen_k) == (example.text, example.seqlen_q, example.seqlen_k)
        assert (screen.block_m, screen.block_n) == example.tile
        assert not app.exception and "fm-error" not in html_of(app)


def test_checks_and_downloads_of_a_mask(open_app):
    app = open_app(mask="sliding_window(513) & document(1000, 1048)", n=2048)
    app.session_state["panel_tabs"] = "Check"
    app.run()
    assert "A window of 513" in html_of(app) and not app.exception
    app.text_input(key="w_meant").set_value("sliding_window(512) & document(1000, 1048)").run()
    assert "The 512 of the text reads as 513" in html_of(app) and "1,024 pairs are visible" in html_of(app)
    app.text_input(key="w_meant").set_value("sliding_window(513) & document(1000, 1048)").run()
    assert "pair by pair" in app.success[0].value
    app.text_input(key="w_meant").set_value("sliding_windw(513)").run()
    assert "did you mean sliding_window" in html_of(app) and not app.exception
    app.session_state["panel_tabs"] = "Take it with you"
    app.run()
    assert not app.exception and "mask_mod" in app.code[-1].value


@pytest.mark.parametrize(
    "query",
    [
        {"mask": "causal", "n": 1},
        {"mask": "causal", "n": 65537},
        {"mask": "causal", "n": 2**20},
        {"mask": "document(repeat(1, 1048576))", "n": 2**20},
        {"mask": "~full", "n": 100},
        {"mask": "full", "n": 100, "tile": "512x512"},
        {"mask": "causal", "n": 5, "nk": 300, "tile": "3x7"},
        {"mask": "causal", "n": 300, "nk": 5, "rule": "paper"},
        {"mask": "random_eviction(50000, 1)", "n": 131072},
    ],
    ids=lambda query: f"{query['mask'][:24]}-{query['n']}",
)
def test_extreme_lengths_have_a_screen(open_app, query):
    app = open_app(**query)
    assert not app.exception
    assert "fm-error" not in html_of(app) and "Tiles the kernel skips" in html_of(app)


def test_cards_say_what_the_library_counts(open_app):
    text = html_of(open_app())
    assert "85.1 %" in text and ">3,485<" in text and ">151<" in text and ">460<" in text
    assert "2,048× less" in text and "64 MiB" in text and "32 KiB" in text and "65.5 KiB" in text
    assert "with the lists of tiles that a GPU keeps it is 1,001× less" in text


def test_a_recorded_mask_is_compared_with_its_rival_by_name(open_app):
    text = html_of(open_app())
    assert "Measured on an H200" in text and "than FlexAttention, forward" in text and "was not recorded" not in text


def test_files_of_a_mask_that_does_not_fit_say_which_mask_they_hold(open_app):
    app = open_app(mask="(k < 100) | (q // 64 % 2 == 0)", n=512)
    app.session_state["panel_tabs"] = "Take it with you"
    app.run()
    assert "nearest one that does" in app.warning[0].value and "pairs more" in app.warning[0].value


def test_a_small_mask_is_offered_smaller_tiles(open_app):
    app = open_app(mask="causal", n=100)
    next(button for button in app.button if button.label.startswith("Use tiles of")).click().run()
    assert app.session_state["screen"].block_m < 16 and not app.exception
    assert not [button for button in open_app().button if button.label.startswith("Use tiles of")]


def test_a_long_message_is_cut():
    assert len(shortened("x" * 5000)) < 420 and shortened("two\nlines") == "two"


def test_the_walk_shows_every_preset_and_the_mask_of_every_pattern(open_app):
    app = open_app("walk", mask="causal", n=700)
    for name in PRESETS:
        app.selectbox(key="k_source").set_value(name).run()
        assert not app.exception and "fm-error" not in html_of(app), name
    for name in PATTERNS:
        arguments = ", ".join(t for t in argument_texts(name, 700) if t)
        text = f"{name}({arguments})" if arguments else name
        app = open_app("walk", mask=text, n=700)
        assert not app.exception and "fm-error" not in html_of(app), text


def test_the_walk_of_a_wrong_text_or_of_a_mask_that_does_not_fit_says_so(open_app):
    app = open_app("walk", mask="causal & wrong(3)", n=100)
    assert not app.exception and html_of(app).count('class="fm-error"') == 1
    app = open_app("walk", mask="(k < 100) | (q // 64 % 2 == 0)", n=512)
    assert not app.exception and "412 of 512 columns" in html_of(app)


def test_the_server_process_never_opens_cuda(open_app):
    open_app("measure")
    assert not sys.modules["torch"].cuda.is_initialized()


def test_measure_says_plainly_that_there_is_no_gpu(open_app):
    import torch

    if torch.version.cuda is not None:
        pytest.skip("this build of PyTorch could have a GPU")
    app = open_app("measure")
    assert any("Nothing can be timed" in info.value for info in app.info)
    assert any(button.label == "Check the kernel here" for button in app.button)
