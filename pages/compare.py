"""Compare two masks: where they differ, pair by pair, and what each costs."""


from dataclasses import replace

import streamlit as st

from pages.ui import bar, cards, check, presses, shelf, state, upload
from pages.ui.versus import figures, panes, sides
from pages.ui.versus.place import Other

screen = state.current()

st.title("Compare two masks", anchor=False)
st.html(
    '<p class="fm-sub">A is the mask of the screen, written or uploaded; B another one, or the text that was meant. '
    "Every pair of a query and a key is compared.</p>"
)
bar.mask_bar(screen)
bar.chips(screen)
if screen.file and (item := shelf.shelf().get(screen.file)):
    st.caption(f"A is the upload **{item.title}**.")
    upload.choose_plane(item.content)


def other_bar() -> None:
    """B, and a button that exchanges the two."""
    source = sides.second_of(screen)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="other_bar"):
        state.seed("w_other", "" if source.file else source.text)
        st.text_input(
            "B: compare it with",
            key="w_other",
            on_change=presses.later(written),
            placeholder="an uploaded mask; type here to replace it",
        )
        st.button("Swap A and B", on_click=presses.later(swap), key="swap", width=132)


def written() -> None:
    if not state.is_late("w_other"):
        state.change(other=Other(st.session_state.w_other.strip()))


def swap() -> None:
    """Exchange the masks; an upload brings its lengths along."""
    now = state.current()
    b, a = sides.second_of(now), Other("" if now.file else now.mask, now.file, now.plane)
    if not b.file:
        state.change(mask=b.text, file="", plane=(0, 0), other=a)
    elif item := shelf.shelf().get(b.file):
        state.show(shelf.fitted_to(replace(now, file=b.file, plane=b.plane, other=a), item.content))


def made(letter: str, source: sides.Source) -> sides.Side | None:
    """The mask of a source, or a message in its place."""
    try:
        return sides.side(source)
    except (ValueError, TypeError, MemoryError) as error:
        st.html(cards.error_html(f"{letter}: {bar.shortened(str(error) or type(error).__name__)}"))
        return None


def compared(a: sides.Side, b: sides.Side) -> None:
    """The verdict, the pictures, the numbers, what explains the difference."""
    found, findings = sides.difference(first, second)
    size = screen.seqlen_q * screen.keys
    many = found.extra_pairs + found.missing_pairs
    if found.equal:
        st.html('<div class="fm-verdict"><b>The same mask, pair by pair.</b></div>')
    else:
        st.html(
            f'<div class="fm-verdict"><b>They differ in {many:,} of {size:,} pairs.</b> Only A shows '
            f"{found.extra_pairs:,}, only B shows {found.missing_pairs:,}.</div>"
        )
    with st.container(key="versus_panes"):
        panes.panes(a, b, found)
    with st.container(key="versus_told"):
        numbers, words = st.columns([1.25, 1], gap="large")
    with numbers:
        costs = tuple(
            sides.cost(one, screen.block_m, screen.block_n, screen.rule, screen.heads) for one in (first, second)
        )
        st.html(figures.table_html((a, b), costs))
        st.caption(figures.basis(screen))
    with words:
        explained(found, findings)


def explained(found, findings) -> None:
    """If B was meant: what is wrong with A. And where to look."""
    if found.equal:
        return
    if findings:
        st.html('<p class="fm-sub">If B is the mask that was meant:</p>')
    for finding in findings:
        st.html(check.finding_html(finding))
    places = [*found.first_extra(1), *found.first_missing(1)]
    labels = ["only A shows"] * bool(found.extra_pairs) + ["only B shows"] * bool(found.missing_pairs)
    with st.container(horizontal=True, gap="small", key="places"):
        for place, label in zip(places, labels):
            st.button(f"First that {label}: {place[0]:,}, {place[1]:,}", on_click=presses.later(state.select, place),
                      key=f"first_{label}", help="Query, key")  # fmt: skip


other_bar()
first, second = sides.first_of(screen), sides.second_of(screen)
a, b = made("A", first), made("B", second)
if a and b:
    compared(a, b)
state.publish()
