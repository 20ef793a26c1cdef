"""Structures that loads no longer go through, and those that something is still asked of."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.unasked import unasked

from .alike import kernel_of, refused, written

TEXT = """\
struct Part { int width; float* at; };
#pragma optiml launch k grid(1) block(64)
__global__ void k(float* a, int n) {
    Part one;
    one.width = n;
    one.at = a;
    Part other = one;
    %s
    a[threadIdx.x] = 1;
}
"""


def test_they_go_with_what_sets_them_and_numbers_for_these() -> None:
    after = written(unasked(kernel_of(TEXT % "const int far = n * 2; other.width = far;")))
    assert "Part one" not in after
    assert "Part other" not in after
    assert "far" not in after
    assert "a[threadIdx.x] = 1;" in after


@pytest.mark.parametrize(
    "use",
    [
        "a[3] = other.width;", "other.at[2] = 5;", "other.width += 2; a[2] = other.width;",
        "other.width = atomicAdd((int*)a, 1);",
    ],
)  # fmt: skip
def test_what_is_asked_for_stays(use: str) -> None:
    assert refused(unasked(kernel_of(TEXT % use)))


def test_what_a_reference_sets_is_somebody_elses() -> None:
    text = """\
struct Part { int width; float at; };
#pragma optiml launch k grid(1) block(64)
__global__ void k(Part* parts, int n) {
    Part& one = parts[threadIdx.x];
    one.width = n;
    one.at = 2.0f;
}
"""
    assert refused(unasked(kernel_of(text)))
