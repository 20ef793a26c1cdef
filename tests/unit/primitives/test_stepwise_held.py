"""Loops that count in their rounds, and what hides where their counters are: these stay."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.headed import headed
from optiml_magic.kernels.primitives.stepwise import stepwise
from optiml_magic.kernels.primitives.unstaged import unstaged
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const int* a, int* out, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= n) return;
    int s = 0, d = 1;
    DOES
    out[x] = s;
}
"""
ARRAYS = {"a": Array("i4", ("n",)), "out": Array("i4", ("n",), "zeros")}


@pytest.mark.parametrize(
    "does",
    [
        "int j = 5; for (int i = 0; i < 3; ++i) { s += j; j = 0; if (x % 2) continue; while (j < 4) { s += j; j++; } }",
        "int& r = d; int j = 0; while (j <= 4) { s += j; j += r; d++; }",
        "int& r = d; int j = r; d = 3; while (j < 5) { s += r; j++; }",
        "int j = 0; while (j <= 4) { if (x % 3 == 0) { int d = 2; j += d; continue; } s += j; j += d; }",
        "int j = -1; do { s += j; } while (++j < 3u);",
        "unsigned j = -1; do { s += j; } while (++j < 3);",
        "int j = 0; decltype(j) z = 2; while (j < 5) { s += z; j++; }",
        "int j = 0; while (j < 5) { s += sizeof(j); j++; }",
        "int j = 0;\n#define STEP 2\nwhile (j < 9) { s += j; j += STEP; }\n#undef STEP\n",
        "int j = 0; while (j < 5) { s += j; j++; if (j == 3) d = 4; }",
        "int j = 1, q[2]{j, j + 1}; while (j < 5) { s += q[j % 2]; j++; }",
        "int j = 1, q[2] = {j, j + 1}; while (j < 5) { s += q[j % 2]; j++; }",
    ],
)
def test_they_stay_or_do_the_same(does: str) -> None:
    before = TEXT.replace("DOES", does)
    made = stepwise(kernel_of(before))
    if isinstance(made, Kernel):
        assert end_of(before, written(made), ARRAYS, {"n": 100}, {"n": 1}) == "same"


@pytest.mark.parametrize(
    "does",
    [
        "int b = 0, i = blockIdx.x * 64 + threadIdx.x + b, e = b++; for (; i < n; i += 128) out[i] = b + e;",
        "int d = 64; int& r = d; int i = blockIdx.x * 64 + threadIdx.x + r - 64; d = 70; for (; i < n; i += 128) out[i] = 1;",
        "int d = 1; { int i = blockIdx.x * 64 + threadIdx.x + d - 1, d = 7; for (; i < n; i += 128) out[i] = d; }",
        "int i = blockIdx.x * 64 + threadIdx.x, q[2] = {i, i + 1}; for (; i < n; i += 128) out[i] = q[i % 2];",
        "int i = blockIdx.x * 64 + threadIdx.x; decltype(i) z = 3; for (; i < n; i += 128) out[i] = z;",
        "int i = blockIdx.x * 64 + threadIdx.x; for (; i < n; i += 128) { int q = i; int i = 3; out[q] = i; }",
    ],
)
def test_counters_whose_names_mean_more_stay_in_front(does: str) -> None:
    before = f"""\
#pragma optiml launch k grid(2) block(64)
__global__ void k(const int* a, int* out, int n) {{
    {does}
}}
"""
    made = headed(kernel_of(before))
    if isinstance(made, Kernel):
        assert end_of(before, written(made), ARRAYS, {"n": 300}, {"n": 1}) == "same"


def test_a_guarded_block_that_ends_the_kernel_is_still_a_guard() -> None:
    before = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const int* a, int* out, int n) {
    __shared__ int s[32];
    int t = threadIdx.x, i = blockIdx.x * 32 + t;
    s[t] = i < n ? a[i] : 0;
    __syncthreads();
    if (i < n) {
        out[i] = s[31 - t];
        return;
    }
}
"""
    made = unstaged(kernel_of(before))
    if isinstance(made, Kernel):
        assert end_of(before, written(made), ARRAYS, {"n": 75}, {"n": 1}) == "same"
