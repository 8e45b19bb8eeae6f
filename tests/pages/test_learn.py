"""The lesson without a browser: every exercise judged for every near miss and for whatever a browser could send."""

import pytest
import torch
from page_tools import html_of

import flashmask_core as fm
from flashmask_core.masks.patterns import PATTERNS
from pages.ui.lesson.exercises import Misfit, Row, Tiles
from pages.ui.lesson.numbers import Vectors
from pages.ui.lesson.place import PRACTICE, LessonPlace
from pages.ui.lesson.steps import STEPS, TASKS, practice
from pages.ui.link import Screen
from pages.ui.presets import argument_texts

EXERCISES = [*(step.exercise for step in STEPS), *map(practice, TASKS)]
TITLES = [*(step.title for step in STEPS), *TASKS]
VECTORS = [e for e in EXERCISES if isinstance(e, Vectors)]


@pytest.mark.parametrize("exercise", EXERCISES, ids=TITLES)
def test_the_solution_is_right_and_the_start_is_not(exercise):
    assert exercise.check(exercise.solution()).right
    assert not exercise.check(exercise.start()).right
    assert len(exercise.start()) == len(exercise.solution())


@pytest.mark.parametrize("exercise", EXERCISES, ids=TITLES)
@pytest.mark.parametrize(
    "answer",
    [None, "5", [], [None] * 8, [0.5] * 8, [True] * 4, [-1] * 4, [10**9] * 8, {"a": 1}, [[0]] * 4],
    ids=str,
)
def test_whatever_a_browser_sends_gets_a_sentence(exercise, answer):
    verdict = exercise.check(answer)
    assert not verdict.right and len(verdict.says) > 10


@pytest.mark.parametrize("exercise", VECTORS, ids=lambda e: e.goal)
def test_numbers_are_right_exactly_if_they_make_the_goal(exercise):
    """Every number changed to every other value: the verdict and the wrong cells are those of the dense pictures."""
    goal = fm.mask(exercise.goal, exercise.n).to_dense()[0, 0]
    for place in range(len(exercise.numbers)):
        for value in range(exercise.n + 1):
            answer = exercise.solution()
            answer[place] = value
            dense = exercise.mask_of(answer).to_dense()[0, 0]
            verdict = exercise.check(answer)
            assert verdict.right == torch.equal(dense, goal)
            assert list(verdict.wrong) == [tuple(x) for x in (dense != goal).nonzero().tolist()]
            if not verdict.right:
                column = min(k for _, k in verdict.wrong)
                assert f"key {column}:" in verdict.says


def test_every_prediction_but_the_right_one_is_corrected():
    (tiles,) = [e for e in EXERCISES if isinstance(e, Tiles)]
    assert set(tiles.kinds) == {0, 1, 2}  # all three kinds are met
    for tile in range(len(tiles.kinds)):
        for kind in range(3):
            guess = [*tiles.kinds[:tile], kind, *tiles.kinds[tile + 1 :]]
            verdict = tiles.check(guess)
            assert verdict.right == (kind == tiles.kinds[tile])
            assert verdict.right or f"tile {tile} is not" in verdict.says


def test_one_mask_of_the_four_does_not_fit():
    (misfit,) = [e for e in EXERCISES if isinstance(e, Misfit)]
    assert misfit.solution() == [3, 4]
    for choice in range(3):
        assert "this one fits" in misfit.check([choice, 4]).says
        fm.mask(misfit.masks[choice][0], misfit.n)
    with pytest.raises(fm.NotRepresentableError):
        fm.mask(misfit.masks[3][0], misfit.n)
    assert "count again" in misfit.check([3, 2]).says


def test_a_wrong_mark_says_which_and_why():
    (row,) = [e for e in EXERCISES if isinstance(e, Row)]
    assert row.check([1, 1, 1, 1, 1, 1, 0, 0]).says == "Not yet: query 4 does not see key 5, it comes after the query."
    assert row.check([1, 1, 1, 1, 0, 0, 0, 0]).wrong == ((4, 4),)


