"""Every error of the mask language: its text, the character it points at, the limits."""

import numpy as np
import pytest

import flashmask_core as fm
from flashmask_core.masks import lexer


@pytest.mark.parametrize(
    "text, position, message",
    [
        ("", None, "the text is empty; `full` shows everything"),
        (" \n", None, "the text is empty"),
        ("causal & q - k < 512", 9, "parentheses are missing here: write causal & (q - k < 512)"),
        ("q - k < 512 & causal", 0, "parentheses are missing here: write (q - k < 512) & causal"),
        ("k < 4 & q < 8 | full", 0, "write (k < 4) & (q < 8) | full"),
        ("causal & (q-k) < 3", 9, "write causal & ((q-k) < 3)"),
        ("causal & ~q < 3", 10, "write causal & ~(q < 3)"),
        ("full & (causal & q < 3)", 17, "write causal & (q < 3)"),
        ("q & 1 == 0", 4, "& | ~ work on masks, not on numbers"),
        ("slidng_window(3)", 0, "there is no slidng_window: did you mean sliding_window"),
        ("causal & documents(3)", 9, "did you mean document"),
        ("causal & xyzzy", 9, "there is no xyzzy: the patterns are full, causal, sliding_window"),
        ("lambda: 0", 6, "':' is not in the language"),
        ("lambda", 0, "there is no lambda"),
        ("causal if full else full", 7, "there is no if"),
        ("__import__('os')", 11, "\"'\" is not in the language"),
        ("__import__(q)", 0, "there is no __import__"),
        ("(q).real < 3", 3, "'.' is not in the language: there are no dots"),
        ("q < 'a'", 4, "\"'\" is not in the language: allowed are pattern names"),
        ("document([3, 4])", 9, "'[' is not in the language: lists of lengths stand between"),
        ("q ≤ k", 2, "'≤' is not in the language: write <="),
        ("q <= k ; full", 7, "';' is not in the language"),
        ("q ** 2 < k", 2, "there is no power"),
        ("q / 2 < k", 2, "write // for division"),
        ("causal && full", 7, "write & for `and`"),
        ("causal || full", 7, "write | for `or`"),
        ("!causal", 0, "write ~ for `not`"),
        ("causal ^ full", 7, "there is no ^"),
        ("q << 2 < k", 2, "there are no shifts"),
        ("q = k", 2, "write == to compare"),
        ("causal & (q = k)", 12, "write == to compare"),
        ("w = k", 2, "write == to compare"),
        ("= k", 0, "write == to compare"),
        ("q < 1.5", 4, "1.5 is no whole number"),
        ("q < 0x10", 4, "0x10 is no whole number"),
        ("q < 007", 4, "007 is no whole number"),
        ("q < 1" + "0" * 19, 4, "is too large: numbers go up to 2^60"),
        ("q < " + "9" * 9000, 4, "99999999999999999999… is too large"),
        ("causal & (full", 9, "this ( is never closed"),
        ("causal) & full", 6, "this ) closes nothing"),
        ("causal &", 7, "something is missing behind &"),
        ("& causal", 0, "something is missing before &"),
        ("(causal and) | full", 8, "something is missing behind and"),
        ("causal & | full", 9, "something is missing before |"),
        ("document(3, 4 +)", 14, "something is missing behind +"),
        ("q <", 2, "something is missing behind <"),
        ("~", 0, "something is missing behind ~"),
        ("causal full", 7, "this does not read on as a mask"),
        ("causal, full", 0, "a comma stands between arguments only"),
        ("()", 0, "a comma stands between arguments only"),
        ("q", 0, "a number is no mask: compare it with something"),
        ("3", 0, "a number is no mask"),
        ("causal & q + k", 9, "a number is no mask"),
        ("~abs(q)", 1, "a number is no mask"),
        ("causal < 3", 0, "this is a mask where a number belongs"),
        ("q < document(3)", 4, "this is a mask where a number belongs"),
        ("q < True", 4, "this is a mask where a number belongs"),
        ("abs(q < k) < 1", 4, "this is a mask where a number belongs"),
        ("abs(~q) < 1", 4, "& | ~ work on masks, not on numbers"),
        ("abs(q & k) < 1", 4, "& | ~ work on masks, not on numbers"),
        ("abs(q, k) < 3", 0, "abs takes one number"),
        ("max(q) < 3", 0, "max takes two numbers or more"),
        ("max < 3", 0, "max needs its arguments in parentheses"),
        ("q // 0 < k", 5, "this divides by zero"),
        ("q % 0 < k", 4, "this divides by zero"),
        ("q in (1, 2)", 2, "there is no in: write 1 <= k <= 2, or (k == 1) | (k == 2)"),
        ("sliding_window", 0, "sliding_window needs its arguments: sliding_window(w)"),
        ("sliding_window()", 0, "wanted sliding_window(w), got 0 arguments"),
        ("sliding_window(1, 2)", 0, "wanted sliding_window(w), got 2 arguments"),
        ("sliding_window(w=1, w=2)", 0, "w is given twice"),
        ("sliding_window(1, w=2)", 0, "w is given twice: wanted sliding_window(w)"),
        ("sliding_window(seed=2)", 15, "sliding_window has no parameter seed: wanted sliding_window(w)"),
        ("sliding_window(width=2)", 15, "sliding_window has no parameter width: wanted sliding_window(w)"),
        ("causal(1)", 0, "causal takes nothing: write causal alone"),
        ("sliding_window(-1)", 15, "w: wanted 0 or more, got -1"),
        ("sliding_window(q)", 15, "w: wanted a number, and q and k vary"),
        ("sliding_window(1 // (1 - 1))", 15, "division by zero: 1 - 1 gets 0"),
        ("sliding_window(full)", 15, "this is a mask where a number belongs"),
        ("hash_sparse(0)", 12, "buckets: wanted 1 or more, got 0"),
        ("chunk_causal(0)", 13, "c: wanted 1 or more, got 0"),
        ("document()", 0, "wanted document(length, …)"),
        ("document(length=3)", 9, "document takes nothing by name: wanted document(length, …)"),
        ("document(lengths=3)", 9, "document takes nothing by name: wanted document(length, …)"),
        ("min(q, key=k) < k", 7, "min takes nothing by name"),
        ("full(w=3)", 5, "full takes nothing by name: wanted full"),
        ("-causal", 1, "this is a mask where a number belongs; masks go with & | ~ alone"),
        ("abs(causal)", 4, "this is a mask where a number belongs"),
        ("import os", 0, "there is no import; allowed are pattern names"),
        ("x = 3", 0, "there is no x: the patterns are"),
        ("document((3, 4))", 9, "drop these inner parentheses"),
        ("document(3, -4)", 12, "length: wanted 0 or more, got -4"),
        ("share_question(4, 3)", 15, "wanted (question, answer, …), a tuple in parentheses of its own"),
        ("share_question(())", 15, "wanted (question, answer, …), got 0 numbers"),
        ("qk_sparse((1, 2, 3))", 10, "wanted (offset, length), got 3 numbers"),
        ("repeat(3, 4)", 0, "repeat(length, count) stands inside a list of lengths"),
        ("sliding_window(repeat(3, 4))", 15, "this is a mask where a number belongs"),
        ("document(repeat(3))", 9, "wanted repeat(length, count)"),
        ("document(repeat(3, -1))", 19, "count: wanted 0 or more, got -1"),
        ("document(repeat(1, 1048577))", 9, "lists may have 1,048,576 items in all"),
        ("document(repeat(repeat(1, 1025), 1024))", 9, "lists may have 1,048,576 items in all"),
        ("document(*q)", 9, "something is missing before *"),
        ("sliding_window(**q)", 15, "there is no power"),
        ("q(3) < k", 0, "q is a position and takes no arguments"),
        ("causal()()", 0, "this is not in the language"),
    ],
)
def test_errors_point_at_the_character_and_say_what_is_allowed(text, position, message):
    with pytest.raises(fm.MaskSyntaxError) as caught:
        fm.parse(text)
    assert message in str(caught.value)
    assert caught.value.position == position
    if position is not None:
        *_, shown, caret = str(caught.value).split("\n")
        where = caret.index("^")
        assert text[position:][:1].strip() == shown[where : where + 1].strip()


