"""What adds zeros behind a guard, within it: what is made, run beside what it was, and refused."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.within import within

from .running import same
from .shapes import applied, kernel, refused

SUM = """\
#pragma optiml zero(out)
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const int* a, int n, int by, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    %s
}
"""
SHAPES = {"a": ("i4", "n"), "out": ("i4", "4")}


@pytest.mark.parametrize(
    "body",
    [
        "int v = 0; if (i < n) { int p = a[i]; v = p * p; } atomicAdd(out, v / n);",
        "int v = i < n ? a[i] : 0; atomicAdd(&out[i % 4], -v * by);",
        "int v = 0, w; w = v; if (i < n) v = a[i]; v = v * 2 + w; atomicAdd(out, v);",
        "int v = 0; if (i < n) v = a[i]; atomicAdd(out, v); if (i < n) atomicAdd(out, 1);",
        "int v = 0; if (i < n) { int p = a[i]; v = p; } int p = v; atomicAdd(out, p / 2);",
    ],
)
def test_those_beyond_the_last_item_bring_nothing(body: str) -> None:
    made = within(kernel(SUM % body))
    text = applied(made).program.text
    assert "if (i < n) {" in text
    assert text.rindex("atomicAdd") < text.rindex("}", 0, text.rindex("}"))
    same(SUM % body, made, SHAPES, {"n": 131, "by": 3})


@pytest.mark.parametrize(
    "body",
    [
        "int v = 1; if (i < n) v = a[i]; atomicAdd(out, v);",  # it begins with something
        "int v = 0; v += by; if (i < n) v = a[i]; atomicAdd(out, v);",
        "int v = 0; if (i < n) v = a[i]; v += 1; atomicAdd(out, v);",
        "int v = 0; if (i < n) v = a[i]; atomicAdd(out, v / by);",  # which may be zero
        "int v = 0; if (i < n) v = a[i]; atomicAdd(out, v); out[1] = 1;",
        "int v = 0; if (i < n) v = a[i]; else v = by; atomicAdd(out, v);",
        "int v = 0; if (i < n) v = a[i]; if (i < n + 1) v = by; atomicAdd(out, v);",
        "int v = 0; if (i < n) v = a[i]; atomicAdd(out, v); if (i < 7) atomicAdd(out, 1);",
        "int v = 0; if (a[i / 64] < by) v = 1; atomicAdd(out, v);",  # what memory says
        "int v = 0; if (i < n) v = a[i]; i = by; if (i < n) v = by; atomicAdd(out, v);",
    ],
)
def test_what_does_something_besides_stays(body: str) -> None:
    assert refused(within(kernel(SUM % body)))[0] == "no guard stands before what adds zeros"
