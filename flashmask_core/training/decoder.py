"""A Llama-shaped decoder in plain torch: what attention engines are compared in, end to end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ..checks import whole

Attend = Callable[[Tensor, Tensor, Tensor, object], Tensor]
"""(q [B, S, H, D], k and v [B, S, Hk, D], the engine's form of the mask) -> [B, S, H, D]."""


@dataclass(frozen=True)
class DecoderConfig:
    """Sizes of a decoder; width = heads x head_dim. Raises TypeError or ValueError naming what cannot be."""

    layers: int = 4
    width: int = 2048
    heads: int = 16
    kv_heads: int = 4
    hidden: int | None = None  # of the feed-forward part; None: 8/3 of the width, up to a multiple of 256
    vocabulary: int = 32000
    recompute: bool = True  # activation checkpointing, a layer at a time

    def __post_init__(self):
        for name, low, high in (("layers", 1, 1000), ("width", 2, 2**16), ("heads", 1, 1024), ("kv_heads", 1, 1024),
                                ("vocabulary", 2, 2**20)):  # fmt: skip
            whole(name, getattr(self, name), low, high)
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads: wanted a divisor of heads = {self.heads}, got {self.kv_heads}")
        if self.width % self.heads or self.width // self.heads % 2 or self.width // self.heads > 256:
            raise ValueError(
                f"width: wanted heads = {self.heads} times an even head dim of at most 256, got {self.width}"
            )
        if self.hidden is None:
            object.__setattr__(self, "hidden", -(-8 * self.width // 3) // 256 * 256 + 256)
        whole("hidden", self.hidden, 1, 2**20)

    @property
    def head_dim(self) -> int:
        return self.width // self.heads


class Decoder(nn.Module):
    """hidden [B, S, width] of tokens [B, S], their positions [B, S] and a mask in the form that `attend` takes."""

    def __init__(self, config: DecoderConfig, attend: Attend):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocabulary, config.width)
        self.layers = nn.ModuleList(Layer(config, attend) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.width, eps=1e-5)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, tokens: Tensor, positions: Tensor, mask) -> Tensor:
        x = self.embed(tokens)
        turns = rotation(positions, self.config.head_dim, x.dtype)
        for layer in self.layers:
            if self.config.recompute and torch.is_grad_enabled():
                x = checkpoint(layer, x, turns, mask, use_reentrant=False)
            else:
                x = layer(x, turns, mask)
        return self.norm(x)


class Layer(nn.Module):
    """Attention and a gated feed-forward part, each behind a norm and added to what came in."""

    def __init__(self, config: DecoderConfig, attend: Attend):
        super().__init__()
        self.config, self.attend = config, attend
        d, width = config.head_dim, config.width
        linear = lambda a, b: nn.Linear(a, b, bias=False)  # noqa: E731
        self.attention_norm, self.mlp_norm = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.q_proj, self.o_proj = linear(width, config.heads * d), linear(config.heads * d, width)
        self.k_proj, self.v_proj = linear(width, config.kv_heads * d), linear(width, config.kv_heads * d)
        self.gate_proj, self.up_proj = linear(width, config.hidden), linear(width, config.hidden)
        self.down_proj = linear(config.hidden, width)

    def forward(self, x: Tensor, turns: tuple[Tensor, Tensor], mask) -> Tensor:
        y = self.attention_norm(x)
        q, k, v = (part(y).unflatten(-1, (-1, self.config.head_dim)) for part in (self.q_proj, self.k_proj, self.v_proj))
        out = self.attend(rotated(q, turns), rotated(k, turns), v, mask)
        x = x + self.o_proj(out.flatten(2))
        y = self.mlp_norm(x)
        return x + self.down_proj(F.silu(self.gate_proj(y)) * self.up_proj(y))


def rotation(positions: Tensor, head_dim: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """(cos, sin), each [B, S, 1, head_dim / 2], of the rotary embedding with base 500,000."""
    speeds = 500_000.0 ** (-torch.arange(0, head_dim, 2, device=positions.device, dtype=torch.float32) / head_dim)
    angles = positions[..., None, None].float() * speeds
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotated(x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    """x [B, S, h, D] turned by its positions, the two halves of the head dim as pairs."""
    cos, sin = turns
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)
