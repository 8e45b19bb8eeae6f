"""The reference of the language: it holds every pattern, and what is pressed there becomes a layer."""

from html import escape

import pytest
from page_tools import npy, told

import flashmask_core as fm
from flashmask_core.masks.grammar import GRAMMAR
from flashmask_core.masks.patterns import PATTERNS
from pages.ui import shelf
from pages.ui.language.panel import _html
from pages.ui.link import Screen
from pages.ui.stack.controls import new_layers


@pytest.fixture
def opened(open_app):
    """opened(**query): the page with the reference open."""

    def opened(**query):
        app = open_app(**query)
        app.session_state["language"] = True
        return app.run()

    return opened


def pressed(app, *presses) -> Screen:
    """The screen after these presses."""
    app.session_state["language_list"] = {"presses": [[n, "add", value] for n, value in enumerate(presses, 1)]}
    app.run()
    assert not app.exception
    return app.session_state["screen"]


def test_it_has_every_pattern_with_its_arguments_and_every_rule():
    text = _html()
    for pattern in PATTERNS.values():
        said = (pattern.signature, pattern.about, pattern.rule, *(parameter.about for parameter in pattern.parameters))
        assert all(escape(line) in text for line in said), pattern.name
    assert all(escape(rule.form) in text and escape(rule.meaning) in text for rule in GRAMMAR)
    assert all(f'data-name="{escape(name)}"' in text for name in new_layers(64))


def test_every_press_adds_its_example_as_a_layer(opened):
    app = opened(mask="causal | padding(9)", n=64)
    examples, text = told(app, "language")["examples"], "causal | padding(9)"
    assert list(examples) == list(new_layers(64))
    presses = [{"name": name, "join": join} for name in examples for join in "&|"]
    screen = pressed(app, *presses)
    for one in presses:
        text = f"({text}) {one['join']} ({examples[one['name']]})"
    assert fm.parse(screen.mask) == fm.parse(text)
    assert told(app, "language")["text"] == screen.mask


def test_over_a_wrong_text_and_for_what_is_no_example_nothing_happens(opened):
    app = opened(mask="causal &", n=64)
    assert told(app, "language")["stale"]
    assert pressed(app, {"name": "causal", "join": "&"}).mask == "causal &"
    app = opened(mask="causal", n=64)
    wrong = [None, "full", {}, {"name": "full"}, {"name": "full", "join": "~"}, {"name": ["full"], "join": "&"}]
    assert pressed(app, *wrong).mask == "causal"


def test_over_an_uploaded_mask_a_press_begins_anew_and_says_so(opened):
    file = shelf.put_upload(npy(fm.mask("rect(3, 9, 2, 7)", 64).to_dense()[0, 0].numpy()), "mask.npy", polarity="visible")
    app = opened(file=file, n=64)
    assert told(app, "language")["file"] and not told(app, "language")["stale"]
    screen = pressed(app, {"name": "causal", "join": "|"})
    assert (screen.mask, screen.file) == ("causal", "")
    assert told(app, "undo")["replaced"]["says"] == "Replaced the uploaded mask"
