"""Rounds that take several items a block apart, as rounds of one item."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.item_a_round import item_a_round
from optiml_magic.proposers.rewrites.block_sum import BlockSum
from tests.ideas import asked, made
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(3) block(32)
__global__ void k(const float* x, const float* w, float* y, unsigned int n) {
    unsigned int step = 32 * 2 * gridDim.x;
    for (unsigned int i = blockIdx.x * (32 * 2) + threadIdx.x; i < n; i += step) {
        atomicAdd(&y[0], x[i] * w[0]);
        if (i + 32 < n) atomicAdd(&y[0], x[i + 32] * w[0]);
    }
}
"""
ARRAYS = {
    "x": Array("f4", ("n",)),
    "w": Array("f4", ("8",)),
    "y": Array("f4", ("8",), "zeros"),
}
SIZES = {"n": 371}, {"n": 3}


def changed(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


THREE = changed(
    TEXT, ("32 * 2", "32 * 3"),
    ("x[i + 32] * w[0]);", "x[i + 32] * w[0]); if (i + 64 < n) atomicAdd(&y[0], x[i + 64] * w[0]);"),
)  # fmt: skip


@pytest.mark.parametrize(
    "before",
    [
        TEXT,
        THREE,
        changed(TEXT, ("i + 32", "i + blockDim.x"), ("32 * 2", "blockDim.x * 2")),
        changed(TEXT, ("unsigned int", "int")),
        changed(TEXT, ("&y[0]", "&y[i % 5]"), ("&y[i % 5], x[i + 32]", "&y[(i + 32) % 5], x[i + 32]")),
    ],
)  # fmt: skip
def test_a_round_takes_one_item(before: str) -> None:
    after = written(item_a_round(kernel_of(before)))
    assert after.count("atomicAdd") == 1
    assert "step" not in after
    assert end_of(before, after, ARRAYS, *SIZES, rounds=True) == "same"


@pytest.mark.parametrize(
    "before",
    [
        changed(TEXT, ("32 * 2 * grid", "32 * 3 * grid")),
        changed(TEXT, ("blockIdx.x * (32 * 2)", "blockIdx.x * 32")),
        changed(TEXT, ("i + 32 < n", "i + 16 < n")),
        changed(TEXT, ("i + 32 < n", "i + 32 < n - 1")),
        changed(TEXT, ("x[i + 32]", "x[i + 31]")),
        changed(TEXT, ("x[i + 32]", "x[i]")),
        changed(TEXT, ("x[i + 32] *", "2 * x[i + 32] *")),
        changed(TEXT, ("if (i + 32 < n) ", "")),
        changed(TEXT, ("block(32)", "block(16)")),
        changed(TEXT, ("const float* w", "float* w"), ("atomicAdd(&y[0]", "atomicAdd(&w[0]")),
        changed(TEXT, ("atomicAdd(&y[0], x[i + 32] * w[0])", "y[0] = x[i + 32] * w[0]")),
        changed(TEXT, ("atomicAdd(&y", "atomicExch(&y")),
        changed(TEXT, ("* w[0]);\n    }", "* w[0]);\n        if (i > 99) break;\n    }")),
        changed(TEXT, ("grid(3)", "grid(3, 2)")),
    ],
)
def test_others_stay(before: str) -> None:
    assert refused(item_a_round(kernel_of(before)))


TWO = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(32)
__global__ void k(const float* x, const float* w, float* y, unsigned int n) {
    unsigned int tid = threadIdx.x, i = blockIdx.x * (blockDim.x * 2) + tid;
    float own = i < n ? x[i] * x[i] : 0;
    if (i + blockDim.x < n) { own += x[i + blockDim.x] * x[i + blockDim.x]; }
    atomicAdd(y, own);
}
"""


@pytest.mark.parametrize(
    "before",
    [
        TWO,
        changed(TWO, ("unsigned int", "int"), ("blockDim.x", "32"), ("x[i] * x[i] : 0", "x[i] * x[i] : 0.0f")),
        changed(TWO, ("grid(cdiv(n, 64))", "grid(5)")),
    ],
)  # fmt: skip
def test_a_thread_takes_one_item(before: str) -> None:
    after = written(item_a_round(kernel_of(before)))
    assert "own" not in after
    assert " * 2) block(32)" in after
    assert end_of(before, after, ARRAYS, *SIZES, rounds=True) == "same"


@pytest.mark.parametrize(
    "before",
    [
        changed(TWO, ("(blockDim.x * 2)", "(blockDim.x * 3)")),
        changed(TWO, ("(blockDim.x * 2)", "blockDim.x")),
        changed(TWO, (" : 0;", " : 1;")),
        changed(TWO, ("if (i + blockDim.x < n)", "if (i + blockDim.x < n - 1)")),
        changed(TWO, ("if (i + blockDim.x < n)", "if (i + 16 < n)")),
        changed(TWO, ("{ own += x[i + blockDim.x]", "{ own += 2 * x[i + blockDim.x]")),
        changed(TWO, ("own += x", "own -= x")),
        changed(TWO, ("atomicAdd(y, own)", "atomicAdd(y + i % 5, own)")),
        changed(TWO, ("atomicAdd(y, own)", "atomicAdd(y, own * 2)")),
        changed(TWO, ("atomicAdd(y, own)", "y[0] = own")),
        changed(TWO, ("atomicAdd(y, own);", "atomicAdd(y, own); atomicAdd(y + 1, own);")),
        changed(TWO, ("    atomicAdd", "    i += 3; atomicAdd")),
        changed(TWO, ("float own", "double own")),
    ],
)
def test_other_threads_stay(before: str) -> None:
    assert refused(item_a_round(kernel_of(before)))


PAIRS = """\
#pragma optiml zero(out)
#pragma optiml launch k grid(3) block(64)
__global__ void k(const float* x, float* out, unsigned int n) {
    __shared__ float s[64];
    unsigned int tid = threadIdx.x, i = blockIdx.x * 128 + tid;
    float own = 0;
    while (i < n) {
        own += x[i];
        if (i + 64 < n) own += x[i + 64];
        i += 128 * gridDim.x;
    }
    s[tid] = own;
    __syncthreads();
    if (tid < 32) {
        own += s[tid + 32];
        for (int o = 16; o > 0; o /= 2) own += __shfl_down_sync(~0u, own, o);
    }
    if (tid == 0) atomicAdd(out, own);
}
"""


def test_such_a_sum_has_blocks_that_fill_the_chip_and_vectors() -> None:
    found = [one for one in made(asked(BlockSum(), PAIRS)[0]) if "float4" in one.text]
    assert found
    arrays = {"x": Array("f4", ("n",)), "out": Array("f4", ("1",), "zeros")}
    for one in found:
        assert "tune BLOCKS" in one.text
        assert end_of(PAIRS, one.text, arrays, *SIZES, rounds=True) == "same"
