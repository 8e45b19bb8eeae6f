"""Several gloo processes on this machine that each run one function of a test module."""

import tempfile
from pathlib import Path

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
    """work(*arguments) in `ranks` processes of one group; a failure in any of them fails the test."""
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(_enter, (ranks, str(Path(folder) / "store"), work, arguments), nprocs=ranks)
