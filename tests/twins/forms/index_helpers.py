"""``a[i * length + j]`` as ``a[at(i, j, length)]`` with a device function."""

from __future__ import annotations

from tests.twins.indices import with_calls
from tests.twins.tree import fresh, parse


def apply(text: str) -> str | None:
    name = fresh("at", parse(text))
    head = f"__device__ __forceinline__ int {name}(int i, int j, int ld)"
    return with_calls(text, name, f"{head} {{ return i * ld + j; }}\n")
