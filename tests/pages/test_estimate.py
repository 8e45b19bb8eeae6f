"""The card of times: measured or estimated, of one batch entry and all planes, with an error bar where one is known."""

import pytest
from page_tools import html_of

import flashmask_core as fm
from flashmask_core.bench.recorded import recorded_results
from flashmask_core.bench.tile_time import dense_ms, time_model
from flashmask_core.bench.tile_work import Work
from pages.ui.shelf import Item, shelf


@pytest.mark.parametrize("text", ["prefix_lm(1000)", "sliding_window(300)"])
def test_a_mask_that_was_not_measured_gets_an_estimate_with_its_error(open_app, text):
    page = html_of(open_app(mask=text, n=8192, heads=16))
    assert "Measured on an H200" not in page and "Estimated for an H200 <small>D 128, 16 heads, B 1</small>" in page
    work = Work.of(fm.mask(text, 8192))
    forward, backward, flex = time_model(128), time_model(128, "backward"), time_model(128, engine="flex")
    for name, model in (("backward", backward), ("FlexAttention", flex)):
        row = f"{name} <small>±&nbsp;{100 * model.worst_error:.0f}&nbsp;%</small></span><b>{model.ms(work, 16):#.3g} ms</b>"
        assert row in page
    ms = forward.ms(work, 16)
    assert f"forward, ± {100 * forward.worst_error:.0f} %" in page and "Not measured" in page
    assert (f"≈ {ms:#.3g} ms" if ms >= 0.05 else "< 0.05 ms") in page
    if ms >= 0.05:
        assert f"about {flex.ms(work, 16) / ms:.1f}× faster than FlexAttention" in page
    assert f"about {dense_ms(8192, 8192, 16):#.3g} ms" in page and "A dense mask’s time is scaled from 8K." in page


def test_a_mask_that_hides_everything_has_nothing_to_do(open_app):
    page = html_of(open_app(mask="causal & (k < 0)", n=8192))
    assert "nothing to do" in page and "±" not in page


def test_no_error_bar_is_told_of_one_long_line(open_app):
    page = html_of(open_app(mask="rect(0, 128, 0, 131072)", n=131072, heads=4))
    assert "N 8,192 to 131,072 and masks with work for the whole GPU; how near" in page and "±" not in page


@pytest.mark.parametrize("lengths", [{"n": 7}, {"n": 1 << 20}, {"n": 1, "nk": 131072}, {"n": 4096}])
def test_no_error_bar_is_told_where_none_was_measured(open_app, lengths):
    page = html_of(open_app(mask="sliding_window(300)", **lengths))
    assert "fitted at N 8,192 to 131,072; how near it is here was not measured" in page and "±" not in page
    assert (">a dense mask<" in page) == (lengths["n"] == 4096)  # of the others it is too small or too large


def test_the_estimate_is_of_all_planes(open_app):
    stack = fm.ColumnMask.stack([fm.mask(f"sliding_window({128 * (i + 1)})", 8192) for i in range(64)], "head")
    shelf().put("ab" * 12, Item(stack.canonical(), "windows", stack))
    page = html_of(open_app(file="ab" * 12, n=8192, heads=64))
    assert f"≈ {time_model(128).ms(Work.of(stack), 64):#.3g} ms" in page
    assert "D 128, 64 heads, B 1, mean of 64 planes" in page and page.count("this plane") == 2
    assert "this plane" not in html_of(open_app())


def test_measured_and_estimated_times_are_of_one_batch_entry(open_app):
    page = html_of(open_app())
    ours, flex = (
        next(row for row in recorded_results() if (row.mask_name, row.provider, row.direction, row.seqlen_q, row.head_dim)
             == ("causal_document", provider, "forward", 8192, 128))
        for provider in ("flashmask", "flex")
    )  # fmt: skip
    assert f"{ours.median_ms / 16:#.3g} ms" in page and f"{flex.median_ms / 16:#.3g} ms" in page
    assert "D 128, 32 heads, B 1" in page and "Measured at B 16: times are those divided by 16." in page
    assert "1 head, B 1" in html_of(open_app(mask="causal & (q != 7)", n=32768, heads=1))
