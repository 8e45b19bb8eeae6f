"""Several gloo processes on this machine that each run one function of a test module."""

import sys
import tempfile
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def _enter(rank: int, ranks: int, store: str, work, arguments) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    try:
        work(*arguments)
    finally:
        dist.destroy_process_group()


def run_ranks(ranks: int, work, *arguments) -> None:
    """work(*arguments) in `ranks` processes of one group; a failure in any of them fails the test.

    A spawned process runs the main script of this one again, which after a test of a page is that page.
    """
    with tempfile.TemporaryDirectory() as folder, patch.dict(sys.modules, {"__main__": ModuleType("__main__")}):
        mp.spawn(_enter, (ranks, str(Path(folder) / "store"), work, arguments), nprocs=ranks)
