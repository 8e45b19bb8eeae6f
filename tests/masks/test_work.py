"""The budget of one text: what is refused, that everyday masks are far from it, and that equal parts are made once."""

import pytest

import flashmask_core as fm
from flashmask_core.masks import expr, work
from flashmask_core.masks.patterns import PATTERNS, Pattern

MILLION = 1 << 20


def joined(operator: str, term: str, count: int) -> str:
    return f" {operator} ".join(term.replace("#", str(i + 1)) for i in range(count))


@pytest.mark.parametrize(
    "text",
    [
        joined("|", "rect(#0, #5, 0, 1048576)", 900),
        joined("&", "(q != k + #)", 200),
        joined("|", "hash_sparse(3, #)", 800),
        joined("&", "~random_eviction(3, #)", 300),
        joined("<", "abs(q - k) < #", 100),
    ],
)
def test_far_too_much_work_is_refused_at_once(text, monkeypatch):
    monkeypatch.setattr(Pattern, "build", None)  # calling it would fail
    with pytest.raises(fm.MaskSyntaxError, match="more work than the 6 seconds .* shorter sequence or fewer terms"):
        fm.parse(text).runs(MILLION)


@pytest.mark.parametrize(
    "text",
    [
        joined("|", "rect(#0, #5, 0, 4096)", 20),  # many runs to join
        joined("&", "~rect(#0, #5, 0, 4096)", 20),
        joined("&", "((q * k) % # != 0)", 4),  # many pairs to evaluate, and many runs of each
        "q * k % (q + 7) == 1",
        joined("|", "hash_sparse(3, #)", 6),
        joined("&", "(q < k + #)", 60),
        f"abs({joined('+', 'q', 99)} - {joined('+', 'k', 999)}) < 7",
        "min(abs(abs(q - k) - 3), abs(abs(q - k) - 9), abs(abs(q - k) - 27), abs(abs(q - k) - 81)) < 2",
        f"{joined('+', 'q % #', 40)} < {joined('+', 'k % #', 40)}",
        joined("|", "global_sliding_window(#, 3, 4)", 20),
    ],
)
def test_every_kind_of_work_is_counted(text, monkeypatch):
    monkeypatch.setattr(work, "MAX_WORK", 10**7)
    with pytest.raises(fm.MaskSyntaxError, match="more work than"):
        fm.parse(text).runs(4096)
    monkeypatch.setattr(work, "MAX_WORK", 10**11)
    assert fm.parse(text).runs(256).seqlen_k == 256


def spent(text: str, seqlen: int, monkeypatch) -> int:
    used = []
    spend = work.Work.spend
    monkeypatch.setattr(work.Work, "spend", lambda self, units: (used.append(units), spend(self, units)))
    fm.parse(text).runs(seqlen)
    return sum(used)


def test_everyday_masks_of_a_million_tokens_stay_far_below(monkeypatch):
    for text in (
        "causal & document(2481, 1388, 1978, 2345) & (q - k < 512) | causal & (k < 16)",
        "causal & (q - k < 4096) | causal & (k < 16)",
        "causal & (abs(q // 64 - k // 64) <= 3)",
        "causal & (q != k) & ~padding(999999)",
        "hash_sparse(1024, 7)",
    ):
        assert spent(text, MILLION // 16, monkeypatch) < work.MAX_WORK / 16 / 4, text
    for name, pattern in PATTERNS.items():
        arguments = ", ".join(map(str, pattern.example(MILLION // 16)))
        text = f"causal & {name}({arguments})" if arguments else name
        assert spent(text, MILLION // 16, monkeypatch) < work.MAX_WORK / 16 / 4, text


def test_chains_that_cannot_be_solved_do_not_fill_the_memory_first():
    sums, smallest = (joined(operator, "abs(q - k * #)", 300) for operator in "+,")
    for text in (sums, f"min({smallest})", joined("+", "q // #", 300)):
        with pytest.raises(fm.MaskSyntaxError, match="has no closed form in q|more work than"):
            fm.parse(f"{text} < 9").runs(MILLION)


def test_equal_parts_are_made_once(monkeypatch):
    built, solved = [], []
    build, solve = Pattern.build, expr.solve_comparison
    monkeypatch.setattr(Pattern, "build", lambda self, *lengths: (built.append(self.name), build(self, *lengths))[1])
    monkeypatch.setattr(expr, "solve_comparison", lambda *given: (solved.append(given), solve(*given))[1])
    text = "causal & document(4, 4) & (q < 6) | ~(causal & document(4, 4) & (q < 6)) & (q  <  6) & (q<6)"
    runs = fm.parse(text).runs(8)
    assert sorted(built) == ["causal", "document"] and len(solved) == 1
    monkeypatch.undo()
    assert runs.equals(fm.parse("q < 6").runs(8))
