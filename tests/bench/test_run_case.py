"""A whole case on the CPU: the CUDA calls stood in for, the control flow, the checks and the rows real."""

import time
import types
from dataclasses import replace

import pytest
import torch

import flashmask_core as fm
from flashmask_core.bench import correctness, measure, run_case
from flashmask_core.bench.config import BenchCase
from flashmask_core.bench.measure import Quartiles, flops, tflops
from flashmask_core.bench.providers import PROVIDERS, Prepared, Provider
from flashmask_core.bench.result import DeviceInfo, dumps
from flashmask_core.bench.run_case import CaseRun, CudaFault, Inputs


def plain_attention(q, k, v, visible):
    """q [B, H, Sq, D]; kept apart from the reference: softmax written out."""
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    scores = (q.float() @ k.float().transpose(-1, -2)) / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~visible, -1e30)
    p = scores.softmax(-1) * visible
    return (p @ v.float()).to(q.dtype)


def stand_in(name, change=lambda out: out, layout="bshd", computes="mask", build_error=None) -> Provider:
    """A provider that computes the mask on the CPU and then does `change` to its output."""

    def build(case, mask):
        if build_error:
            raise build_error

        def call(q, k, v):
            if layout == "bshd":
                q, k, v = (x.transpose(1, 2) for x in (q, k, v))
            out = plain_attention(q, k, v, mask.to_dense() if computes == "mask" else torch.tensor(True))
            return change(out.transpose(1, 2) if layout == "bshd" else out)

        return Prepared(call, "stand-in", mask_bytes=mask.nbytes, build_mask=lambda: None)

    return Provider(name, name.title(), layout, computes, "vectors", build)


@pytest.fixture
def on_cpu(monkeypatch):
    """torch.cuda as run_case and measure use it, without a GPU. Returns a dict with the free bytes to report."""
    state = {"free": 10**12, "broken": False}

    def synchronize():
        if state["broken"]:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    cuda = types.SimpleNamespace(
        synchronize=synchronize, reset_peak_memory_stats=lambda: None, memory_allocated=lambda: 100,
        max_memory_allocated=lambda: 1100, memory_reserved=lambda: 100, empty_cache=lambda: None,
        mem_get_info=lambda: (state["free"], 10**12),
    )  # fmt: skip
    for module in (run_case, measure):
        monkeypatch.setattr(module, "torch", _TorchWith(cuda))
    monkeypatch.setattr(run_case, "times_ms", _host_times)
    return state


class _TorchWith:
    def __init__(self, cuda):
        self.cuda = cuda

    def __getattr__(self, name):
        return getattr(torch, name)


def _host_times(call, warmup_ms, repeat_ms):
    times = []
    for _ in range(2):
        began = time.perf_counter()
        call()
        times.append((time.perf_counter() - began) * 1e3)
    return times


def run(monkeypatch, case, *providers, excluded=()):
    for provider in providers:
        monkeypatch.setitem(PROVIDERS, provider.name, provider)
    case = replace(case, providers=tuple(p.name for p in providers))
    rows, steps = [], []
    CaseRun(case, DeviceInfo("none"), rows.append, lambda *step: steps.append(step), excluded, device="cpu").run()
    for row in rows:
        dumps(row.to_json())
    return rows, steps


CASE = BenchCase("causal_document(20, 30, 14)", 64, heads=4, kv_heads=2, head_dim=16, dtype="bfloat16", batch=2)


def test_right_providers_in_both_layouts_pass(monkeypatch, on_cpu):
    rows, steps = run(monkeypatch, CASE, stand_in("one"), stand_in("two", layout="bhsd"))
    assert [(r.provider, r.direction, r.status, r.check) for r in rows] == [
        (p, d, "ok", "passed") for p in ("one", "two") for d in ("forward", "backward")
    ]
    forward, backward = rows[:2]
    assert set(forward.errors) == {"out"} and set(backward.errors) == {"dq", "dk", "dv"}
    for error in (*forward.errors.values(), *backward.errors.values()):
        assert 0 < error.max_error <= error.limit and error.reference_max > 0
    assert forward.lower_quartile_ms <= forward.median_ms <= forward.upper_quartile_ms and forward.repetitions == 6
    mask = fm.mask(CASE.mask, 64)
    assert forward.mask_bytes == mask.nbytes and forward.peak_memory_bytes == mask.nbytes + 1000
    assert forward.density == mask.visible_pairs().item() / 64**2 and forward.rho == 0
    assert forward.tflops_rho == pytest.approx(4 * 2 * 4 * 64 * 64 * 16 / forward.median_ms / 1e9)
    assert backward.tflops_density == pytest.approx(
        2.5 * 4 * 2 * 4 * 16 * mask.visible_pairs().item() / backward.median_ms / 1e9
    )
    fractions = [fraction for _, _, fraction in steps]
    assert fractions == sorted(fractions) and fractions[0] == 0 and fractions[-1] < 1
    timed = [provider for provider, message, _ in steps if "timing" in message]
    assert timed == ["one", "two", "two", "one", "one", "two"], "the order rotates"


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda out: out * 1.1, "failed: out is off by"),
        (lambda out: out + float("nan"), "failed: out holds NaN or infinity"),
    ],
)
def test_a_wrong_provider_is_marked_and_timed(monkeypatch, on_cpu, change, words):
    rows, _ = run(monkeypatch, CASE, stand_in("bad", change), stand_in("good"))
    assert words in rows[0].check and rows[0].status == "ok" and rows[0].median_ms > 0
    assert rows[2].check == "passed"


