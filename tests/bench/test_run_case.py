"""A whole case on a stand-in device: the control flow, the checks, the clock and the rows are real."""

import time
from dataclasses import replace

import pytest
import torch
from cpu_stand_ins import STREAM, ThreadDevice
from stand_ins import ENGINES, LATE_MS, attention, engine, no_number

import flashmask_core as fm
from flashmask_core.bench import correctness
from flashmask_core.bench.apart import Inputs, Tried, reason_of, try_here
from flashmask_core.bench.config import BenchCase
from flashmask_core.bench.measure import Quartiles, flops, tflops, times_ms
from flashmask_core.bench.peaks import doubt, peak_tflops, unknown_peak
from flashmask_core.bench.providers import PROVIDERS, _cudnn_fault
from flashmask_core.bench.result import PLACES, DeviceInfo, dumps
from flashmask_core.bench.run_case import CaseRun, CudaFault

BY_NAME = {provider.name: provider for provider in ENGINES}
CASE = BenchCase(
    "causal_document(20, 30, 14)", 64, heads=4, kv_heads=2, head_dim=16, dtype="bfloat16", batch=2, warmup_ms=1,
    repeat_ms=5,
)  # fmt: skip
WHERE = DeviceInfo("none")


def run(monkeypatch, case, *providers, excluded=(), device=None, where=WHERE):
    """(rows, steps) of a case, every engine tried in this process."""
    providers = [BY_NAME.get(p, p) for p in providers]
    device = device or ThreadDevice()
    for provider in providers:
        monkeypatch.setitem(PROVIDERS, provider.name, provider)

    def try_provider(case, name):
        try:
            return try_here(case, PROVIDERS[name], device)
        except Exception as error:
            return Tried("failed", reason_of(error, device))

    case = replace(case, providers=tuple(p.name for p in providers))
    rows, steps = [], []
    CaseRun(case, where, rows.append, lambda *step: steps.append(step), device, excluded, try_provider).run()
    for row in rows:
        dumps(row.to_json())
    return rows, steps


def test_right_providers_in_both_layouts_pass(monkeypatch):
    case = replace(CASE, passes=("forward", "backward", "both"))
    rows, steps = run(monkeypatch, case, "right", "right_bhsd")
    assert [(r.provider, r.direction, r.status, r.check) for r in rows] == [
        (p, d, "ok", "passed") for p in ("right", "right_bhsd") for d in ("forward", "backward", "both")
    ]
    forward, backward, both = rows[:3]
    assert set(forward.errors) == {"out"} and set(backward.errors) == {"dq", "dk", "dv"}
    assert set(both.errors) == {"out", "dq", "dk", "dv"}
    for error in both.errors.values():
        assert 0 < error.max_error <= error.limit and error.reference_max > 0
        assert len(error.places) == 64 and max(error.places) == pytest.approx(error.max_error, rel=0.01)
    assert forward.lower_quartile_ms <= forward.median_ms <= forward.upper_quartile_ms and forward.repetitions >= 3
    mask = fm.mask(CASE.mask, 64)
    assert forward.mask_bytes == mask.nbytes and forward.peak_memory_bytes == 2 * 64 * 4 * 16 * 2
    assert (forward.dense_mask_bytes, forward.vector_bytes) == (64 * 64, 4 * 4 * 64)
    assert forward.density == mask.visible_pairs().item() / 64**2 and forward.rho == 0
    assert forward.tflops_rho == pytest.approx(4 * 2 * 4 * 64 * 64 * 16 / forward.median_ms / 1e9)
    pairs = 4 * 2 * 4 * 16 * mask.visible_pairs().item()
    assert backward.tflops_density == pytest.approx(2.5 * pairs / backward.median_ms / 1e9)
    assert both.tflops_density == pytest.approx(3.5 * pairs / both.median_ms / 1e9)
    fractions = [fraction for _, _, fraction in steps]
    assert fractions == sorted(fractions) and fractions[0] == 0 and fractions[-1] < 1
    timed = [provider for provider, message, _ in steps if "timing" in message]
    assert timed == ["right", "right_bhsd", "right_bhsd", "right", "right", "right_bhsd"], "the order rotates"


