"""The gallery: what hangs there, at every length, with the numbers of the library."""

import json
from urllib.parse import parse_qsl

import numpy as np
import pytest
from page_tools import html_of

import flashmask_core as fm
from flashmask_core.masks.patterns import PATTERNS
from pages.ui.gallery.cards import LEAST_TOKENS, MOST_TOKENS, drawn_tokens, example_cards, pattern_cards, wall_data
from pages.ui.link import Screen


@pytest.mark.parametrize(
    "query", [{}, {"n": 1}, {"n": 701, "tile": "3x7"}, {"n": 2**20, "rule": "paper"}, {"n": 5, "nk": 300}], ids=str
)
def test_the_gallery_opens_at_every_length(open_app, query):
    app = open_app("gallery", **query)
    assert not app.exception and "fm-error" not in html_of(app)


@pytest.mark.parametrize("n", [LEAST_TOKENS, 10, 100, 1000, MOST_TOKENS])
def test_every_pattern_hangs_in_the_gallery_with_the_numbers_of_the_library(n):
    screen = Screen(seqlen_q=n, block_m=4, block_n=8)
    cards = pattern_cards(screen)
    assert [card.title for card in cards] == list(PATTERNS)
    data = wall_data((*cards, *example_cards()), "exact")
    length = int(np.frombuffer(data, np.uint32, 1)[0])
    said = json.loads(data[4 : 4 + length])["cards"]
    assert sum(one["bytes"] for one in said) == len(data) - 4 - length
    for card, one in zip((*cards, *example_cards()), said):
        mask = fm.mask(card.mask, card.seqlen_q, card.seqlen_k)
        share = 100 * int(mask.visible_pairs()) / (mask.seqlen_q * mask.seqlen_k)
        rho = 100 * fm.classify_tiles(mask, card.block_m, card.block_n).rho.item()
        assert float(one["density"][:-2]) == pytest.approx(share, abs=0.06), card.title
        assert float(one["rho"][:-2]) == pytest.approx(rho, abs=0.06), card.title
        assert Screen.from_query(_query(one["compose"])) == (Screen(**card.values), [])


def _query(address: str) -> dict[str, str]:
    return dict(parse_qsl(address.removeprefix("./?")))


def test_pictures_have_an_even_number_of_tokens_within_limits():
    lengths = [drawn_tokens(Screen(seqlen_q=n)) for n in (1, 9, 701, 2**20)]
    assert lengths == [LEAST_TOKENS, LEAST_TOKENS, 700, MOST_TOKENS]
