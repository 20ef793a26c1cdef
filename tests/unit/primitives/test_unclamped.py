"""Loops over windows that borders cut off make the same rounds for all threads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.unclamped import unclamped
from optiml_magic.model.facts import LaunchFacts
from tests.present import sampled

from .running import same
from .shapes import applied, kernel, refused

_KERNEL = """\
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 4)) block(16, 4)
__global__ void k(const float* a, float* out, int w, int h, int r) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float s = 0.0f;
    %s
    out[y * w + x] = s;
}
"""
SHAPES = {"a": ("h", "w"), "out": ("h", "w")}
SIZES = {"w": 21, "h": 10, "r": 3}


def _found(body: str, r: int = 3):
    facts = LaunchFacts("k", 1, (2, 3, 1), (16, 4, 1), {}, SIZES | {"r": r})
    return replace(kernel(_KERNEL % body), facts=facts)


@pytest.mark.parametrize(
    "body",
    sampled(
        [
            "for (int q = max(x - 2, 0); q <= min(x + 2, w - 1); ++q) s += a[y * w + q];",
            "for (int q = max(0, x - r); q < min(w, x + r); q++) { s += a[y * w + q]; }",
            (
                "int from = x - r, to = min(from + r, w); from = max(from, 0);"
                " for (int q = from; q < to; ++q) { if (q == x) continue; s += a[y * w + q] * (to - from); }"
            ),
            (
                "for (int p = max(y - 1, 0); p < min(y + 2, h); ++p)"
                " for (int q = max(x - 1, 0); q < min(x + 2, w); ++q) s += a[p * w + q];"
            ),
            "for (int q = x; q < min(x + 4, w); ++q) s += a[y * w + q];",
            "int f = r / 2; for (int q = max(x - f, 0); q <= min(x + f, w - 1); ++q) s += a[y * w + q];",
            "int b = blockIdx.x; for (int q = max(b - 1, 0); q < min(b + r, w); ++q) s += a[y * w + q];",
        ],
        2,
    ),
)
def test_a_window_keeps_its_elements_in_their_order(body: str) -> None:
    made = applied(unclamped(_found(body)))
    assert "max(" not in "".join(line for line in made.program.text.splitlines() if "for (" in line)
    same(_KERNEL % body, made, SHAPES, SIZES)


@pytest.mark.parametrize(
    "body",
    [
        "for (int q = x - 2; q <= x + 2; ++q) if (q >= 0 && q < w) s += a[y * w + q];",
        "for (int q = x - 2; q <= x + 2; ++q) { decltype(q) z = q; z += 1; s += z; }",
        "for (long long q = x - 2; q <= x + 2; ++q) s += q;",
        "int q; for (int p = y; p < y + r; ++p) { q = x; if (p >= h) continue; s += a[p * w + q]; }",
        (
            "for (unsigned q = x; q < x + 2; ++q) if (q < w) s += a[y * w + q];"
            " for (int q = x - 1; q < x + 1; ++q) if (q >= 0) s += a[y * w + q] * 2;"
        ),
    ],
)
def test_a_window_that_goes_beyond_the_borders(body: str) -> None:
    made = applied(unclamped(_found(body)))
    assert "k_2 = 0; k_2 < " in made.program.text
    same(_KERNEL % body, made, SHAPES, SIZES)


@pytest.mark.parametrize(
    "body",
    [
        "int b = blockIdx.x; for (int q = b; q < b + 2; ++q) s += a[q];",
        "for (unsigned q = x; q < x + 2; ++q) if (q < w) s += a[y * w + q];",
        "for (int q = x; q < x + 2; ++q) { if (q < w) s += a[y * w + q]; if (s > 9) return; }",
        "for (int q = x; q < 2 * x + 2; ++q) if (q < w) s += a[y * w + q];",
        "for (int q = 0; q < min(x + 2, w); ++q) s += a[y * w + q];",  # another number for each
        "for (int q = max(x - 2, 0); q < w; ++q) s += a[y * w + q];",
        "for (int q = max(x - 2, 0); q < min(y + 3, w); ++q) s += a[y * w + q];",
        "for (unsigned q = max(x - 2, 0); q < min(x + 3, w); ++q) s += a[y * w + q];",
        "for (int q = max(x - 2, 0); q < min(x + 3, w); ++q) { s += a[y * w + q]; if (s > 9) break; }",
        "for (int q = max(x - 2, 0); q < min(x + 3, w); ++q) { s += a[y * w + q]; if (s > 9) ++q; }",
        "for (int q = max(x - 2, 0); q < min(x + 3, w); q += 2) s += a[y * w + q];",
        "for (int q = min(x + 2, w - 1); q >= max(x - 2, 0); --q) s += a[y * w + q];",
        "unsigned u = x; for (int q = u - 5; q < min(u - 2, w); ++q) s += a[y * w + q];",
        "unsigned u = 2; for (int q = max(x - u, 0u); q < min(x + 3, w); ++q) s += a[y * w + q];",
        "for (int q = 0; q < 5; ++q) s += a[y * w + q];",
        "for (long long q = (long long)x * w; q < (long long)x * w + 4; ++q) s += q >> 20;",
        "for (long long q = 1000000000LL * x; q < 1000000000LL * x + 4; ++q) s += q >> 20;",
        "long long v = x; for (long long q = v * w - 2; q < v * w + 2; ++q) s += q >> 20;",
        "long long b = (long long)x * w, q; for (q = b; q < b + 4; ++q) s += q >> 20;",
        "long long b = (long long)x * w; for (long long q = b; q < b + 4; ++q) s += q >> 20;",
        "long long b = (long long)x * w; for (int q = b / 9; q < b / 9 + 4; ++q) s += q;",
        "for (int q = x; q < x + 2; ++q) { int& p = q; s += p; }",
        "const int* p = &x; for (int q = x; q < x + 2; ++q) { s += *p; p = &q; }",
    ],
)
def test_other_loops_stay(body: str) -> None:
    assert refused(unclamped(_found(body)))


def test_a_long_window_stays() -> None:
    body = "for (int q = max(0, x - r); q < min(w, x + r); q++) s += a[y * w + q];"
    assert refused(unclamped(_found(body, r=100)))
