"""``a[i * length + j]`` as ``a[at(i, j, length)]`` with a device function."""

from __future__ import annotations

from tests.twins.indices import with_calls

_AT = "__device__ __forceinline__ int at(int i, int j, int ld) { return i * ld + j; }\n"


def apply(text: str) -> str | None:
    return with_calls(text, "at", _AT)
