"""The steps of the lesson: words before and after, and an exercise between them."""

from __future__ import annotations

from dataclasses import dataclass

from .exercises import Misfit, Row, Tiles
from .numbers import Free, Number, Vectors

N = 8


def _each(vector: str) -> tuple[Number, ...]:
    """A number for every key."""
    return tuple(Number(vector, k, k + 1) for k in range(N))


@dataclass(frozen=True)
class Step:
    """title, what to know (HTML), what to do (HTML), the exercise, and what it was good for (HTML)."""

    title: str
    text: str
    task: str
    exercise: object
    after: str


STEPS = (
    Step(
        "A mask is a picture",
        "<p>In attention every <b>query</b> looks at <b>keys</b>. Draw that as a matrix: a row for every query, a "
        "column for every key. A filled cell is <b>visible</b>: this query may look at this key.</p>"
        "<p>In <b>causal</b> attention a query sees its own key and every key before it.</p>",
        "Row 4 is empty. Mark what query 4 sees: click the cells, or go there with Tab and press Space.",
        Row("causal", N, 4),
        "<p>A picture of N tokens has N × N cells: 64 here, 67 million at 8,192 tokens. FlashMask never stores "
        "them. The next steps show what it stores instead.</p>",
    ),
    Step(
        "One column, one number",
        "<p>Go down one column: who sees this key? Above the diagonal nobody does; the word <i>causal</i> says so, "
        "no number is needed. Below it, one number is often enough.</p>"
        "<p><b>LTS</b>, the <i>lower triangle's start</i>, is the first row that no longer sees the key. "
        "Everything from there down is hidden. LTS = 8, the number of rows, hides nothing.</p>",
        "Set LTS of key 2 so that your picture becomes the goal.",
        Vectors("causal & ((k != 2) | (q < 5))", N, True, 1, (Number("lts", 2, 3),)),
        "<p>LTS = 5 hides rows 5, 6 and 7 of column 2. One number for each of the 8 keys describes all 64 cells.</p>",
    ),
    Step(
        "Two documents in one sequence",
        "<p>Short documents are <b>packed</b> into one long sequence, and no query may look into another document. "
        "Here the first has 3 tokens, the second 5.</p>"
        "<p>Ask for every key: which is the first row behind its document? From there on nobody sees it.</p>",
        "Set LTS of all eight keys. You can also click a cell of your picture: hiding starts there.",
        Vectors("causal & document(3, 5)", N, True, 1, _each("lts")),
        "<p>Every key carries the end of its document. In the mask language: <code>causal & document(3, 5)</code>.</p>",
    ),
    Step(
        "Hidden for a while",
        "<p>A key may be hidden and seen again later. Then a second number says where hiding stops: <b>LTE</b>, "
        "the <i>lower triangle's end</i>.</p>"
        "<p>Hidden are the rows LTS … LTE − 1, and row LTE sees the key again: start included, end excluded, as in "
        "Python's <code>range(LTS, LTE)</code>.</p>",
        "Set both numbers of keys 2 and 3.",
        Vectors(
            "causal & (~(2 <= k <= 3) | (q < 5) | (q >= 7))",
            N,
            True,
            2,
            (Number("lts", 2, 3), Number("lts", 3, 4), Number("lte", 2, 3), Number("lte", 3, 4)),
        ),
        "<p>Two numbers a key now. When hiding goes on to the last row, LTE is 8 for every key and is not written "
        "at all: that is why the steps before needed LTS alone.</p>",
    ),
    Step(
        "Above the diagonal",
        "<p>Without <i>causal</i> the upper triangle is visible, and hiding there takes numbers of its own: "
        "<b>UTS</b> and <b>UTE</b>, start and end of a second hidden run. Often it begins at row 0; then UTE alone "
        "is written: all rows before UTE are hidden, and UTE = 0 hides none.</p>"
        "<p>Again two documents of 3 and 5 tokens, but now every token sees its whole document, before and after "
        "it.</p>",
        "Keys of one document share their numbers. Set the four.",
        Vectors(
            "document(3, 5)",
            N,
            False,
            2,
            (
                Number("lts", 0, 3, "keys 0 … 2"),
                Number("lts", 3, 8, "keys 3 … 7"),
                Number("ute", 0, 3, "keys 0 … 2"),
                Number("ute", 3, 8, "keys 3 … 7"),
            ),
        ),
        "<p>LTS and UTE together with <code>causal=False</code>. The flag belongs to the numbers: the same numbers "
        "mean another mask with <code>causal=True</code>, so keep them together.</p>",
    ),
    Step(
        "All four numbers",
        "<p>The most that a column can have: two hidden runs, rows UTS … UTE − 1 and rows LTS … LTE − 1. That "
        "makes four numbers a key, and never more.</p>",
        "Set the four numbers of key 3.",
        Vectors(
            "(k != 3) | (2 <= q <= 3) | (q >= 6)",
            N,
            False,
            4,
            tuple(Number(name, 3, 4) for name in ("uts", "ute", "lts", "lte")),
        ),
        "<p>Any column with at most two hidden runs can be written like this, whatever it looks like. The numbers "
        "go into a tensor <code>startend_row_indices [B, Hm, Sk, C]</code> with C = 1, 2 or 4 numbers a key.</p>",
    ),
    Step(
        "What the kernel skips",
        "<p>A GPU works on <b>tiles</b>, here 4 × 4 cells. Of a block of keys the kernel knows only the smallest "
        "and the largest LTS, and that is enough to judge a tile without looking at its cells:</p>"
        "<ul><li>first row ≥ largest LTS: every cell is hidden, the tile is <b>skipped</b>;</li>"
        "<li>last row &lt; smallest LTS, and the tile lies below the diagonal: every cell is visible, the tile is "
        "<b>full</b> and needs no test;</li>"
        "<li>otherwise it is <b>partial</b>: computed, and every cell tested.</li>"
        "</ul><p>Tiles above the diagonal are skipped at once.</p>",
        "Rows 12 … 15 of two documents of 6 and 10 tokens. Predict their four tiles from the numbers.",
        Tiles("causal & document(6, 10)", 16, 4, 3),
        "<p>Skipped tiles cost nothing: no load, no product. In long packed sequences most tiles are skipped, and "
        "that is where the speed comes from.</p>",
    ),
    Step(
        "What does not fit",
        "<p>A column holds at most two hidden runs. With causal, the rows above the diagonal are one of them. A "
        "mask with three or more hidden runs in any column does not fit four vectors.</p>",
        "One of these four does not fit. Choose it, then count the hidden runs of its key 0.",
        Misfit(
            (
                ("causal & (q - k < 3)", "A: sliding window of 3"),
                ("prefix_lm(3)", "B: prefix of 3"),
                ("global_sliding_window(1, 1, 1)", "C: global token and window"),
                ("causal & ((q - k) % 2 == 0)", "D: every other key"),
            ),
            N,
            0,
        ),
        "<p>The library names every column that does not fit. <code>fm.fit</code> then gives the nearest mask that "
        "hides or shows a little more, and the exact answer in several passes.</p>",
    ),
    Step(
        "From words: a prompt",
        "<p>Now without a goal to look at. A prompt of 3 tokens, then an answer of 5. The prompt sees itself "
        "whole, before and after. Every answer token sees the prompt and the answer up to itself.</p>"
        "<p>Nothing is hidden low down, so LTS is 8 everywhere. Who does not see key 4, above the diagonal?</p>",
        "Set UTE of all eight keys: the rows before UTE are hidden.",
        Vectors("prefix_lm(3)", N, False, 2, _each("ute"), pictured=False),
        "<p>This is a prefix LM, <code>prefix_lm(3)</code>. Keys of the prompt hide nothing; a key of the answer "
        "hides the rows before it.</p>",
    ),
    Step(
        "From words: your turn",
        "<p>Three documents of 2, 3 and 3 tokens, causal, and inside a document every query sees itself and the "
        "one key before it: a sliding window of 2.</p>"
        "<p>A key is hidden from the row where its window ends or where its document ends, whichever comes "
        "first.</p>",
        "Set LTS of all eight keys.",
        Vectors("causal & document(2, 3, 3) & (q - k < 2)", N, True, 1, _each("lts"), pictured=False),
        "<p><b>You can write the vectors of your own mask.</b> Column by column: which rows are hidden? One run "
        "below the diagonal: LTS (and LTE). One above: UTE (and UTS). More than two: it does not fit.</p>",
    ),
)

