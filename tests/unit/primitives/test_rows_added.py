"""Threads that add to an element of their row, as a thread for each row."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.rows_added import rows_added
from optiml_magic.model.facts import LaunchFacts
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml zero(y)
#pragma optiml launch k grid(cdiv(n, 16), cdiv(m, 16)) block(16, 16)
__global__ void k(const float* a, const float* x, float* y, int* most, int m, int n) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < m && c < n) {
        float v = a[row * n + c];
        BODY
    }
}
"""
LINE = """\
#pragma optiml zero(y)
#pragma optiml launch k grid(cdiv(m * n, 64)) block(64)
__global__ void k(const float* a, const float* x, float* y, int* most, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m * n) return;
    int row = i / n, c = i % n;
    float v = a[i];
    BODY
}
"""
BODY = "if (v != 0.0f) atomicAdd(&y[row], v * x[c]);"
ARRAYS = {
    "a": Array("f4", ("m", "n")),
    "x": Array("f4", ("n",)),
    "y": Array("f4", ("m + 1",), "zeros"),
    "most": Array("i4", ("m",), "positive"),
}
SIZES, SMALL = {"m": 37, "n": 61}, {"m": 1, "n": 1}


@pytest.mark.parametrize("text", [TEXT, LINE])
@pytest.mark.parametrize(
    "body",
    [
        BODY,
        "atomicAdd(&y[row], v); atomicMax(&most[row], (int)v);",
        "atomicAdd(y + row, v); if (v > 0) atomicSub(&y[row + 1], v);",
        "if (v < 0.0f) return; " + BODY,
        "if (c > row) { " + BODY + " } else atomicAdd(&y[row], 1.0f);",
    ],
)
def test_a_thread_adds_up_its_row(text: str, body: str) -> None:
    before = text.replace("BODY", body)
    if "row + 1" in body:
        before = before.replace("if (v > 0) atomicSub(&y[row + 1], v)", "atomicMin(&most[row], c)")
    after = rows_added(kernel_of(before))
    assert "y_part" in written(after)
    assert end_of(before, written(after), ARRAYS, SIZES, SMALL, rounds=True) == "same"


@pytest.mark.parametrize(
    ("m", "n", "reason"), [(300, 40, ""), (255, 4000, "few rows"), (3000, 31, "rows are short")]
)
def test_there_is_enough_to_share(m: int, n: int, reason: str) -> None:
    kernel = kernel_of(TEXT.replace("BODY", BODY))
    grid = (-(-n // 16), -(-m // 16), 1)
    facts = LaunchFacts("k", 1, grid, (16, 16, 1), {}, {"m": m, "n": n})
    made = rows_added(replace(kernel, facts=facts))
    assert "y_part" in written(made) if not reason else reason in refused(made)


@pytest.mark.parametrize("text", [TEXT, LINE])
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("atomicAdd(&y[c], v);", "no rounds of a loop update one place"),
        ("atomicAdd(&y[(int)v], 1.0f);", "no rounds of a loop update one place"),
        ("atomicAdd(&y[row + c / 32], v);", "no rounds of a loop update one place"),
        ("atomicAdd(&y[0], v);", "several rows"),
        ("atomicMax(&most[row], (int)v); atomicAdd(&y[c], v);", "several places"),
        ("y[row] = v;", "stores as well"),
        (BODY + " y[row] = v;", "touched in another way"),
        (BODY + " most[row] = 1;", "stores as well"),
        ("if (y[row] < 5.0f) " + BODY, "touched in another way"),
        ("float old = atomicAdd(&y[row], v); if (old > 3) atomicAdd(&most[row], 1);", "is used"),
        ("for (int k = 0; k < c; k++) " + BODY, "loop of its own"),
        ("atomicAdd(&y[row], v); atomicExch(&most[row], c);", "order"),
        ("atomicAdd(&y[row], v * threadIdx.x);", "more than its index"),
        ("atomicAdd(&y[row], v * __shfl_xor_sync(~0u, v, 1));", "exchange"),
        ("__syncthreads(); " + BODY, "wait"),
        ("atomicAdd_system(&y[row], v);", "beyond the device"),
    ],
)
def test_not_where_they_do_more(text: str, body: str, reason: str) -> None:
    assert reason in refused(rows_added(kernel_of(text.replace("BODY", body))))
