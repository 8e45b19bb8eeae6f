"""The mask language: random expressions against brute force, canonical text, limits, and every error's text."""

import os

import mask_oracle
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flashmask_core as fm
from flashmask_core.masks import lexer, solve
from flashmask_core.masks.patterns import PATTERNS

# Random cases a test; more are worth an hour now and then: MASK_EXAMPLES=100000.
EXAMPLES = int(os.environ.get("MASK_EXAMPLES", 400))

COMPARE = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal
}  # fmt: skip

# A generated term or mask is a pair (text, function of q and k); the function is what the text has to mean.
numbers = st.integers(-9, 40).map(lambda n: (str(n), lambda q, k: np.full(np.broadcast_shapes(q.shape, k.shape), n)))
q_term = ("q", lambda q, k: np.broadcast_to(q, np.broadcast_shapes(q.shape, k.shape)))
k_term = ("k", lambda q, k: np.broadcast_to(k, np.broadcast_shapes(q.shape, k.shape)))
leaves = st.one_of(numbers, st.sampled_from([q_term, k_term]))
divisors = st.sampled_from(
    [(str(n), lambda q, k, n=n: n) for n in (1, 2, 3, 7, 16, -1, -4)]
    + [("(k + 1)", lambda q, k: k + 1), ("(q + 2)", lambda q, k: q + 2), ("(k % 3 - 4)", lambda q, k: k % 3 - 4)]
)


def _operation(parts):
    op, (a, f), (b, g) = parts
    apply = {"+": np.add, "-": np.subtract, "*": np.multiply}[op]
    return f"({a}) {op} ({b})", lambda q, k: apply(f(q, k), g(q, k))


def _division(parts):
    op, (a, f), (b, g) = parts
    apply = {"//": np.floor_divide, "%": np.mod}[op]
    return f"({a}) {op} {b}", lambda q, k: apply(f(q, k), g(q, k))


def _function(parts):
    name, arguments = parts
    text = f"{name}({', '.join(a for a, _ in arguments)})"
    combine = {"min": np.min, "max": np.max}[name]
    return text, lambda q, k: combine([f(q, k) for _, f in arguments], axis=0)


def _deeper_terms(terms):
    return st.one_of(
        st.tuples(st.sampled_from("+-*"), terms, terms).map(_operation),
        st.tuples(st.sampled_from("+-"), terms, terms).map(_operation),
        st.tuples(st.sampled_from(["//", "%"]), terms, divisors).map(_division),
        st.tuples(st.sampled_from(["min", "max"]), st.lists(terms, min_size=2, max_size=3)).map(_function),
        terms.map(lambda t: (f"abs({t[0]})", lambda q, k: np.abs(t[1](q, k)))),
        terms.map(lambda t: (f"-({t[0]})", lambda q, k: -t[1](q, k))),
    )


terms = st.recursive(leaves, _deeper_terms, max_leaves=6)


def _comparison(parts):
    (a, f), op, (b, g), chained = parts
    if chained is None:
        return f"({a} {op} {b})", lambda q, k, sq: COMPARE[op](f(q, k), g(q, k))
    then, (c, h) = chained
    return (
        f"({a} {op} {b} {then} {c})",
        lambda q, k, sq: COMPARE[op](f(q, k), g(q, k)) & COMPARE[then](g(q, k), h(q, k)),
    )


operators = st.sampled_from(list(COMPARE))
comparisons = st.tuples(terms, operators, terms, st.none() | st.tuples(operators, terms)).map(_comparison)


@st.composite
def named(draw):
    name = draw(st.sampled_from(sorted(PATTERNS)))
    arguments = mask_oracle.random_arguments(name, 9, np.random.default_rng(draw(st.integers(0, 10**6))))
    text = f"{name}({', '.join(map(str, arguments))})" if arguments else name
    return text, lambda q, k, sq: mask_oracle.visible(name, arguments, sq, k.shape[1])


def _join(parts):
    op, (a, f), (b, g) = parts
    combine = np.logical_and if op in ("&", "and") else np.logical_or
    return f"({a} {op} {b})", lambda q, k, sq: combine(f(q, k, sq), g(q, k, sq))


def _deeper_masks(masks):
    return st.one_of(
        st.tuples(st.sampled_from(["&", "|", "and", "or"]), masks, masks).map(_join),
        st.tuples(st.sampled_from(["~", "not "]), masks).map(
            lambda p: (f"({p[0]}{p[1][0]})", lambda q, k, sq: ~p[1][1](q, k, sq))
        ),
    )


masks = st.recursive(st.one_of(comparisons, comparisons, named()), _deeper_masks, max_leaves=5)
lengths = st.tuples(st.integers(0, 24), st.integers(9, 24))
quick = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)