# Practice behind the last step: what is wanted in words, and the same in the mask language.
TASKS = {
    "causal & ((k < 1) | (q - k < 2))": "Causal: every query sees key 0, the key before it and its own.",
    "k >= q": "Backwards: every query sees its own key and all the keys after it.",
    "document(4, 4) | (k < 1)": "Two documents of 4, everybody sees their whole document, and all see key 0.",
    "causal & (~(2 <= k <= 3) | (q < 4) | (q >= 7))": "Causal, but queries 4, 5 and 6 do not see keys 2 and 3.",
    "(q % 2 == 0) | (q == k)": "Even queries see every key, odd queries their own key alone.",
    "(q - k >= 1) & (q - k <= 2)": "Every query sees the two keys before it, but not its own.",
    "~rect(3, 5, 3, 5)": "Everybody sees everything, but queries 3 and 4 do not see keys 3 and 4.",
    "causal & ((q - k == 0) | (q - k == 2) | (q - k == 4))": "Every query sees its own key and those 2 and 4 before.",
}


def practice(goal: str) -> Free:
    """The exercise of a goal, one of TASKS or any mask text. Raises as `flashmask_core.parse` does."""
    exercise = Free(goal, N)
    exercise.fit  # noqa: B018  the text is read now, so that a wrong one is refused here
    return exercise
