"""The device that is measured on: its clock, its memory, its second-level cache. Used in the worker process only.

`CudaDevice` is the one there is. An engine module (see `providers`) may bring another with the same methods, such as
the stand-in of the tests, whose stream is a thread.
"""

from __future__ import annotations

import gc

import torch

from .environment import cuda_device
from .result import DeviceInfo

FLUSHED_BYTES = 256 * 2**20  # more than the L2 cache of any GPU so far


class CudaDevice:
    """The current CUDA device."""

    name = "cuda"
    OutOfMemory = torch.OutOfMemoryError

    def __init__(self):
        self._flushed: torch.Tensor | None = None

    @staticmethod
    def problem() -> str | None:
        """Why it cannot be used here, or None."""
        if torch.version.cuda is None:
            return "no CUDA GPU: this build of PyTorch is for the CPU only"
        return None if torch.cuda.is_available() else "no CUDA GPU: PyTorch finds none"

    def info(self) -> DeviceInfo:
        """What rows say about it."""
        return cuda_device()

    def synchronize(self) -> None:
        """Wait for all queued work; raises if something before broke the context."""
        torch.cuda.synchronize()

    def mark(self):
        """An event in the stream, after all that is queued and before all that comes."""
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def elapsed_ms(self, before, after) -> float:
        """Device time between two marks that have been reached."""
        return before.elapsed_time(after)

    def flush_cache(self) -> None:
        """Queue a write that pushes everything else out of the L2 cache."""
        if self._flushed is None:
            self._flushed = torch.empty(FLUSHED_BYTES // 4, dtype=torch.int32, device=self.name)
        self._flushed.zero_()

    def free_bytes(self) -> int:
        """What can still be allocated."""
        self.release()
        return torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()

    def allocated_bytes(self) -> int:
        """What live tensors of this process take."""
        return torch.cuda.memory_allocated()

    def reset_peak(self) -> None:
        torch.cuda.reset_peak_memory_stats()

    def peak_bytes(self) -> int:
        """The most that was allocated at a time since `reset_peak`."""
        return torch.cuda.max_memory_allocated()

    def release(self) -> None:
        """Give unused memory back to the device."""
        self._flushed = None
        gc.collect()
        torch.cuda.empty_cache()