def check(text, meaning, seqlen_q, seqlen_k):
    q, k = mask_oracle.positions(seqlen_q, seqlen_k)
    expr = fm.parse(text)
    assert fm.parse(str(expr)) == expr and str(fm.parse(str(expr))) == str(expr)
    wanted = np.broadcast_to(meaning(np.maximum(q, 0), k, seqlen_q), (seqlen_q, seqlen_k)) & (q >= 0)
    runs = expr.runs(seqlen_q, seqlen_k)
    np.testing.assert_array_equal(runs.to_dense(), wanted)
    assert runs.equals(fm.MaskedRuns.from_dense(wanted))
    np.testing.assert_array_equal(np.broadcast_to(expr.visible(q, k, seqlen_q, seqlen_k), wanted.shape), wanted)


@quick
@given(masks, lengths)
def test_random_masks_mean_what_brute_force_says(mask, sizes):
    check(*mask, *sizes)


@quick
@given(comparisons, st.tuples(st.integers(1, 40), st.integers(1, 40)))
def test_random_predicates_mean_what_brute_force_says(comparison, sizes):
    check(*comparison, *sizes)


# What is promised to be solved rather than evaluated: linear in q with any arithmetic in k, floor division, abs, min,
# max around it.
divisors_of_k_terms = st.sampled_from([("3", lambda q, k: 3), ("-5", lambda q, k: -5)])
k_terms = st.recursive(
    st.one_of(numbers, st.just(k_term)),
    lambda t: st.one_of(
        st.tuples(st.sampled_from("+-*"), t, t).map(_operation),
        st.tuples(st.sampled_from(["//", "%"]), t, divisors_of_k_terms).map(_division),
    ),
    max_leaves=4,
)


