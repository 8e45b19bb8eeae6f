"""Learn to write any mask as four numbers a key, by doing it."""

import streamlit as st

from pages.ui import state
from pages.ui.lesson import board
from pages.ui.lesson.steps import STEPS

st.title("Learn to write a mask as numbers", anchor=False)
st.html('<p class="fm-sub">Ten small exercises, about ten minutes. The library checks every answer.</p>')


def go(number: int) -> None:
    state.change(lesson=number)


def chosen() -> None:
    go(st.session_state.lesson_step or state.current().lesson)


@st.fragment
def lesson() -> None:
    number = state.current().lesson
    step = STEPS[number - 1]
    st.session_state.lesson_step = number
    st.pills(
        "Step",
        list(range(1, len(STEPS) + 1)),
        format_func=lambda n: f"{n} ✓" if board.progress(n).solved else str(n),
        key="lesson_step",
        on_change=chosen,
        label_visibility="collapsed",
    )
    left, right = st.columns([2, 3.3], gap="medium")
    with left:
        st.html(f'<div class="fm-lesson"><h2>{number}. {step.title}</h2>{step.text}<p class="task">{step.task}</p></div>')
    with right:
        board.board(number)
        if board.progress(number).solved:
            st.html(f'<div class="fm-lesson after">{step.after}</div>')
        with st.container(horizontal=True, gap="small", vertical_alignment="center", key="lesson_way"):
            if number > 1:
                st.button("Back", on_click=go, args=(number - 1,))
            if number < len(STEPS):
                kind = "primary" if board.progress(number).solved else "secondary"
                st.button("Next", type=kind, on_click=go, args=(number + 1,))
            else:
                ways_on()
        if number == len(STEPS) and board.progress(number).solved:
            st.code(code(STEPS[-1].exercise), language="python")
    state.publish()


def ways_on() -> None:
    """From the last step to the other pages."""
    query = {"mask": STEPS[-1].exercise.goal, "n": "8", "tile": "4x4"}
    st.page_link("pages/compose.py", label="Open this mask in Compose", query_params=query)
    st.page_link("pages/walk.py", label="Walk the kernel over it", query_params=query | {"block": "4x4"})


def code(exercise) -> str:
    """The numbers of the last step in the library."""
    return (
        f"lts = torch.tensor({exercise.solution()}, dtype=torch.int32)\n"
        f"mask = fm.ColumnMask.from_startend_row_indices(lts.reshape(1, 1, {exercise.n}, 1), causal=True)\n"
        "out = fm.flashmask_attention(q, k, v, mask)"
    )


lesson()