@pytest.mark.parametrize("number", range(1, len(STEPS) + 1))
def test_every_step_has_a_screen(open_app, number):
    app = open_app("learn", lesson=number)
    assert not app.exception and not app.warning
    assert f"{number}. {STEPS[number - 1].title}" in html_of(app)
    step = app.session_state["screen"].lesson.step
    ways = ["Back"] * (number > 1) + ["Next" if number < len(STEPS) else "Practice"]
    assert [button.label for button in app.button] == ways
    assert step == number and STEPS[number - 1].after not in html_of(app)


def test_next_and_back_and_the_link(open_app):
    app = open_app("learn")
    next(button for button in app.button if button.label == "Next").click().run()
    assert app.session_state["screen"].lesson.step == 2 and not app.exception
    next(button for button in app.button if button.label == "Back").click().run()
    assert app.session_state["screen"].lesson.step == 1
    assert PRACTICE == len(STEPS) + 1
    assert Screen(lesson=LessonPlace(4)).to_query(page="learn") == {"lesson": "4"}
    assert (
        Screen(lesson=LessonPlace(4)).to_query(page="walk") == Screen(lesson=LessonPlace(4)).to_query(place=False) == {}
    )
    app = open_app("learn", lesson=3, done="1,3")
    assert app.session_state["screen"].lesson.done == (1, 3) and STEPS[2].after in html_of(app)
    for damaged in ("0", "1,,2", "11", "x"):
        app = open_app("learn", done=damaged)
        assert len(app.warning) == 1 and app.session_state["screen"].lesson.done == ()
    app = open_app("learn", lesson=99)
    assert len(app.warning) == 1 and app.session_state["screen"].lesson.step == 1


def test_the_lesson_keeps_the_mask_of_every_pattern(open_app):
    for name in PATTERNS:
        arguments = ", ".join(t for t in argument_texts(name, 700) if t)
        text = f"{name}({arguments})" if arguments else name
        app = open_app("learn", mask=text, n=700)
        assert not app.exception and app.session_state["screen"].mask == text


def test_practice_takes_any_packing_that_shows_the_same_pairs_and_no_other():
    free = practice("causal & document(3, 5)")
    causal1, causal2, two, four, misfit = range(len(free.OPTIONS))
    lts, end, start = [3] * 3 + [8] * 5, [8] * 8, [0] * 8
    diagonal = list(range(8))
    for packing, numbers in (
        (causal1, [*lts, *start, *start, *start]),
        (causal2, [*lts, *end, *start, *start]),
        (two, [*lts, *start, *start, *diagonal]),
        (four, [*lts, *end, *start, *diagonal]),
    ):
        assert free.check([packing, *numbers]).right
        other = [packing, *numbers]
        other[1] = 4
        assert free.check(other).says == "Not yet: look at key 0: row 3 sees it and should not."
    assert free.solution()[0] == causal1
    assert "it fits" in free.check([misfit, *lts, *end, *start, *start]).says
    odd = practice("causal & ((q - k) % 2 == 0)")
    assert not any(odd.check([packing, *lts, *end, *start, *start]).right for packing in range(4))
    assert odd.check(odd.solution()).says == "Right: it does not fit. Key 0 has 4 hidden runs."


def test_the_tasks_of_practice_are_of_every_kind():
    packings = {practice(goal).solution()[0] for goal in TASKS}
    assert packings == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("goal", ["documnt(3)", "__import__('os')", "<script>", "document(5000)", "(" * 300])
def test_a_goal_that_is_no_mask_is_one_message(open_app, goal):
    app = open_app("learn", lesson=11, goal=goal)
    assert not app.exception and html_of(app).count('class="fm-error"') == 1 and "<script>" not in html_of(app)
    app.text_input(key="lesson_goal").set_value("causal").run()
    assert not app.exception and "fm-error" not in html_of(app)
    assert app.session_state["screen"].lesson.goal == "causal"


def test_practice_goes_from_task_to_task_and_then_to_a_mask_of_ones_own(open_app):
    app = open_app("learn", lesson=PRACTICE)
    button = lambda name: next(button for button in app.button if button.label == name)  # noqa: E731
    for task in list(TASKS)[1:]:
        button("Next task").click().run()
        assert not app.exception and TASKS[task] in html_of(app)
    button("My own mask").click().run()
    assert app.text_input(key="lesson_goal").value == task and not app.exception
    assert [button.label for button in app.button] == ["Back"]
    button("Back").click().run()
    assert app.session_state["screen"].lesson.step == len(STEPS)
