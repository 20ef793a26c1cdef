"""Parts that a fixed number of blocks leave, an element or several a grid apart for each thread."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused, where_legal
from optiml_magic.kernels.primitives.headed import headed
from optiml_magic.kernels.primitives.raised import raised
from tests.present import drawn
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(%s) block(64)
__global__ void k(const float* a, float* o, int n%s) {
    __shared__ float part[64];
    int t = threadIdx.x;
    float sum = 0.0f;
    %s
    part[t] = sum;
    __syncthreads();
    for (int d = blockDim.x / 2; d != 0; d /= 2) {
        if (t < d) part[t] += part[t + d];
        __syncthreads();
    }
    if (t == 0) o[blockIdx.x] = part[0];
}
"""
FIRST = "int i = t + blockIdx.x * blockDim.x;"
#: How threads take their elements, by what it is called.
LOOPS = {
    "while": FIRST + " while (i < n) { sum += a[i]; i += blockDim.x * gridDim.x; }",
    "for": f"{FIRST} int far = gridDim.x * blockDim.x; for (; i < n; i += far) sum += a[i];",
    "unsigned": "for (unsigned int i = blockIdx.x * 64 + t; i < n; i += 64 * gridDim.x) sum += a[i];",
    "to the last": "for (int i = blockIdx.x * 64 + t; i <= n - 1; i += 64 * gridDim.x) sum += a[i];",
    "two at once": "int i = blockIdx.x * blockDim.x * 2 + t; while (i < n) { sum += a[i];"
    " if (i + blockDim.x < n) sum += a[i + blockDim.x]; i += blockDim.x * 2 * gridDim.x; }",
    "not the first ones": "for (int i = 3 + blockIdx.x * 64 + t; i < n; i += 64 * gridDim.x) sum += a[i];",
    "every second": f"{FIRST} for (; i < n; i += 2 * blockDim.x * gridDim.x) sum += a[i];",
    "over again": "for (int i = blockIdx.x * 8 + t; i < n; i += 96) sum += a[i];",
    "largest": f"{FIRST} for (; i < n; i += blockDim.x * gridDim.x) if (a[i] > sum) sum = a[i];",
}  # fmt: skip
#: The greatest of a block instead of its sum.
GREATEST = ("part[t] += part[t + d]", "part[t] = fmaxf(part[t], part[t + d])")


def _raised(text: str) -> Kernel | Refused:
    return raised(where_legal(headed, kernel_of(text)))


@pytest.mark.parametrize("grid", ["3", "g", "g + 1"])
@pytest.mark.parametrize("name", LOOPS)
def test_a_thread_makes_the_rounds_of_its_block(name: str, grid: str) -> None:
    text = TEXT % (grid, ", int g" if "g" in grid else "", LOOPS[name])
    text = text.replace(*GREATEST) if name == "largest" else text
    after = written(_raised(text))
    body = after.partition("{")[2]
    assert "__shared__" not in body
    assert "gridDim" not in body
    assert body.count("for (") == 2
    if drawn(f"{name} {grid}"):
        arrays = {"a": Array("f4", ("n",)), "o": Array("f4", ("g + 1",), "zeros")}
        made = end_of(text, after, arrays, {"n": 1000, "g": 2}, {"n": 5, "g": 2}, rounds=True)
        assert made == "same"


def test_all_blocks_begin_with_the_first_elements_where_they_take_neighbours() -> None:
    found = {n: written(_raised(TEXT % ("3", "", LOOPS[n]))) for n in LOOPS
             if n != "largest"}  # fmt: skip
    assert "for (int first = 0; first < n; first += 192)" in found["while"]
    assert "for (unsigned int first = 0; first < n; first += 192)" in found["unsigned"]
    assert "first = blockIdx" in found["over again"].replace("(blockIdx", "blockIdx")
    assert "first = 0;" not in found["not the first ones"]
    assert "first = 0;" not in found["every second"]


def test_what_is_refused() -> None:
    def why(loop: str, grid: str = "3") -> str:
        return refused(_raised(TEXT % (grid, "", loop)))

    assert "share the rounds" in why(LOOPS["while"], "cdiv(n, 1000)")
    assert "share the rounds" in why(LOOPS["while"], "other")
    assert why("for (int i = 2 * t; i < n; i += 64 * gridDim.x) sum += a[i];")
    assert why("for (int i = 64 * blockIdx.x + 63 - t; i < n; i += 64 * gridDim.x) sum += a[i];")
    assert why("for (int i = 64 * blockIdx.x + t; i < n; i += 32) sum += a[i];")
    assert why("for (int i = 64 * blockIdx.x + t; i < n - t; i += 64 * gridDim.x) sum += a[i];")
    assert why("for (int i = 64 * blockIdx.x + t; i < n; i += 64 * gridDim.x) sum += a[i + t];")
    assert why("for (int i = 64 * blockIdx.x + t; i < n; i += 64 * gridDim.x) sum = a[i];")
