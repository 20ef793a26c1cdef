"""Blocks that add to one place and store beside it: each thread keeps its stores, or they stay."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.raised import raised
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

HEAD = """\
#pragma optiml init(o) = 0
__device__ void into(float& sum, float x) { sum += x; }
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* b, float* z, float* o, int n) {
    __shared__ float part[64];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    float v = 0.0f;
"""
TREE = """\
    part[t] = v;
    __syncthreads();
    for (int d = 32; d > 0; d >>= 1) { if (t < d) part[t] += part[t + d]; __syncthreads(); }
"""
END = "    if (t == 0) atomicAdd(o, part[0]);\n}\n"
ARRAYS = {
    "a": Array("f4", ("n",)), "b": Array("f4", ("n",)), "z": Array("f4", ("n",), "zeros"),
    "o": Array("f4", ("1",), "zeros"),
}  # fmt: skip
#: What each thread does for itself, before its block adds up.
KEPT = {
    "store": "if (i < n) { v = a[i] * a[i]; z[i] = v; }",
    "in place": "if (i < n) { float r = b[i] - 0.5f * a[i]; b[i] = r; v = r * r; }",
    "loaded again": "if (i < n) { b[i] += a[i]; v = b[i] * 2.0f; }",
    "two arrays": "if (i < n) { z[i] = a[i] + 1.0f; b[i] *= a[i]; v = z[i]; }",
    "two ways": "if (i < n) { if (a[i] > 0.0f) z[i] = a[i]; else { z[i] = -a[i]; v = 1.0f; } }",
    "a choice": "v = i < n ? a[i] : 0.0f; if (i < n) z[i] = v > 0.0f ? v : 0.5f * v;",
    "rounds": "if (i < n) { float s = 0.0f; for (int k = 0; k < 3; ++k) s += a[(i + k) % n];"
    " z[i] = s; v = s * a[i]; }",
    "rounds of stores": "if (i < n) for (int k = 0; k < 3; ++k) { z[i] += a[i] * k; v += z[i]; }",
    "the last round": "if (i < n) for (int k = 0; k < 3; ++k) v = a[(i + k) % n];",
    "from round to round": "if (i < n) for (int k = 0; k < 3; ++k) v = v * 0.5f + a[(i + k) % n];",
    "an array": "if (i < n) { float w[4]; for (int k = 0; k < 4; ++k) w[k] = a[(i + k) % n];"
    " v = w[i % 4]; z[i] = w[1]; }",
    "left early": "if (i < n) for (int k = 0; k < 9; ++k) { if (a[(i + k) % n] > 0.5f) break; v += 1.0f; }",
    "walks": "int j = i; do { if (j < n) { z[j] = a[j]; v += a[j]; } j += 64 * gridDim.x; } while (j < n);",
    "through a function": "if (i < n) for (int k = 0; k < 3; ++k) into(v, a[(i + k) % n]);",
    "some threads": "if (i < n) v = a[i]; if (t < 7 && i < n) z[i] = 1.0f;",
    "a pointer": "if (i < n) { float* own = z + i; *own = a[i]; v = a[i]; }",
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_each_thread_keeps_its_stores(name: str) -> None:
    text = f"{HEAD}    {KEPT[name]}\n{TREE}{END}"
    after = written(raised(kernel_of(text)))
    body = after.partition("{")[2]
    assert "__syncthreads" not in body
    assert "__shared__" not in body
    assert "block(64)" in after
    assert end_of(text, after, ARRAYS, {"n": 517}, {"n": 3}, rounds=True) == "same"


def test_behind_the_last_barrier_as_well() -> None:
    text = f"{HEAD}    if (i < n) v = a[i];\n{TREE}    if (i < n) z[i] = 2.0f * v;\n{END}"
    after = written(raised(kernel_of(text)))
    assert "__syncthreads" not in after
    assert end_of(text, after, ARRAYS, {"n": 517}, {"n": 3}, rounds=True) == "same"


#: Stores that others wait for, that some threads make, or of what a block has together.
ORDERED = {
    "a neighbour's": (
        "if (i < n) z[i] = a[i]; __syncthreads(); if (i > 0 && i < n) v = z[i ^ 1];",
        "",
    ),
    "loaded before": ("if (i < n) v = b[i ^ 1];", "if (i < n) b[i] = 1.0f;"),
    "the whole": ("if (i < n) v = a[i];", "if (i < n) z[i] = part[0];"),
    "one thread": ("if (i < n) v = a[i];", "if (t == 0) z[blockIdx.x] = part[0];"),
    "rounds that wait": (
        ("for (int k = 0; k < 3; ++k) { if (i < n) z[i] = a[i] + k; __syncthreads();"
        " v += i < n ? z[i ^ 1] : 0.0f; __syncthreads(); }"), ""
    ),
    "rounds of what is shared": (
        ("part[t] = i < n ? a[i] : 0.0f; __syncthreads(); for (int k = 0; k < 3; ++k)"
        " v += part[(t + k) % 64]; if (i < n) z[i] = v; __syncthreads();"), ""
    ),
    "a way out": ("if (i >= n) return; for (int k = 0; k < 2; ++k) v += a[i];", ""),
    "by lanes": (
        "if (i < n) z[i] = a[i]; __syncwarp(); v = i > 0 && i < n ? z[i ^ 1] : 0.0f;", ""
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ORDERED)
def test_what_barriers_order_stays_in_order(name: str) -> None:
    before, behind = ORDERED[name]
    text = f"{HEAD}    {before}\n{TREE}    {behind}\n{END}"
    found = raised(kernel_of(text))
    if isinstance(found, type(kernel_of(text))):
        after = found.program.text
        assert "block(64)" not in after
        assert end_of(text, after, ARRAYS, {"n": 576}, {"n": 64}, rounds=True) == "same"
    else:
        assert refused(found)


def test_arrays_that_may_be_one_are_one() -> None:
    text = f"{HEAD}    if (i < n) z[i] = a[i];\n{TREE}    if (i < n) b[i] = 1.0f;\n{END}"
    alike = text.replace("block(64)\n", "block(64) args(a, z, z, o, n)\n")
    assert refused(raised(kernel_of(alike)))


@pytest.mark.parametrize("loaded", ["__ldg(&a[i])", "__ldg(a + i)", "a[i]"])
def test_what_is_loaded_by_ldg_is_no_array_that_is_stored(loaded: str) -> None:
    """A thread asks for its element anew before it is stored."""
    text = (
        "#pragma optiml launch k grid(n / 64) block(64)\n"
        "__global__ void k(const float* a, float* b, int n) {\n"
        "    __shared__ float part[64];\n"
        "    int t = threadIdx.x, i = blockIdx.x * 64 + t;\n"
        f"    float v = b[i] + {loaded};\n"
        f"{TREE}"
        "    b[i] = v - part[0];\n}\n"
    )
    after = written(raised(kernel_of(text)))
    assert "__syncthreads" not in after
    arrays = {"a": Array("f4", ("n",)), "b": Array("f4", ("n",))}
    assert end_of(text, after, arrays, {"n": 512}, {"n": 64}, rounds=True) == "same"
