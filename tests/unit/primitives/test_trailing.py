"""Counters that trail others, computed from these in each round."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.trailing import trailing
from tests.present import sampled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* x, const float* q, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0;
    %s
    out[i] = s;
}
"""
ARRAYS = {
    "x": Array("f4", ("n",)), "q": Array("f4", ("m",)), "out": Array("f4", ("n",), "zeros"),
}  # fmt: skip
ROUND = "s += q[a] * x[i] - q[b];"


def made(body: str) -> Kernel | Refused:
    return trailing(kernel_of(TEXT % body))


@pytest.mark.parametrize(
    "body",
    sampled(
        [
            f"for (int a = 0, b = m - 1; a < m; b = a++) {ROUND}",
            f"for (int a = 0, b = m - 1; a < m; b = a++) {{ if (q[a] > 0) continue; {ROUND} }}",
            f"int a, b; for (a = 0, b = m - 1; a < m; b = a++) {{ {ROUND} }}",
            f"int a = 0; int b = m - 1; for (a = 0; a < m; b = a++) {{ {ROUND} }}",
            f"int b = m - 1; for (int a = 0; a < m; a++) {{ {ROUND} b = a; }}",
            f"unsigned b = 0; for (unsigned a = 1; a < m; b = a, ++a) {{ {ROUND} }}",
            f"for (int a = m - 1, b = 0; a >= 0; b = a--) {ROUND}",
            f"for (int a = i % 3, b = i % m; a < m; b = a++) if (s < 100) {ROUND}",
            f"for (int k = 0; k < 3; k++) for (int a = 0, b = m - 1; a < m; b = a++) {ROUND}",
            f"for (int a = 0, b = m - 1; a < m; b = a++) {{ if (q[b] > 2) break; {ROUND} }}",
        ],
        3,
    ),
)
def test_it_is_computed(body: str) -> None:
    after = written(made(body))
    assert "== " in after
    sizes = {"n": 33, "m": 37}, {"n": 40, "m": 1}
    assert end_of(TEXT % body, after, ARRAYS, *sizes) == "same"


@pytest.mark.parametrize(
    "body",
    [
        f"for (int a = 0, b = m - 1; a < m; b = ++a) if (b < m) {ROUND}",
        f"for (int a = 0, b = m - 1; a < m; b = a++) {{ {ROUND} if (q[a] > 0) a++; }}",
        f"for (int a = 0, b = m - 1; a < m; b = a++) {{ {ROUND} b = 0; }}",
        f"int a, b; for (a = 0, b = m - 1; a < m; b = a++) {{ {ROUND} }} s += b;",
        f"int b = m - 1; for (int a = 0; a < m; a++) {{ if (q[a] > 0) continue; {ROUND} b = a; }}",
        f"int b = 0; for (int k = 0; k < 3; k++) for (int a = 0; a < m; b = a++) {{ {ROUND} }}",
        f"for (int a = 0, b = m - 1; a < m && b >= 0; b = a++) {ROUND}",
        f"int a; for (a = 0; a < m; a++) {{ int b = a; {ROUND} }}",
        f"short b = 0; for (int a = 0; a < m; b = a++) {{ {ROUND} }}",
        f"int b = 0; for (int a = 0; a < m; b = a, a += 2) {{ {ROUND} }}",
    ],
)
def test_it_stays_where_it_is_not_the_one_before(body: str) -> None:
    assert refused(made(body)) == "no counter trails another"
