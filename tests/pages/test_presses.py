"""Presses from the browser: heard once and in order, whatever Streamlit makes of the requests that carry them."""

from threading import current_thread

import pytest

from pages.ui import presses


@pytest.fixture
def tab(monkeypatch):
    """A tab's session, as a plain dict."""
    session = {}
    monkeypatch.setattr(presses.st, "session_state", session)
    return session


def hear(session, **listeners):
    """A run of a page that draws these components, each with its listeners."""
    session.setdefault("presses_listeners", {}).update(listeners)
    presses.begin_run()


def test_each_press_is_heard_once_in_order_by_its_listener(tab):
    heard = []
    listeners = {"a": lambda value: heard.append(("a", value)), "b": lambda value: heard.append(("b", value))}
    for sent in ([[5, "a", 1]], [[5, "a", 1], [6, "b", 2], [8, "a", 3]], [[6, "b", 2], [8, "a", 3]], [[9, "b", 4]]):
        tab["board"] = {"presses": sent}
        hear(tab, board=listeners)
        hear(tab, board=listeners)
    assert heard == [("a", 1), ("b", 2), ("a", 3), ("b", 4)] and presses.heard("board") == 9
    tab["other"] = {"presses": [[1, "a", 9]]}
    hear(tab, other=listeners)
    assert heard[-1] == ("a", 9) and presses.heard("board") == 9


def test_presses_of_two_components_are_heard_in_the_order_in_which_they_were_made(tab):
    tab["board"], tab["other"], heard = {"presses": [[5, "a", 1], [9, "a", 3]]}, {"presses": [[7, "a", 2]]}, []
    hear(tab, board={"a": heard.append}, other={"a": heard.append})
    assert heard == [1, 2, 3]


def test_what_a_request_would_stop_is_done_all_the_same(tab, monkeypatch):
    class Session(dict):
        """Stops the thread of the script wherever that touches the session, as Streamlit's does."""

        def setdefault(self, *arguments):
            if current_thread() is main:
                raise BaseException("another request is waiting")
            return super().setdefault(*arguments)

    main, heard, session = current_thread(), [], Session(tab)
    session |= {"presses_listeners": {"board": {"a": heard.append}}, "board": {"presses": [[5, "a", 1], [6, "a", 2]]}}
    monkeypatch.setattr(presses.st, "session_state", session)
    presses.begin_run()
    presses.begin_run()
    assert heard == [1, 2] and presses.heard("board") == 6


def test_callbacks_are_called_once_behind_the_presses_which_they_know_of(tab):
    heard = []
    tab["board"] = {"presses": [[5, "a", "press"]]}
    presses.later(lambda *given, **named: heard.append((given, named, presses.made_this_run())), 1, x=2)()
    assert heard == []
    hear(tab, board={"a": heard.append})
    hear(tab, board={"a": heard.append})
    assert heard == ["press", ((1,), {"x": 2}, True)] and not presses.made_this_run()


def test_an_error_of_what_was_asked_for_is_raised(tab):
    presses.later(int, "x")()
    with pytest.raises(ValueError, match="invalid literal"):
        presses.begin_run()


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
    hear(tab, board={"a": heard.append})
    assert heard == [] and presses.heard("board") == 0