def test_work_that_is_still_queued_is_timed(monkeypatch):
    """50 ms of device work that a call only queues: the host sees next to nothing, the rows see all of it."""
    case = replace(CASE, check=False, rounds=2, passes=("forward",))
    rows, _ = run(monkeypatch, case, "late", "right")
    q, k, v, _ = Inputs(case, "cpu").tensors
    STREAM.wait()
    call = BY_NAME["late"].build(case, case.build_mask()).call
    host_ms = []
    for _ in range(5):
        began = time.perf_counter()
        call(q, k, v)
        host_ms.append((time.perf_counter() - began) * 1e3)
    assert min(host_ms) < LATE_MS / 2, "it returns at once"
    assert rows[0].lower_quartile_ms >= 45, "and is reported by its work"
    assert rows[1].median_ms < rows[0].median_ms


def test_calls_are_warmed_up_apart_and_the_cache_is_flushed_before_each():
    device, calls = ThreadDevice(), []

    def call():
        calls.append(device.flushed)
        STREAM.run(lambda: time.sleep(2e-3))

    found = times_ms(device, call, warmup_ms=6, repeat_ms=10, about_ms=2)
    assert len(found) == 5 and device.flushed == 5
    assert calls == [0, 0, 0, 1, 2, 3, 4, 5], "three warm-up calls, then a flush before every one that counts"
    assert all(time_ >= 2 for time_ in found)


@pytest.mark.parametrize(
    "name, at, words",
    [
        ("wrong", "forward", "failed: out is off by"),
        ("nan", "backward", "failed: dq holds NaN or infinity"),
    ],
)
def test_a_wrong_provider_is_marked_and_timed(monkeypatch, name, at, words):
    rows, _ = run(monkeypatch, CASE, name, "right")
    row = next(row for row in rows if row.direction == at)
    assert words in row.check and row.status == "ok" and row.median_ms > 0
    assert rows[2].check == "passed"


def test_an_error_knows_its_place(monkeypatch):
    case = replace(CASE, seqlen_q=640, seqlen_k=640, mask="causal", batch=1)
    rows, _ = run(monkeypatch, case, "nan")
    error = rows[1].errors["dq"]
    assert error.worst[:3] == (0, 0, 5) and error.places[0] == -1.0
    assert len(error.places) == PLACES and -1.0 not in error.places[1:]


def test_nan_of_cudnn_is_the_baselines_own_fault(monkeypatch):
    cudnn = engine("cudnn", no_number, _known_fault=_cudnn_fault)
    rows, _ = run(monkeypatch, replace(CASE, mask="causal", seqlen_q=192, seqlen_k=192), cudnn)
    assert rows[0].check == "passed", "the forward pass is right"
    assert rows[1].check.startswith("failed: dq holds NaN") and "S % 128 == 64" in rows[1].check
    assert "baseline's own fault" in rows[1].check
    rows, _ = run(monkeypatch, replace(CASE, mask="causal", seqlen_q=128, seqlen_k=128), cudnn)
    assert "baseline" not in rows[1].check, "not known at this length"
    names = [name for name, p in PROVIDERS.items() if p.known_fault(replace(CASE, seqlen_q=192, seqlen_k=192))]
    assert names == ["sdpa_dense_cudnn", "cudnn"]


def test_a_ceiling_counts_its_own_flops_and_is_not_checked(monkeypatch):
    rows, _ = run(monkeypatch, CASE, "ceiling")
    assert rows[0].check == "not run: computes another mask" and rows[0].errors is None
    assert (rows[0].rho, rows[0].density, rows[0].computes) == (0.0, 1.0, "full")


def test_every_sample_has_its_own_mask(monkeypatch):
    """Documents [100, 156] in the first sample and [156, 100] in the second; who takes the first for both is found."""
    masks = [fm.mask(f"causal & document({a}, {b})", 256) for a, b in ((100, 156), (156, 100))]
    both = fm.ColumnMask.stack(masks, "batch")
    case = BenchCase.of_mask(both, "two packings", batch=2, heads=2, head_dim=16, dtype="float32", repeat_ms=1)
    first = engine("first_for_both", visible_of=lambda mask: mask.to_dense()[:1])
    dense = replace(PROVIDERS["sdpa_dense_math"], name="dense_math")
    rows, _ = run(monkeypatch, case, "right", first, dense)
    checks = {(row.provider, row.direction): row.check for row in rows}
    assert checks["right", "forward"] == checks["right", "backward"] == checks["dense_math", "forward"] == "passed"
    assert checks["first_for_both", "forward"].startswith("failed: out is off")
    assert rows[2].errors["out"].worst[0] == 1, "in the second sample"


