"""The costs of wider, narrower and passes."""

import pytest

import flashmask_core as fm
from flashmask_core.bench import ways_on as ways_module
from flashmask_core.bench.ways_on import ways_on


def test_costs_of_two_global_tokens_in_the_middle():
    fit = fm.fit(fm.parse("causal & ((q - k < 512) | (k // 2 == 2000) | (q // 2 == 2000))").runs(8192))
    narrower, wider, passes = ways_on(fit, heads=32, batch=4)
    assert [way.name for way in (narrower, wider, passes)] == ["narrower", "wider", "passes"]
    assert narrower.changed_pairs == fit.narrower_pairs > 0 and wider.changed_pairs == fit.wider_pairs
    assert (passes.passes, passes.changed_pairs) == (2, 0) and len(passes.masks) == 2
    for way in (narrower, wider, passes):
        counts = [fm.classify_tiles(mask).counts[0, 0].tolist() for mask in way.masks]
        assert way.computed_tiles == sum(partial + full for _, partial, full in counts)
    assert narrower.computed_tiles < passes.computed_tiles < wider.computed_tiles
    assert narrower.forward_ms < passes.forward_ms and narrower.backward_ms > narrower.forward_ms
    small = ways_on(fit, 64, 64)[0]
    assert small.computed_tiles > narrower.computed_tiles
    assert small.forward_ms == pytest.approx(narrower.forward_ms / 4)  # a batch of 1, whatever the tiles on the screen


def test_a_mask_that_fits_and_too_many_passes(monkeypatch):
    fit = fm.fit(fm.mask("causal", 256))
    assert [(way.passes, way.changed_pairs, way.computed_tiles) for way in ways_on(fit)] == [(1, 0, 3)] * 3
    monkeypatch.setattr(ways_module, "MAX_COUNTED_COLUMNS", 100)
    passes = ways_on(fm.fit(fm.parse("(q + k) % 2 == 0").runs(64)))[2]
    assert (passes.masks, passes.passes, passes.computed_tiles, passes.forward_ms) == (None, 31, None, None)
