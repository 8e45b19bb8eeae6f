"""The misbehaving engines on a device that is no GPU: its stream is a thread that works off what is queued.

`FLASHMASK_ENGINES=cpu_stand_ins` lets a machine without a GPU run real jobs in real worker processes.
"""

import queue
import threading
import time

import torch
from stand_ins import ENGINES, Ledger

from flashmask_core.bench.result import DeviceInfo

__all__ = ["DEVICE", "ENGINES", "STREAM", "ThreadDevice"]


class Stream:
    """Work is done in order, by a thread, while whoever queued it goes on."""

    def __init__(self):
        self._work, self._thread = queue.Queue(), None

    def run(self, work) -> None:
        if self._thread is None or not self._thread.is_alive():  # a forked process has the queue, not the thread
            self._work = queue.Queue()
            self._thread = threading.Thread(target=self._serve, args=(self._work,), daemon=True)
            self._thread.start()
        self._work.put(work)

    def wait(self) -> None:
        self._work.join()

    @staticmethod
    def _serve(work) -> None:
        while True:
            work.get()()
            work.task_done()


STREAM = Stream()


class ThreadDevice:
    """A device as `flashmask_core.bench.device` describes it, with the clock of its stream."""

    name = "cpu"
    OutOfMemory = torch.OutOfMemoryError
    free = 10**12

    def __init__(self):
        self.flushed = 0

    @staticmethod
    def problem():
        return None

    def info(self):
        return DeviceInfo("Stand-in device", total_memory_bytes=self.free)

    def synchronize(self):
        STREAM.wait()

    def mark(self):
        reached = []
        STREAM.run(lambda: reached.append(time.perf_counter()))
        return reached

    def elapsed_ms(self, before, after):
        return (after[0] - before[0]) * 1e3

    def flush_cache(self):
        self.flushed += 1

    def free_bytes(self):
        return self.free

    def allocated_bytes(self):
        return Ledger.held

    def reset_peak(self):
        Ledger.peak = Ledger.held

    def peak_bytes(self):
        return Ledger.peak

    def release(self):
        pass


DEVICE = ThreadDevice