@st.composite
def solvable(draw):
    (slope, f), (shift, g), (bound, h) = draw(k_terms), draw(k_terms), draw(k_terms)
    op = draw(operators)
    text, value = f"({slope}) * q + ({shift})", lambda q, k: f(q, k) * q + g(q, k)
    shape = draw(st.sampled_from(["plain", "floor", "nested", "abs", "max", "min"]))
    inner = value
    if shape in ("floor", "nested"):
        divisor = draw(st.sampled_from([1, 4, 9, -3]))
        text, value = f"({text}) // {divisor}", lambda q, k: inner(q, k) // divisor
    if shape == "nested":
        second = value
        text, value = f"abs({text} - k // 2) // 2", lambda q, k: abs(second(q, k) - k // 2) // 2
    if shape == "abs":
        text, value = f"-3 * abs({text})", lambda q, k: -3 * abs(inner(q, k))
    if shape in ("max", "min"):
        pick = np.maximum if shape == "max" else np.minimum
        text, value = f"{shape}({text}, 2 * q - 7, k)", lambda q, k: pick(pick(inner(q, k), 2 * q - 7), k)
    return f"({text} {op} {bound})", lambda q, k, sq: COMPARE[op](value(q, k), h(q, k))


@quick
@given(solvable(), st.tuples(st.integers(1, 40), st.integers(1, 40)))
def test_linear_predicates_are_solved_and_right(predicate, sizes):
    evaluated, solve._evaluated = solve._evaluated, None  # calling it would fail
    try:
        check(*predicate, *sizes)
    finally:
        solve._evaluated = evaluated


@pytest.mark.parametrize(
    "text, canonical",
    [
        ("causal", "causal"),
        ("  causal\n& full ", "causal & full"),
        ("causal and not (k<16 or full)", "causal & ~((k < 16) | full)"),
        (
            "causal&document(4,  3)&(q-k<512)|causal&(k<16)",
            "causal & document(4, 3) & (q - k < 512) | causal & (k < 16)",
        ),
        ("(causal & full) & (full & (k < 3))", "causal & full & full & (k < 3)"),
        ("(causal | full) & full", "(causal | full) & full"),
        ("not not causal", "~~causal"),
        ("~(q == k)", "~(q == k)"),
        ("0 <= q-k < 3", "0 <= q - k < 3"),
        ("q-(k-1) < 2*(q+1)//(3*k+1)", "q - (k - 1) < 2 * (q + 1) // (3 * k + 1)"),
        ("q*(k//2)%3 == -(q+k)", "q * (k // 2) % 3 == -(q + k)"),
        ("abs(q-k)<=max(1, k, -5)", "abs(q - k) <= max(1, k, -5)"),
        ("q - -k < +4_096", "q - -k < 4096"),
        ("document(repeat(4, 3), 2*5)", "document(repeat(4, 3), 10)"),
        (
            "share_question((4,repeat(3, 2)),repeat((2,2),3))",
            "share_question((4, repeat(3, 2)), repeat((2, 2), 3))",
        ),
        ("share_question((4,), (5,))", "share_question((4,), (5,))"),
        ("frames(8, 16, 1)", "frames(8, 16, 1, ())"),
        ("frames(8, 16, window=1, keyframes=(0, 4))", "frames(8, 16, 1, (0, 4))"),
        ("frames(8, 16, 1, 3)", "frames(8, 16, 1, (3,))"),
        ("hash_sparse(4)", "hash_sparse(4, 0)"),
        ("band(-1, 2)", "band(-1, 2)"),
        ("True | False", "full | ~full"),
    ],
)
def test_canonical_text(text, canonical):
    assert str(fm.parse(text)) == canonical
    assert fm.parse(canonical) == fm.parse(text)


def test_expressions_combine_like_their_texts():
    a, b = fm.parse("causal | (k < 4)"), fm.parse("document(4, 4)")
    assert str(a & b) == "(causal | (k < 4)) & document(4, 4)"
    assert str(~a | b) == "~(causal | (k < 4)) | document(4, 4)"
    assert (a & b).runs(8).equals(a.runs(8) & b.runs(8)) and (~a).runs(8).equals(~a.runs(8))
    assert fm.mask(a & b, 8).equals(fm.mask("(causal | (k < 4)) & document(4, 4)", 8))


def test_queries_before_the_first_key_see_nothing_even_under_not():
    for text in ("full", "~causal", "not (q >= 0)", "q < 3", "k < q + 100"):
        runs = fm.parse(text).runs(7, 4)
        assert not runs.to_dense()[:3].any(), text
    assert fm.mask("~causal", 7, 4).to_dense()[0, 0, 3:].sum() == 6


def test_repeat_is_the_items_written_out():
    assert fm.mask("document(repeat(2, 3), 4)", 10).equals(fm.mask("document(2, 2, 2, 4)", 10))
    nested = fm.mask("share_question(repeat((2, repeat(1, 2)), 2))", 8)
    assert nested.equals(fm.mask("share_question((2, 1, 1), (2, 1, 1))", 8))
    assert fm.mask("document(4, repeat(1, 0))", 4).equals(fm.mask("document(4)", 4))


@pytest.mark.parametrize(
    "text, tokens, notes",
    [
        ("causal", 8, []),
        ("q + 1 <= k", 8, ["row 7 sees nothing"]),
        ("share_question((4, 3, 2, 5))", 16, [
            "share_question describes 14 of 16 tokens: "
            "the last 2 are padding, which sees nothing and is seen by nobody",
            "rows 14…15 see nothing",
        ]),
        ("document(4, 4) & ~(q == 1)", 8, ["row 1 sees nothing"]),
        ("~(q % 3 == 0)", 16, ["rows 0, 3, 6, 9 and 2 more see nothing"]),
        ("document(3, 2) | full", 6, [
            "document describes 5 of 6 tokens: the last 1 are padding, which sees nothing and is seen by nobody"]),
    ],
)  # fmt: skip
def test_notes(text, tokens, notes):
    expr = fm.parse(text)
    assert expr.notes(tokens) == notes
    assert expr.notes(tokens, tokens, expr.runs(tokens)) == notes


def test_not_representable_lists_every_column():
    with pytest.raises(fm.NotRepresentableError) as caught:
        fm.mask("(q - k) % 4 == 0", 16)
    runs = fm.parse("(q - k) % 4 == 0").runs(16)
    assert caught.value.columns == np.flatnonzero(runs.counts > 2).tolist() and caught.value.max_runs == 5
    assert isinstance(caught.value, ValueError) and len(str(caught.value)) < 600


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
        ("causal" + " " * (64 * 1024), "the text has 65,542 bytes and may have 65,536"),
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


def test_canonical_text_always_parses():
    ones = fm.parse(f"document({'1,' * 31999}1)")
    assert str(ones) == "document(repeat(1, 32000))" and fm.parse(str(ones)) == ones
    for text in (
        f"document({'1,2,' * 15999}1)",
        f"share_question((3{',4' * 70},5),{'(2,1),' * 100}(7,8))",
        f"document({(('1,' * 70) + ('2,' * 70)) * 220}1)",
        f"document({('repeat(1,1),') * 5000}1)",
        f"frames(9, 9, 1, ({','.join(map(str, range(9000)))}))",
    ):
        expr = fm.parse(text)
        assert len(str(expr)) <= lexer.MAX_TEXT_BYTES and fm.parse(str(expr)) == expr
    for text, message in (
        ("&".join(["False"] * 1500), "in canonical form, .* 2,000 operators and calls"),
        (f"{'|'.join(['(q<123456789012345678)'] * 990)}|document({','.join(map(str, range(10000, 17000)))})", "bytes"),
    ):
        with pytest.raises(fm.MaskSyntaxError, match=message):
            fm.parse(text)


def test_messages_quote_a_long_expression_in_part():
    long = " + ".join(["q * k * 1048576"] * 300)
    for text in (f"{long} * 1000000000000 < k", f"({long}) // 0 < k", f"k // (k - k) + {long} < 9", f"{long} == 7"):
        with pytest.raises(fm.MaskSyntaxError) as caught:
            fm.parse(text).runs(1 << 20)
        assert len(str(caught.value)) < 500


def test_the_deepest_texts_can_be_used():
    nested = "full"
    for level in range(98):
        nested = f"(causal {'&|'[level % 2]} {nested})" if level % 3 else f"~({nested})"
    expr = fm.parse(nested)
    assert fm.parse(str(expr)) == expr
    assert expr.runs(9).to_dense().tolist() == np.broadcast_to(
        expr.visible(*mask_oracle.positions(9, 9), 9, 9), (9, 9)
    ).tolist()
    term = "q"
    for level in range(97):
        term = f"(k {'+-'[level % 2]} {term})"
    assert fm.parse(f"{term} <= k").runs(9).visible_pairs() > 0


def test_long_flat_texts_are_fine():
    rects = " | ".join(f"rect({i}, {i + 1}, 0, 4)" for i in range(1000))
    assert fm.parse(rects).runs(1000).visible_pairs() == 4000
    sums = "q < " + " + ".join(["k"] * 2000)
    assert fm.parse(sums).runs(3).visible_pairs() == 6 and str(fm.parse(sums)) == sums
    comparisons = " & ".join(f"(q >= {i})" for i in range(300))
    assert fm.parse(comparisons).runs(301).visible_pairs() == 2 * 301
    documents = f"document({', '.join(['1'] * 16000)})"
    assert fm.parse(documents).runs(16000).visible_pairs() == 16000


def test_a_recursion_or_memory_error_of_the_parser_is_a_syntax_error(monkeypatch):
    for error in (RecursionError, MemoryError):

        def fail(*_, **__):
            raise error

        monkeypatch.setattr("flashmask_core.masks.language.ast.parse", fail)
        with pytest.raises(fm.MaskSyntaxError, match="nested too deeply"):
            fm.parse("causal")


WORDS = "q k causal document repeat abs min ( ) ( ) , + - * // % & | ~ and or not < <= == 0 1 7 = True lambda . [ 'x"


@settings(max_examples=EXAMPLES, deadline=None, database=None)
@given(
    st.one_of(
        st.text(max_size=40),
        st.lists(st.sampled_from(WORDS.split()), max_size=16).map(" ".join),
    )
)
def test_any_text_is_a_mask_or_a_mask_syntax_error(text):
    try:
        expr = fm.parse(text)
    except fm.MaskSyntaxError as error:
        assert len(str(error)) < 1200
    else:
        assert fm.parse(str(expr)) == expr


def test_without_closed_form_distinct_rows_and_columns_are_evaluated_once():
    shares = []
    runs = fm.parse("q % 4 * (k % 4) == 2").runs(1 << 20, 1024, progress=shares.append)
    assert shares[-1] == 1.0 and runs.counts.max() <= 1 << 19
    runs = fm.parse("(q * q + 3 * k) % 5 == 1").runs(1000)
    q, k = mask_oracle.positions(1000, 1000)
    assert (runs.to_dense() == ((q * q + 3 * k) % 5 == 1)).all()
    runs = fm.parse("(q // 16384) * (k // 16384) % 7 == 0").runs(1 << 20)
    assert runs.visible_pairs() == sum(a * b % 7 == 0 for a in range(64) for b in range(64)) << 28


def test_work_without_closed_form_can_be_stopped():
    class Stop(Exception):
        pass

    def stop(share):
        raise Stop

    with pytest.raises(Stop):
        fm.parse("q * k % (q + 7) == 1").runs(64, progress=stop)


def test_what_is_too_large_without_closed_form_is_refused_at_once():
    with pytest.raises(fm.MaskSyntaxError, match="evaluated on 1,099,511,627,776 pairs; the limit is 268,435,456"):
        fm.parse("q * k % (q + 7) == 1").runs(1 << 20)
    with pytest.raises(fm.MaskSyntaxError, match="masked runs at this length, and at most 33,554,432 are kept"):
        fm.parse("q % 2 == k % 2").runs(1 << 16)


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
