"""When a kernel of one module is that of another."""

from __future__ import annotations

from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.model.build import Build
from optiml_magic.ptx.parser import parse
from optiml_magic.ptx.same import same_kernel

TABLE = "__device__ const int table[3] = {1, 2, 3};\n"
HELPER = "__device__ __noinline__ float helper(float v) { return v * 3.0f + table[(int)v % 3]; }\n"
KERNEL = """
__global__ void k(const float* x, float* out, int n) {
    __shared__ float s[32];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    for (int i = 0; i < n; ++i) if (s[i % 32] > 0) out[i] = helper(s[31 - i % 32]);
}
"""
OTHER = """
__global__ void other(float* out, int n) {
    for (int i = 0; i < n; ++i) { if (out[i] > 1) out[i] = helper(out[i + 1]); else out[i] = 0; }
}
"""


COUNTS = """
__global__ void k(const int* a, int* out, int n) {
    int counts[16] = {0};
    for (int i = 0; i < n; ++i) counts[a[i] & 15]++;
    for (int i = 0; i < 16; ++i) out[i] = counts[i];
}
"""


def module(text: str, *names: str):
    found = NvrtcCompiler().compile(text, names, chip("h200"), CompileOptions())
    assert isinstance(found, Build), found
    return parse(found.ptx), found.names


def same(one: str, other: str, *more: str) -> bool:
    first, names = module(one, "k")
    second, _ = module(other, "k", *more)
    return same_kernel(first, second, names["k"])


def test_other_kernels_and_other_lines_change_nothing() -> None:
    text = TABLE + HELPER + KERNEL
    assert same(text, text)
    assert same(text, TABLE + HELPER + OTHER + "\n\n" + KERNEL, "other")
    assert same(text, TABLE + HELPER + KERNEL.replace("int i = 0", "int at = 0").replace(
        "i < n; ++i", "at < n; ++at").replace("[i % 32]", "[at % 32]").replace(
        "out[i]", "out[at]").replace("- i %", "- at %"))  # fmt: skip


def test_local_memory_is_the_same_wherever_its_kernel_stands() -> None:
    other = COUNTS.replace("void k(", "void other(")
    assert same(COUNTS, other + COUNTS, "other")
    assert not same(COUNTS, other + COUNTS.replace("counts[16]", "counts[32]"), "other")


def test_a_number_a_helper_and_a_table_count() -> None:
    text = TABLE + HELPER + KERNEL
    for old, new in (("> 0", "> 1"), ("* 3.0f", "* 2.0f"), ("2, 3}", "2, 4}"), ("[32]", "[64]")):
        assert not same(text, text.replace(old, new)), new


def test_a_kernel_that_is_not_there_is_the_same_as_none() -> None:
    first, _ = module(TABLE + HELPER + KERNEL, "k")
    assert not same_kernel(first, first, "another")
