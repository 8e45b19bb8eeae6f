"""The grammar for people says what the language does."""

import pytest

import flashmask_core as fm
from flashmask_core.masks.grammar import GRAMMAR
from flashmask_core.masks.lexer import FUNCTIONS, WORD_OPERATORS
from flashmask_core.masks.patterns import PATTERNS


@pytest.mark.parametrize("rule", GRAMMAR, ids=lambda rule: rule.form)
def test_every_example_is_a_mask(rule):
    assert fm.parse(rule.example).runs(2000).seqlen_k == 2000


def test_it_names_every_operator_and_function():
    said = " ".join(f"{rule.form} {rule.meaning}" for rule in GRAMMAR)
    for sign in (*"&|~+-*%", "//", "<", "<=", ">", ">=", "==", "!=", *WORD_OPERATORS, *FUNCTIONS, "repeat(", "q_idx"):
        assert sign in said, sign


def test_words_need_no_parentheses_and_bind_as_said():
    same = [("causal and q - k < 5", "causal & (q - k < 5)"), ("~causal & full | causal", "((~causal) & full) | causal")]
    for text, meant in same:
        assert fm.parse(text) == fm.parse(meant)


def test_every_pattern_and_argument_has_a_line():
    for pattern in PATTERNS.values():
        assert pattern.about and pattern.rule and all(parameter.about for parameter in pattern.parameters), pattern.name
