"""Which device, driver, versions and commit a measurement was made with."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
from datetime import datetime, timezone
from pathlib import Path

import torch

from .result import DeviceInfo


def utc_now() -> str:
    """The time as ISO 8601 in UTC, to the second."""
    return datetime.now(timezone.utc).replace(microsecond=0).isoformat()


def cuda_device() -> DeviceInfo:
    """The current CUDA device. Opens a CUDA context: only for the worker process."""
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return DeviceInfo(
        device=properties.name,
        compute_capability=f"{properties.major}.{properties.minor}",
        total_memory_bytes=properties.total_memory,
        driver=_first_line("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
        cuda_version=torch.version.cuda,
        **_software(),
    )


def death(exit_code: int | None) -> str:
    """How a process ended, as a predicate: "was ended by SIGKILL ...", "ended with exit code 3"."""
    if exit_code is None or exit_code >= 0:
        return f"ended with exit code {exit_code}"
    name = signal.Signals(-exit_code).name
    why = " (usually the system's memory killer, or a person)" if name == "SIGKILL" else ""
    return f"was ended by {name}{why}"


def interpreter_device() -> DeviceInfo:
    """What a "check" job runs on."""
    return DeviceInfo(device="CPU, Triton interpreter", **_software())


def _software() -> dict[str, str | None]:
    import triton

    from .. import __version__

    return {
        "torch_version": torch.__version__,
        "triton_version": triton.__version__,
        "python_version": platform.python_version(),
        "library_version": __version__,
        "commit": _commit(),
    }


def _commit() -> str | None:
    """$FLASHMASK_COMMIT where it is set (a copy without its history), else the commit of the checkout this file is in,
    "+changes" behind it if files differ."""
    if os.environ.get("FLASHMASK_COMMIT"):
        return os.environ["FLASHMASK_COMMIT"]
    root = Path(__file__).resolve().parents[2]
    commit = _first_line("git", "-C", str(root), "rev-parse", "HEAD") if (root / ".git").exists() else None
    if commit is None:
        return None
    changed = _first_line("git", "-C", str(root), "status", "--porcelain", "--untracked-files=no")
    return f"{commit}+changes" if changed else commit


def _first_line(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.splitlines()[0].strip() if done.returncode == 0 and done.stdout.strip() else None
