"""Blocks that add up at an element of their own, and atomic operations that need be none."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.added_up import added_up
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.unatomic import unatomic
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import kernel_of, refused, unchanged, written

PAIRS = """\
#pragma optiml launch k grid(m, m) block(64)
__global__ void k(const int* a, int* out, int m, int n) {
    int i = blockIdx.y, j = blockIdx.x;
    int count = 0;
    for (int k = threadIdx.x; k < n; k += blockDim.x) {
        if (a[i * n + k] != a[j * n + k]) count++;
    }
    atomicAdd(&out[i * m + j], count);
}
"""
ROWS = """\
#pragma optiml launch k grid(m) block(64)
__global__ void k(const int* a, int* out, int m, int n) {
    int sum = 0;
    for (int k = threadIdx.x; k < n; k += blockDim.x) sum += a[blockIdx.x * n + k];
    atomicAdd(&out[blockIdx.x], sum);
}
"""
ARRAYS = {"a": Array("i4", ("m", "n")), "out": Array("i4", ("m", "m"), "zeros")}


@pytest.mark.parametrize(
    "text",
    [
        PAIRS,
        ROWS,
        ROWS.replace("sum += a[", "sum += 3 * a["),
        ROWS.replace("&out[blockIdx.x]", "&out[blockIdx.x / 2]"),
    ],
)
def test_threads_of_a_block_that_add_up_are_one(text: str) -> None:
    made = written(added_up(kernel_of(text)))
    assert "block(256" in made
    assert "threadIdx.x; k <" not in made
    assert "block_sum" not in made
    for sizes in ({"m": 7, "n": 150}, {"m": 1, "n": 3}):
        assert unchanged(text, made, ARRAYS, sizes, {"m": 5, "n": 65}) == "same"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (ROWS.replace("&out[blockIdx.x]", "&out[0]"), "no element of their own"),
        (ROWS.replace("&out[blockIdx.x]", "&out[threadIdx.x % m]"), "no element of their own"),
        (ROWS.replace("&out[blockIdx.x], sum", "&out[blockIdx.x], sum * sum"), ""),
        (ROWS.replace("int sum = 0", "int sum = threadIdx.x"), ""),
        (ROWS.replace("    atomic", "    if (sum > 9) atomic"), ""),
        (ROWS.replace("block(64)", "block(48)"), "whole warps"),
        (PAIRS.replace("count);", "2 * count);"), "another operation"),
        (PAIRS.replace("atomicAdd", "if (i < j) atomicAdd"), "not certain"),
    ],
)
def test_what_threads_add_for_themselves_stays(text: str, reason: str) -> None:
    assert reason in refused(added_up(kernel_of(text)))


OWN = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* out, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&out[i], a[i]);
}
"""
LINE = {"a": Array("f4", ("n",)), "out": Array("f4", ("n",), "numbers")}


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (OWN, "out[i] += a[i];"),
        (OWN.replace("a[i]);", "3 * i);"), "out[i] += (float)(3 * i);"),
        (OWN.replace("a[i]);", "a[i]); if (i < n) out[i] *= 2.0f;"), "out[i] += a[i];"),
        (OWN.replace("atomicAdd(&out[i], a[i])", "{ int* o = (int*)out; out[i] = 0.5f; }"), ""),
        (OWN.replace("&out[i]", "&out[i / 2]"), ""),
        (
            OWN.replace("atomicAdd", "float was = atomicAdd").replace("if (i < n)", "if (i < n) {")
            + "}",
            "",
        ),
        (OWN.replace("a[i]);", "a[i]); if (i == 0) out[1] = 2.0f;"), ""),
    ],
)
def test_an_update_by_one_thread_alone_is_a_plain_one(text: str, left: str) -> None:
    found = unatomic(kernel_of(text))
    if not left:
        refused(found)
        return
    made = written(found)
    assert left in made, made
    assert unchanged(text, made, LINE, {"m": 1, "n": 150}, {"m": 2, "n": 65}) == "same"


@pytest.mark.parametrize(("blocks", "alone"), [("1", True), ("2", False), ("n", False)])
def test_threads_of_one_block_have_elements_of_their_own(blocks: str, alone: bool) -> None:
    text = f"""\
#pragma optiml launch k grid({blocks}) block(64)
__global__ void k(const float* a, float* out, int n) {{
    atomicAdd(&out[threadIdx.x], a[threadIdx.x]);
}}
"""
    found = unatomic(kernel_of(text))
    assert isinstance(found, Kernel) == alone
