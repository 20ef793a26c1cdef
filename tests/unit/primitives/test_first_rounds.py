"""Loops of a block that begin with each thread's second element, begun at the first."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.first_rounds import first_rounds
from optiml_magic.kernels.primitives.raised import raised
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(b) block(64)
__global__ void k(const float* x, float* out, int n, int b) {
    __shared__ float red[64];
    int t = threadIdx.x;
    const float* row = x + blockIdx.x * 200;
    float m = t < n ? row[t] : 0.0f;
    for (int i = t + 64; i < n; i += 64) m = fmaxf(m, row[i]);
    red[t] = m;
    __syncthreads();
    for (int s = 32; s > 0; s /= 2) {
        if (t < s) red[t] = fmaxf(red[t], red[t + s]);
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = red[0];
}
"""
TAKEN = "m = fmaxf(m, row[i])"
SUM = (TAKEN, "m += row[i]", "fmaxf(red[t], red[t + s])", "red[t] + red[t + s]")


def text_of(*changes: str) -> str:
    text = TEXT
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text, old
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("n", [3, 63, 64])
@pytest.mark.parametrize(
    "changes",
    [
        (),
        ("row[t]", "row[t] - 9.0f", "row[i]", "row[i] - 9.0f"),  # threads without one have more
        (TAKEN, "if (row[i] > m) m = row[i]", ": 0.0f", ": -3.0f"),
        (TAKEN, "m = row[i] > m ? row[i] : m", ": 0.0f", ": -INFINITY"),
        ("fmaxf", "fminf"),
        SUM,
    ],
)
def test_first_elements_are_taken_in(changes: tuple[str, ...], n: int) -> None:
    before = text_of(*changes)
    assert "i = t;" in written(first_rounds(kernel_of(before)))
    after = written(raised(kernel_of(before)))
    arrays = {"x": Array("f4", ("b * 200",)), "out": Array("f4", ("b",), "zeros")}
    sizes, small = {"n": 171, "b": 3}, {"n": n, "b": 2}
    assert end_of(before, after, arrays, sizes, small, rounds=True) == "same"


@pytest.mark.parametrize(
    "changes",
    [
        (TAKEN, "if (i % 2) m = fmaxf(m, row[i])"),
        (TAKEN, "{ if (row[i] > 2.0f) continue; m = fmaxf(m, row[i]); }"),
        (TAKEN, "{ if (row[i] > 2.0f) break; m = fmaxf(m, row[i]); }"),
        (TAKEN, "{ m = fmaxf(m, row[i]); out[0] = i; }"),
        (TAKEN, "m = fmaxf(m, row[i] * 2.0f)"),
        (TAKEN, "m = fmaxf(fabsf(m), row[i])"),
        ("i < n", "i <= n"),
        ("t < n", "t < n - 1"),
        ("t < n", "t <= n"),
        ("i += 64", "i += 32"),
        ("t + 64", "t + 32"),
        (": 0.0f", ": row[0]"),
        (*SUM, ": 0.0f", ": 1.0f"),
        ("float m", "int m", "fmaxf(m, row", "max(m, (int)row"),
        ("m = fmaxf(m, row[i]);", "m = fmaxf(m, row[i]), n = n;"),
    ],
)
def test_other_loops_stay(changes: tuple[str, ...]) -> None:
    assert "no loop begins with the second" in refused(first_rounds(kernel_of(text_of(*changes))))


@pytest.mark.parametrize("use", ["out[t] = m;", "if (m > 0.0f) out[0] = 1.0f;"])
def test_a_thread_that_asks_for_its_own_part_is_not_raised(use: str) -> None:
    text = text_of("    if (t == 0)", f"    {use}\n    if (t == 0)")
    assert "part of what its threads combine" in refused(raised(kernel_of(text)))
