"""The losses of SFT, DPO and reward models on packed sequences whose answers share their prompts."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ..packing import Sequence

DPO_BETA = 0.1
_LOSS_ROWS = 4096  # of logits that are there at one time


@dataclass(frozen=True)
class Batch:
    """One packed sequence as tensors.

    tokens, positions: int64 [1, S]. sources, targets: int64 [T], the place whose output predicts an answer's token, and
    the place of that token; the first token of every answer is predicted by the end of its prompt. answer: int64 [T],
    which answer it belongs to. example, last: int64 [A], of every answer its example and the place of its last token.
    """

    tokens: Tensor
    positions: Tensor
    sources: Tensor
    targets: Tensor
    answer: Tensor
    example: Tensor
    last: Tensor

    @classmethod
    def of(cls, sequence: Sequence, vocabulary: int, device, seed: int = 0) -> "Batch":
        """Random tokens for a sequence. A document, without answers, is one answer without a prompt; an answer without a
        prompt is predicted from its own first token on."""
        sources, targets, answers, examples, last = [], [], [], [], []
        at = 0
        for number, example in enumerate(sequence.examples):
            prompt, answers_ = (example.prompt, example.answers) if example.answers else (0, (example.prompt,))
            prompt_end, start = at + prompt - 1, at + prompt
            for length in answers_:
                place = torch.arange(start, start + length)
                before = place - 1
                if length:
                    before[0] = prompt_end
                keep = before >= at
                sources.append(before[keep])
                targets.append(place[keep])
                answers.append(torch.full((int(keep.sum()),), len(last)))
                examples.append(number)
                last.append(start + length - 1 if length else max(prompt_end, at))
                start += length
            at += example.tokens
        g = torch.Generator().manual_seed(seed)
        tokens = torch.randint(0, vocabulary, (1, sequence.context), generator=g)
        positions = torch.from_numpy(sequence.position_ids())[None]
        join = lambda parts: torch.cat(parts) if parts else torch.empty(0, dtype=torch.int64)  # noqa: E731
        whole = (tokens, positions, join(sources), join(targets), join(answers), torch.tensor(examples), torch.tensor(last))
        return cls(*(x.to(device) for x in whole))


def answer_logprobs(hidden: Tensor, head: torch.nn.Module, batch: Batch) -> Tensor:
    """float32 [T]: log-probability of every answer token; the logits of _LOSS_ROWS tokens are kept at one time."""

    def part(x: Tensor, wanted: Tensor) -> Tensor:
        return -F.cross_entropy(head(x).float(), wanted, reduction="none")

    rows, wanted = hidden[0][batch.sources], batch.tokens[0][batch.targets]
    parts = zip(rows.split(_LOSS_ROWS), wanted.split(_LOSS_ROWS))
    return torch.cat([checkpoint(part, x, y, use_reentrant=False) for x, y in parts])


def sft_loss(logprobs: Tensor) -> Tensor:
    """Mean negative log-likelihood of the answers' tokens; 0 where there are none."""
    return -logprobs.sum() / max(1, len(logprobs))


def dpo_loss(logprobs: Tensor, reference: Tensor, batch: Batch, beta: float = DPO_BETA) -> Tensor:
    """-log sigmoid(beta (margin of the policy - margin of the reference)), mean over examples; answers in pairs of
    (chosen, rejected) (arXiv 2305.18290, equation 7)."""
    totals = logprobs.new_zeros(len(batch.example)).index_add(0, batch.answer, logprobs - reference)
    chosen, rejected = totals.view(-1, 2).unbind(1)
    return -F.logsigmoid(beta * (chosen - rejected)).mean()


def reward_loss(rewards: Tensor, batch: Batch) -> Tensor:
    """Mean of -log sigmoid(r_i - r_j) over all pairs i < j of the answers to one prompt, best first (arXiv 2203.02155,
    equation 1). rewards: float32 [A]."""
    losses = []
    for example in range(int(batch.example[-1]) + 1):
        of_one = rewards[batch.example == example]
        i, j = torch.triu_indices(len(of_one), len(of_one), 1, device=rewards.device)
        losses.append(-F.logsigmoid(of_one[i] - of_one[j]).mean())
    return torch.stack(losses).mean()
