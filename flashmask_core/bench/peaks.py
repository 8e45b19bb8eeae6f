"""The most a card can do by its data sheet, to tell a time that cannot be right."""

from __future__ import annotations

import re

from .result import DeviceInfo

# Dense TFLOP/s of the tensor cores in bfloat16 or float16 with fp32 sums: half of what NVIDIA's data sheet of the product
# says "with sparsity"; of GeForce cards the table of the architecture's white paper. By the name that the driver gives,
# as whole words: the first that fits holds, so a longer name stands before a shorter one. Cards of which no such figure
# is sure are left out, since a wrong one would accuse a right time.
_HALF = (
    ("GB300", 2500.0), ("GB200", 2500.0), ("B300", 2250.0), ("B200", 2250.0), ("B100", 1750.0),
    ("GH200", 990.0), ("H200 NVL", 836.0), ("H200", 990.0), ("H100 NVL", 836.0), ("H100 PCIe", 757.0), ("H100", 990.0),
    ("H800 PCIe", 757.0), ("H800", 990.0), ("H20", 148.0),
    ("A100", 312.0), ("A800", 312.0), ("A40", 150.0), ("A30", 165.0), ("A10", 125.0), ("RTX A6000", 155.0),
    ("L40S", 362.0), ("L40", 181.0), ("L4", 121.0), ("RTX 6000 Ada", 364.0),
    ("RTX 5090", 210.0), ("RTX 5080", 113.0), ("RTX 4090", 165.0), ("RTX 4080", 98.0), ("RTX 3090", 71.0),
    ("RTX 3080", 60.0),
)  # fmt: skip
_OTHER_CARD = r"(?! ?(?:Ti|SUPER|D|Laptop|Max)\b)"  # behind the name of a GeForce: another card
_SLACK = 1.05  # a card may clock a little above the data sheet's boost


def peak_tflops(device: str, dtype: str) -> float | None:
    """Dense TFLOP/s that a device can do in a dtype at most; None for a card that is not in the list.

    float32 is taken as TF32, half the rate: whoever computes exactly stays far below it.
    """
    half = next((rate for name, rate in _HALF if re.search(rf"\b{name}\b{_OTHER_CARD}", device)), None)
    return None if half is None else half / 2 if dtype == "float32" else half


def unknown_peak(where: DeviceInfo | None) -> str | None:
    """That a device's rates are held against nothing; None where its peak is known."""
    if where is None or peak_tflops(where.device, "bfloat16"):
        return None
    return f"The peak of {where.device} is not in this program's list, so a rate above it is not flagged."


def doubt(where: DeviceInfo | None, dtype: str, tflops_density: float, tflops_rho: float) -> str | None:
    """Why a rate cannot be right: it is above the card's peak. None where it can, or the card is not known.

    tflops_density counts only what every engine has to compute, so nothing explains it; tflops_rho can be too high for
    an engine that skips parts of the tiles it counts, which is said.
    """
    peak = peak_tflops(where.device, dtype) if where else None
    if peak is None:
        return None
    limit = f"above the {peak:,.0f} that the data sheet gives for {where.device} in {dtype}"
    if tflops_density > _SLACK * peak:
        return f"{tflops_density:,.0f} TFLOP/s of visible pairs are {limit}: this time cannot be right"
    if tflops_rho > _SLACK * peak:
        return f"{tflops_rho:,.0f} TFLOP/s of counted tiles are {limit}: it must skip parts of them, or the time is wrong"
    return None
