"""The history file: rows survive, schemas move on, files that cannot be used are named."""

import json
import sqlite3
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from test_config_result import full_row

from flashmask_core.bench import history as module
from flashmask_core.bench.cli import main
from flashmask_core.bench.history import SCHEMA, History, history_path
from flashmask_core.bench.result import dumps


@pytest.fixture
def history(tmp_path):
    return History(tmp_path / "deep" / "history.sqlite")


def test_a_run_from_its_first_row_to_its_end(history):
    assert history.runs() == [] and history.rows("none") == [] and not history.path.exists(), "reading makes no file"
    first, row = history.begin("first"), full_row()
    assert history.runs() == [], "nothing to show yet"
    history.add(first, row)
    assert [(run.id, run.state, run.rows) for run in history.runs()] == [(first, "running", 1)], "there before the end"
    history.add(first, row, row)
    history.end(first, "cancelled", "its page was closed")
    second = history.begin("second", origin="theirs.json")
    history.add(second, row)
    runs = history.runs()
    assert [run.title for run in runs] == ["second", "first"] and runs[0].origin == "theirs.json"
    run = history.run(first)
    assert (run.state, run.reason, run.rows, run.mask) == ("cancelled", "its page was closed", 3, "causal")
    assert (run.device, run.driver) == ("NVIDIA H200", "580.1") and run.begun_utc and run.ended_utc
    assert history.rows(first) == [row] * 3 and history.rows(first)[0].where == row.where
    history.remove(first)
    assert history.run(first) is None and history.rows(first) == []


def test_an_older_file_is_brought_up_to_date(history, monkeypatch):
    monkeypatch.setattr(module, "SCHEMA", 1)
    run = history.begin("of the first version")
    history.add(run, full_row())
    monkeypatch.undo()
    history.add(run, full_row())
    with sqlite3.connect(history.path) as base:
        assert base.execute("PRAGMA user_version").fetchone() == (SCHEMA,)
        assert base.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND name = 'runs_by_date'").fetchone()
    assert len(history.rows(run)) == 2


def test_a_file_of_a_later_version_or_none_at_all_is_named(tmp_path):
    later = History(tmp_path / "later.sqlite")
    later.begin("")
    with sqlite3.connect(later.path) as base:
        base.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    with pytest.raises(ValueError, match="later.sqlite has schema .*FLASHMASK_HISTORY"):
        later.runs()
    (tmp_path / "text").write_text("this is no database, and long enough to be read as one" * 9)
    with pytest.raises(ValueError, match="text cannot be used: file is not a database. Move the file away"):
        History(tmp_path / "text").runs()
    with pytest.raises(ValueError, match="cannot be used"):
        History(tmp_path / "text" / "below").begin("")


def test_reading_waits_for_no_writer_and_a_run_that_went_away_is_named(history):
    run = history.begin("mine")
    history.add(run, full_row())
    with sqlite3.connect(history.path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        assert len(history.runs()) == len(history.rows(run)) == 1
        assert time.monotonic() - began < 2
    other.close()
    history.path.unlink()
    with pytest.raises(ValueError, match=f"has no run {run} .any more.: was the file moved"):
        history.add(run, full_row())


def test_many_writers_lose_nothing(history):
    def write(name):
        run = history.begin(name)
        for _ in range(5):
            history.add(run, full_row())

    threads = [threading.Thread(target=write, args=(str(number),)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [run.rows for run in history.runs()] == [5] * 6


def test_where_it_lies(monkeypatch):
    monkeypatch.setenv("FLASHMASK_HISTORY", "/some/where.sqlite")
    assert history_path() == Path("/some/where.sqlite")
    monkeypatch.delenv("FLASHMASK_HISTORY")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert history_path() == Path("/data/flashmask/history.sqlite")


def test_runs_on_the_command_line(history, tmp_path, monkeypatch, capsys):
    """Listed, shown, compared, exported, imported and forgotten; a file or the recording stands in for a run."""
    monkeypatch.setenv("FLASHMASK_HISTORY", str(history.path))

    def said(*arguments, code=0):
        assert main(["history", *map(str, arguments)]) == code
        printed = capsys.readouterr()
        return printed.err if code else printed.out

    assert "no runs yet" in said("list") and "no run of" in said("show", "last", code=2)
    row, ids = full_row(), []
    for title, ms in (("mine", 1.0), ("again", 2.0)):
        ids.append(history.begin(title, run_id=f"aa{len(ids)}"))
        history.add(ids[-1], replace(row, median_ms=ms, lower_quartile_ms=ms, upper_quartile_ms=ms))
        history.end(ids[-1], "done")
    assert [line.split()[0] for line in said("list").splitlines()[1:]] == ["aa1", "aa0"]
    assert [json.loads(line)["title"] for line in said("list", "--json").splitlines()] == ["again", "mine"]
    assert json.loads(said("show", "last", "--json"))["median_ms"] == 2.0 and "again" in said("show", "aa1")
    assert said("show", "last", "--matrix").splitlines()[-1].split()[-1] == "2.000", "a line a mask, a column an engine"
    table = said("compare", "aa0", "last")
    assert "2.000  beyond the quartiles" in table and "1 times in both: 2 is slower in 1 and faster in 0" in table
    assert json.loads(said("compare", "last", "aa0", "--json"))["ratio"] == 0.5
    assert "only in 1" in said("compare", "last", "recorded") and "no measurement in common" in said("compare", "last", "recorded")

    for ending, words in (("csv", "median_ms"), ("html", "<svg"), ("json", "flashmask-bench"), ("jsonl", '"mask"')):
        said("export", "aa0", "--out", tmp_path / f"mine.{ending}")
        assert words in (tmp_path / f"mine.{ending}").read_text()
        assert said("export", "aa0", "--to", ending) == (tmp_path / f"mine.{ending}").read_text()
    assert "beyond" in said("compare", "last", tmp_path / "mine.json"), "a file beside a run"
    taken = said("import", tmp_path / "mine.json").split(":")[0]
    assert history.run(taken).origin == "mine.json" and history.rows(taken) == history.rows("aa0")
    (tmp_path / "bad.json").write_text(dumps({"rows": []}))
    assert "bad.json: wanted \"format\"" in said("import", tmp_path / "bad.json", code=2)
    assert "No such file" in said("import", tmp_path / "none.json", code=2)
    assert "2 runs begin so: aa1, aa0" in said("remove", "aa", code=2) and "wanted the id" in said("remove", "", code=2)
    assert said("remove", "aa0").startswith("aa0 removed: mine, 1 rows") and history.run("aa0") is None


def test_one_run_that_cannot_be_read_is_named_and_the_others_stay(history):
    ids = [history.begin(title) for title in ("mine", "later", "broken")]
    for run_id in ids:
        history.add(run_id, full_row())
    later = dumps({**full_row().to_json(), "new_field": 1})
    with sqlite3.connect(history.path) as base:
        base.executemany("UPDATE results SET record = ? WHERE run_id = ?", [(later, ids[1]), ("{broken", ids[2])])
    assert history.rows(ids[0]) == [full_row()] and len(history.runs()) == 3
    for run_id, words in ((ids[1], "unknown fields new_field"), (ids[2], "Expecting property name")):
        with pytest.raises(ValueError, match=f"the run {run_id} of the history .*{words}.*`history remove {run_id}`"):
            history.rows(run_id)
