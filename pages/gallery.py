"""The gallery: every pattern of the mask language and the worked examples, drawn; a click opens one in Compose."""

import streamlit as st

from pages.ui import bar, begin, state
from pages.ui.gallery.cards import drawn_tokens, example_cards, pattern_cards
from pages.ui.gallery.wall import wall

screen = state.current()

st.title("Gallery", anchor=False)
st.html(
    '<p class="fm-sub">Every pattern of the mask language, drawn from its vectors. Left the matrix, '
    '<i class="fm-key fm-empty"></i>skipped <i class="fm-key fm-partial"></i>partial '
    '<i class="fm-key fm-full"></i>full; right the vectors that store it. A click opens it in Compose.</p>'
)
with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="gallery_bar"):
    bar.length_and_tile(screen)
    n = drawn_tokens(screen)
    if n != screen.seqlen_q:
        st.caption(f"The patterns are drawn at {n:,} tokens.")

with st.container(key="gallery"):
    chosen = wall(pattern_cards(screen), screen.rule, key="patterns")
    st.subheader("Worked examples", anchor=False)
    st.html('<p class="fm-sub">Real cases, at a size at which their numbers can be checked by hand.</p>')
    chosen = wall(example_cards(), screen.rule, key="worked_examples") or chosen
if chosen:
    begin.elsewhere("pages/compose.py", **chosen.values)
