"""Training examples as lengths: typed, from a file, or drawn by the paper's recipe."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from dataclasses import dataclass

from ..checks import whole
from ..masks.expr import MAX_SEQLEN

MAX_EXAMPLES = 100_000
MAX_BYTES = 8 * 2**20
ANSWERS = {"sft": 1, "dpo": 2, "rm": 6}
"""Form -> answers that share one prompt in the paper's experiments. LoRA is SFT with fewer weights to train."""
_SHORTEST_DRAWN, _MOST_PADDING = 128, 128
_GROUPS = re.compile(r"(?<![0-9])[1-9][0-9]{0,2}([ ,])[0-9]{3}(?:\1[0-9]{3})?(?![0-9])")


@dataclass(frozen=True)
class Example:
    """A prompt and the answers that share it, in tokens; any of them may be 0 long."""

    prompt: int
    answers: tuple[int, ...]

    @property
    def tokens(self) -> int:
        return self.prompt + sum(self.answers)

    @property
    def pairs(self) -> int:
        """Visible pairs: causal, and an answer sees its prompt and itself."""
        triangle = lambda n: n * (n + 1) // 2  # noqa: E731
        return triangle(self.prompt) + sum(answer * self.prompt + triangle(answer) for answer in self.answers)

    def __str__(self) -> str:
        return f"({', '.join(map(str, (self.prompt, *self.answers)))})" if self.answers else str(self.prompt)


def examples_of(items) -> list[Example]:
    """Examples of a list whose items are a length (all of it prompt, a plain document), or (prompt, answer, ...).

    Raises TypeError or ValueError naming the item that cannot be, for an empty list, and past MAX_EXAMPLES.
    """
    items = list(items)
    if not items:
        raise ValueError("lengths: wanted at least one example, got none")
    if len(items) > MAX_EXAMPLES:
        raise ValueError(f"lengths: {len(items):,} examples are more than {MAX_EXAMPLES:,}")
    found = []
    for i, item in enumerate(items):
        lengths = item if isinstance(item, (list, tuple)) else (item,)
        if isinstance(item, dict):
            answers = item.get("answers") or []
            if "prompt" not in item or not isinstance(answers, (list, tuple)):
                raise ValueError(f'lengths[{i}]: wanted {{"prompt": n, "answers": [n, ...]}}, got {str(item)[:60]}')
            lengths = (item["prompt"], *answers)
        if not lengths:
            raise ValueError(f"lengths[{i}]: wanted a length or (prompt, answer, ...), got an empty list")
        lengths = [whole(f"lengths[{i}]", length, 0, MAX_SEQLEN) for length in lengths]
        found.append(Example(lengths[0], tuple(lengths[1:])))
    return found


def read_text(text: str) -> list[Example]:
    """Examples of a typed list: lengths split by commas, spaces or lines, (prompt, answer, ...) in parentheses."""
    if len(text) > MAX_BYTES:
        raise ValueError(f"lengths: {len(text):,} characters are more than {MAX_BYTES:,}")
    items: list = []
    group = None
    for token in re.finditer(r"[0-9]{1,9}|[()]|[\s,;]+|.", text, re.DOTALL):
        word = token[0]
        if word == "(" and group is None:
            group = []
        elif word == ")" and group is not None:
            items.append(group)
            group = None
        elif word.isascii() and word.isdigit():
            (items if group is None else group).append(int(word))
        elif word.strip(" \t\r\n,;"):
            raise ValueError(
                f"lengths: {word!r} at character {token.start() + 1} is neither a length nor part of (prompt, answer, ...)"
            )
    if group is not None:
        raise ValueError("lengths: a parenthesis is not closed")
    return examples_of(items)


def in_groups(text: str) -> str:
    """What looks like a length in groups of three digits, as 10 000 and 1,048,576 are, and how it is read; "" for none.

    Spaces and commas stand between lengths, so 128 256 512 is a list; a group that begins with 0 gives a number away.
    """
    for found in _GROUPS.finditer(text):
        first, *others = found[0].split(found[1])
        if any(group[0] == "0" for group in others):
            read = ", ".join([first, *others[:-1]])
            return (
                f"{found[0]} is read as {1 + len(others)} lengths, {read} and {others[-1]}. "
                "One length is written without spaces or commas, as 10000 is."
            )
    return ""


def read_file(data: bytes, name: str) -> list[Example]:
    """Examples of a .json file (numbers, lists, or {"prompt": n, "answers": [...]}) or a .csv file.

    A row of a .csv file is one example: a length, or prompt and answers; a first row of words is a heading. Where there
    is no comma, semicolons or tabs are between them.
    """
    if len(data) > MAX_BYTES:
        raise ValueError(f"{name}: {len(data):,} bytes are more than {MAX_BYTES:,}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{name}: wanted a .csv or .json file in UTF-8") from None
    if name.lower().endswith(".json"):
        try:
            items = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{name}: no JSON ({error})") from None
        if not isinstance(items, list):
            raise ValueError(f"{name}: wanted a list of lengths, got {type(items).__name__}")
        return examples_of(items)
    items = []
    between = next((sign for sign in ",;\t" if sign in text), ",")
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=between))
    except csv.Error as error:
        raise ValueError(f"{name}: no .csv file ({error})") from None
    for number, row in enumerate(rows, 1):
        cells = [cell.strip() for cell in row if cell.strip()]
        if cells and not all(re.fullmatch("[0-9]{1,9}", cell) for cell in cells):
            words = number == 1 and not any(cell[0] in "+-.0123456789" for cell in cells)
            if words and not row[0].strip():
                raise ValueError(f"{name}: the first column has no name, as an index has none; write the file without it")
            if words:
                continue
            raise ValueError(f"{name}: row {number} is {', '.join(cells)[:60]!r}; wanted whole numbers of 0 or more")
        if cells:
            items.append([int(cell) for cell in cells])
    return examples_of(items)


def draw(context: int, form: str, sequences: int, seed: int = 0) -> list[Example]:
    """Examples for `sequences` contexts by the paper's recipe (arXiv 2410.01359, section 5 and appendix).

    A context holds 1 to 10 documents of at least 128 tokens and at most 128 tokens of padding. A document of L tokens
    has k answers (1 for "sft", 2 for "dpo", 6 for "rm"), each of 0.1 L / (1 + 0.1 k) to 0.2 L / (1 + 0.2 k) tokens.
    """
    whole("context", context, 2 * _SHORTEST_DRAWN, MAX_SEQLEN)
    whole("sequences", sequences, 1, MAX_EXAMPLES // 10)
    if form not in ANSWERS:
        raise ValueError(f"form: wanted one of {', '.join(ANSWERS)}, got {form!r}")
    rng, answers, found = random.Random(seed), ANSWERS[form], []
    for _ in range(sequences):
        total = context - rng.randint(0, _MOST_PADDING)
        count = min(rng.randint(1, 10), total // _SHORTEST_DRAWN)
        spare = total - count * _SHORTEST_DRAWN
        cuts = [0, *sorted(rng.randint(0, spare) for _ in range(count - 1)), spare]
        for a, b in zip(cuts, cuts[1:]):
            length = _SHORTEST_DRAWN + b - a
            low, high = 0.1 * length / (1 + 0.1 * answers), 0.2 * length / (1 + 0.2 * answers)
            drawn = tuple(rng.randint(round(low), round(high)) for _ in range(answers))
            found.append(Example(length - sum(drawn), drawn))
    return found
