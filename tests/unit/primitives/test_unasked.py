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


NUMBERS = """\
#pragma optiml launch k grid(1) block(64)
__global__ void k(float* a, int n) {
    int i = threadIdx.x;
    %s
    a[i] = 1.0f;
}
"""


@pytest.mark.parametrize(
    "steps",
    [
        "float m = a[i]; m = expf(a[0]);",
        "float m = 0.0f; if (n > 2) m = 1.0f; else a[3] = 2.0f;",
        "float m; for (int j = 0; j < n; j++) m = j;",
    ],
)
def test_numbers_go_where_they_may(steps: str) -> None:
    text = NUMBERS % steps
    assert " m " not in written(unasked(kernel_of(text), numbers=True))
    assert "each structure" in refused(unasked(kernel_of(text)))


@pytest.mark.parametrize(
    "steps",
    [
        "float m = atomicAdd(&a[0], 1.0f);",
        "float m = 1.0f; m += 2.0f;",
        "float m = 1.0f; float* p = &m; a[2] = *p;",
        "float m = 1.0f; auto f = [&]() { return m; }; a[2] = f();",
        "float m = 2.0f; decltype(m) b = 3.7f; a[2] = b;",
        "const int m = 4;\n#pragma unroll m\n    for (int j = 0; j < n; j++) a[j] += 1.0f;",
        "for (int m = 0; ; ) { a[2] = 3.0f; break; }",
    ],
)
def test_numbers_that_stay(steps: str) -> None:
    assert "each structure" in refused(unasked(kernel_of(NUMBERS % steps), numbers=True))


def test_a_function_of_the_text_s_own_may_do_more() -> None:
    own = "__device__ int abs(float* a, int i) { a[i] = 3.0f; return 1; }\n"
    text = own + NUMBERS % "int m = abs(a, 3);"
    assert "each structure" in refused(unasked(kernel_of(text), numbers=True))