@pytest.mark.parametrize(
    "text, message",
    [
        ("q // k < 3", "division by zero: k gets 0 here"),
        ("k % q == 1", "remainder by zero: q gets 0 here"),
        ("k // (3 - 3) < q", "division by zero: 3 - 3 gets 0 here"),
        ("q // (k - k) < q", "division by zero: k - k gets 0 here"),
        ("q < 1000000000 * 1000000000 * 1000000000 * k", "can get as large as 2^"),
        ("q * 1152921504606846976 < k", "can get as large as 2^"),
        ("abs(-1152921504606846976 - q) < k", "can get as large as 2^60 here; the limit is 2^60"),
    ],
)
def test_numbers_that_do_not_work_are_refused_with_the_place(text, message):
    expr = fm.parse("causal & (" + text + ")")
    with pytest.raises(fm.MaskSyntaxError, match=message.replace("^", r"\^").replace("- 3", r"- 3")) as caught:
        expr.runs(16)
    assert caught.value.position == 10


def test_the_largest_numbers_are_exact():
    big = 1 << 60
    for text, shown in [
        (f"q - {big - 100} < 0", 256),
        (f"k * {big // 32} // {big // 32} == k", 256),
        (f"({big - 40} - q) // {big - 60} == 1", 16 * 16),
        (f"(q - {big - 40}) // {big - 40} >= 0", 0),
        (f"q // {big} + k // -{big} == 0", 16),
    ]:
        q, k = np.meshgrid(np.arange(16).astype(object), np.arange(16).astype(object), indexing="ij")
        wanted = int(np.sum(eval(text, {"q": q, "k": k}).astype(bool)))  # Python's own unbounded ints
        assert wanted == shown
        assert fm.parse(text).runs(16).visible_pairs() == wanted, text


