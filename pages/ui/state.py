"""The screen of a browser tab: read from its address, changed by widgets and by the canvas, written back.

A `Screen` is read from the query parameters when a session opens and whenever the address changes under us (the Back
button, a link), and written back after every change, so a copied link reopens the same screen. Widgets are seeded from
it and feed it through their callbacks; that is why it survives a switch of pages, where Streamlit forgets widgets.
Session state belongs to one browser tab, so two tabs do not touch each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from time import monotonic

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner import get_script_run_ctx

from . import presses, shelf
from .link import PLACE, Screen, parse_tile

_MOST_STEPS = 50  # that can be undone
_LATE_S = 10.0  # what the browser sends may still carry the link and the texts from before the last change
_MOST_LINKS = 16  # that are remembered as written by us
_WRITTEN_THERE = ("at", "view", "step")  # of an address, by the browser itself
_SIZES = ("seqlen_q", "seqlen_k", "block_m", "block_n")  # what may come with a mask, and goes with it when it is undone


def open_screen(page: str) -> Screen:
    """The screen of this run, on the page of this name. Call it first on every page."""
    session, query = st.session_state, st.query_params.to_dict()
    presses.begin_run()  # on the screen and the page on which it was asked for
    switched = session.get("page", page) != page
    session.page = page
    if "screen" not in session or not _is_ours(query, switched):
        screen, problems = Screen.from_query(query)
        screen, missing = shelf.opened(screen)
        session.screen, session.link_problems = screen, problems + missing
        session.published, session.sent = [(query, monotonic())], query  # what comes later was asked for later
        _reopen()
    _seed_widgets(session.screen)
    return session.screen


def current() -> Screen:
    """The screen as the last callback left it."""
    if "screen" not in st.session_state:  # this page's file runs alone, without the frame
        if PagesManager.uses_pages_directory:
            # The first visit of a server, straight to a page: until st.navigation has been called once, Streamlit takes
            # a folder named pages for an app of its older kind.
            PagesManager.uses_pages_directory = False
            st.rerun()
        open_screen("")
    return st.session_state.screen


def _is_ours(query: dict[str, str], switched: bool) -> bool:
    """True if the address says nothing that we did not write.

    A request carries the address that the browser had when it was made, which may be one from before our last words;
    the browser itself writes places into it, and a link between pages leaves them out.
    """
    published, context = st.session_state.published, get_script_run_ctx()
    if query == published[-1][0]:
        return True
    if context and context.is_history_navigation:
        return False
    if switched:
        bare, known = query, published[-2:] if monotonic() - published[-1][1] < _LATE_S else published[-1:]
    else:
        bare, known = {name: v for name, v in query.items() if name not in PLACE}, published
    return any(bare == {name: v for name, v in link.items() if name not in PLACE} for link, _ in known)


def _reopen() -> None:
    """Have the canvas take selection and view from the screen, which did not come from the canvas itself."""
    st.session_state.opened = st.session_state.get("opened", 0) + 1


def change(gesture: str = "", **values) -> None:
    """Put new values into the screen (from a callback or a page), and into its widgets.

    A text typed or chosen takes the place of an uploaded mask; another length shows all of it again. Texts of one
    gesture, such as the drag of a slider, are one step that can be undone.
    """
    _set(gesture, **values)
    _seed_widgets(current())


def _set(gesture: str = "", **values) -> None:
    before = st.session_state.screen
    if "mask" in values and (values["mask"] != before.mask or before.file and "file" not in values):
        if not gesture or gesture != st.session_state.get("gesture"):
            _remember(before, values)
        st.session_state.gesture = gesture
        values = {"file": "", "plane": (0, 0), "case": "", **values}
    screen = replace(before, **values)
    if screen.at and not screen.holds(screen.at):
        screen = replace(screen, at=None)
    if (screen.seqlen_q, screen.keys) != (before.seqlen_q, before.keys):
        screen = replace(screen, case="", view=values.get("view"))
    st.session_state.screen, st.session_state.link_problems = screen, []


def show(screen: Screen) -> None:
    """Go to another screen altogether, one that a file holds."""
    _remember(st.session_state.screen, _SIZES)
    st.session_state.screen, st.session_state.link_problems = screen, []
    _seed_widgets(screen)
    _reopen()


def _remember(screen: Screen, changed: Iterable[str]) -> None:
    """A step that can be undone begins at this screen and changes these fields; what was undone before is gone."""
    past = st.session_state.setdefault("past", [])
    past.append((screen, [name for name in _SIZES if name in changed]))
    del past[:-_MOST_STEPS]
    st.session_state.undone = []


def looked(**place) -> None:
    """The canvas says where it looks; it has written that into the address itself.

    If that was the address from before our last words, these come behind it and take its place: then it is written again.
    """
    heard = _bare(st.query_params.to_dict()) == _bare(st.session_state.sent)
    change(**place)
    if heard:
        st.session_state.sent = _query()
    _note_published(_query())


def of_this_screen(listener: Callable) -> Callable:
    """A listener of {"place": ..., "opened": number}: it gets the place unless another screen was opened since."""

    def hear(told) -> None:
        if isinstance(told, dict) and told.get("opened") == st.session_state.opened:
            listener(told.get("place"))

    return hear


@of_this_screen
def chosen(at) -> None:
    """A canvas says which cell was chosen, [query, key] or None; what a browser sends is checked as a link is."""
    pair = isinstance(at, list) and len(at) == 2 and {type(x) for x in at} == {int}
    if at is None or pair and current().holds(tuple(at)):
        looked(at=at and tuple(at))


@of_this_screen
def viewed(view) -> None:
    """A canvas says which part it shows, four numbers or None for all of it."""
    looked(view=None if view is None else current().nearest_view(view))


def go(page: str, **values) -> None:
    """Change the screen and show all of its mask on another page, from the script of this one.

    The widgets that this page has drawn show the screen from before for the moment that is left of them.
    """
    _set(at=None, view=None, **values)
    _note_published(_query())
    st.switch_page(page, query_params=current().to_query(place=False))


def select(spot: tuple[int, int] | None) -> None:
    """Choose a cell from outside the canvas."""
    change(at=spot)
    _reopen()


def publish() -> None:
    """Write the screen into the address, if it says something new.

    Also where the request for this run said the same, if we have written something else since: that may have reached
    the browser only after it made the request. The address that Streamlit knows in the run of a fragment is that of the
    last full run, and says nothing.
    """
    shelf.keep_long_text(st.session_state.screen)
    query, context = _query(), get_script_run_ctx()
    _note_published(query)
    asked = st.session_state.sent if context and context.fragment_ids_this_run else st.query_params.to_dict()
    if query != asked or query != st.session_state.sent:
        st.query_params.from_dict(query)
        st.session_state.sent = query


def _query() -> dict[str, str]:
    """The address of the screen on the page that is open."""
    return st.session_state.screen.to_query(page=st.session_state.page)


def _bare(query: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in query.items() if name not in _WRITTEN_THERE}


def _note_published(query: dict[str, str]) -> None:
    if query != st.session_state.published[-1][0]:
        links = st.session_state.published
        st.session_state.published = [*links[1 - _MOST_LINKS :], (query, monotonic())]


def can_undo() -> bool:
    """Whether the mask was changed in this tab."""
    return bool(st.session_state.get("past"))


def can_redo() -> bool:
    """Whether a change was undone, and nothing changed since."""
    return bool(st.session_state.get("undone"))


def undo() -> None:
    """Bring back the mask before the last change."""
    _step("past", "undone")


def redo() -> None:
    """Bring back the mask that was undone last."""
    _step("undone", "past")


def _step(origin: str, target: str) -> None:
    """The mask, and what it is compared with, from one list, those of now onto the other.

    An upload brings its lengths, and a step that changed sizes with the mask those from before it.
    """
    session = st.session_state
    if not session.get(origin):
        return
    (then, changed), now, session.gesture = session[origin].pop(), session.screen, ""
    session.setdefault(target, []).append((now, changed))
    sizes = {name: getattr(then, name) for name in (*changed, *(_SIZES[:2] if then.file else ()))}
    screen = replace(now, mask=then.mask, file=then.file, plane=then.plane, other=then.other, case="", **sizes)
    if (screen.seqlen_q, screen.keys) != (now.seqlen_q, now.keys):
        screen = replace(screen, at=screen.at if screen.at and screen.holds(screen.at) else None, view=None)
    session.screen, session.link_problems = shelf.opened(screen)
    _seed_widgets(session.screen)


def _seed_widgets(screen: Screen) -> None:
    """Give the widgets their values; on every run, since a widget of another page with the same key is forgotten."""
    for key, value in {
        "w_mask": "" if screen.file else screen.mask,
        "w_n": screen.seqlen_q,
        "w_nk": screen.seqlen_k,
        "w_tile": screen.tile,
        "w_rule": screen.rule,
        "w_heads": screen.heads,
        "w_plane": screen.plane,
    }.items():
        seed(key, value)


def seed(key: str, value) -> None:
    """Give a widget its value; what it had before is remembered for `is_late`."""
    seeded = st.session_state.setdefault("seeded", {})
    before = seeded.get(key, value)
    if before != value:
        replaced = st.session_state.setdefault("replaced", {})
        replaced[key] = [*replaced.get(key, [])[-20:], (before, monotonic())]
    st.session_state[key] = seeded[key] = value


def is_late(key: str) -> bool:
    """When a widget was changed: True where nobody touched it, but its value is one that we have replaced meanwhile.

    Every request carries the values of all widgets, and one that was made before our last answer arrived has those from
    before it. Two things tell: the request was made for a press, or the address in it is not the one that we have sent.
    """
    session = st.session_state
    if key not in session:  # it was changed on a page that was left in the same moment
        return True
    value = session.get(key)
    replaced = session.get("replaced", {}).get(key, [])
    if any(value == before and monotonic() - when < _LATE_S for before, when in replaced):
        if presses.made_this_run() or _bare(st.query_params.to_dict()) != _bare(session.sent):
            return True
    session.setdefault("seeded", {})[key] = value
    return False


def widget(key: str) -> dict:
    """Arguments of a widget that shows and changes a part of the screen."""
    return {"key": key, "on_change": presses.later(collect, key)}


def collect(key: str) -> None:
    """One of the screen's widgets was changed: what it says becomes part of the screen.

    The others are not asked: they may still show an earlier screen when a link has just changed it. What nobody can
    read as a tile or as a length is put back.
    """
    value, before = st.session_state.get(key), st.session_state.screen
    if is_late(key):
        change()
        return
    if key == "w_tile":
        block_m, block_n = parse_tile(value or "") or (before.block_m, before.block_n)
        change(block_m=block_m, block_n=block_n)
    elif key == "w_mask":
        if value.strip() or not before.file:
            change(mask=value)
        else:
            change()
    elif key == "w_nk":
        change(seqlen_k=int(value) if value else None)
    else:
        field = {"w_n": "seqlen_q", "w_rule": "rule", "w_heads": "heads", "w_plane": "plane"}[key]
        change(**{field: getattr(before, field) if value is None else value})
