"""Dynamic shared memory that pointers part, as an array for each part."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.carved import carved
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(b) block(32) shared((n + 32) * sizeof(float))
__global__ void k(const float* x, float* out, int n, int b) {
    extern __shared__ float pool[];
    float* row = pool;
    float* red = row + n;
    for (int i = threadIdx.x; i < n; i += 32) row[i] = x[blockIdx.x * 64 + i];
    __syncthreads();
    float s = 0.0f;
    for (int i = threadIdx.x; i < n; i += 32) s += row[n - 1 - i];
    red[threadIdx.x] = s;
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = red[31 - threadIdx.x];
}
"""
RED = "float* red = row + n;"


def text_of(*changes: str) -> str:
    text = TEXT
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text, old
        text = text.replace(old, new)
    return text


WHOLE = """\
#pragma optiml launch k grid(b) block(32) shared(33 * sizeof(float))
__global__ void k(const float* x, float* out, int b) {
    extern __shared__ float pool[];
    pool[threadIdx.x + 1] = x[blockIdx.x * 32 + threadIdx.x];
    if (threadIdx.x == 0) pool[0] = 0.5f;
    __syncthreads();
    out[blockIdx.x * 32 + threadIdx.x] = pool[threadIdx.x] - pool[threadIdx.x + 1];
}
"""


def test_the_whole_is_one_of_as_many_elements() -> None:
    after = written(carved(kernel_of(WHOLE)))
    assert "__shared__ float pool[33];" in after
    assert "shared(" not in after
    arrays = {"x": Array("f4", ("b * 32",)), "out": Array("f4", ("b * 32",), "zeros")}
    assert end_of(WHOLE, after, arrays, {"b": 3}, {"b": 1}) == "same"
    other = "__global__ void other(int* p) { extern __shared__ int all[]; p[0] = all[0]; }\n"
    assert "__shared__ float pool[33];" in written(carved(kernel_of(WHOLE + other)))
    called = other.replace("__global__", "__device__")
    assert "same shared memory" in refused(carved(kernel_of(WHOLE + called)))
    sized = WHOLE.replace("int b", "int b, int n").replace("shared(33", "shared(n")
    assert "no pointers part" in refused(carved(kernel_of(sized)))
    assert "no pointers part" in refused(carved(kernel_of(WHOLE), rows=True))


@pytest.mark.parametrize(
    "changes",
    [
        (),
        ("float* row = pool;", "", "row", "pool"),
        ("row + n", "&row[n]"),
        ("float* row = pool;\n    " + RED, "float* red = pool;\n    float* row = red + 32;"),
        (RED, "int* red = (int*)(row + n);"),
        ("float pool[]", "char pool[]", "row = pool", "row = (float*)pool"),
        ("float pool[]", "char pool[]", "row = pool", "row = (float*)pool",
         "row + n", "(float*)(pool + n * 4)"),
        (RED, "double* red = (double*)(row + 2 * n);", "(n + 32)", "(2 * n + 64)"),
    ],
)  # fmt: skip
def test_parts_are_arrays(changes: tuple[str, ...]) -> None:
    before = text_of(*changes)
    after = written(carved(kernel_of(before)))
    assert "red[32];" in after
    arrays = {"x": Array("f4", ("b * 64",)), "out": Array("f4", ("b * 64",), "zeros")}
    assert end_of(before, after, arrays, {"n": 33, "b": 3}, {"n": 1, "b": 1}) == "same"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (("row + n;", "row + n - 1;"), "is kept"),
        (("row + n;", "row;"), "not certain"),
        (("[n - 1 - i]", "[n - i]"), "may reach into another part"),
        (("red[31 - threadIdx.x]", "row[n + threadIdx.x]"), "may reach into another part"),
        (("red[31 - threadIdx.x]", "pool[n + threadIdx.x]"), "may reach into another part"),
        (("red[31 - threadIdx.x]", "red[-1]"), "may reach into another part"),
        (("float s =", "row += 0; float s ="), "leads elsewhere later"),
        (("float s =", "n = n - 1; float s ="), "not followed"),
        (("s = 0.0f", "s = *row"), "is kept"),
        (("s = 0.0f", "s = row < red"), "is kept"),
        ((RED, "unsigned char* red = (unsigned char*)(row + n);"), "no plain elements"),
        ((RED, "double* red = (double*)(row + n);"), "not followed"),
        (("row + n;", "row + n / 2 * 2;"), "not followed"),
        (("row = pool", "row = pool + 1"), "what lies before"),
        (("row + n;", "row + 20000;", "(n + 32)", "(20000 + 32)"), "another part"),
        (("red[threadIdx.x] = s", "atomicAdd(&red[threadIdx.x], s)"), "not followed"),
        (("red[31 - threadIdx.x]", "f()", "__global__",
          "__device__ float f() { extern __shared__ float own[]; return own[0]; }\n__global__"),
         "a function has the same"),
        (("float pool[]", "float pool[]; __shared__ float q[4]", "row = pool", "row = q",
          "row + n", "row + 1"), "no pointers part"),
    ],
)  # fmt: skip
def test_other_memory_stays(changes: tuple[str, ...], reason: str) -> None:
    assert reason in refused(carved(kernel_of(text_of(*changes))))
