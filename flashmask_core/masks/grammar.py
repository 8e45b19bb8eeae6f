"""The grammar of the mask language in five lines, for people: what stands in a text, and what it means.

What a name means is said by its `Pattern`.
"""

from __future__ import annotations

from dataclasses import dataclass

from .expr import COMPARISONS
from .language import ARITHMETIC
from .lexer import FUNCTIONS, WORD_OPERATORS


@dataclass(frozen=True)
class Rule:
    """One line: `form` as it is written, what it means, and a text that has it."""

    form: str
    meaning: str
    example: str


GRAMMAR = (
    Rule(
        "a & b    a | b    ~a",
        "Visible in both, in either, where a hides. ~ binds tightest, then &, then |; parentheses group.",
        "~(causal & document(3, 4)) | padding(2)",
    ),
    Rule(
        "pattern(arguments)",
        "One of the patterns below. In a list of lengths, repeat(length, count) stands for so many equal ones.",
        "document(512, repeat(64, 8))",
    ),
    Rule(
        "number < number",
        f"A comparison by {' '.join(COMPARISONS)}, chained if you like. Beside & | ~ it stands in parentheses; beside "
        f"the words {', '.join(WORD_OPERATORS)}, which mean the same, it needs none.",
        "causal & (0 <= q - k < 512)",
    ),
    Rule(
        f"{' '.join(ARITHMETIC.values())}  {' '.join(FUNCTIONS)}",
        "Numbers are whole numbers and what these make of them and of q and k.",
        "abs(q // 64 - k // 64) <= min(k % 64, 2)",
    ),
    Rule(
        "q, k",
        "Positions of the query and of the key, counted along the keys: q = q_idx + Sk - Sq, so the last query stands "
        "beside the last key. A query before the first key sees nothing.",
        "k <= q",
    ),
)
