"""Small tables in a block's shared memory."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.persistent import Stride, persistent
from optiml_magic.kernels.primitives.tabled import tabled
from tests.present import sampled

from .running import same
from .shapes import applied, kernel, refused

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__device__ float at(const float* t, int k, float by) { return t[k] * by; }
__global__ void k(const float* t, const int* q, const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = t[q[i] & 3] + x[i];
}
"""
LOAD = "t[q[i] & 3]"
SHAPES = {"t": ("4",), "q": ("i4", "n"), "x": ("n",), "out": ("n",)}
ROOM = [("t", 9)]


def test_a_block_brings_what_there_is() -> None:
    after = applied(tabled(kernel(TEXT), ROOM)).program.text
    for now in (
        "#pragma optiml require size(t) <= 9\n",
        "args(t, q, x, out, n, size(t))",
        "float* out, int n, int t_count) {",
        "    __shared__ __align__(16) float t_table[9];\n",
        "place < t_count; place += blockDim.x) t_table[place] = t[place];\n    __syncthreads();\n",
        "out[i] = t_table[q[i] & 3] + x[i];",
    ):
        assert now in after


@pytest.mark.parametrize(
    "load",
    sampled(
        [
            "at(t, q[i] & 3, x[i])",
            LOAD,
            "t[*(t + 1) > 0.5f ? q[i] & 1 : 2]",
            "(q[i] > 2 ? *(t + (q[i] & 1)) : 0.5f)",
        ],
        3,
    ),
)
@pytest.mark.parametrize("sizes", [{"n": 71}, {"n": 1}])
def test_it_does_the_same(load: str, sizes: dict[str, int]) -> None:
    text = TEXT.replace(LOAD, load)
    same(text, tabled(kernel(text), ROOM), SHAPES, sizes)
    few = applied(persistent(kernel(text), Stride(2, 32, (1, 2), (32,), 2, (2,))))
    same(text, tabled(few, ROOM), SHAPES, sizes)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("const float* t, const int", "float* t, const int", ""),
        ("out[i] = t", "t[i] = 1.0f;\n    out[i] = t", "`t` is written as well"),
        (LOAD, "__ldg(&t[q[i] & 3])", "`__ldg` asks for an address in global memory"),
        ("    int i", "    t += 1;\n    int i", "`t` does not stay what it is"),
        (LOAD, "t[q[i] & 3].y", "`t` is not an array of numbers"),
        (LOAD, "t[q[i] & 3 & sizeof(t)]", "it asks how large `t` is"),
        ("block(64)", "block(64, 2)", "its blocks have more than one row"),
        ("block(64)", "block(64) shared(64)", "it has dynamic shared memory"),
        ("block(64)", "block(64) args(t + 0, q, x, out, n)", ""),
    ],
)
def test_refused(old: str, new: str, why: str) -> None:
    text = TEXT.replace(old, new)
    if "const" not in new.partition("float* t")[0] and ("t[i] =" in new or "t +=" in new):
        text = text.replace("k(const float* t", "k(float* t")
    text = text.replace("k(const float* t", "k(const float2* t") if ".y" in new else text
    made = tabled(kernel(text), ROOM)
    if why:
        assert refused(made)[0] == why
    elif "args" in new:
        assert refused(made)[0] == "what its launch passes as `t` has no name"
    else:
        assert "t_table" in applied(made).program.text