def test_a_sweep_builds_every_engines_mask_anew(monkeypatch):
    from flashmask_core.bench.sweep import sweep_cases

    shapes = []

    def visible_of(mask):
        shapes.append(mask.to_dense().shape[-1])
        return mask.to_dense()

    baseline = engine("baseline", visible_of=visible_of)
    base = BenchCase("causal & document(500, 524)", 1024, heads=1, head_dim=16, passes=("forward",), repeat_ms=1)
    for case in sweep_cases(base, "seqlen", (1024, 512, 1000)):
        rows, _ = run(monkeypatch, case, baseline)
        assert rows[0].check == "passed" and rows[0].seqlen_k == case.seqlen_k
    assert list(dict.fromkeys(shapes)) == [1024, 512, 1000]


def test_a_provider_that_cannot_be_built_is_a_failed_row(monkeypatch):
    case = replace(CASE, check=False)

    def refuses(mask):
        raise RuntimeError("No available kernel.\nAborting execution.")

    rows, _ = run(monkeypatch, case, engine("broken", visible_of=refuses), "right", "full")
    by_name = {(r.provider, r.direction): r for r in rows}
    assert by_name["broken", "forward"].reason == "RuntimeError: No available kernel."
    assert by_name["full", "backward"].reason.startswith("out of GPU memory: out of memory. Tried to allocate 8.00 GiB")
    assert "Take a smaller N" in by_name["full", "forward"].reason
    assert by_name["right", "forward"].status == "ok" and by_name["right", "forward"].check == "not run: not asked for"


def test_what_does_not_fit_is_skipped_before_anything_is_allocated(monkeypatch):
    device = ThreadDevice()
    device.free = 8 * 2**30
    monkeypatch.setattr("flashmask_core.bench.run_case.Inputs", lambda *a: pytest.fail("allocated"))
    case = BenchCase("causal", 96_000, heads=1, passes=("forward",))
    dense = replace(PROVIDERS["sdpa_dense_efficient"], name="dense")
    rows, _ = run(monkeypatch, case, dense, device=device)
    assert [r.status for r in rows] == ["skipped"] and "8,589,934,592 are free" in rows[0].reason
    assert "9,216,000,000 for its mask" in rows[0].reason and "in 1,536,000 bytes" in rows[0].reason
    assert (rows[0].dense_mask_bytes, rows[0].vector_bytes) == (9_216_000_000, 1_536_000)


def test_no_memory_is_never_written_as_0(monkeypatch):
    monkeypatch.setattr(ThreadDevice, "peak_bytes", lambda self: 0)
    rows, _ = run(monkeypatch, CASE, "right")
    assert {row.peak_memory_bytes for row in rows} == {None} and "not known" in rows[0].warning


def test_excluded_providers_and_an_excluded_reference_are_left_alone(monkeypatch):
    rows, steps = run(monkeypatch, CASE, "right", "right_bhsd", excluded=("right", "reference"))
    assert {r.provider for r in rows} == {"right_bhsd"}
    assert rows[0].check == "not run: the reference ended an earlier worker"
    assert "reference" not in {provider for provider, _, _ in steps}


def test_a_mask_that_cannot_be_built_fails_every_provider(monkeypatch):
    rows, _ = run(monkeypatch, replace(CASE, mask="document(100)"), "right", "wrong")
    assert [r.status for r in rows] == ["failed"] * 4 and "100" in rows[0].reason


def test_a_broken_context_ends_the_process(monkeypatch):
    class Broken(ThreadDevice):
        broken = False

        def synchronize(self):
            if Broken.broken:
                raise RuntimeError("CUDA error: an illegal memory access was encountered")

    def breaks(q, k, v, attend):
        Broken.broken = True
        raise RuntimeError("CUDA error: device-side assert")

    bad = engine("bad", breaks)
    monkeypatch.setitem(PROVIDERS, "bad", bad)
    case = replace(CASE, check=False, providers=("bad",))
    with pytest.raises(CudaFault, match="device-side assert .*illegal memory access"):
        CaseRun(case, WHERE, lambda row: None, lambda *step: None, Broken(), (), lambda *_: Tried()).run()


def test_long_sequences_are_compared_in_sampled_strips(monkeypatch):
    monkeypatch.setattr(correctness, "STRIP_PAIRS", 64 * 4)
    monkeypatch.setattr(correctness, "MAX_STRIPS", 5)
    case = replace(CASE, dtype="float32")
    mask = fm.mask(CASE.mask, 64)
    q, k, v, _ = Inputs(case, "cpu").tensors
    reference = correctness.make_reference(case, mask, q, k, v)
    assert reference.rows.tolist() == [r for a in (0, 15, 30, 45, 60) for r in range(a, a + 4)]
    out = attention(*(x.transpose(1, 2) for x in (q, k, v)), mask.to_dense()).transpose(1, 2)
    gradients = torch.autograd.grad(out, (q, k, v), reference.dout)
    for errors in correctness.compare(reference, out, gradients).values():
        assert correctness.verdict(errors) == "passed"
        assert max(e.max_error for e in errors.values()) < 1e-5
    places = correctness.compare(reference, out, None)["forward"]["out"].places
    assert [at for at, place in enumerate(places) if place is not None] == reference.rows.tolist(), "the others: no word"


