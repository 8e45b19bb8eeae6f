"""Numbers recorded on a GPU by the bench command, shown beside the live screen. Nothing is shown that was not measured."""

from __future__ import annotations

from . import state
from .build import Built


def card(built: Built, screen: state.Screen) -> str:
    """The card of the recorded case that matches the screen, or the nearest; empty where there is none."""
    return ""
