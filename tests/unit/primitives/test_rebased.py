"""Loops of a block over its row, counted from where the row begins."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.rebased import rebased
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(m) block(64)
__global__ void k(const float* a, const int* at, float* out, int m, int n) {
    __shared__ float part[64];
    int t = threadIdx.x;
    BODY
}
"""
HEAD = "int start = blockIdx.x * n, end = start + n; "
LOOP = "for (int i = start + t; i < end; i += blockDim.x) "
NAMED = (
    "int row = blockIdx.x, i_row = 3; "
    "for (int i = row * n + threadIdx.x; i < row * n + n; i += blockDim.x) out[i] = a[i] * i_row;"
)
STORE = "out[i] = a[i] * 2 + (i - start) + i % 7;"
SUM = (
    "float s = 0; for (int i = start + t; i < end; i += 64) s += a[i]; part[t] = s; "
    "__syncthreads(); for (int i = blockIdx.x * n + threadIdx.x; i < (blockIdx.x + 1) * n; "
    "i = i + blockDim.x) { out[i] = a[i] - part[(t + 1) % 64]; }"
)


def made(body: str) -> tuple[str, Kernel]:
    text = TEXT.replace("BODY", body)
    found = rebased(kernel_of(text))
    assert isinstance(found, Kernel), found
    return text, found


@pytest.mark.parametrize(
    "body",
    [
        HEAD + LOOP + STORE,
        HEAD + "\n#pragma unroll 2\n" + LOOP + STORE,
        HEAD + LOOP + "{ if (a[i] > 0.5f) continue; " + STORE + " }",
        HEAD + LOOP + "{ if (i - start > 70) break; " + STORE + " }",
        HEAD + LOOP + "{ const int& r = i; int k = r; out[k] = a[r]; }",
        HEAD + LOOP + "for (int j = 0; j < 3; ++j) out[i] += a[i] * j;",
        HEAD + "end -= n / 3; " + LOOP + STORE,
        HEAD + SUM,
        "for (int i = blockIdx.x * n + t; i < (int)blockIdx.x * n + n; i += 64) out[i] = a[i] + t;",
        NAMED,
        HEAD + "if (n > 9) { " + LOOP + STORE + " } else " + LOOP + "out[i] = 1;",
    ],
)  # fmt: skip
@pytest.mark.parametrize("n", [1, 63, 171])
def test_they_touch_what_they_did(body: str, n: int) -> None:
    before, found = made(body)
    after = written(found)
    assert "_row" in after
    arrays = {
        "a": Array("f4", ("m", "n")), "at": Array("i4", ("m",), "zeros"),
        "out": Array("f4", ("m", "n"), "zeros"),
    }  # fmt: skip
    assert end_of(before, after, arrays, {"m": 3, "n": n}, {"m": 2, "n": 65}) == "same"


@pytest.mark.parametrize(
    "body",
    [
        "for (int i = t; i < n; i += 64) out[blockIdx.x * n + i] = a[i];",  # it counts so already
        "for (int i = blockIdx.x * 64 + t; i < m * n; i += 64 * gridDim.x) out[i] = a[i];",
        "for (int i = at[blockIdx.x] + t; i < at[blockIdx.x + 1]; i += 64) out[i] = a[i];",
        HEAD + LOOP + "{ out[i] = a[i]; end -= i > 90; }",
        HEAD + LOOP + "{ out[i] = a[i]; i += a[i] > 0.5f; }",
        HEAD + "for (int i = start + t; i <= end - 1; i += 64) out[i] = a[i];",
        HEAD + "for (int i = start + t; i != end; i += 1) out[i] = a[i];",
        HEAD + "for (unsigned i = start + t; i < end; i += 64) out[i] = a[i];",
        HEAD + "for (short i = start + t; i < end; i += 64) out[i] = a[i];",
        HEAD + "for (int i = start + t * 2; i < end; i += 128) out[i] = a[i];",
        HEAD + "for (int i = end - 1 - t; i >= start; i -= 64) out[i] = a[i];",
        HEAD + "int i; for (i = start + t; i < end; i += 64) out[i] = a[i]; out[t] = i;",
        HEAD + "end = min(end, start + 50); " + LOOP + STORE,
        HEAD + LOOP + "{ int n = i + 1, j = n; out[i] = a[i] + j; }",  # another n
        HEAD + LOOP + "{ { float i = a[0]; out[t] = i; } }",
        "int start = blockIdx.x * n; for (int i = start + t; i < m * n; i += 64) out[i] = a[i];",
    ],
)
def test_others_stay(body: str) -> None:
    assert refused(rebased(kernel_of(TEXT.replace("BODY", body)))) == (
        "no loop begins where the row of its block does"
    )
