"""The first pass over a mask text: its tokens, and every limit that can be checked before a tree is built.

Python's own parser reads the text afterwards. What it would accept but the language does not have (strings, dots,
floats, lambdas, other names) is refused here, where the character is at hand, and so is what could wear it out.
"""

from __future__ import annotations

import difflib
import keyword
import re
from dataclasses import dataclass

from .errors import MaskSyntaxError, pointed_at
from .patterns import PATTERNS
from .terms import LARGEST

MAX_TEXT_BYTES = 64 * 1024
MAX_OPERATORS = 2000
MAX_DEPTH = 100

ALLOWED = (
    "allowed are pattern names, comparisons of whole-number arithmetic in q and k (+ - * // % abs min max), "
    "& | ~ and or not, and parentheses"
)
WORD_OPERATORS = ("and", "or", "not")
FUNCTIONS = ("abs", "min", "max")
_NAMES = {*PATTERNS, *WORD_OPERATORS, *FUNCTIONS, "q", "k", "repeat", "True", "False"}
_NEAR_NAMES = sorted(_NAMES - {"q", "k", *WORD_OPERATORS})
_PARAMETERS = {parameter.name for pattern in PATTERNS.values() for parameter in pattern.parameters}

_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<number>[0-9][0-9A-Za-z_.]*)|(?P<name>[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<operator><=|>=|==|!=|<>|<<|>>|//|\*\*|&&|\|\||[-+*/%&|~<>=!^@])|(?P<mark>[(),])"
)
_INSTEAD = {
    "**": "there is no power; write a product",
    "/": "numbers are whole: write // for division",
    "&&": "write & for `and`",
    "||": "write | for `or`",
    "!": "write ~ for `not`, != for unequal",
    "<>": "write != for unequal",
    "<<": "there are no shifts; write a product",
    ">>": "there are no shifts; write //",
    "^": "there is no ^; a & ~b | ~a & b shows what only one of two masks shows",
    "@": "there is no @",
    "=": "write == to compare",
    "≤": "write <=",
    "≥": "write >=",
    "≠": "write !=",
    "∧": "write & for `and`",
    "∨": "write | for `or`",
    "¬": "write ~ for `not`",
    "−": "write a plain minus -",
    "×": "write *",
    ".": "there are no dots; numbers are whole",
    "[": "lists of lengths stand between the pattern's own parentheses: document(3, 4)",
    "{": "there are no braces",
    "#": "there are no comments",
}


@dataclass(frozen=True)
class Token:
    kind: str  # "number", "name", "operator" or "mark"
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def compares(self) -> bool:
        return self.text in ("<", "<=", ">", ">=", "==", "!=")


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text; MaskSyntaxError at the first thing that is not in the language or over a limit."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_TEXT_BYTES:
        raise MaskSyntaxError(
            f"the text has {size:,} bytes and may have {MAX_TEXT_BYTES:,}: repeat(1, 1000) writes 1000 equal numbers, "
            "and a file holds more"
        )
    tokens, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            instead = _INSTEAD.get(text[position], ALLOWED)
            raise pointed_at(MaskSyntaxError(f"{text[position]!r} is not in the language: {instead}"), (text, position))
        if match.lastgroup != "space":
            tokens.append(Token(match.lastgroup, match.group(), position))
        position = match.end()
    if not tokens:
        raise MaskSyntaxError("the text is empty; `full` shows everything")
    _check_words(text, tokens)
    _check_parentheses(text, tokens)
    _check_operands(text, tokens)
    _check_size(text, tokens)
    return tokens


def _check_words(text: str, tokens: list[Token]) -> None:
    calls = []  # the word before every parenthesis that is open
    around = zip([None, None, *tokens], [None, *tokens], tokens, [*tokens[1:], None])
    for before_last, before, token, following in around:
        wrong = None
        if token.text == "(":
            calls.append(before.text if before and before.kind == "name" else "")
        elif token.text == ")" and calls:
            calls.pop()
        if token.kind == "number":
            wrong = _wrong_number(token.text)
        elif token.text == "=":
            if not (before and before.kind == "name" and before_last and _takes_names(before_last, calls)):
                wrong = f"= is not in the language: {_INSTEAD['=']}"
        elif token.text in _INSTEAD:
            wrong = f"{token.text} is not in the language: {_INSTEAD[token.text]}"
        elif token.kind == "name" and following is not None and following.text == "=":
            if before is not None and _takes_names(before, calls):
                wrong = _wrong_keyword(calls[-1], token.text)
            elif token.text not in _NAMES | _PARAMETERS:
                wrong = unknown_name(token.text)
        elif token.kind == "name" and token.text not in _NAMES:
            wrong = unknown_name(token.text)
        if wrong:
            raise pointed_at(MaskSyntaxError(wrong), (text, token.start))


def _wrong_number(digits: str) -> str | None:
    if not re.fullmatch(r"0+|[1-9][0-9]*(_[0-9]+)*", digits):
        return f"{digits[:40]} is no whole number as the language writes them: 4096 or 4_096"
    if len(digits) > 40 or int(digits) > LARGEST:
        return f"{digits[:20]}{'…' if len(digits) > 20 else ''} is too large: numbers go up to 2^60"
    return None


def _takes_names(before: Token, calls: list[str]) -> bool:
    """Whether a name behind this token, followed by =, names an argument of a call."""
    return before.text in ("(", ",") and bool(calls) and calls[-1] in {*PATTERNS, *FUNCTIONS, "repeat"}


def _wrong_keyword(call: str, name: str) -> str | None:
    """What is wrong with call(name=…), or None."""
    if call not in PATTERNS:
        return f"{call} takes nothing by name"
    pattern = PATTERNS[call]
    names = [parameter.name for parameter in pattern.parameters if not parameter.variadic]
    if name in names:
        return None
    if not names:
        return f"{call} takes nothing by name: wanted {pattern.signature}"
    return f"{call} has no parameter {name[:60]}: wanted {pattern.signature}"


def unknown_name(name: str) -> str:
    """The message for a name that is not there, with the nearest ones that are."""
    if name == "in":
        return "there is no in: write 1 <= k <= 2, or (k == 1) | (k == 2)"
    if keyword.iskeyword(name):
        return f"there is no {name}; {ALLOWED}"
    near = difflib.get_close_matches(name.lower(), _NEAR_NAMES, n=3, cutoff=0.6)
    there = f"did you mean {' or '.join(near)}?" if near else f"the patterns are {', '.join(PATTERNS)}"
    return f"there is no {name[:60]}: {there}"


def _check_parentheses(text: str, tokens: list[Token]) -> None:
    opened = []
    for token in tokens:
        if token.text == "(":
            opened.append(token)
            if len(opened) > MAX_DEPTH:
                raise pointed_at(MaskSyntaxError(f"parentheses go {MAX_DEPTH} deep at most"), (text, token.start))
        elif token.text == ")":
            if not opened:
                raise pointed_at(MaskSyntaxError("this ) closes nothing"), (text, token.start))
            opened.pop()
    if opened:
        raise pointed_at(MaskSyntaxError("this ( is never closed"), (text, opened[-1].start))


def _check_operands(text: str, tokens: list[Token]) -> None:
    """Something has to stand behind every operator, and before all but ~ not - +."""
    for before, token, following in zip([None, *tokens], tokens, [*tokens[1:], None]):
        if not _operates(token):
            continue
        side = None
        if token.text not in ("~", "not", "-", "+") and (before is None or before.text in "(," or _operates(before)):
            side = "before"
        elif following is None or following.text in "),":
            side = "behind"
        if side:
            raise pointed_at(MaskSyntaxError(f"something is missing {side} {token.text}"), (text, token.start))


def _operates(token: Token) -> bool:
    return token.text in WORD_OPERATORS or (token.kind == "operator" and token.text != "=")


def _check_size(text: str, tokens: list[Token]) -> None:
    count = 0
    for token, following in zip(tokens, [*tokens[1:], None]):
        calls = token.kind == "name" and token.text != "repeat" and following is not None and following.text == "("
        count += token.kind == "operator" or token.text in WORD_OPERATORS or calls
        if count > MAX_OPERATORS:
            message = f"a text may have {MAX_OPERATORS:,} operators and calls, and this is one more"
            raise pointed_at(MaskSyntaxError(message), (text, token.start))
