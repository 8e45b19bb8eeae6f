"""Where one is in the lesson: which step, what is practised, what is solved. Part of the screen."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .steps import TASKS

NAMES = ("lesson", "goal", "done")  # of the query parameters
PRACTICE = 11  # the number of the practice behind the last step
MAX_GOAL = 400  # characters of a mask text that is practised


@dataclass(frozen=True)
class LessonPlace:
    """step: 1 … PRACTICE; goal: the mask text that is practised, "" for the first task; done: the solved
    steps, and PRACTICE + n for the n-th task of the practice."""

    step: int = 1
    goal: str = ""
    done: tuple[int, ...] = ()

    def said(self) -> dict[str, str]:
        """Query parameters as text."""
        return {"lesson": str(self.step), "goal": self.goal, "done": ",".join(map(str, self.done))}

    @classmethod
    def from_query(cls, query: dict[str, str]) -> tuple["LessonPlace", list[str]]:
        """The nearest place, and what of the link could not be read, in words."""
        values, problems = {}, []

        def damaged(name: str, wanted: str):
            problems.append(f"{name}={query[name][:40]!r} is {wanted}")

        if "lesson" in query:
            if re.fullmatch("[0-9]{1,2}", query["lesson"]) and 1 <= int(query["lesson"]) <= PRACTICE:
                values["step"] = int(query["lesson"])
            else:
                damaged("lesson", f"no number from 1 to {PRACTICE}")
        if "goal" in query:
            if 0 < len(query["goal"].strip()) <= MAX_GOAL:
                values["goal"] = query["goal"].strip()
            else:
                damaged("goal", f"no mask text of at most {MAX_GOAL} characters")
        if "done" in query:
            plain = re.fullmatch("[0-9]{1,2}(,[0-9]{1,2}){0,20}", query["done"])
            done = {int(number) for number in query["done"].split(",")} if plain else {0}
            if done <= {*range(1, PRACTICE), *range(PRACTICE + 1, PRACTICE + 1 + len(TASKS))}:
                values["done"] = tuple(sorted(done))
            else:
                damaged("done", "no list of steps such as 1,2,3")
        return cls(**values), problems
