"""Branches that do nothing but count, as sums of their tests."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.tallied import tallied
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

PAIRS = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* x, int* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long more = 0;
    int less = 0, both = 0;
    for (int j = 0; j < n; ++j) {
        float s = x[i] - x[j];
        BODY
    }
    out[i] = (int)more - 3 * less + 7 * both;
}
"""
ARRAYS = {"x": Array("f4", ("n",)), "out": Array("i4", ("n",), "zeros")}
COUNTED = {
    "if (s > 0.1f) more++;": "more += s > 0.1f;",
    "if (s > 0) more++; else if (s < 0) ++less;": "less += !(s > 0) && s < 0;",
    "if (s > 0.1f && j > i) { more += 2; both++; }": "more += s > 0.1f && j > i ? 2 : 0;",
    "if (j < i) less++; else more++;": "more += j >= i;",
    "if (s > 0) { if (j % 2 == 0) less += 3; else both++; }": "less += s > 0 && j % 2 == 0 ? 3 : 0;",
    "if (s != s) more++; else if (s <= 0) less++; else both++;": "both += !(s != s) && !(s <= 0);",
    "if (j & 2) more++; else less++;": "more += (j & 2) != 0;",
    "if (s) both++;": "both += s != 0;",
}  # fmt: skip
OTHER = [
    "if (s > 0.1f) { more++; s = 0.0f; }",
    "if (x[j] > 0.1f) more++;",
    "if (less < 3) less++;",
    "if (s > 0.1f) more += j;",
    "if (s > 0.1f) more--;",
    "if (s > 0.1f) more++; else break;",
    "if (less++ > 3) more++;",
    "const int& seen = both; if (seen < 3) { both++; less++; }",
]


@pytest.mark.parametrize("body", COUNTED)
def test_counters_add_tests(body: str) -> None:
    text = PAIRS.replace("BODY", body)
    after = written(tallied(kernel_of(text)))
    assert COUNTED[body] in after
    assert "if (s" not in after
    assert "if (j" not in after
    assert end_of(text, after, ARRAYS, {"n": 70, "m": 2}, {"n": 33, "m": 1}) == "same"


@pytest.mark.parametrize("body", OTHER)
def test_branches_that_do_more_stay(body: str) -> None:
    assert "nothing but count" in refused(tallied(kernel_of(PAIRS.replace("BODY", body))))
