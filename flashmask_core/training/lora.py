"""Low-rank adapters: peft's where it is installed, else plain ones."""

from __future__ import annotations

import torch
from torch import nn

TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class Adapted(nn.Module):
    """A frozen linear layer and a product of two thin ones beside it (arXiv 2106.09685); it begins as the layer itself."""

    def __init__(self, linear: nn.Linear, rank: int, alpha: float):
        super().__init__()
        weight = linear.weight
        self.linear, self.scale = linear.requires_grad_(False), alpha / rank
        self.a = nn.Parameter(torch.empty(rank, weight.shape[1], dtype=weight.dtype, device=weight.device))
        self.b = nn.Parameter(torch.zeros(weight.shape[0], rank, dtype=weight.dtype, device=weight.device))
        nn.init.normal_(self.a, std=1 / rank)

    def forward(self, x):
        return self.linear(x) + self.scale * (x @ self.a.T @ self.b.T)


def add_adapters(model: nn.Module, rank: int = 8, alpha: float = 16.0, use_peft: bool | None = None) -> str:
    """Freeze a decoder and give its layers adapters, in place; returns "peft" or "plain", whichever was taken."""
    if use_peft is not False:
        try:
            from peft import LoraConfig, inject_adapter_in_model
        except ImportError:
            if use_peft:
                raise
        else:
            model.requires_grad_(False)
            inject_adapter_in_model(LoraConfig(r=rank, lora_alpha=alpha, target_modules=list(TARGETS)), model)
            return "peft"
    model.requires_grad_(False)
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if name in TARGETS and isinstance(child, nn.Linear):
                setattr(module, name, Adapted(child, rank, alpha))
    return "plain"
