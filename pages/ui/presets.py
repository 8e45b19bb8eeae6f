"""The chips over the picture: well-known masks, scaled to the length on the screen."""

from __future__ import annotations

from flashmask_core.masks.patterns import PATTERNS

DEFAULT_TEXT = "causal & document(2481, 1388, 1978, 2345)"


def _shares(n: int, *weights: int) -> list[int]:
    """n tokens split in proportion to the weights; the last part takes the rest."""
    parts = [n * w // sum(weights) for w in weights]
    parts[-1] += n - sum(parts)
    return parts


def _documents(n: int) -> str:
    return f"causal & document({', '.join(map(str, _shares(n, 2481, 1388, 1978, 2345)))})"


def _shared_question(n: int) -> str:
    first, second, third = _shares(n, 5, 4, 3)
    groups = [_shares(first, 3, 2, 2), _shares(second, 2, 1, 1, 1), _shares(third, 4, 2, 1)]
    return f"share_question({', '.join('(' + ', '.join(map(str, g)) + ')' for g in groups)})"


def _blockwise(n: int) -> str:
    return f"causal_blockwise({', '.join(map(str, _shares(n, 3, 2, 3, 1)))})"


def _qk_sparse(n: int) -> str:
    return f"qk_sparse(({n // 8}, {n // 6}), ({n // 2}, {n // 5}))"


def _frames(n: int) -> str:
    return f"frames(8, {max(1, n // 8)}, 1, (0, 4))" if n >= 8 else "frames(1, 1, 1, (0,))"


PRESETS = {
    "causal": lambda n: "causal",
    "sliding window": lambda n: f"sliding_window({max(1, n // 16)})",
    "packed documents": lambda n: DEFAULT_TEXT if n == 8192 else _documents(n),
    "shared question (DPO)": _shared_question,
    "prefix LM": lambda n: f"prefix_lm({n // 3})",
    "global + window": lambda n: f"global_sliding_window({n // 16}, {n // 12}, {n // 12})",
    "blockwise": _blockwise,
    "QK-sparse": _qk_sparse,
    "eviction": lambda n: f"random_eviction({n // 2}, 0)",
    "video frames": _frames,
    "attention sink": lambda n: f"sliding_window({max(1, n // 10)}) | causal & (k < {max(1, n // 64)})",
    "block diffusion": lambda n: f"block_diffusion({n // 2}, {max(1, n // 16)})" if n > 1 else "causal",
}


def matching(text: str, n: int) -> str | None:
    """The preset that gives this text at this length."""
    return next((name for name, make in PRESETS.items() if make(n) == text.strip()), None)


def argument_texts(name: str, n: int) -> list[str]:
    """A pattern's arguments for a good picture of n tokens, as they are typed, one a parameter."""
    pattern = PATTERNS[name]
    given = pattern.example(n)
    texts = []
    for index, parameter in enumerate(pattern.parameters):
        if parameter.variadic:
            texts.append(", ".join(map(_plain, given[index:])))
        else:
            texts.append(_plain(given[index]) if index < len(given) else _plain(parameter.default))
    return texts


def pattern_text(name: str, n: int) -> str:
    """The pattern with those arguments."""
    arguments = ", ".join(text for text in argument_texts(name, n) if text)
    return f"{name}({arguments})" if arguments else name


def _plain(value) -> str:
    if isinstance(value, (tuple, list)):
        inner = ", ".join(map(_plain, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return str(value)
