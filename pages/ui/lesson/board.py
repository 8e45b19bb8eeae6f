"""The board of an exercise: a Streamlit component (v2), and what this tab has done on it so far."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

import streamlit as st

from .. import canvas, presses, state
from .answers import Verdict
from .place import PRACTICE
from .steps import STEPS, TASKS, practice

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
        done[name] = Progress(exercise, exercise.start(), solved=_number(name) in state.current().lesson.done)
    return done[name]


def _name(number: int, goal: str) -> str:
    return f"{number}: {goal}" if number > len(STEPS) else str(number)


def _number(name: str) -> int:
    """What `LessonPlace.done` calls an exercise; 0 for the practice of a text of one's own."""
    number, _, goal = name.partition(": ")
    if not goal:
        return int(number)
    return PRACTICE + 1 + list(TASKS).index(goal) if goal in TASKS else 0


_SCRIPTS = ("pictures", "exercises", "board")


@cache
def _component():
    return canvas.component(Path(__file__).parent, "board", *_SCRIPTS)


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
    presses.draw(_component(), key=_KEY, data=data, **_LISTENERS)


def _told(told) -> Progress | None:
    """The exercise that the browser speaks of, with the answer it sends; None if it is none that is open here."""
    if not isinstance(told, dict) or not isinstance(told.get("id"), str):
        return None
    now, answer = st.session_state.get("lesson_done", {}).get(told["id"]), told.get("answer")
    if now is None or not isinstance(answer, list) or len(answer) != len(now.answer):
        return None
    now.answer = [x if type(x) is int else None for x in answer]
    return now


def _check(told) -> None:
    now = _told(told)
    if now:
        now.verdict = now.exercise.check(now.answer)
        now.checks += 1
        now.solved |= now.verdict.right
        now.tries += not now.verdict.right
        _note_solved()


def _note_solved() -> None:
    """The link carries what is solved, so that it still is when the page is loaded again."""
    here = {_number(name) for name, one in st.session_state.lesson_done.items() if one.solved}
    lesson = state.current().lesson
    state.change(lesson=replace(lesson, done=tuple(sorted((here | set(lesson.done)) - {0}))))


def _reveal(told) -> None:
    now = _told(told)
    if now:
        now.answer = now.exercise.solution()
        now.verdict = Verdict(True, "This is the answer. Change it and put it back to see what each part does.")
        now.solved, now.checks, now.reveals = True, now.checks + 1, now.reveals + 1
        _note_solved()


_LISTENERS = {"answer": _told, "check": _check, "reveal": _reveal}
