"""The other way round: which text gives this mask?

    recognise(mask).text                        # "sliding_window(512) & document(2481, 1388, 1978, 2345)"
    recognise(mask, nearest=True)               # not exact, say: .text "causal", .extra_pairs 3

A mask is taken for `&` of the tightest simple masks around it, for the same with something added by `|` (a sink, global
tokens), for a named pattern, and at last for a few rectangles and slanted pieces. Every guess is worked out and held
against the mask, so a text that is called exact gives the mask bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .compare import Difference, compare, inside, runs_of
from .errors import MaskSyntaxError
from .language import parse
from .outline import Outline, bounds, patterns
from .pieces import list_text, pieces
from .runs import MaskedRuns

MAX_PIECES = 64
_SLANTED = ("causal", "sliding_window", "band")


@dataclass(frozen=True, eq=False)
class Recognised:
    """A text and how the mask differs from what it gives: `difference.extra` is what the mask shows beyond the text."""

    text: str
    difference: Difference

    @property
    def exact(self) -> bool:
        return self.difference.equal

    @property
    def changed_pairs(self) -> int:
        """Pairs on which the mask and the text disagree."""
        return self.difference.extra_pairs + self.difference.missing_pairs


def recognise(mask, nearest: bool = False) -> Recognised | None:
    """The shortest text found that gives exactly this mask; None if none was found.

    mask: a ColumnMask with B = Hm = 1, MaskedRuns, or bool [Sq, Sk], True where the query may attend.
    nearest: where no text is exact, give the simple one that differs in the fewest pairs instead of None.
    """
    search = _Search(runs_of(mask))
    exact = search.exact()
    if exact is not None:
        return Recognised(exact, compare(search.runs, search.runs))
    return search.nearest() if nearest else None


class _Search:
    def __init__(self, runs: MaskedRuns):
        self.runs, self.pairs = runs, runs.visible_pairs()
        self.made: dict[str, MaskedRuns | None] = {}

    def make(self, text: str) -> MaskedRuns | None:
        """The runs of a text, worked out once; None where the text does not go with the lengths."""
        if text not in self.made:
            try:
                self.made[text] = parse(text).runs(self.runs.seqlen_q, self.runs.seqlen_k)
            except (MaskSyntaxError, ValueError):
                self.made[text] = None
        return self.made[text]

    def exact(self) -> str | None:
        for text, found in (("full", self.make("full")), ("~full", self.make("~full"))):
            if self.runs.equals(found):
                return text
        if self.pairs == 0:
            return None
        outline = Outline(self.runs)
        around, named = bounds(outline), patterns(outline)
        for text in sorted(around + named, key=len):
            if self._is_it(self.make(text)):
                return str(parse(text))
        chunks = self._holding([text for text in named if text.startswith("chunk_causal")])
        texts = [self._joined(around + chunks, self.runs, self.runs)]
        if not any(texts):
            texts = self._with_additions(outline, around)
        if not any(texts):
            texts = self._in_pieces(around)
        texts = [str(parse(text)) for text in texts if text and self._is_it(self.make(text))]
        return min(texts, key=lambda text: (len(text), text), default=None)

    def _is_it(self, found: MaskedRuns | None) -> bool:
        return found is not None and found.visible_pairs() == self.pairs and found.equals(self.runs)

    def _holding(self, texts: list[str]) -> list[str]:
        """The texts that show all that the mask shows."""
        return [text for text in texts if (found := self.make(text)) is not None and inside(self.runs, found)]

    def _joined(self, texts: list[str], least: MaskedRuns, most: MaskedRuns) -> str | None:
        """Some of the texts joined by &, so that the result lies between two masks; all of them show `least`."""
        made = {text: found for text in texts if (found := self.make(text)) is not None}
        for text in sorted(made, key=len):
            if inside(made[text], most):
                return text
        if len(made) < 2 or not inside(_all_of(list(made.values())), most):
            return None
        for text in sorted(made, key=len, reverse=True):
            rest = [found for other, found in made.items() if other != text]
            if rest and inside(_all_of(rest), most):
                del made[text]
        return " & ".join(sorted(made, key=texts.index))

    def _with_additions(self, outline: Outline, around: list[str]) -> list[str | None]:
        """X | C with the largest C of a few simple kinds, and Y & (X | C) with a Y around the whole mask."""
        texts = []
        hidden_from = int(self.runs.starts.min(initial=self.runs.seqlen_q)) + outline.at.offset
        sink, everyone = outline.seen_causally, outline.seen_by_all
        added = [f"causal & (k < {sink})"] if sink else []
        added += [f"(k < {everyone})"] if everyone else []
        added += [f"global_tokens({min(everyone, hidden_from)})"] if min(everyone, hidden_from) > 0 else []
        added += [f"(q < {hidden_from})"] if hidden_from > outline.at.first_q else []
        for addition in added:
            texts.append(self._rest_and(addition, around, self.runs))
        for outer in ([t] for t in around if t.startswith(("causal", "document", "padding"))):
            texts.append(self._under(outer, around))
        both = [t for t in around if t.startswith(("causal", "document"))]
        texts.append(self._under(both, around) if len(both) > 1 else None)
        return texts

    def _rest_and(self, addition: str, around: list[str], most: MaskedRuns, least: MaskedRuns | None = None):
        """X | addition for a mask between two; X is around what the addition leaves over."""
        least = self.runs if least is None else least
        rest = least & ~self.make(addition)
        if rest.visible_pairs() == 0:
            return None
        outline = Outline(rest)
        inner = bounds(outline)
        joined = self._joined([*dict.fromkeys(around + inner)], rest, most)
        if joined and addition.startswith("global_tokens") and " & " not in joined:
            left, right = outline.farthest, -outline.nearest
            return f"global_sliding_window({addition[14:-1]}, {left}, {right})"
        return f"{joined} | {addition}" if joined else None

    def _under(self, outer: list[str], around: list[str]) -> str | None:
        """outer & (X | (k < s))"""
        frame = _all_of([self.make(text) for text in outer])
        lacking = Outline(frame & ~self.runs).seen
        sink = int(lacking.argmax()) if lacking.any() else 0
        if not sink:
            return None
        inner = self._rest_and(f"(k < {sink})", [], self.runs | ~frame)
        return f"{' & '.join(outer)} & ({inner})" if inner else None

    def _in_pieces(self, around: list[str]) -> list[str]:
        texts = []
        parts = pieces(self.runs, MAX_PIECES)
        if parts:
            texts.append(" | ".join(parts))
        documents = [text for text in around if text.startswith("document")]
        frames = [[text] for text in around] + [[a, b] for b in documents for a in around if a.startswith(_SLANTED)]
        for outer in frames:
            parts = pieces(_all_of([self.make(text) for text in outer]) & ~self.runs, MAX_PIECES)
            if parts:
                hidden = parts[0] if len(parts) == 1 and parts[0].startswith("rect") else f"({' | '.join(parts)})"
                texts.append(f"{' & '.join(outer)} & ~{hidden}")
        return texts

    def nearest(self) -> Recognised | None:
        """Of the simple masks, with the numbers that most columns have, the one that differs in the fewest pairs."""
        texts = ["full", "~full", "causal"]
        if self.pairs:
            outline = Outline(self.runs)
            texts += _usual(outline) + bounds(outline) + patterns(outline)
            joined = " & ".join(text for text in bounds(outline))
            texts += [joined] if joined else []
        found = [(text, made) for text in dict.fromkeys(texts) if (made := self.make(text)) is not None]
        told = [Recognised(text, compare(self.runs, made)) for text, made in found]
        best = min(told, key=lambda one: (one.changed_pairs, len(one.text)))
        return Recognised(str(parse(best.text)), best.difference)


def _usual(o: Outline) -> list[str]:
    """Masks with the numbers that most columns agree on."""
    k, seen, size = o.k, o.seen, o.runs.seqlen_k
    reach, ahead = ((x - k)[seen] for x in (o.behind, o.first))
    inner = o.behind[seen] < size
    texts = []
    if inner.any():
        window, right = _mode(reach[inner]), -_mode(ahead[inner])
        if window > 0:
            texts += [f"sliding_window({window})", f"band({window - 1}, {right})"]
    often = np.bincount(np.maximum(o.behind[seen], 0)) >= 4  # what so many columns share is no chance
    ends = np.flatnonzero(often).tolist()
    starts = [0, *ends[:-1]]
    if 1 < len(ends) <= 512:
        lengths = [end - start for start, end in zip(starts, ends)]
        texts += [f"{kind}({list_text(lengths)})" for kind in ("causal_document", "document")]
    return texts


def _mode(values) -> int:
    least = int(values.min())
    return int(np.bincount(values - least).argmax()) + least


def _all_of(masks: list[MaskedRuns]) -> MaskedRuns:
    return masks[0].hidden_union(*masks[1:]) if len(masks) > 1 else masks[0]
