"""``a[i * length + j]`` as ``a[IDX(i, j, length)]`` with a macro."""

from __future__ import annotations

from tests.twins.indices import with_calls


def apply(text: str) -> str | None:
    return with_calls(text, "IDX", "#define IDX(i, j, ld) ((i) * (ld) + (j))\n")
