"""The board of a step: a Streamlit component (v2), and what this tab has done on it so far."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import streamlit as st

from ..theme import variables
from .exercises import Verdict
from .steps import STEPS

_KEY = "board"


@dataclass
class Progress:
    """One step in this tab. solved stays; tries counts wrong answers; checks and reveals count what was asked."""

    answer: list
    verdict: Verdict | None = None
    solved: bool = False
    tries: int = 0
    checks: int = 0
    reveals: int = 0


def progress(number: int) -> Progress:
    """What was done on step `number`, 1 … len(STEPS)."""
    done = st.session_state.setdefault("lesson_done", {})
    if number not in done:
        done[number] = Progress(STEPS[number - 1].exercise.start())
    return done[number]


@cache
def _component():
    here = Path(__file__).parent
    return st.components.v2.component(
        "flashmask_board",
        html=(here / "board.html").read_text("utf-8"),
        css=variables(".fm-board") + ":host{container-type:inline-size}" + (here / "board.css").read_text("utf-8"),
        js=(here / "board.js").read_text("utf-8"),
    )


def board(number: int) -> None:
    """Draw the exercise of a step."""
    now = progress(number)
    data = {
        "id": number,
        "task": STEPS[number - 1].exercise.task(),
        "answer": now.answer,
        "verdict": asdict(now.verdict) if now.verdict else None,
        "solved": now.solved,
        "tries": now.tries,
        "checks": now.checks,
        "reveals": now.reveals,
    }
    _component()(data=data, key=_KEY, on_answer_change=_keep, on_check_change=_check, on_reveal_change=_reveal)


def _told(name: str) -> tuple[int, list] | None:
    """(number of the step, answer) as the browser says; None if it is neither."""
    told = st.session_state[_KEY].get(name)
    if not isinstance(told, dict) or told.get("step") not in range(1, len(STEPS) + 1):
        return None
    answer = told.get("answer")
    start = STEPS[told["step"] - 1].exercise.start()
    if not isinstance(answer, list) or len(answer) != len(start):
        return None
    return told["step"], [x if type(x) is int else None for x in answer]


def _keep() -> None:
    told = _told("answer")
    if told:
        progress(told[0]).answer = told[1]


def _check() -> None:
    told = _told("check")
    if told:
        judge(*told)


def judge(number: int, answer: list) -> Verdict:
    """Have the library check an answer; the step remembers it."""
    now = progress(number)
    now.answer, now.verdict = answer, STEPS[number - 1].exercise.check(answer)
    now.checks += 1
    now.solved |= now.verdict.right
    now.tries += not now.verdict.right
    return now.verdict


def _reveal() -> None:
    told = _told("reveal")
    if told:
        now = progress(told[0])
        now.answer = STEPS[told[0] - 1].exercise.solution()
        now.verdict = Verdict(True, "This is the answer. Change it and put it back to see what each part does.")
        now.solved, now.checks, now.reveals = True, now.checks + 1, now.reveals + 1
