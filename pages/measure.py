"""Measure: run the mask of the screen on the local GPU."""

import streamlit as st

st.title("Measure", anchor=False)
