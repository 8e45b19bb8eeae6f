"""Time and memory from a text to its tiles: `python tests/masks/measure.py` prints a table.

Every case runs in a process of its own, three times; times are the best of the three in ms, the peak is what the
process's memory grew by over the imports, in MiB.
"""

import multiprocessing
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import flashmask_core as fm  # noqa: E402

TEXTS = (
    lambda n: "causal",
    lambda n: "sliding_window(512)",
    lambda n: f"causal & document({n // 4}, {n // 8}, {n // 2}, {n // 8})",
    lambda n: f"causal & document(repeat(1024, {n // 1024})) & (q - k < 512) | causal & (k < 16)",
    lambda n: f"share_question(repeat((256, 128, 128), {n // 512}))",
    lambda n: f"prefix_lm_document(repeat(({n // 32}, {n // 8}), 8))",
    lambda n: f"frames(64, {n // 64}, 1, (0, 32))",
    lambda n: "causal & (abs(q // 512 - k // 512) <= 1)",
    lambda n: f"random_eviction({n // 2}, 0)",
    lambda n: f"causal & ((q - k < 512) | (k // 2 == {n // 4}) | (q // 2 == {n // 4}))",
)


def measure(text: str, n: int, answer) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    best = [float("inf")] * 3
    for _ in range(3):
        start = time.perf_counter()
        runs = fm.parse(text).runs(n)
        made = time.perf_counter()
        fit = fm.fit(runs)
        mask = fit.narrower
        fitted = time.perf_counter()
        counts = fm.classify_tiles(mask).counts[0, 0].tolist()
        best = [min(pair) for pair in zip(best, (made - start, fitted - made, time.perf_counter() - fitted))]
        del runs, mask
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    answer.put(([1e3 * seconds for seconds in best], peak, counts, fit.max_runs))


def main() -> None:
    fm.classify_tiles(fm.mask("causal", 8))  # imports
    context = multiprocessing.get_context("fork")
    print("| text | N | parse, runs | fit | tiles | all | peak MiB | runs a column |\n|---" + "|---:" * 7 + "|")
    for n in (1 << 17, 1 << 20):
        for make in TEXTS:
            answer = context.SimpleQueue()
            process = context.Process(target=measure, args=(make(n), n, answer))
            process.start()
            (runs, fit, tiles), peak, _, most = answer.get()
            process.join()
            times = " | ".join(f"{ms:.0f}" for ms in (runs, fit, tiles, runs + fit + tiles))
            print(f"| `{make(n)}` | {n:,} | {times} | {peak:.0f} | {most} |", flush=True)


if __name__ == "__main__":
    main()
