"""A thread's number in the grid from a device function."""

from __future__ import annotations

from tests.twins.indices import with_threads


def apply(text: str) -> str | None:
    return with_threads(
        text,
        "global_{}()",
        lambda axis, said: f"__device__ inline int global_{axis}() {{ return {said}; }}",
    )
