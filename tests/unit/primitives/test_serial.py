"""Rows that are all blocks of a launch, and planes of them, taken by a thread each."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.serial import by_rows
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

PLANES = """\
#pragma optiml launch k grid(cdiv(n, 16), LAUNCH) block(16)
__global__ void k(const float* x, float* out, int n, int h, int b) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y, z = Z;
    if (c >= n) return;
    out[(z * h + r) * n + c] = x[r + z] * c;
}
"""


@pytest.mark.parametrize(
    ("launch", "z"), [("h, b", "blockIdx.z"), ("h", "0"), ("h - 1", "0"), ("h", "blockIdx.z")]
)
def test_every_block_may_be_a_row_and_planes_stay(launch: str, z: str) -> None:
    before = PLANES.replace("LAUNCH", launch).replace("Z;", f"{z};")
    after = written(by_rows(kernel_of(before), 128))
    arrays = {"x": Array("f4", ("h + b",)), "out": Array("f4", ("h * b * n",), "zeros")}
    assert end_of(before, after, arrays, {"n": 37, "h": 5, "b": 3}, {"n": 1, "h": 2, "b": 1}) == (
        "same"
    )


@pytest.mark.parametrize(
    ("launch", "z"),
    [
        ("h, b", "gridDim.z - 1 - blockIdx.z"),
        ("h, b", "threadIdx.z"),
        ("max(h, 3)", "0"),
        ("h * size(x) / size(x)", "0"),
        ("h", "gridDim.y * 0"),
    ],
)
def test_rows_that_the_launch_does_not_say_are_refused(launch: str, z: str) -> None:
    before = PLANES.replace("LAUNCH", launch).replace("Z;", f"{z};")
    assert refused(by_rows(kernel_of(before), 128))


STARTS = """\
#pragma optiml launch k grid(cdiv(m, 32), n) block(32)
__global__ void k(const float* x, const int* at, float* out, int n, int m) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    %s
}
"""


@pytest.mark.parametrize(
    "body",
    [
        "if (j >= m) return; const float* row = x + at[i] * m; out[i * m + j] = row[j];",
        "if (j < m) { int begin = at[i], own = at[begin]; out[i * m + j] = own + j; }",
    ],
)
def test_what_a_row_loads_is_asked_for_where_there_is_one(body: str) -> None:
    text = STARTS % body
    after = written(by_rows(kernel_of(text), 32))
    assert "< n" in after[: after.index("at[")].partition("{")[2]
    arrays = {
        "x": Array("f4", ("n", "m")), "at": Array("i4", ("n",), "below n"),
        "out": Array("f4", ("n", "m"), "zeros"),
    }  # fmt: skip
    assert end_of(text, after, arrays, {"n": 6, "m": 40}, {"n": 3, "m": 5}) == "same"
