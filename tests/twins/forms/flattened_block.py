"""A block of two axes as one of one axis, its places from the quotient and the rest."""

from __future__ import annotations

import re

from tests.twins.launching import LAUNCH, with_threads

_TWO = re.compile(r"block\((\d+), (\d+)\)$", re.MULTILINE)


def apply(text: str) -> str | None:
    found = _TWO.findall(text)
    if len(found) != 1 or len(LAUNCH.findall(text)) != 1:
        return None
    wide, high = found[0]
    changed = with_threads(
        text,
        {
            "threadIdx.x": f"(threadIdx.x % {wide})",
            "threadIdx.y": f"(threadIdx.x / {wide})",
            "blockDim.x": wide,
            "blockDim.y": high,
        },
    )
    return changed and _TWO.sub(f"block({int(wide) * int(high)})", changed)