def test_query_heads_with_masks_of_their_own():
    """Of grouped heads with a mask each, only those under the compared mask head are compared."""
    visible = torch.stack([fm.mask(text, 32).to_dense()[0, 0] for text in ("causal", "full")])[None]
    mask = fm.ColumnMask.from_dense(visible)
    case = BenchCase.of_mask(mask, "two heads", heads=2, kv_heads=1, head_dim=16, dtype="float32")
    q, k, v, _ = Inputs(case, "cpu").tensors
    reference = correctness.make_reference(case, mask, q, k, v)
    out = attention(*(x.transpose(1, 2) for x in (q, k, v)), visible).transpose(1, 2)
    assert correctness.verdict(correctness.compare(reference, out, None)["forward"]) == "passed"


def test_quartiles_and_rates():
    assert Quartiles.of([3.0]) == Quartiles(3.0, 3.0, 3.0, 1)
    assert Quartiles.of([1.0, 2.0, 3.0, 4.0, 5.0]) == Quartiles(2.0, 3.0, 4.0, 5)
    case = BenchCase("full", 8192, batch=4, heads=32, head_dim=128)
    assert flops(case, 1.0, "forward") == 4 * 4 * 32 * 8192**2 * 128
    assert tflops(case, 1.0, "forward", 7.265) == pytest.approx(605.4, abs=0.1)
    assert tflops(case, 1.0, "backward", 20.548) == pytest.approx(535.1, abs=0.1)


def test_a_rate_above_the_cards_peak_is_flagged(monkeypatch):
    assert peak_tflops("NVIDIA H200", "bfloat16") == 990 and peak_tflops("NVIDIA H200 NVL", "float16") == 836
    assert peak_tflops("NVIDIA H200", "float32") == 495 and peak_tflops("some card", "float16") is None
    h200 = DeviceInfo("NVIDIA H200")
    for name, peak in (("NVIDIA A100-SXM4-80GB", 312), ("NVIDIA H100 80GB HBM3", 990), ("NVIDIA GeForce RTX 4090", 165)):
        assert peak_tflops(name, "bfloat16") == peak
    for name in ("NVIDIA RTX A1000", "NVIDIA RTX A4000", "NVIDIA GeForce RTX 4080 SUPER", "NVIDIA GeForce RTX 5090 D"):
        assert peak_tflops(name, "bfloat16") is None and name in unknown_peak(DeviceInfo(name))
    assert unknown_peak(h200) is None and unknown_peak(None) is None
    assert "1,200 TFLOP/s of visible pairs are above the 990" in doubt(h200, "bfloat16", 1200, 1300)
    assert "must skip parts" in doubt(h200, "bfloat16", 700, 1300)
    assert doubt(h200, "bfloat16", 900, 950) is None and doubt(WHERE, "bfloat16", 1e6, 1e6) is None
    monkeypatch.setattr("flashmask_core.bench.run_case.times_ms", lambda *a: [1e-9])
    rows, _ = run(monkeypatch, CASE, "right", where=h200)
    assert all("this time cannot be right" in row.warning for row in rows)


@pytest.mark.gpu
def test_every_default_provider_on_a_gpu():
    from flashmask_core.bench.config import BenchJob
    from flashmask_core.bench.providers import DEFAULT_PROVIDERS
    from flashmask_core.bench.runner import BenchRunner

    case = BenchCase("causal_document(500, 300, 224)", 1024, batch=2, heads=4, providers=DEFAULT_PROVIDERS)
    runner = BenchRunner()
    view = runner.wait(runner.submit(BenchJob("bench", (case,))), 400)
    runner.close()
    assert view.state == "done", view.reason
    assert [(row.provider, row.reason) for row in view.rows if row.status != "ok"] == []
    ours = [row for row in view.rows if row.provider in ("flashmask", "flex")]
    assert [row.check for row in ours] == ["passed"] * 4
    assert all(row.peak_memory_bytes > 0 and row.mask_bytes > 0 and row.tflops_rho > 0 for row in view.rows
               if row.computes == "mask")  # fmt: skip
