"""Blocks of warps that have nothing to do with each other, as blocks of one warp."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.raised import raised
from optiml_magic.kernels.primitives.warps_apart import warps_apart

from .running import same
from .shapes import applied, kernel, refused

TEXT = """\
#pragma optiml launch k grid(%s) block(%s)
__global__ void k(const float* x, float* y, int n, int m) {
    %s
    float s = 0;
    for (int c = lane; c < n; c += 32) s += x[row * n + c];
    for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffff, s, o);
    if (lane == 0) y[row] = s;
}
"""
SHAPES = {"x": ("m", "n"), "y": ("m",)}
LEAVES = "if (row >= m) return;"
ROWS = [
    ("(m * 32 + 127) / 128", "128",
     f"int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31; {LEAVES}"),
    ("(m + 3) / 4", "128",
     f"int warp = threadIdx.x / 32, lane = threadIdx.x % 32; int row = blockIdx.x * 4 + warp; {LEAVES}"),
    ("cdiv(m, 4)", "128",
     f"int i = blockIdx.x * 128 + threadIdx.x; int row = i >> 5; int lane = i % warpSize; {LEAVES}"),
    ("(m + 3) / 4", "32, 4",
     f"int lane = threadIdx.x; int row = blockIdx.x * blockDim.y + threadIdx.y; {LEAVES}"),
    ("cdiv(m, 4)", "32, 4",
     f"int w = threadIdx.y, lane = threadIdx.x; int row = w + blockDim.y * blockIdx.x; {LEAVES}"),
    ("m / 8 + 1", "256",
     f"int w = threadIdx.x / warpSize, lane = threadIdx.x % 32; long long row = (long long)blockIdx.x * (blockDim.x / 32) + w; {LEAVES}"),
]  # fmt: skip


@pytest.mark.parametrize(("n", "m"), [(1, 1), (37, 5), (70, 9)])
@pytest.mark.parametrize(("grid", "block", "place"), ROWS)
def test_a_warp_a_block(grid: str, block: str, place: str, n: int, m: int) -> None:
    text = TEXT % (grid, block, place)
    made = warps_apart(kernel(text))
    assert "block(32)" in str(applied(made).launch)
    same(text, made, SHAPES, {"n": n, "m": m})
    same(text, raised(kernel(text)), SHAPES, {"n": n, "m": m}, rounds=True)


@pytest.mark.parametrize(
    ("grid", "block", "place"),
    [
        ("cdiv(m, 4)", "128",
         f"int lane = threadIdx.x % 32, row = blockIdx.x * 4 + threadIdx.x / 32; {LEAVES} row = m - 1 - row;"),
        ("cdiv(m, 4)", "128",
         f"int lane = threadIdx.x % 32, w = threadIdx.x / 32, row = blockIdx.x + w * gridDim.y; {LEAVES} y[row] = 1;"),
        ("m, 1", "128",
         "int lane = threadIdx.x % 32, row = blockIdx.x; if (threadIdx.x / 32) return;"),
    ],
)  # fmt: skip
def test_other_places(grid: str, block: str, place: str) -> None:
    text = TEXT % (grid, block, place)
    made = warps_apart(kernel(text))
    if "gridDim" in place:
        assert "counts the blocks" in refused(made)[0]
        return
    same(text, made, SHAPES, {"n": 37, "m": 9})


@pytest.mark.parametrize(
    "place",
    [
        f"unsigned char b = blockIdx.x; int lane = threadIdx.x % 32, row = b * 4 + threadIdx.x / 32; if (blockIdx.x < 256) return; {LEAVES}",
        f"int lane = threadIdx.x % 32, row = (unsigned char)blockIdx.x * 4 + threadIdx.x / 32; if (blockIdx.x < 256) return; {LEAVES}",
        f"unsigned char i = blockIdx.x * 128 + threadIdx.x; int lane = threadIdx.x % 32, row = i / 32; if (blockIdx.x > 1) return; {LEAVES}",
    ],
)  # fmt: skip
def test_numbers_that_are_cut_off(place: str) -> None:
    text = TEXT % ("cdiv(m, 4)", "128", place)
    made = warps_apart(kernel(text))
    if isinstance(made, Kernel):
        same(text, made, SHAPES, {"n": 3, "m": 1100})


@pytest.mark.parametrize(
    ("block", "place", "reason"),
    [
        ("128", f"int lane = threadIdx.x % 32, row = blockIdx.x * 4 + threadIdx.x / 32; {LEAVES} if (threadIdx.x == 0) y[0] = 1;",
         "place in a block"),
        ("128", f"__shared__ int t[1]; int lane = threadIdx.x % 32, row = blockIdx.x * 4 + threadIdx.x / 32; t[0] = 1; {LEAVES}",
         "share memory"),
        ("128", f"__syncthreads(); int lane = threadIdx.x % 32, row = blockIdx.x * 4 + threadIdx.x / 32; {LEAVES}",
         "wait for each other"),
        ("48", f"int lane = threadIdx.x % 32, row = blockIdx.x; {LEAVES}", "whole number of warps"),
        ("32", f"int lane = threadIdx.x, row = blockIdx.x; {LEAVES}", "one warp each"),
        ("16, 8", f"int lane = threadIdx.x, row = blockIdx.x * 8 + threadIdx.y; {LEAVES}", "whole number of warps"),
        ("64, 2", f"int lane = threadIdx.x % 32, row = blockIdx.x * 2 + threadIdx.y; {LEAVES}", "one warp each"),
    ],
)  # fmt: skip
def test_refused(block: str, place: str, reason: str) -> None:
    assert reason in refused(warps_apart(kernel(TEXT % ("m", block, place))))[0]
