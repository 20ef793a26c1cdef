"""Literal blocks as tuned parameters, where the kernel is certainly right for other extents."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import Kernel, kernels
from optiml_magic.model.facts import LaunchFacts
from optiml_magic.proposers.rewrites.block_size import BlockSize
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.source.program import parse_program
from tests.ideas import asked
from tests.present import sampled
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of
from tests.unit.primitives.running import same

SAXPY = """
#pragma optiml launch saxpy grid(cdiv(n, 256)) block(256)
__global__ void saxpy(float k, const float* x, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) o[i] = k * x[i];
}"""


@pytest.mark.parametrize(
    "text",
    sampled(
        [
            SAXPY,
            SAXPY.replace("blockDim.x", "256"),
            SAXPY.replace("cdiv(n, 256)", "(n + 255) / 256"),
            SAXPY.replace("cdiv(n, 256)", "(n - 1) / 256 + 1"),
        ],
        3,
    ),
)
def test_one_dimension(text, propose, compiles):
    found = propose("block_size", text)
    sizes = [parse_program(p.text).values["BLOCK"] for p in found]
    assert sizes == [128, 512, 64]
    assert "grid" in found[0].text
    assert "256" not in found[0].text.split("block(BLOCK)")[1]
    compiles(found[1].text)
    arrays = {"x": Array("f4", ("n",)), "o": Array("f4", ("n",), "zeros")}
    assert end_of(text, found[0].text, arrays, {"n": 1100}, {"n": 5}, k=2.0) == "same"


def test_two_dimensions(propose, compiles):
    text = """
#pragma optiml launch s grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
__global__ void s(const float* a, float* o, int h, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (y < h && x < w) o[y * w + x] = 2.0f * a[y * w + x];
}"""
    found = propose("block_size", text)
    shapes = [tuple(parse_program(p.text).values.values()) for p in found]
    assert shapes == [(32, 16), (32, 32), (64, 16)]  # none needs more blocks along y
    for p in found:
        compiles(p.text)
        values = parse_program(p.text).values
        assert values["BLOCK_X"] * values["BLOCK_Y"] <= 1024


@pytest.mark.parametrize(
    "text",
    [
        SAXPY.replace("i < n", "i < n && threadIdx.x < 200"),  # knows its place in the block
        SAXPY.replace("o[i]", "o[i + blockIdx.x]"),
        SAXPY.replace("__global__", "__global__ __launch_bounds__(256)"),
    ],
)
def test_refused(text, propose):
    assert propose("block_size", text) == []


@pytest.mark.parametrize(
    "text",
    [
        SAXPY.replace("if (i < n) ", ""),
        SAXPY.replace("cdiv(n, 256)", "64"),
        SAXPY.replace("cdiv(n, 256)", "n / 256"),
        SAXPY.replace("if (i < n)", "for (; i < n; i += gridDim.x * blockDim.x)"),
    ],
)
def test_only_smaller_blocks_where_there_must_be_as_many_threads(text, propose):
    found = propose("block_size", text)
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


ONE_BLOCK = """
#pragma optiml launch k grid(1) block(WIDTH)
__global__ void k(const float* x, const int* at, float* o, int n) {
    for (int i = FIRST; i < n; i += STEP) o[i] = x[abs(at[i]) % n];
}"""


@pytest.mark.parametrize(
    ("width", "first", "step"),
    [("256", "threadIdx.x", "blockDim.x"), ("256", "threadIdx.x", "256"), ("1", "0", "1")],
)
def test_one_block_with_all_items_becomes_as_many_as_these_fill(
    width: str, first: str, step: str
) -> None:
    text = ONE_BLOCK.replace("WIDTH", width).replace("FIRST", first).replace("STEP", step)
    facts = LaunchFacts("k", 1, (1, 1, 1), (int(width), 1, 1), {}, {"n": 1 << 20})
    kernel = replace(kernels(parse_program(text), None)[0], facts=facts, chip="h200")
    site = next(s for s in BlockSize().sites(kernel) if isinstance(s, Site))
    assert (site.key, site.title) == ("items", "a thread for each item")
    made = site.apply()
    assert isinstance(made, Kernel)
    assert "grid(cdiv(n, 256)) block(256)" in made.program.text
    shapes = {"x": ("n",), "at": ("i4", "n"), "o": ("n",)}
    same(text, made, shapes, {"n": 1100})


FEW_BLOCKS = """
#pragma optiml launch k grid(8) block(64)
__global__ void k(const float* x, float* o, int n) {
    __shared__ float s[64];
    for (int first = blockIdx.x * 64; first < n; first += gridDim.x * 64) {
        int i = first + threadIdx.x;
        s[threadIdx.x] = i < n ? x[i] : 0.0f;
        __syncthreads();
        if (i < n) o[i] = s[threadIdx.x] + s[63 - threadIdx.x];
        __syncthreads();
    }
}"""


def test_few_blocks_that_go_from_tile_to_tile_become_one_for_each() -> None:
    facts = LaunchFacts("k", 1, (8, 1, 1), (64, 1, 1), {}, {"n": 1 << 20})
    kernel = replace(kernels(parse_program(FEW_BLOCKS), None)[0], facts=facts, chip="h200")
    site = next(s for s in BlockSize().sites(kernel) if isinstance(s, Site))
    assert (site.key, site.title) == ("rounds", "a block for each round of its blocks")
    made = site.apply()
    assert isinstance(made, Kernel)
    assert "grid(cdiv(n, 64)) block(64)" in made.program.text
    same(FEW_BLOCKS, made, {"x": ("n",), "o": ("n",)}, {"n": 1100})


def test_one_block_with_few_items_stays_one() -> None:
    text = ONE_BLOCK.replace("WIDTH", "256").replace("FIRST", "threadIdx.x")
    text = text.replace("STEP", "blockDim.x")
    facts = LaunchFacts("k", 1, (1, 1, 1), (256, 1, 1), {}, {"n": 300})
    kernel = replace(kernels(parse_program(text), None)[0], facts=facts, chip="h200")
    assert not any(isinstance(found, Site) for found in BlockSize().sites(kernel))


def test_blocks_of_a_product_of_numbers() -> None:
    text = """\
#define WARPS 4
#pragma optiml launch twice grid((n + WARPS * 32 - 1) / (WARPS * 32)) block(WARPS * 32)
__global__ void twice(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * 2.0f;
}
"""
    ideas, refused = asked(BlockSize(), text)
    assert not refused
    (made,) = [idea.make() for idea in ideas]
    assert "grid(cdiv(n, BLOCK)) block(BLOCK)" in str(made)
