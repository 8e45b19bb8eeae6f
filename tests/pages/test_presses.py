"""Presses from the browser: heard once and in order, whatever Streamlit makes of the requests that carry them."""

import pytest

from pages.ui import presses


@pytest.fixture
def tab(monkeypatch):
    """A tab's session, as a plain dict."""
    session = {}
    monkeypatch.setattr(presses.st, "session_state", session)
    return session


def test_each_press_is_heard_once_in_order_by_its_listener(tab):
    heard = []
    listeners = {"a": lambda value: heard.append(("a", value)), "b": lambda value: heard.append(("b", value))}
    for sent in ([[5, "a", 1]], [[5, "a", 1], [6, "b", 2], [8, "a", 3]], [[6, "b", 2], [8, "a", 3]], [[9, "b", 4]]):
        tab["board"] = {"presses": sent}
        presses.hear("board", **listeners)
        presses.hear("board", **listeners)
    assert heard == [("a", 1), ("b", 2), ("a", 3), ("b", 4)] and presses.heard("board") == 9
    tab["other"] = {"presses": [[1, "a", 9]]}
    presses.hear("other", **listeners)
    assert heard[-1] == ("a", 9) and presses.heard("board") == 9


def test_a_press_whose_run_was_stopped_is_heard_by_the_next(tab):
    class Stopped(BaseException):
        """What Streamlit raises in a callback when another request is waiting."""

    def stopped(value):
        raise Stopped

    tab["board"], heard = {"presses": [[5, "a", 1], [6, "a", 2]]}, []
    with pytest.raises(Stopped):
        presses.hear("board", a=stopped)
    presses.hear("board", a=heard.append)
    assert heard == [1, 2]


@pytest.mark.parametrize(
    "told",
    [
        None,
        {},
        {"presses": None},
        {"presses": 7},
        {"presses": [7, [1], [1, "a"], ["1", "a", 2], [True, "a", 3], [1, 2, 3]]},
        {"presses": [[1, "nobody", 2]]},
    ],
)
def test_what_is_no_press_is_left_out(tab, told):
    tab["board"], heard = told, []
    presses.hear("board", a=heard.append)
    assert heard == [] and presses.heard("board") == 0