def test_a_ceiling_counts_its_own_flops_and_is_not_checked(monkeypatch, on_cpu):
    rows, _ = run(monkeypatch, CASE, stand_in("ceiling", computes="full"))
    assert rows[0].check == "not run: computes another mask" and rows[0].errors is None
    assert (rows[0].rho, rows[0].density, rows[0].computes) == (0.0, 1.0, "full")


def test_a_provider_that_cannot_be_built_is_a_failed_row(monkeypatch, on_cpu):
    case = replace(CASE, check=False)
    broken = stand_in("broken", build_error=RuntimeError("No available kernel.\nAborting execution."))
    full = stand_in("full", build_error=torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB."))
    rows, _ = run(monkeypatch, case, broken, stand_in("good"), full)
    by_name = {(r.provider, r.direction): r for r in rows}
    assert by_name["broken", "forward"].reason == "RuntimeError: No available kernel."
    assert by_name["full", "backward"].reason.startswith("out of GPU memory: CUDA out of memory.")
    assert by_name["good", "forward"].status == "ok" and by_name["good", "forward"].check == "not run: not asked for"


def test_what_does_not_fit_is_skipped_before_anything_is_allocated(monkeypatch, on_cpu):
    on_cpu["free"] = 1000
    monkeypatch.setattr(run_case, "Inputs", lambda *a: pytest.fail("allocated"))
    rows, _ = run(monkeypatch, CASE, stand_in("one"))
    assert [r.status for r in rows] == ["skipped"] * 2 and "1,000 are free" in rows[0].reason


def test_excluded_providers_and_an_excluded_reference_are_left_alone(monkeypatch, on_cpu):
    rows, steps = run(monkeypatch, CASE, stand_in("one"), stand_in("two"), excluded=("one", "reference"))
    assert {r.provider for r in rows} == {"two"}
    assert rows[0].check == "not run: the reference ended an earlier worker"
    assert "reference" not in {provider for provider, _, _ in steps}


def test_a_mask_that_cannot_be_built_fails_every_provider(monkeypatch, on_cpu):
    rows, _ = run(monkeypatch, replace(CASE, mask="document(100)"), stand_in("one"), stand_in("two"))
    assert [r.status for r in rows] == ["failed"] * 4 and "100" in rows[0].reason


def test_a_broken_context_ends_the_process(monkeypatch, on_cpu):
    def breaks(out):
        on_cpu["broken"] = True
        raise RuntimeError("CUDA error: device-side assert")

    with pytest.raises(CudaFault, match="device-side assert .*illegal memory access"):
        run(monkeypatch, replace(CASE, check=False), stand_in("bad", breaks))


def test_long_sequences_are_compared_in_sampled_strips(monkeypatch):
    monkeypatch.setattr(correctness, "STRIP_PAIRS", 64 * 4)
    monkeypatch.setattr(correctness, "MAX_STRIPS", 5)
    case = replace(CASE, dtype="float32")
    mask = fm.mask(CASE.mask, 64)
    q, k, v, _ = Inputs(case, "cpu").bshd
    reference = correctness.make_reference(case, mask, q, k, v)
    assert reference.rows.tolist() == [r for a in (0, 15, 30, 45, 60) for r in range(a, a + 4)]
    out = plain_attention(*(x.transpose(1, 2) for x in (q, k, v)), mask.to_dense()).transpose(1, 2)
    gradients = torch.autograd.grad(out, (q, k, v), reference.dout)
    for errors in correctness.compare(reference, out, gradients).values():
        assert correctness.verdict(errors) == "passed"
        assert max(e.max_error for e in errors.values()) < 1e-5


def test_quartiles_and_rates():
    assert Quartiles.of([3.0]) == Quartiles(3.0, 3.0, 3.0, 1)
    assert Quartiles.of([1.0, 2.0, 3.0, 4.0, 5.0]) == Quartiles(2.0, 3.0, 4.0, 5)
    case = BenchCase("full", 8192, batch=4, heads=32, head_dim=128)
    assert flops(case, 1.0, "forward") == 4 * 4 * 32 * 8192**2 * 128
    assert tflops(case, 1.0, "forward", 7.265) == pytest.approx(605.4, abs=0.1)
    assert tflops(case, 1.0, "backward", 20.548) == pytest.approx(535.1, abs=0.1)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU")
def test_queued_work_is_timed_and_not_its_launch():
    cycles = int(50e-3 * 1.2e9)
    found = measure.times_ms(lambda: torch.cuda._sleep(cycles), warmup_ms=1, repeat_ms=200)
    assert Quartiles.of(found).median_ms >= 25


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU")
def test_every_default_provider_on_a_gpu():
    from flashmask_core.bench.config import BenchJob
    from flashmask_core.bench.providers import DEFAULT_PROVIDERS
    from flashmask_core.bench.runner import BenchRunner

    case = BenchCase("causal_document(500, 300, 224)", 1024, batch=2, heads=4, providers=DEFAULT_PROVIDERS)
    runner = BenchRunner()
    view = runner.wait(runner.submit(BenchJob("bench", (case,))), 300)
    runner.close()
    assert view.state == "done", view.reason
    assert [(row.provider, row.reason) for row in view.rows if row.status != "ok"] == []
    ours = [row for row in view.rows if row.provider in ("flashmask", "flex")]
    assert [row.check for row in ours] == ["passed"] * 4
    assert all(row.peak_memory_bytes > 0 and row.mask_bytes > 0 and row.tflops_rho > 0 for row in ours)
