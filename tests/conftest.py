"""Shared by all tests: the Triton interpreter where there is no GPU, and a tolerance that is measured, not guessed."""

import os
import tempfile

import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is decorated, so before the kernels are imported

torch.set_num_threads(1)  # the tensors are small: threads that wait for each other take longer than one

# What tests measure does not belong in the history of whoever runs them; processes they start inherit it.
os.environ["FLASHMASK_HISTORY"] = os.path.join(tempfile.mkdtemp(prefix="flashmask-tests-"), "history.sqlite")

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def pytest_collection_modifyitems(items):
    if not torch.cuda.is_available():
        for item in items:
            if "gpu" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="needs a CUDA GPU"))


@pytest.fixture
def device():
    return DEVICE


@pytest.fixture
def poisoned(monkeypatch):
    """torch.empty hands out NaN (floats) or a huge number (integers): an element nothing wrote fails loudly."""
    plain = torch.empty

    def empty(*args, **kwargs):
        x = plain(*args, **kwargs)
        return x.fill_(float("nan") if x.is_floating_point() else 2**30)

    monkeypatch.setattr(torch, "empty", empty)
