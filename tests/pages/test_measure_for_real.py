"""The Measure page with its real runner and worker process: the GPU's button where there is one, else the check."""

import time

import pytest
import torch


def press(app, label):
    next(button for button in app.button if button.label == label).click().run()
    assert not app.exception


def table_when_done(app, label, seconds):
    """The table once the button can be pressed again; what the page says if that takes too long."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.5)
        app.run()
        assert not app.exception
        if not next(button for button in app.button if button.label == label).disabled:
            assert not app.error, [error.value for error in app.error]
            return app.dataframe[0].value
    raise AssertionError(f"still busy after {seconds} s: {[text.value for text in app.markdown]}")


@pytest.mark.skipif(torch.cuda.is_available(), reason="the page offers this where there is no GPU")
def test_the_check_of_the_kernel_passes(open_app):
    app = open_app("measure", mask="causal & document(20, 28)", n=48)
    press(app, "Check the kernel here")
    table = table_when_done(app, "Check the kernel here", 120)
    assert list(table["Outcome"]) == ["passed"] * 4


@pytest.mark.gpu
def test_run_measures_this_gpu(open_app):
    app = open_app("measure", mask="causal & document(600, 424)", n=1024, heads=4)
    app.multiselect(key="m_engines").set_value(["flashmask", "flex", "sdpa_dense_efficient"]).run()
    press(app, "Run")
    table = table_when_done(app, "Run", 240)
    print(table.to_string())
    assert list(table["Outcome"]) == ["passed"] * 6
    assert any(torch.cuda.get_device_name() in caption.value for caption in app.caption)
