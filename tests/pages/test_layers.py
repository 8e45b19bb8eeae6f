"""A mask as a stack of layers: two views of one expression."""

import pytest
from page_tools import html_of

import flashmask_core as fm
from pages.ui.layers import MOST_ROWS, Layer, layers_of, moved_up, text_of, without

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


def test_moving_and_removing():
    layers = layers_of("causal & full | (k < 5)")
    assert text_of(moved_up(layers, 2)) == "(causal | (k < 5)) & full"
    assert text_of(moved_up(layers, 1)) == "full & causal | (k < 5)"
    assert text_of(without(layers, 0)) == "full | (k < 5)"
    assert text_of(without(layers, 1)) == "causal | (k < 5)"


@pytest.fixture
def open_layers(open_app):
    """open_layers(mask): Compose with that mask at N = 100 and the stack open."""

    def open_layers(mask: str):
        app = open_app(mask=mask, n=100)
        app.session_state["picker"] = True
        return app.run()

    return open_layers


def test_every_control_changes_the_text_at_once(open_layers):
    app = open_layers("causal & document(30, 70) | (k < 5)")

    def text() -> str:
        assert not app.exception
        return app.text_input(key="w_mask").value

    app.button(key="layer_op_2").click().run()
    assert text() == "causal & document(30, 70) & (k < 5)"
    app.button(key="layer_not_1").click().run()
    assert text() == "causal & ~document(30, 70) & (k < 5)"
    app.button(key="layer_up_2").click().run()
    assert text() == "causal & (k < 5) & ~document(30, 70)"
    app.text_input(key="layer_1").set_value("k < 9 or q == 3").run()
    assert text() == "causal & ((k < 9) | (q == 3)) & ~document(30, 70)"
    app.button(key="layer_drop_2").click().run()
    assert text() == "causal & ((k < 9) | (q == 3))"
    app.text_input(key="w_mask").set_value("full").run()
    assert app.text_input(key="layer_0").value == "full" and app.button(key="layer_drop_0").disabled
    app.button(key="undo_text").click().run()
    assert app.text_input(key="layer_1").value == "(k < 9) | (q == 3)"


def test_a_wrong_layer_stays_as_it_was_typed_and_the_mask_as_it_was(open_layers):
    app = open_layers("causal & full")
    app.text_input(key="layer_1").set_value("documnt(3)").run()
    assert not app.exception and html_of(app).count('class="fm-error"') == 1 and "documnt" in html_of(app)
    assert app.text_input(key="layer_1").value == "documnt(3)"
    assert app.session_state["screen"].mask == "causal & full"
    app.text_input(key="layer_1").set_value("k < 3").run()
    assert app.session_state["screen"].mask == "causal & (k < 3)" and "fm-error" not in html_of(app)


def test_a_text_that_is_wrong_or_has_very_many_layers(open_layers):
    assert not open_layers("causal & (").exception
    app = open_layers(" | ".join(f"(k == {n})" for n in range(64)))
    assert not app.exception and app.text_input(key=f"layer_{MOST_ROWS - 1}").value == f"k == {MOST_ROWS - 1}"
