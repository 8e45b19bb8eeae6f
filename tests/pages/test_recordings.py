"""Pages without the results that are shipped: what cannot be read is named, and everything else works."""

import json

import pytest
import streamlit as st
from page_tools import html_of

from flashmask_core.bench import recorded, tile_time
from flashmask_core.training import result as training


def damaged(text: str, how: str) -> str:
    record = json.loads(text)
    if how == "a field of a later version":
        record["rows"][0]["new_field"] = 1
    if how == "no rows":
        record["rows"] = []
    return text[:5000] if how == "cut" else json.dumps(record)


@pytest.fixture
def forgetful():
    """Nothing that was computed from the shipped results is kept, before and after."""

    def forget():
        st.cache_resource.clear()
        st.cache_data.clear()
        tile_time.time_model.cache_clear()

    forget()
    yield
    forget()


WRONG = [("mask", "document(1,2"), ("seqlen_q", 2**40), ("median_ms", -1.0), ("rho", None), ("tflops_rho", None),
         ("date_utc", "yesterday")]  # fmt: skip


@pytest.mark.parametrize("field, value", WRONG)
def test_a_row_that_cannot_be_right_is_told_and_the_pages_stand(field, value, open_app, forgetful, monkeypatch, tmp_path):
    monkeypatch.setenv("FLASHMASK_HISTORY", str(tmp_path / "history.sqlite"))
    path, record = tmp_path / "bench.json", json.loads(recorded.RECORDED_PATH.read_text())
    record["rows"][7][field] = value
    path.write_text(json.dumps(record))
    monkeypatch.setattr(recorded, "RECORDED_PATH", path)
    for page in ("compose", "measure", "paper"):
        app = open_app(page)
        assert not app.exception, page
        told = [one.value for one in (app.caption if page == "compose" else app.warning)]
        assert sum("bench.json is damaged: row 8: " in text.replace("\\", "") for text in told) == 1, (page, told)


@pytest.mark.parametrize("how", ["a field of a later version", "cut", "no rows", "no file"])
def test_every_page_stands_without_the_recordings(how, open_app, forgetful, monkeypatch, tmp_path):
    monkeypatch.setenv("FLASHMASK_HISTORY", str(tmp_path / "history.sqlite"))
    bench, steps = tmp_path / "bench.json", tmp_path / "training.json"
    if how != "no file":
        bench.write_text(damaged(recorded.RECORDED_PATH.read_text(), how))
        steps.write_text(damaged(training.RECORDED_PATH.read_text(), how))
    monkeypatch.setattr(recorded, "RECORDED_PATH", bench)
    monkeypatch.setattr("pages.ui.train.run.recorded", lambda: training.recorded(steps))
    unreadable = how not in ("no rows", "no file")
    for page, file in (("compose", None), ("measure", "bench.json"), ("paper", "bench.json"), ("train", "training.json")):
        app = open_app(page)
        assert not app.exception, (page, how)
        told = [warning.value for warning in app.warning]
        assert len(told) == (unreadable and file is not None) and all(file in text for text in told)
        assert page == "train" or all("damaged: " in text and "Restore it with" in text for text in told)
        captions = [caption.value for caption in app.caption if "damaged: " in caption.value]
        assert len(captions) == (page == "compose" and unreadable) and all("Restore" in text for text in captions)
        if page == "paper":
            assert 'rowspan="12"' in html_of(app) and "0.9180" in html_of(app)
