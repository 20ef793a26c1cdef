"""Axes exchanged in a kernel and in its launch, in every spelling; refused where warps matter."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.axes import exchanged
from tests.present import sampled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

SCALE = """\
#pragma optiml launch scale grid(cdiv(h, 16), cdiv(w, 4)) block(16, 4)
__global__ void scale(const float* a, float* o, int h, int w) {
    int y = blockIdx.x * blockDim.x + threadIdx.x;  // threadIdx.x in words stays
    int x = blockIdx.y * blockDim.y + threadIdx.y;
    if (y < h && x < w) o[y * w + x] = 2.0f * a[y * w + x];
}
"""
INDEX = "blockIdx.x * blockDim.x + threadIdx.x"
ARRAYS = {"a": Array("f4", ("h", "w")), "o": Array("f4", ("h", "w"), "zeros")}
TILE = """    __shared__ float tile[16][5];
    tile[threadIdx.x][threadIdx.y] = y < h && x < w ? a[y * w + x] : 0.0f;
    __syncthreads();
"""


def same(before: str) -> str:
    after = written(exchanged(kernel_of(before), "x", "y"))
    end = end_of(before, after, ARRAYS, {"h": 37, "w": 21}, {"h": 5, "w": 9})
    assert end == "same"
    return after


def test_kernel_and_launch() -> None:
    after = same(SCALE)
    assert "require cdiv(h, 16) <= 65535" in after
    assert "grid(cdiv(w, 4), cdiv(h, 16)) block(4, 16)" in after
    assert "int y = blockIdx.y * blockDim.y + threadIdx.y;  // threadIdx.x in words stays" in after


SPELLINGS = (
    SCALE.replace("    if", f"{TILE}    if").replace("* a[y * w + x]", "* tile[y % 16][x % 4]"),
    f"#define GID ({INDEX})\n" + SCALE.replace(INDEX, "GID"),
    "#define T threadIdx.x\n" + SCALE.replace("m.x + threadIdx.x", "m.x + T"),
    f"__device__ int gid() {{ return {INDEX}; }}\n" + SCALE.replace(INDEX, "gid()"),
    SCALE.replace("blockDim.x", "16"),
    "#define AT(r, c) a[(r) * w + (c)]\n"
    + SCALE.replace("a[y * w + x]", "AT(blockIdx.x * 16 + threadIdx.x, x)"),
)


@pytest.mark.parametrize("text", SPELLINGS, ids=range(len(SPELLINGS)))
def test_spellings(text: str) -> None:
    after = written(exchanged(kernel_of(text), "x", "y"))
    body = after[after.index("{", after.index("__global__")) :]
    assert "blockIdx.y" in body
    assert "GID" not in body


@pytest.mark.parametrize("text", sampled(SPELLINGS))
def test_spellings_do_what_they_did(text: str) -> None:
    same(text)


def test_an_axis_that_the_launch_does_not_name() -> None:
    flat = SCALE.replace("cdiv(w, 4)", "w").replace("block(16, 4)", "block(16)")
    after = same(flat.replace("blockIdx.y * blockDim.y + threadIdx.y", "blockIdx.y"))
    assert "grid(w, cdiv(h, 16)) block(1, 16)" in after


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("    if", "    y += __shfl_sync(~0u, 0, 0);\n    if", "`__shfl_sync` asks which"),
        ("    if", "    __syncwarp();\n    if", "the threads of a warp wait"),
        ("    if", "    int lane = x % warpSize;\n    if", "`warpSize` may tell"),
        ("    if", '    asm("");\n    if', "is not read"),
        ("    if", "    volatile int v = x;\n    if", "`volatile` may tell"),
        ("    if", "    uint3 t = threadIdx;\n    if", "not every place"),
        (
            "#pragma",
            "__device__ int up(int n) { return threadIdx.x + n; }\n#pragma",
            "",
        ),
    ],
)
def test_refused(old: str, new: str, reason: str) -> None:
    found = exchanged(kernel_of(SCALE.replace(old, new, 1)), "x", "y")
    if reason:
        assert reason in refused(found)
    else:
        written(found)  # nobody calls it


def test_helpers_that_are_more_than_an_expression() -> None:
    text = "__device__ int up(int n) { return threadIdx.x + n; }\n" + SCALE.replace(
        "+ threadIdx.x", "+ up(0)"
    )
    assert refused(exchanged(kernel_of(text), "x", "y")) == (
        "`up` reads where its thread stands, line 1"
    )
