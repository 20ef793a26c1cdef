"""A thread for two partners of which one works: each pair once, for distances of all kinds."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.partnered import partnered
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(n / 16) block(16)
__global__ void k(float* a, int j, int k, int n) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int p = i ^ j;
    if (p > i) {
        float u = a[i], v = a[p];
        if ((i & k) == 0 ? u > v : u < v) { a[i] = v; a[p] = u; }
    }
}
"""
ARRAYS = {"a": Array("f4", ("2 * n + 64",))}
INDEX = "unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;"
#: Partners that are found and compared in other ways, all of one bit.
ALIKE: dict[str, tuple[tuple[str, str], ...]] = {
    "as it is": (),
    "whole numbers": (("unsigned int", "int"),),
    "long numbers": (("unsigned int", "size_t"),),
    "long partners": (("unsigned int p", "long long p"),),
    "the other way round": (("p > i", "i < p"),),
    "the second one": (("p > i", "p < i"),),
    "left early": (("    if (p > i) {", "    if (p <= i) return;\n    {"),),
    "the bit": (("p > i", "(i & j) == 0"),),
    "no bit": (("p > i", "!(i & j)"),),
    "the bit of the second": (("p > i", "i & j"),),
    "a sum": (("p = i ^ j", "p = i + j"), ("p > i", "!(i & j)")),
    "a guard as well": (("p > i", "i < n && p > i"), ("n / 16", "cdiv(n, 16)")),
    "a guard before": (("    unsigned int p", "    if (i >= n) return;\n    unsigned int p"), ("n / 16", "cdiv(n, 16)")),
    "a number": (("i ^ j", "i ^ 4"),),
    "in turn": (("i ^ j", "j ^ i"),),
    "two tests": (("        float u", "        if (i % 3 == 1) return;\n        float u"),),
    "sums in place": (("float u = a[i], v = a[p];", "atomicAdd(&a[i], a[p]); float u = 0.0f, v = 1.0f;"), ("u > v", "false"), ("u < v", "false")),
    "blocks that are tuned": (("#pragma", "#pragma optiml tune B in {8, 16} = 16\n#pragma"), ("n / 16", "n / B"), ("block(16)", "block(B)")),
}  # fmt: skip


def _text(changes: tuple[tuple[str, str], ...]) -> str:
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("name", ALIKE)
def test_each_pair_has_a_thread(name: str) -> None:
    text = _text(ALIKE[name])
    after = written(partnered(kernel_of(text)))
    assert " / 2) block(" in after
    for n, j in ((32, 1), (32, 16), (96, 16), (128, 64)):
        assert end_of(text, after, ARRAYS, _sizes(n, j), _sizes(64, 2)) == "same"


def _sizes(n: int, j: int) -> dict[str, int]:
    return {"n": n, "j": j, "k": abs(2 * j) % 2**31}


@pytest.mark.parametrize(
    ("n", "j"),
    [(64, 0), (64, 3), (64, 6), (64, -1), (64, -(2**31)), (64, 2**31 - 1), (64, 64), (96, 32), (48, 8)],
)  # fmt: skip
def test_the_launch_asks_for_whole_pairs(n: int, j: int) -> None:
    text = TEXT.replace("p > i", "p > i && p < 2 * n")
    after = written(partnered(kernel_of(text)))
    assert end_of(text, after, ARRAYS, _sizes(n, j), _sizes(64, 2)) == "narrowed"


#: Kernels of which the other half of the threads may have something to do, or others.
OTHERS: dict[str, tuple[tuple[str, str], ...]] = {
    "both": (("p > i", "true"),),
    "no more than it": (("p > i", "p >= i"),),
    "one of them beside it": (("    if (p > i) {", "    if (i < n) a[i] += 1.0f;\n    if (p > i) {"),),
    "a test of one way": (("p > i", "p > i || k < 0"),),
    "a bit that moves": (("    unsigned int p", "    j = j * 2;\n    unsigned int p"),),
    "another item": (("p = i ^ j", "p = (i + 1) ^ j"),),
    "another place": (("p > i", "p > i + 1"),),
    "two bits": (("p = i ^ j", "p = i ^ (j | k)"),),
    "a bit of data": (("i ^ j", "i ^ (int)a[n]"),),
    "a local of its name": (("{\n    unsigned int i", "{\n    { int j = 1; a[n + j] = 0.0f; }\n    unsigned int i"),),
    "few bits": (("unsigned int p", "unsigned char p"),),
    "a place in its block": (("float u = a[i]", "float u = a[i] + threadIdx.x"),),
    "threads that wait": (("        float u", "        __syncthreads();\n        float u"),),
    "lanes": (("v = a[p]", "v = __shfl_xor_sync(0xffffffffu, a[i], 1)"),),
    "the number of threads": (("v = a[p]", "v = a[p] + gridDim.x"),),
    "places in blocks": ((INDEX, "unsigned int i = threadIdx.x * gridDim.x + blockIdx.x;"),),
    "no test": (("i ^ j", "i + j"),),
    "a choice": (("if (p > i)", "if (p > i ? k : n)"),),
    "not that bit": (("p > i", "(i & j) == j"),),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_others_stay(name: str) -> None:
    assert refused(partnered(kernel_of(_text(OTHERS[name]))))


def test_other_names_at_the_launch_are_refused() -> None:
    text = TEXT.replace("block(16)", "block(16) args(a, k, j, n)")
    assert refused(partnered(kernel_of(text)))
