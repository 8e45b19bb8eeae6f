"""The one runner of a server, and what is known of its GPU."""

from __future__ import annotations

import atexit
import threading

import torch

from .config import BenchJob
from .device import CudaDevice
from .history import History
from .providers import bench_device
from .result import DeviceInfo
from .runner import BenchRunner

_shared: BenchRunner | None = None
_probed: DeviceInfo | str | None = None
_shared_lock = threading.Lock()


def get_runner() -> BenchRunner:
    """The one runner of this process; closed when the process ends."""
    global _shared
    with _shared_lock:
        if _shared is None:
            from ..training.kept import KeptRuns

            _shared = BenchRunner(history=History(), trained=KeptRuns())
            atexit.register(_shared.close)
        return _shared


def probe_device(timeout_s: float = 120.0) -> DeviceInfo | str:
    """The GPU that jobs will run on, or a str that says why there is none. Asks a worker once, then remembers."""
    global _probed
    with _shared_lock:
        if _probed is None:
            if torch.version.cuda is None and isinstance(bench_device(), CudaDevice):
                _probed = "no CUDA GPU: this build of PyTorch is for the CPU only"
            else:
                asker = BenchRunner(startup_limit_s=timeout_s)
                view = asker.wait(asker.submit(BenchJob("device")))
                asker.close()
                _probed = view.where if view.state == "done" else (view.reason or "the GPU could not be asked for")
        return _probed
