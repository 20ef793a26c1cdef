"""Threads that begin within a row, begun where a sector does."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.begun_aligned import begun_aligned
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
const int R = 3;
#pragma optiml launch k grid(cdiv(COUNT, 32), m) block(32)
__global__ void k(const float* a, const int* at, float* out, int m, int n, int d, unsigned u) {
    BODY
}
"""
INDEX = "blockIdx.x * blockDim.x + threadIdx.x"
LEFT = "if (j >= n) return; "
STORE = "out[blockIdx.y * n + j] = a[blockIdx.y * n + j - 1] + j;"
ARRAYS = {
    "a": Array("f4", ("m", "n")), "at": Array("i4", ("m",), "zeros"),
    "out": Array("f4", ("m", "n"), "zeros"),
}  # fmt: skip


def text_of(body: str, count: str = "n - 1") -> str:
    return TEXT.replace("BODY", body).replace("COUNT", count)


@pytest.mark.parametrize(
    ("body", "count", "begins", "guard"),
    [
        (f"int j = {INDEX} + 1; {LEFT}{STORE}", "n - 1", f"{INDEX};", "j < 1"),
        (f"int j = 1 + ({INDEX}); if (j < n) {{ {STORE} }}", "n - 1", f"{INDEX};", "j < 1"),
        (f"int j = {INDEX} + 1; {LEFT}{STORE}", "n", f"{INDEX};", "j < 1"),  # more than needed
        (f"int j = {INDEX} + R; {LEFT}{STORE}", "n - 3", f"{INDEX};", "j < 3"),
        (f"int j = {INDEX} + 33 + R; {LEFT}{STORE}", "n - 36", f"{INDEX} + 32;", "j < 36"),
        (
            f"int j = {INDEX} + d + 1, r = blockIdx.y; {LEFT}{STORE}", "n - d - 1",
            f"{INDEX} + ((d + 1) / 32 * 32), r", "j < d + 1",
        ),
        (
            f"const auto j = (int)({INDEX}) + d; if (j > n - 1) return; if (j > 2) {{ {STORE} }}",
            "n - d", f"(int)({INDEX}) + (d / 32 * 32);", "j < d",
        ),
        (
            f"unsigned j = {INDEX} + u; {LEFT}if (j > 0) {{ {STORE} }}", "n - u",
            f"{INDEX} + (u / 32 * 32);", "j < u",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("d", [0, 5, 31, 32, 70])
def test_they_leave_what_they_did(body: str, count: str, begins: str, guard: str, d: int) -> None:
    before = text_of(body, count)
    found = begun_aligned(kernel_of(before))
    assert isinstance(found, Kernel), found
    after = written(found)
    assert f"j = {begins}" in after
    assert f"if ({guard}) return;" in after
    assert ("require d >= 0" in after) == (" + d" in body)
    for n in (d + 37, 97, 128):
        sizes = {"m": 2, "n": n, "d": d, "u": d}
        assert end_of(before, after, ARRAYS, sizes, {"m": 1, "n": 40, "d": 3, "u": 1}) == "same"


BEGINS = "its threads begin with the first element"
COUNTS = "how many items there are its guards do not say as its launch does"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"int j = {INDEX}; {LEFT}{STORE}", BEGINS),
        (f"int i = {INDEX}; int j = i + 1; {LEFT}{STORE}", BEGINS),
        (f"int j = {INDEX} + 1, i = {INDEX}; {LEFT}{STORE}", BEGINS),
        (f"int j = {INDEX} + 1; {LEFT}j += 1; if (j < n) {{ {STORE} }}", BEGINS),
        (f"int j = {INDEX} + m * 2; {LEFT}{STORE}", COUNTS),
        (f"int j = {INDEX} + at[0]; {LEFT}{STORE}", COUNTS),
        (f"int j = {INDEX} - 1; {LEFT}{STORE}", COUNTS),
        (f"out[0] = 1; int j = {INDEX} + 1; {LEFT}{STORE}", COUNTS),
        (f"float x = a[0]; int j = {INDEX} + 1; {LEFT}{STORE}", COUNTS),
        (f"int j = {INDEX} + 1; if (blockIdx.y > 0) {{ {STORE} }}", COUNTS),
        (f"d += 1; int j = {INDEX} + d; {LEFT}{STORE}", "the parameter `d` changes"),
        (f"int j = {INDEX} + 1; __syncthreads(); {LEFT}{STORE}", "its threads wait"),
        (f"int j = {INDEX} + 1; {LEFT}{STORE} out[threadIdx.x] = 2;", "more than its index"),
    ],
)
def test_what_stays_as_it_is(body: str, reason: str) -> None:
    assert reason in refused(begun_aligned(kernel_of(text_of(body, "n"))))


def test_where_a_product_begins_is_not_followed() -> None:
    found = begun_aligned(
        kernel_of(text_of(f"int j = {INDEX} + m * 2; {LEFT}{STORE}", "n - m * 2"))
    )
    assert refused(found) == "where its items begin is not a sum of numbers and sizes, line 4"
