"""The mask language against brute force: random expressions, and predicates that have to be solved in closed form."""

import os

import mask_oracle
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flashmask_core as fm
from flashmask_core.masks import solve
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
