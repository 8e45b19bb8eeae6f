"""What can be taken away: the page of the explorer, the other files, code."""

import json

import numpy as np
import pytest

import flashmask_core as fm
from pages.ui import take
from pages.ui.build import TileCounts, built
from pages.ui.explorer_page import explorer_page


def page_of(text: str, n: int, **look) -> str:
    counts = TileCounts(1, 2, 3)
    usual = {"block": (64, 64), "rule": "exact", "heads": 8, "spot": (3, 2), "view": None}
    return explorer_page(built(text, n, n), counts, counts, **{**usual, **look})


def test_the_page_needs_nothing_beside_it():
    page = page_of("causal & (k < 7)", 300)
    assert "causal &amp; (k &lt; 7)" in page and "300 queries × 300 keys" in page
    assert "default-src 'none'" in page and "export default" not in page
    for word in ("http:", "https:", "<link", "@import", " src="):
        assert word not in page
    assert page.count("<script") == page.count("</script>") == 1


def test_the_page_of_a_million_tokens_is_small():
    assert len(page_of("causal & document(repeat(65536, 16))", 1 << 20)) < 200_000


@pytest.mark.parametrize("target", take.SNIPPET_TARGETS)
def test_code_for_every_library_is_shown(open_app, target):
    app = open_app(mask="causal & document(40, 60)", n=100)
    app.session_state["panel_tabs"], app.session_state["take_target"] = "Take it with you", target
    app.run()
    assert not app.exception
    wanted = fm.export_mask("causal & document(40, 60)", target, 100)
    assert app.code[-1].value.strip() == wanted.partition("\n")[2].strip()
    assert any(wanted.partition("\n")[0][2:40] in caption.value for caption in app.caption)


def test_a_library_that_cannot_take_the_mask_says_why(open_app):
    app = open_app(mask="random_eviction(20000, 0)", n=65536)
    app.session_state["panel_tabs"], app.session_state["take_target"] = "Take it with you", "magi"
    app.run()
    assert "more than 20,000 pairs of ranges" in app.info[-1].value


def test_files_hold_the_mask():
    mask = fm.mask("causal & document(3, 3)", 6)
    lines = take._csv(mask).decode().splitlines()
    assert lines[0] == "# startend_row_indices, causal=True, seqlen_q=6" and lines[1] == "key,lts"
    np.testing.assert_array_equal(np.loadtxt(lines[2:], delimiter=",")[:, 1], [3, 3, 3, 6, 6, 6])
    assert json.loads(fm.export_mask(mask, "json"))["causal"] is True
