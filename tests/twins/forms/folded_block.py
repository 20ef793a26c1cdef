"""A block of one axis as one of two, whose threads are numbered by hand."""

from __future__ import annotations

import re

from tests.twins.launching import LAUNCH, with_threads

_ONE = re.compile(r"block\((\d+)\)$", re.MULTILINE)


def apply(text: str) -> str | None:
    found = _ONE.findall(text)
    if len(found) != 1 or len(LAUNCH.findall(text)) != 1 or int(found[0]) % 8:
        return None
    wide = 32 if int(found[0]) > 32 and int(found[0]) % 32 == 0 else 8
    changed = with_threads(
        text,
        {
            "threadIdx.x": f"(threadIdx.y * {wide} + threadIdx.x)",
            "blockDim.x": "(blockDim.x * blockDim.y)",
        },
    )
    return changed and _ONE.sub(f"block({wide}, {int(found[0]) // wide})", changed)
