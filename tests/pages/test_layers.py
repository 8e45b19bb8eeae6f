"""A mask as a stack of layers: two views of one expression."""

from itertools import product

import numpy as np
import pytest
from page_tools import html_of

import flashmask_core as fm
from flashmask_core.masks.expr import Joined, PatternExpr
from flashmask_core.masks.patterns import PATTERNS
from pages.ui.layers import Layer, layers_of, text_of, without_off
from pages.ui.presets import pattern_text
from pages.ui.stack.controls import controls_of, new_layers
from pages.ui.stack.panel import _read

TEXTS = [
    "causal",
    "~causal",
    "causal & document(30, 70) & ~(k < 5) | sliding_window(9)",
    "causal | document(30, 70) & (q - k < 5)",
    "(causal | full) & ~(document(30, 70) | (k < 3))",
    "~~causal | ~(~causal & full)",
]


@pytest.mark.parametrize("text", TEXTS)
def test_there_and_back(text):
    layers = layers_of(text)
    assert text_of(layers) == str(fm.parse(text))
    assert [layer.operator for layer in layers].count("") == 1 and layers[0].operator == ""


def test_layers_are_read_from_the_top():
    assert layers_of("causal & ~full | (k < 5)") == [
        Layer("", False, "causal"), Layer("&", True, "full"), Layer("|", False, "k < 5")
    ]  # fmt: skip
    assert layers_of("causal | full & (k < 5)")[1] == Layer("|", False, "full & (k < 5)")


def test_a_layer_that_is_off_stays_in_the_text_and_changes_nothing():
    texts = ("causal", "document(4, 6)", "k < 3", "(q < 2) | (k == 5)")
    q, k = np.ogrid[:10, :10]
    visible = lambda mask: fm.parse(str(mask)).visible(q, k, 10, 10)  # noqa: E731
    for first, *operators in product([""], "&|", "&|"):
        for on in product([True, False], repeat=3):
            for negated in product([True, False], repeat=3):
                for chosen in (texts[:3], texts[1:], texts[2:] + texts[:1]):
                    layers = [Layer(*one) for one in zip([first, *operators], negated, chosen, on)]
                    text, wanted = text_of(layers), None
                    for layer in (layer for layer in layers if layer.on):
                        wanted = layer.mask if wanted is None else Joined.of(layer.operator, [wanted, layer.mask])
                    wanted = "full" if wanted is None else wanted
                    assert (visible(text) == visible(wanted)).all() and (visible(without_off(text)) == visible(wanted)).all()
                    assert text_of(layers_of(text)) == text
                    if not any(" | " in layer.text for layer in layers):
                        assert layers_of(text) == layers
    assert text_of([Layer("", False, "causal"), Layer("&", True, "full", False)]) == "causal & (full | ~full)"


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("n", [10, 1000])
def test_every_pattern_can_be_added_and_has_its_parameters(name, n):
    text = new_layers(n)[name]
    assert text == pattern_text(name, n) and text_of([*layers_of("full"), Layer("&", False, text)]).startswith("full & ")
    (layer,) = layers_of(text)
    shown, parameters = controls_of(layer, n), PATTERNS[name].parameters
    if parameters and parameters[0].variadic:
        assert shown["list"]["fields"] == (parameters[0].fields or (parameters[0].name,))
        longer = fm.parse(shown["list"]["longer"])
        assert len(longer.values()) == len(shown["list"]["items"]) + 1
        assert PATTERNS[name].used(*longer.values()) <= n  # what is added finds its place
        fm.mask(longer, n)
    else:
        assert [one["name"] for one in shown["numbers"]] == [parameter.name for parameter in parameters]
        for index, number in enumerate(shown["numbers"]):  # both ends of every slider make a mask
            for end in number.get("slider") or ():
                arguments = [*fm.parse(text).arguments]
                arguments[index] = end
                fm.parse(str(PatternExpr(name, tuple(arguments)))).runs(n)


def test_what_is_no_single_pattern_or_a_long_list_is_a_line_of_text():
    assert controls_of(Layer("", False, "k < 3"), 10)["name"] is None
    assert controls_of(Layer("", False, f"document({', '.join(map(str, range(1, 300)))})"), 2**16)["name"] is None
    assert controls_of(Layer("", False, "document(repeat(1, 1048576))"), 2**20)["list"]["items"] == [[1048576, 1]]


def test_the_page_has_a_stack_for_every_pattern_and_says_when_there_is_none(open_app):
    """The controls themselves are driven in tests/browser/test_composer.py."""
    for text in ("causal & (", " | ".join(f"(k == {n})" for n in range(64)), "document(repeat(1, 700))"):
        assert not open_app(mask=text, n=700).exception, text
    app = open_app(mask="causal & (full | document(100))", n=700)
    assert "padding" not in html_of(app)  # the layer is off


def test_what_the_browser_sends_is_checked():
    good = {"layers": [{"operator": "|", "text": "causal"}, {"text": "full", "on": False, "negated": True}]}
    assert _read(good) == [Layer("", False, "causal"), Layer("&", True, "full", False)]
    for bad in (None, 3, {}, {"layers": 3}, {"layers": []}, {"layers": [{"text": 3}]}):
        assert _read(bad) is None
