"""Ways that data choose between, and whether one of them is taken for certain."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.covering import cover, ways

from .shapes import kernel

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = a[0], w = a[1];
    bool c = v > 1.0f, d = w > v;
    %s
}
"""


@pytest.mark.parametrize(
    ("body", "whole"),
    [
        ("out[i] = v;", True),
        ("if (c) out[i] = v; else out[i] = w;", True),
        ("if (i < n) out[i] = v; else out[i] = w;", True),
        ("if (c) out[i] = v; else if (d) out[i] = w; else out[i] = 1.0f;", True),
        ("if (c) { if (d) out[i] = v; else out[i] = w; } else out[i] = 1.0f;", True),
        ("if (i < n && i > 3) out[i] = v; else out[i] = w;", True),
        ("if (i < n || i > 3) out[i] = v; else out[i] = w;", True),
        ("if (i < 9) out[i] = v; if (i > 8) out[i] = w;", True),
        ("if (i < 9) out[i] = v; if (i > 9) out[i] = w;", False),
        ("if (c) out[i] = v; else if (d) out[i] = w;", False),
        ("if (i < n && i > 3) out[i] = v; else if (i < n) out[i] = w;", False),
        ("if (c) out[i] = v; c = d; if (!c) out[i] = w;", False),
        ("if (c) return; out[i] = v;", False),
        ("if (c) { out[i] = w; return; } out[i] = v;", True),
    ],
)
def test_ways_cover_all_that_may_happen(body: str, whole: bool) -> None:
    stores = [a for a in kernel(TEXT % body).reading.accesses if a.mode == "store"]
    assert cover([way for a in stores for way in ways(a.guard, ())]) is whole


def test_what_holds_anyway_is_not_asked_for() -> None:
    (store,) = [a for a in kernel(TEXT % "if (i < n) out[i] = v;").reading.accesses if a.mode == "store"]  # fmt: skip
    assert cover(ways(store.guard, {*store.guard}))
    assert not cover([])


def test_too_many_ways_are_none() -> None:
    tests = " && ".join(f"(a[{at}] > v || i == {at})" for at in range(7))
    body = f"if ({tests}) out[i] = v; else out[i] = w;"
    first, _ = [a for a in kernel(TEXT % body).reading.accesses if a.mode == "store"]
    assert ways(first.guard, ()) == []
