"""Numbers and names as people read and write them."""

from __future__ import annotations

import re


def bytes_text(count: int) -> str:
    """1234567 -> "1.2 MiB"; whole numbers stay whole."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            break
        value /= 1024
    else:
        unit = "TiB"
    return f"{value:.0f} {unit}" if value == int(value) or value >= 100 else f"{value:.1f} {unit}"


def ratio_text(value: float) -> str:
    """11.04 -> "11.0", 2048.0 -> "2,048"."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def percent_text(part: int, whole: int) -> str:
    """85.1 for 851 of 1000; as many digits as it takes not to call nearly all 100.0, nor nearly nothing 0.0."""
    value = 100 * part / whole
    if part in (0, whole):
        return f"{value:.1f}"
    return next(text for digits in range(1, 20) if 0 < float(text := f"{value:.{digits}f}") < 100)


def heads_text(count: int) -> str:
    """ "1 head", "32 heads"."""
    return f"{count} head{'s' * (count != 1)}"


def tile_of(text: str, largest: int) -> tuple[int, int] | None:
    """ "128 × 64", "128x64" or "128" -> (rows, columns), each from 1 to `largest`; None if it is no such tile."""
    number = f"([0-9]{{1,{len(str(largest))}}})"
    found = re.fullmatch(rf"\s*{number}\s*(?:[x×*,]\s*{number}\s*)?", str(text))
    if not found:
        return None
    rows, columns = int(found[1]), int(found[2] or found[1])
    return (rows, columns) if 1 <= rows <= largest and 1 <= columns <= largest else None


def plain(text: str) -> str:
    """A text that Markdown shows as it is."""
    return re.sub(r"([\\`*_\[\]<>#|~$]|:(?=[a-z+/-])|(?<=www)\.)", r"\\\1", text)


def numbers_of(text: str, name: str, example: str) -> tuple[int, ...]:
    """The whole numbers of a typed list, split by commas or spaces. ValueError naming the first word that is none, or
    that begins with 0 as the end of "10 000" does."""
    words = [word for word in re.split(r"[\s,;]+", text) if word]
    for i, word in enumerate(words):
        if not re.fullmatch("0|[1-9][0-9]{0,8}", word):
            grouped = i and re.fullmatch("0[0-9]{2}", word)
            hint = f" after {words[i - 1][:40]!r}; one number is written without spaces or commas" if grouped else ""
            raise ValueError(f"{name}: wanted numbers such as {example}, got {word[:40]!r}{hint}")
    return tuple(map(int, words))
