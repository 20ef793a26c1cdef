"""What a function that combines takes and returns has a type, which may lose what is combined."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Refused
from optiml_magic.kernels.primitives.raised import raised
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

LANES = "for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(~0u, v, d); return v; }\n"
TREE = (
    "p[threadIdx.x] = v; __syncthreads(); for (int d = 16; d > 0; d >>= 1) "
    "{ if (threadIdx.x < d) p[threadIdx.x] += p[threadIdx.x + d]; __syncthreads(); } return p[0]; }\n"
)
KERNEL = """\
#pragma optiml launch k grid(h) block(32)
__global__ void k(const int* a, float* o, int h, int w) {
    __shared__ int s[32];
    int v = 0;
    for (int i = threadIdx.x; i < w; i += 32) v += a[blockIdx.x * w + i];
    v = CALL;
    if (threadIdx.x == 0) o[blockIdx.x] = v;
}
"""
ARRAYS = {"a": Array("i4", ("h", "w"), "below big"), "o": Array("f4", ("h",), "zeros")}
SIZES = {"h": 3, "w": 150, "big": 4000}
ANY = "template <typename T> __device__ "


def text(function: str, call: str) -> str:
    return function + KERNEL.replace("CALL", call)


@pytest.mark.parametrize(
    ("function", "call"),
    [
        (f"__device__ int all(int v) {{ {LANES}", "all(v)"),
        (f"{ANY}T all(T v) {{ {LANES}", "all(v)"),
        (f"{ANY}T all(T v) {{ {LANES}", "all<int>(v)"),
        (f"{ANY}auto all(T v) {{ {LANES}", "all(v)"),
        (f"{ANY}T lanes(T v) {{ {LANES}{ANY}T all(T v) {{ return lanes<T>(v); }}\n", "all<int>(v)"),
        (f"{ANY}T all(T v, T* p) {{ {TREE}", "all(v, s)"),
        (f"{ANY}T all(T v) {{ __shared__ T p[32]; {TREE}", "all(v)"),
        (f"{ANY}T all(T v) {{ {LANES}", "all(v) + (int)all((float)w)"),
    ],
)
def test_what_keeps_its_type_is_a_whole(function: str, call: str) -> None:
    before = text(function, call)
    made = raised(kernel_of(before))
    if isinstance(made, Refused):
        assert "float" in call
        return
    assert "__syncthreads" not in written(made).partition("__global__")[2]
    end = end_of(before, written(made), ARRAYS, SIZES, {"h": 2, "w": 31, "big": 300})
    assert end == "same"


@pytest.mark.parametrize("kind", ["short", "unsigned char", "float", "unsigned", "long long"])
@pytest.mark.parametrize(
    ("function", "call"),
    [
        (f"__device__ KIND all(int v) {{ {LANES}", "all(v)"),
        (f"__device__ int all(KIND v) {{ {LANES}", "all(v)"),
        (f"{ANY}T all(int v) {{ {LANES}", "all<KIND>(v)"),
        (f"{ANY}int all(T v) {{ {LANES}", "all<KIND>(v)"),
        (f"{ANY}T all(T v) {{ {LANES}", "all<KIND>(v)"),
        (f"{ANY}T all(int v) {{ __shared__ T p[32]; {TREE}", "all<KIND>(v)"),
        (f"{ANY}T all(int v, T* p) {{ {TREE}", "all(v, t)"),
    ],
)
def test_what_is_converted_on_the_way_is_refused(function: str, call: str, kind: str) -> None:
    before = text(function.replace("KIND", kind), call.replace("KIND", kind))
    before = before.replace("__shared__ int s", f"__shared__ {kind} t[32]; __shared__ int s")
    assert refused(raised(kernel_of(before)))


SUMMED = """\
__device__ float block_sum(float v) {
    __shared__ float parts[64];
    __syncthreads();
    parts[threadIdx.x] = v;
    __syncthreads();
    for (int d = 32; d > 0; d >>= 1) {
        if (threadIdx.x < d) parts[threadIdx.x] += parts[threadIdx.x + d];
        __syncthreads();
    }
    return parts[0];
}
#pragma optiml launch k grid(h) block(64)
__global__ void k(const float* a, float* o, int h, int w) {
    int t = threadIdx.x, row = blockIdx.x;
    BODY
}
"""


@pytest.mark.parametrize(
    "body",
    [
        "float v = t < w ? a[row * w + t] : 0.0f; v = block_sum(v); v = v * 0.5f; if (t == 0) o[row] = v;",
        "float v{t < w ? a[row * w + t] : 0}; v *= v; v = block_sum(v); if (t == 0 && v > 1) o[row] = v;",
        "float v = 0; v += t < w ? a[row * w + t] : 1; v = block_sum(v); if (t == 0 && v > 1) o[row] = v;",
        "float v = t < w ? a[row * w + t] : 0.0f, u = v; v = block_sum(v); v += 2; u = block_sum(u * v); if (t == 0) o[row] = u;",
    ],
)  # fmt: skip
def test_a_local_that_is_given_what_its_block_sums_up_is_declared(body: str) -> None:
    text = SUMMED.replace("BODY", body)
    arrays = {"a": Array("f4", ("h", "w")), "o": Array("f4", ("h",), "zeros")}
    after = written(raised(kernel_of(text)))
    assert "float v" in after
    assert end_of(text, after, arrays, {"h": 5, "w": 60}, {"h": 2, "w": 7}, rounds=True) == "same"
