"""The board of an exercise: a Streamlit component (v2), and what this tab has done on it so far."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

import streamlit as st

from .. import canvas, state
from ..theme import sheet
from .answers import Verdict
from .steps import STEPS, practice

_KEY = "board"


@dataclass
class Progress:
    """An exercise in this tab. solved stays; tries counts wrong answers; checks and reveals count what was asked."""

    exercise: object
    answer: list
    verdict: Verdict | None = None
    solved: bool = False
    tries: int = 0
    checks: int = 0
    reveals: int = 0


def progress(number: int, goal: str = "") -> Progress:
    """What was done on step `number`, or behind the last step on the practice of `goal`.

    Raises a ValueError for a goal that is no mask text.
    """
    done = st.session_state.setdefault("lesson_done", {})
    name = _name(number, goal)
    if name not in done:
        exercise = STEPS[number - 1].exercise if number <= len(STEPS) else practice(goal)
        done[name] = Progress(exercise, exercise.start(), solved=number in state.current().lesson.done)
    return done[name]


def _name(number: int, goal: str) -> str:
    return f"{number}: {goal}" if number > len(STEPS) else str(number)


_SCRIPTS = ("pictures", "exercises", "board")


@cache
def _component():
    here = Path(__file__).parent
    return st.components.v2.component(
        "flashmask_board",
        html=(here / "board.html").read_text("utf-8"),
        css=sheet(".fm-board", here / "board.css"),
        js=canvas.scripts("mount") + "".join((here / f"{name}.js").read_text("utf-8") for name in _SCRIPTS),
    )


def board(number: int, goal: str = "") -> None:
    """Draw an exercise; arguments as in `progress`."""
    now = progress(number, goal)
    data = {
        "id": _name(number, goal),
        "task": now.exercise.task(),
        "answer": now.answer,
        "verdict": asdict(now.verdict) if now.verdict else None,
        "solved": now.solved,
        "tries": now.tries,
        "checks": now.checks,
        "reveals": now.reveals,
    }
    _component()(data=data, key=_KEY, on_answer_change=_keep, on_check_change=_check, on_reveal_change=_reveal)


def _told(name: str) -> Progress | None:
    """The exercise that the browser speaks of, with the answer it sends; None if it is none that is open here."""
    told = st.session_state[_KEY].get(name)
    if not isinstance(told, dict) or not isinstance(told.get("id"), str):
        return None
    now, answer = st.session_state.get("lesson_done", {}).get(told["id"]), told.get("answer")
    if now is None or not isinstance(answer, list) or len(answer) != len(now.answer):
        return None
    now.answer = [x if type(x) is int else None for x in answer]
    return now


def _keep() -> None:
    _told("answer")


def _check() -> None:
    now = _told("check")
    if now:
        now.verdict = now.exercise.check(now.answer)
        now.checks += 1
        now.solved |= now.verdict.right
        now.tries += not now.verdict.right
        _note_solved()


def _note_solved() -> None:
    """The link carries the steps that are solved, so that they still are when the page is loaded again."""
    here = {int(name) for name, one in st.session_state.lesson_done.items() if one.solved and name.isdigit()}
    lesson = state.current().lesson
    state.change(lesson=replace(lesson, done=tuple(sorted(here | set(lesson.done)))))


def _reveal() -> None:
    now = _told("reveal")
    if now:
        now.answer = now.exercise.solution()
        now.verdict = Verdict(True, "This is the answer. Change it and put it back to see what each part does.")
        now.solved, now.checks, now.reveals = True, now.checks + 1, now.reveals + 1
        _note_solved()
