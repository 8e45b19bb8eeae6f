"""Learn to write any mask as four numbers a key, by doing it."""

from dataclasses import replace
from html import escape

import streamlit as st

from pages.ui import bar, presses, state
from pages.ui.lesson import board
from pages.ui.lesson.exercises import Tiles
from pages.ui.lesson.place import MAX_GOAL, PRACTICE
from pages.ui.lesson.steps import STEPS, TASKS

OWN = "My own mask, in the mask language"

st.title("Learn to write a mask as numbers", anchor=False)
st.html('<p class="fm-sub">Ten small exercises, about ten minutes. The library checks every answer.</p>')


def go(number: int) -> None:
    move(step=number)


def move(**values) -> None:
    state.change(lesson=replace(state.current().lesson, **values))


def chosen() -> None:
    if not state.is_late("lesson_step"):
        go(st.session_state.lesson_step or state.current().lesson.step)


@st.fragment
def lesson() -> None:
    presses.begin_run()
    number = state.current().lesson.step
    state.seed("lesson_step", number)
    st.pills(
        "Step",
        list(range(1, PRACTICE + 1)),
        format_func=named,
        key="lesson_step",
        on_change=presses.later(chosen),
        label_visibility="collapsed",
    )
    left, right = st.columns([2, 3.3], gap="medium")
    if number == PRACTICE:
        practice(left, right)
    else:
        exercise(number, left, right)
    state.publish()


def named(number: int) -> str:
    if number == PRACTICE:
        return "Practice"
    return f"{number} ✓" if board.progress(number).solved else str(number)


def exercise(number: int, left, right) -> None:
    """A step: words and the task on the left, the board and the way on beside them."""
    step = STEPS[number - 1]
    with left:
        words(f"{number}. {step.title}", f'{step.text}<p class="task">{step.task}</p>')
    with right:
        board.board(number)
        solved = board.progress(number).solved
        if solved:
            after(step.after)
            if isinstance(step.exercise, Tiles):
                walk_over(step.exercise)
        with st.container(horizontal=True, gap="small", key="lesson_way"):
            if number > 1:
                st.button("Back", on_click=presses.later(go, number - 1))
            label = "Next" if number < len(STEPS) else "Practice"
            st.button(label, type="primary" if solved else "secondary", on_click=presses.later(go, number + 1))
        if solved and number == len(STEPS):
            st.code(code(step.exercise), language="python")


def words(title: str, html: str) -> None:
    """What stands beside a board; the board gives its title the focus when another step begins."""
    st.html(f'<div class="fm-lesson"><h2 tabindex="-1">{title}</h2>{html}</div>')


def after(html: str) -> None:
    st.html(f'<div class="fm-lesson after">{html}</div>')


def walk_over(tiles: Tiles) -> None:
    """From the tiles that were predicted to the kernel's own loop over them."""
    block = f"{tiles.block}x{tiles.block}"
    query = {"mask": tiles.mask, "n": str(tiles.n), "tile": block, "block": block, "line": str(tiles.row_tile)}
    st.page_link("pages/walk.py", label="Walk the kernel over these tiles", query_params=query)


def code(exercise) -> str:
    """The numbers of the last step in the library."""
    return (
        f"lts = torch.tensor({exercise.solution()}, dtype=torch.int32)\n"
        f"mask = fm.ColumnMask.from_startend_row_indices(lts.reshape(1, 1, {exercise.n}, 1), causal=True)\n"
        "out = fm.flashmask_attention(q, k, v, mask)"
    )


def practice(left, right) -> None:
    """Behind the last step: any mask, from words or from a text of one's own."""
    goal = state.current().lesson.goal or next(iter(TASKS))
    known = goal in TASKS and not st.session_state.get("goal_own")
    with left:
        words(
            "Practice",
            "<p>Eight tokens. Choose how the mask is packed, and set its numbers; or say that it does not fit.</p>",
        )
        state.seed("lesson_task", goal if known else OWN)
        st.selectbox("Task", [*TASKS, OWN], format_func=task_name, key="lesson_task", on_change=presses.later(choose_task))
        if not known:
            state.seed("lesson_goal", goal)
            st.text_input("Goal", key="lesson_goal", on_change=presses.later(choose_goal))
        else:
            st.html(f'<div class="fm-lesson"><p class="task">{TASKS[goal]}</p></div>')
    with right:
        try:
            now = board.progress(PRACTICE, goal)
        except ValueError as error:
            st.html(f'<div class="fm-error" role="alert">{escape(bar.shortened(str(error)))}</div>')
            return
        board.board(PRACTICE, goal)
        if now.solved:
            after(f"<p>In the mask language: <code>{escape(goal)}</code></p>")
            query = {"mask": goal, "n": "8", "tile": "4x4"}
            st.page_link("pages/compose.py", label="Open it in Compose", query_params=query)
        with st.container(horizontal=True, gap="small", key="lesson_way"):
            st.button("Back", on_click=presses.later(go, PRACTICE - 1))
            if known:
                following = dict(zip(TASKS, [*list(TASKS)[1:], OWN]))[goal]
                label = "My own mask" if following == OWN else "Next task"
                st.button(label, type="primary" if now.solved else "secondary", on_click=presses.later(take_task, following))


def task_name(task: str) -> str:
    if task == OWN:
        return OWN
    return f"Task {list(TASKS).index(task) + 1}{' ✓' * board.progress(PRACTICE, task).solved}"


def choose_task() -> None:
    if not state.is_late("lesson_task"):
        take_task(st.session_state.lesson_task)


def take_task(task: str) -> None:
    st.session_state.goal_own = task == OWN
    if task != OWN:
        move(goal=task)


def choose_goal() -> None:
    if not state.is_late("lesson_goal") and st.session_state.lesson_goal.strip():
        move(goal=st.session_state.lesson_goal.strip()[:MAX_GOAL])


lesson()
