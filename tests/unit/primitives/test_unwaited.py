"""Barriers that nobody needs, and shared memory for what is a thread's own."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.unwaited import unwaited
from optiml_magic.proposers.rewrites.vectorise_map import VectoriseMap
from tests.ideas import asked, made
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

STAGED = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* x, float* y, int n) {
    __shared__ float a[32], b[32];
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < n) { a[threadIdx.x] = x[i]; b[threadIdx.x] = y[i]; }
    __syncthreads();
    if (i < n) b[threadIdx.x] = 2 * a[threadIdx.x] + b[threadIdx.x];
    __syncthreads();
    if (i < n) y[i] = b[threadIdx.x];
}
"""
IN_PLACE = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* x, float* y, int n) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < n) y[i] += x[i];
    __syncthreads();
    if (i < n) y[i] = y[i] * x[0];
}
"""
ARRAYS = {"x": Array("f4", ("n",)), "y": Array("f4", ("n",), "floats")}
SIZES = {"n": 371}, {"n": 3}


def changed(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(
    "before",
    [
        STAGED,
        IN_PLACE,
        changed(IN_PLACE, ("y[i] += x[i]", "y[i] = x[i]"), ("y[i] * x[0]", "x[n - 1 - i]")),
    ],
)
def test_they_go(before: str) -> None:
    after = written(unwaited(kernel_of(before)))
    assert "__syncthreads" not in after
    assert "__shared__" not in after
    assert end_of(before, after, ARRAYS, *SIZES) == "same"


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        (changed(STAGED, ("2 * a[threadIdx.x]", "2 * a[31 - threadIdx.x]")), "share memory"),
        (changed(STAGED, ("y[i] = b[threadIdx.x]", "y[i] = b[threadIdx.x ^ 1]")), "share memory"),
        (changed(IN_PLACE, ("y[i] * x[0]", "y[i] * y[i / 32 * 32]")), "another thread"),
        (changed(IN_PLACE, ("y[i] = y[i] * x[0]", "y[n - 1 - i] = x[i]")), "another thread"),
        (changed(IN_PLACE, ("y[i] += x[i]", "atomicAdd(&y[i / 2], x[i])")), "another thread"),
        (changed(IN_PLACE, ("    __sync", "    __threadfence(); __sync")), "which order"),
        (changed(IN_PLACE, ("    __syncthreads();\n", "")), "do not wait"),
        (changed(IN_PLACE, ("float* y,", "volatile float* y,")), ""),
    ],
)
def test_they_stay(before: str, reason: str) -> None:
    assert reason in refused(unwaited(kernel_of(before)))


def test_a_map_that_stages_its_own_elements_is_vectors() -> None:
    found = [one for one in made(asked(VectoriseMap(), STAGED)[0]) if "float4" in one.text]
    assert found
    for one in found:
        assert "__shared__" not in one.text
        assert end_of(STAGED, one.text, ARRAYS, *SIZES) == "same"
