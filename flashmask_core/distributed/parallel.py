"""Context parallel attention: a sequence over several ranks of torch.distributed, forward and backward.

Every rank attends with its own queries to the keys and values that they see. Those of other ranks come in one exchange
of exactly the chunks that are needed, and their gradients go back the same way and are added in single precision. The
heads go in several waves: while one wave is computed, the exchange of the next is under way.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from ..attention import _check_tensors, _checked_scale, _choose_backend
from ..masks.column_mask import ColumnMask
from ..reference import attention_ref
from .deals import Deal, deal, needed_chunks, positions_of, rank_mask

_WAVES = 4  # exchanges of a call, where there are as many key heads and something to exchange


class ContextParallel:
    """What one rank has to know of a sequence that is dealt to all ranks of a group.

    Made from the whole mask, which has to be the same on every rank; kept for all layers and steps that share it.

        cp = ContextParallel(mask)                      # collective in meaning, but nothing is sent yet
        tokens, positions = cp.shard(tokens), cp.positions
        out = cp.attention(q, k, v)                     # of this rank's tokens: [B, tokens held, H, D]

    Attributes:
        deal: the Deal. rank, ranks: of this process in the group.
        positions: int64 [tokens held], where they stand in the whole sequence (for rotary embeddings, say).
        mask: ColumnMask of the rank's queries against the keys that it gathers.
    """

    def __init__(self, mask: ColumnMask, *, chunk: int | None = None, policy: str = "auto",
                 group: "dist.ProcessGroup | None" = None):  # fmt: skip
        if not dist.is_initialized():
            raise RuntimeError("context parallel needs torch.distributed: start with torchrun, then init_process_group")
        self.group, self.rank, self.ranks = group, dist.get_rank(group), dist.get_world_size(group)
        self.deal: Deal = deal(mask, self.ranks, chunk=chunk, policy=policy)
        device = mask.device
        self.positions = self.deal.positions(self.rank).to(device)
        # sends[s][r]: the chunks that rank r needs of rank s. Everybody works out everybody's, so nobody has to ask.
        whole_masks = [rank_mask(mask, self.deal, rank) for rank in range(self.ranks)]
        needs = [needed_chunks(one, self.deal.chunk) for one in whole_masks]
        wanted = lambda s, r: [c for c in self.deal.chunks[s] if needs[r][c]]  # noqa: E731
        place = torch.empty(self.deal.seqlen, dtype=torch.int64)
        place[self.deal.positions(self.rank)] = torch.arange(len(self.positions))
        at = lambda chunks: positions_of(chunks, self.deal.chunk, self.deal.seqlen)  # noqa: E731
        outgoing = [place[at(wanted(self.rank, r))] for r in range(self.ranks)]
        incoming = [at(wanted(s, self.rank)) for s in range(self.ranks)]
        self.send_counts, self.receive_counts = [len(x) for x in outgoing], [len(x) for x in incoming]
        self._outgoing = [x.to(device) for x in outgoing]
        columns = torch.cat(incoming).to(device)
        mine = whole_masks[self.rank]
        self.mask = mine._like(*(v[..., columns].contiguous() for v in mine.vectors))
        self._of_heads: dict[tuple[int, int, int], ColumnMask] = {}

    def shard(self, x: Tensor, dim: int = 1) -> Tensor:
        """This rank's tokens of a whole tensor along `dim`."""
        if x.shape[dim] != self.deal.seqlen:
            raise ValueError(f"x: wanted {self.deal.seqlen} tokens along dim {dim}, got {tuple(x.shape)}")
        return x.index_select(dim, self.positions.to(x.device))

    def gather(self, x: Tensor, dim: int = 1) -> Tensor:
        """The whole tensor of all ranks' tokens along `dim`, on every rank; no gradient flows through it."""
        lengths = self.deal.lengths()
        mine = x.detach().movedim(dim, 0).contiguous()
        parts = [mine.new_empty(length, *mine.shape[1:]) for length in lengths]
        if len(set(lengths)) == 1:
            dist.all_gather(parts, mine, group=self.group)
        else:  # all_gather wants equal shapes
            ranks = range(self.ranks) if self.group is None else dist.get_process_group_ranks(self.group)
            for rank, (part, source) in enumerate(zip(parts, ranks)):
                if rank == self.rank:
                    part.copy_(mine)
                dist.broadcast(part, source, group=self.group)
        full = mine.new_empty(self.deal.seqlen, *mine.shape[1:])
        for rank, part in enumerate(parts):
            full[self.deal.positions(rank).to(x.device)] = part
        return full.movedim(0, dim)

    def attention(self, q: Tensor, k: Tensor, v: Tensor, *, softmax_scale: float | None = None,
                  deterministic: bool = False, backend: str = "auto", waves: int | None = None) -> Tensor:  # fmt: skip
        """Attention of this rank's queries to all keys of all ranks, differentiable; every rank calls it.

        Args:
            q: [B, tokens held, H, D]; k, v: [B, tokens held, Hk, D], of `shard`ed tokens in their order.
            softmax_scale, deterministic, backend: as of `flashmask_attention`; the scale has to be above 0.
            waves: into how many groups of heads the exchange is cut so that it overlaps with the computation; None
                chooses. Every rank has to give the same.

        Returns:
            out [B, tokens held, H, D] in q's dtype.
        """
        _check_tensors(q, k, v)
        held = len(self.positions)
        for name, x in (("q", q), ("k", k)):
            if x.shape[1] != held:
                raise ValueError(f"{name}: wanted this rank's {held} tokens, got {tuple(x.shape)}")
        if self.mask.batch not in (1, q.shape[0]) or self.mask.heads not in (1, k.shape[2], q.shape[2]):
            raise ValueError(
                f"mask: wanted a batch of 1 or B = {q.shape[0]} and 1, Hk = {k.shape[2]} or H = {q.shape[2]} heads, "
                f"got B = {self.mask.batch} and Hm = {self.mask.heads}"
            )
        if self.mask.device != q.device:
            raise ValueError(f"q: wanted the mask's device {self.mask.device}, got {q.device}")
        scale = _checked_scale(softmax_scale, q.shape[3])
        if scale <= 0:
            raise ValueError(f"softmax_scale: wanted a number above 0, got {scale}")
        options = (_choose_backend(backend, q), deterministic)
        return _Attention.apply(q, k, v, self, scale, options, self._waves(k.shape[2], waves))

    def _waves(self, kv_heads: int, waves: int | None) -> int:
        if waves is None:
            waves = _WAVES if self.ranks > 1 and self.mask.device.type == "cuda" else 1
        return max(n for n in range(1, min(max(1, waves), kv_heads) + 1) if kv_heads % n == 0)

    def _mask_of(self, wave: int, waves: int) -> ColumnMask:
        """The mask of one wave's heads, kept with its tile metadata."""
        heads = self.mask.heads
        if heads == 1 or waves == 1:
            return self.mask
        key = (wave, waves, heads)
        if key not in self._of_heads:
            of_wave = slice(wave * heads // waves, (wave + 1) * heads // waves)
            self._of_heads[key] = self.mask._like(*(v[:, of_wave].contiguous() for v in self.mask.vectors))
        return self._of_heads[key]

    def _start_gather(self, k: Tensor, v: Tensor):
        """Begin to exchange k and v [B, tokens held, h, D]; (received [keys, 2, B, h, D], what to wait for)."""
        rows = torch.cat(self._outgoing)
        send = torch.stack([x.transpose(0, 1).index_select(0, rows) for x in (k, v)], 1)
        return self._exchange(send, self.send_counts, self.receive_counts)

    def _start_scatter(self, dk: Tensor, dv: Tensor):
        """Begin to send gradients [B, keys, h, D] home; (parts [sent tokens, 2, B, h, D], what to wait for)."""
        send = torch.stack((dk.transpose(0, 1), dv.transpose(0, 1)), 1)
        return self._exchange(send, self.receive_counts, self.send_counts)

    def _exchange(self, send: Tensor, out_counts: list[int], in_counts: list[int]):
        if self.ranks == 1:
            return send, None
        received = send.new_empty(sum(in_counts), *send.shape[1:])
        return received, dist.all_to_all_single(received, send, in_counts, out_counts, group=self.group, async_op=True)

    def _add_up(self, parts: Tensor) -> tuple[Tensor, Tensor]:
        """(dk, dv) [B, tokens held, h, D], float32: what every rank sent, added in the order of the ranks."""
        total = parts.new_zeros(len(self.positions), *parts.shape[1:], dtype=torch.float32)
        for rows, part in zip(self._outgoing, parts.split(self.send_counts)):
            total.index_add_(0, rows, part.float())
        return total[:, 0].transpose(0, 1), total[:, 1].transpose(0, 1)


def _keys_values(received: Tensor) -> tuple[Tensor, Tensor]:
    """k and v [B, keys, h, D] of what was received, in place."""
    return received[:, 0].transpose(0, 1), received[:, 1].transpose(0, 1)


def _arrived(received: Tensor, work) -> Tensor:
    if work is not None:
        work.wait()
    return received


class _Attention(torch.autograd.Function):
    """Keeps the rank's own tensors alone; the others' keys and values are gathered anew for the backward pass."""

    @staticmethod
    def forward(ctx, q, k, v, cp: ContextParallel, scale, options, waves):
        gathers = [cp._start_gather(*x) for x in zip(k.chunk(waves, 2), v.chunk(waves, 2))]
        outs, lses = [], []
        for wave, (one, gather) in enumerate(zip(q.chunk(waves, 2), gathers)):
            keys, values = _keys_values(_arrived(*gather))
            out, lse = _attend(one, keys, values, cp._mask_of(wave, waves), scale, options)
            outs.append(out)
            lses.append(lse)
        out = torch.cat(outs, 2) if waves > 1 else outs[0]
        ctx.save_for_backward(q, k, v, out, *lses)
        ctx.cp, ctx.scale, ctx.options, ctx.waves = cp, scale, options, waves
        return out

    @staticmethod
    def backward(ctx, dout):
        cp, waves = ctx.cp, ctx.waves
        q, k, v, out, *lses = ctx.saved_tensors
        gathers = [cp._start_gather(*x) for x in zip(k.chunk(waves, 2), v.chunk(waves, 2))]
        dqs, scatters = [], []
        of_wave = zip(*(x.chunk(waves, 2) for x in (dout, q, out)), lses, gathers)
        for wave, (dout_, q_, out_, lse, gather) in enumerate(of_wave):
            keys, values = _keys_values(_arrived(*gather))
            mask = cp._mask_of(wave, waves)
            dq, dk, dv = _gradients(dout_, q_, keys, values, out_, lse, mask, ctx.scale, ctx.options)
            dqs.append(dq)
            scatters.append(cp._start_scatter(dk, dv))
        dks, dvs = zip(*(cp._add_up(_arrived(*scatter)) for scatter in scatters))
        dq, dk, dv = (torch.cat(parts, 2) for parts in (dqs, dks, dvs))
        return dq, dk.to(k.dtype), dv.to(v.dtype), None, None, None, None


def _attend(q, k, v, mask, scale, options):
    backend, deterministic = options
    if backend == "reference":
        out, lse = attention_ref(q, k, v, mask, softmax_scale=scale)
        return out.to(q.dtype), lse
    from ..kernels import operator

    return operator.attend(q, k, v, mask, scale, hopper=backend == "hopper", deterministic=deterministic)


def _gradients(dout, q, k, v, out, lse, mask, scale, options):
    backend, deterministic = options
    if backend == "reference":
        with torch.enable_grad():
            leaves = [x.detach().requires_grad_() for x in (q, k, v)]
            out, _ = _attend(*leaves, mask, scale, options)
            return torch.autograd.grad(out, leaves, dout)
    from ..kernels import operator

    options = dict(hopper=backend == "hopper", deterministic=deterministic)
    return operator.gradients(dout, q, k, v, out, lse, mask, scale, **options)