def test_limits_before_parsing():
    cases = [
        ("causal" + " " * (64 * 1024), "the text has 65,542 bytes and may have 65,536: repeat\\(1, 1000\\) writes 1000 equal numbers, and a file holds more"),
        ("(" * 101 + "causal" + ")" * 101, "parentheses go 100 deep at most"),
        (" & ".join(["causal"] * 2002), "a text may have 2,000 operators and calls"),
        ("~" * 2001 + "causal", "a text may have 2,000 operators and calls"),
        (" & ".join(["padding(3)"] * 1001), "a text may have 2,000 operators and calls"),
        ("~" * 101 + "causal", "nested more than 100 deep"),
        ("not " * 1999 + "causal", "nested more than 100 deep"),
        ("q < " + "-" * 1500 + "k", "nested more than 100 deep"),
        ("document(" + "repeat(" * 99 + "1" + ", 1)" * 99 + ")", None),
    ]
    for text, message in cases:
        if message is None:
            assert fm.parse(text).runs(1).visible_pairs() == 1
            continue
        with pytest.raises(fm.MaskSyntaxError, match=message):
            fm.parse(text)


def test_messages_quote_a_long_expression_in_part():
    long = " + ".join(["q * k * 1048576"] * 300)
    for text in (f"{long} * 1000000000000 < k", f"({long}) // 0 < k", f"k // (k - k) + {long} < 9", f"{long} == 7"):
        with pytest.raises(fm.MaskSyntaxError) as caught:
            fm.parse(text).runs(1 << 20)
        assert len(str(caught.value)) < 500


def test_a_recursion_or_memory_error_of_the_parser_is_a_syntax_error(monkeypatch):
    for error in (RecursionError, MemoryError):

        def fail(*_, **__):
            raise error

        monkeypatch.setattr("flashmask_core.masks.language.ast.parse", fail)
        with pytest.raises(fm.MaskSyntaxError, match="nested too deeply"):
            fm.parse("causal")


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ((-1,), ValueError, "seqlen_q: wanted 0 to 1,048,576 tokens, got -1"),
        (((1 << 20) + 1,), ValueError, "seqlen_q: wanted 0 to 1,048,576 tokens, got 1,048,577"),
        ((4, -2), ValueError, "seqlen_k: wanted 0 to 1,048,576"),
        ((4.0,), TypeError, "seqlen_q: wanted an int, got float"),
        ((True,), TypeError, "seqlen_q: wanted an int, got bool"),
        ((4, "4"), TypeError, "seqlen_k: wanted an int, got str"),
    ],
)
def test_lengths_are_checked(arguments, error, message):
    with pytest.raises(error, match=message):
        fm.mask("causal", *arguments)


def test_text_must_be_text():
    with pytest.raises(TypeError, match="text: wanted a str in the mask language, got bytes"):
        fm.parse(b"causal")


def test_nothing_is_evaluated():
    assert lexer.MAX_DEPTH == 100
    for text in ("print(1)", "exec('1')", "q.__class__", "[q for q in k]", "(q := 3) < k", "f'{q}'", "open('x')"):
        with pytest.raises(fm.MaskSyntaxError):
            fm.parse(text)
