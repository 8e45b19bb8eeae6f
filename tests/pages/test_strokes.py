"""What is painted and dragged, as text: judged cell by cell on a matrix that is painted for real."""

import random

import numpy as np
import pytest

import flashmask_core as fm
from pages.ui.strokes import Move, moved, painted


def visible(text: str, n: int, nk: int) -> np.ndarray:
    return fm.parse(text).visible(np.arange(n)[:, None] + nk - n, np.arange(nk), n, nk)


def a_box(dice: random.Random, n: int, nk: int):
    rows, columns = sorted(dice.sample(range(n + 1), 2)), sorted(dice.sample(range(nk + 1), 2))
    return (*rows, *columns)


@pytest.mark.parametrize("text", ["causal", "causal | (k < 3)", "~document(5, 7)", "rect(2, 5, 1, 9)", "k < 3"])
@pytest.mark.parametrize("seed", range(6))
def test_painting_shows_and_hides_what_it_says(text, seed):
    n, nk, dice = 12, 15, random.Random(seed)
    wanted = visible(text, n, nk)
    for _ in range(12):
        hide, box = dice.random() < 0.5, a_box(dice, n, nk)
        wanted[box[0] : box[1], box[2] : box[3]] = not hide
        text = painted(text, hide, box)
        assert (visible(text, n, nk) == wanted).all()


def test_paintings_stay_few():
    text = "causal | (k < 5)"
    for row in range(50):  # a broad stroke in fifty narrow ones
        text = painted(text, True, (row, row + 1, 3, 9))
    assert text == "(causal | (k < 5)) & ~rect(0, 50, 3, 9)"
    assert painted(text, False, (0, 60, 0, 20)) == "causal | (k < 5) | rect(0, 60, 0, 20)"
    assert painted("causal", True, (1, 2, 3, 4)) == "causal & ~rect(1, 2, 3, 4)"


@pytest.mark.parametrize(
    ("text", "move", "meant"),
    [
        ("sliding_window(3)", Move("lts", 0, 20, 1, 4), "sliding_window(7)"),
        ("causal & document(12, 8)", Move("lts", 0, 12, 0, -3), "causal & document(12, 8) & ~rect(9, 12, 0, 12)"),
        ("causal & document(12, 8)", Move("lts", 0, 12, 0, 3), "causal & document(12, 8) | rect(12, 15, 0, 12)"),
        ("causal & ~rect(9, 12, 2, 5)", Move("lte", 2, 5, 0, 4), "causal & ~rect(9, 16, 2, 5)"),
        ("causal & ~rect(9, 12, 2, 5)", Move("lts", 2, 5, 0, 2), "causal & ~rect(11, 12, 2, 5)"),
        ("padding(15)", Move("lts", 0, 15, 0, -5), "padding(15) & ~rect(10, 15, 0, 15)"),
        ("band(3, 4)", Move("ute", 0, 20, 1, -2), "band(3, 6)"),
        ("prefix_lm(6)", Move("ute", 0, 6, 0, 5), "prefix_lm(6) & ~rect(0, 5, 0, 6)"),
        ("causal & (q - k < 5)", Move("lts", 0, 20, 1, 2), "causal & (q - k < 5) | (5 <= q - k < 7)"),
        ("causal & (q - k < 5)", Move("lts", 3, 9, 1, -2),
         "causal & (q - k < 5) & ~((3 <= q - k < 5) & rect(0, 20, 3, 9))"),
    ],
)  # fmt: skip
def test_dragging_a_boundary_moves_it_and_nothing_else(text, move, meant):
    mask = fm.mask(text, 20)
    found = moved(text, mask, move)
    assert found == meant
    wanted = {name: getattr(mask, name)[0, 0].long().numpy() for name in ("lts", "lte", "uts", "ute")}
    columns = np.arange(20)
    inside = (move.c0 <= columns) & (columns < move.c1)
    clear = inside & (0 < wanted[move.name]) & (wanted[move.name] < 20) if move.slope else inside
    line = (wanted[move.name] - move.slope * columns)[clear][0] + move.slope * columns + move.by
    wanted[move.name] = np.where(inside, np.clip(line, 0, 20), wanted[move.name])
    rows = np.arange(20)[:, None]
    hidden = (wanted["lts"] <= rows) & (rows < wanted["lte"]) | (wanted["uts"] <= rows) & (rows < wanted["ute"])
    assert (visible(found, 20, 20) == ~hidden).all()


def test_a_boundary_that_is_not_there_is_refused():
    mask = fm.mask("causal & document(12, 8)", 20)
    for move in (Move("lts", 0, 20, 0, 1), Move("ute", 0, 20, 1, 1), Move("lts", 30, 40, 0, 1), Move("lts", 0, 12, 0, 0)):
        with pytest.raises(ValueError, match="no such boundary"):
            moved("causal & document(12, 8)", mask, move)
