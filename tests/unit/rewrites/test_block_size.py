"""Literal blocks as tuned parameters, where the kernel is certainly right for other extents."""

from __future__ import annotations

import numpy as np
import pytest

from optiml_magic.source.program import parse_program

SAXPY = """
#pragma optiml launch saxpy grid(cdiv(n, 256)) block(256)
__global__ void saxpy(float k, const float* x, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) o[i] = k * x[i];
}"""

BLOCK_SUM = """
#pragma optiml launch sums grid(rows) block(128)
__global__ void sums(const float* a, float* out, int rows, int cols) {
    __shared__ float part[128];
    float s = 0.0f;
    for (int c = threadIdx.x; c < cols; c += blockDim.x) s += a[blockIdx.x * cols + c];
    part[threadIdx.x] = s;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half >>= 1) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}"""


@pytest.mark.parametrize(
    "text",
    [
        SAXPY,
        SAXPY.replace("blockDim.x", "256"),
        SAXPY.replace("cdiv(n, 256)", "(n + 255) / 256"),
        SAXPY.replace("cdiv(n, 256)", "(n - 1) / 256 + 1"),
        SAXPY.replace("if (i < n)", "for (; i < n; i += gridDim.x * blockDim.x)").replace(
            "cdiv(n, 256)", "min(cdiv(n, 256), 4)"
        ),
    ],
)
def test_one_dimension(text, propose, compiles, runs, rng):
    found = propose("block_size", text)
    sizes = [parse_program(p.text).values["BLOCK"] for p in found]
    assert sizes[:2] == [128, 512]
    assert 256 not in sizes
    assert "grid" in found[0].text
    assert "256" not in found[0].text.split("block(BLOCK)")[1]
    compiles(found[1].text)
    x = rng.random(1100, "f4")
    out = runs(found[0].text, k=2.0, x=x, o=np.zeros_like(x), n=1100)
    np.testing.assert_array_equal(out["o"], 2 * x)


def test_a_block_that_reduces(propose, compiles, runs, rng):
    found = propose("block_size", BLOCK_SUM)
    assert "__shared__ float part[BLOCK];" in found[0].text
    compiles(found[0].text)
    a = rng.random((3, 200), "f4")
    out = runs(found[0].text, a=a, out=np.zeros(3, "f4"), rows=3, cols=200)
    np.testing.assert_allclose(out["out"], a.sum(1), rtol=1e-4)


def test_two_dimensions(propose, compiles):
    text = """
#pragma optiml launch s grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
__global__ void s(const float* a, float* o, int h, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (y < h && x < w) o[y * w + x] = 2.0f * a[y * w + x];
}"""
    found = propose("block_size", text)
    assert len(found) == 6
    for p in found:
        compiles(p.text)
        values = parse_program(p.text).values
        assert values["BLOCK_X"] * values["BLOCK_Y"] <= 1024


def test_neighbours_of_the_users_own_parameters(propose):
    text = SAXPY.replace("256", "B").replace(
        "#pragma", "#pragma optiml tune B in {64, 128, 256} = 128\n#pragma", 1
    )
    assert [parse_program(p.text).values["B"] for p in propose("block_size", text)] == [64, 256]


@pytest.mark.parametrize(
    "text",
    [
        SAXPY.replace("i < n", "i < n && threadIdx.x < 200"),  # knows its place in the block
        SAXPY.replace("o[i]", "o[i + blockIdx.x]"),
        SAXPY.replace(
            "cdiv(n, 256)", "n / 256"
        ),  # leaves a tail out, and another one if cut otherwise
        SAXPY.replace("cdiv(n, 256)", "64"),
        SAXPY.replace("__global__", "__global__ __launch_bounds__(256)"),
        SAXPY.replace("blockDim.x + threadIdx.x", "blockDim.x + threadIdx.x % 256"),
        BLOCK_SUM.replace("blockDim.x / 2", "64"),
        BLOCK_SUM.replace("+= blockDim.x", "+= 128"),
        BLOCK_SUM.replace("part[0];", "part[0] / 128;"),
    ],
)
def test_refused(text, propose):
    assert propose("block_size", text) == []


def test_without_a_guard_only_smaller_blocks(propose):
    found = propose("block_size", SAXPY.replace("if (i < n) ", ""))
    assert {parse_program(p.text).values["BLOCK"] for p in found} == {64, 128}


def test_a_histograms_bins_are_not_its_block(propose):
    text = """
#pragma optiml launch h grid(min(cdiv(n, 256), 128)) block(256)
__global__ void h(const int* v, int* bins, int n) {
    __shared__ int local[256];
    for (int b = threadIdx.x; b < 256; b += blockDim.x) local[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[v[i]], 1);
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += blockDim.x) atomicAdd(&bins[b], local[b]);
}"""
    assert propose("block_size", text) == []
