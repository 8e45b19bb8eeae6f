"""The mask language: canonical text, notes, lengths, deep and long texts, what has no closed form."""

import mask_oracle
import numpy as np
import pytest

import flashmask_core as fm
from flashmask_core.masks import lexer


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
