"""Quotients that floats round down become quotients of whole numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.floored import floored
from optiml_magic.model.facts import LaunchFacts
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, unchanged, written

TEXT = """\
#pragma optiml launch k grid(cdiv(w * s, 16), cdiv(h * s, 4)) block(16, 4)
__global__ void k(const float* a, float* out, int w, int h, int s) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w * s || y >= h * s) return;
    %s
    out[y * w * s + x] = a[min(max(j, 0), h - 1) * w + min(max(i, 0), w - 1)];
}
"""
ARRAYS = {"a": Array("f4", ("h", "w")), "out": Array("f4", ("h * s", "w * s"), "zeros")}
SIZES = ({"w": 13, "h": 5, "s": 3}, {"w": 21, "h": 2, "s": 7})
ROW = "int j = y / s;"


@pytest.mark.parametrize(
    ("body", "spelled"),
    [
        ("float u = (float)x / s; int i = floorf(u);", "int i = x / s;"),
        ("int i = floorf((float)x / (float)s);", "int i = x / s;"),
        ("int i = (int)((float)x / s);", "int i = (int)(x / s);"),
        ("int i = static_cast<int>(floorf(x / (float)s));", "x / s"),
        ("int i; i = floor((double)x / s);", "i = x / s;"),
        ("float u = x, v = u / s; int i = __float2int_rd(v);", "int i = (int)(x / s);"),
        ("int i = floorf((float)x / s) - 2;", "int i = x / s - 2;"),
        ("long long t = truncf((float)x / s) + 1.0f; int i = t;", "long long t = x / s + 1;"),
        ("unsigned i = floorf((float)x / 4);", "unsigned i = x / 4;"),
        ("int i = x * 0.25f;", "int i = x / 4;"),
        (
            "int i = floorf((float)(blockIdx.x * blockDim.x + threadIdx.x) / s);",
            "int i = (blockIdx.x * blockDim.x + threadIdx.x) / s;",
        ),
    ],
)
def test_they_are_those_of_whole_numbers(body: str, spelled: str) -> None:
    text = TEXT % f"{body} {ROW}"
    after = written(floored(kernel_of(text)))
    assert spelled in after
    assert unchanged(text, after, ARRAYS, *SIZES) == "same"


def test_the_launch_is_asked_for_sizes_that_floats_hold() -> None:
    text = TEXT % "int i = floorf((float)x / s), j = floorf((float)y / s);"
    after = written(floored(kernel_of(text)))
    assert "int i = x / s, j = y / s;" in after
    for asked in ("s >= 1", "w * s + s <= 16777216", "h * s + s <= 16777216"):
        assert after.count(f"#pragma optiml require {asked}\n") == 1
    assert end_of(text, after, ARRAYS, *SIZES) == "same"


@pytest.mark.parametrize(
    "body",
    [
        "int i = x / s;",
        "int i = ceilf((float)x / s);",
        "int i = __fdividef(x, s);",
        "int i = floorf((float)x * s / 3);",
        "int i = floorf((x + 0.5f) / s);",
        "int i = floorf((float)x / (s + 1));",
        "int i = floorf((float)x / 0.5f);",
        "int i = x * 0.2f;",
        "int i = (float)x / s - 2;",
        "short i = floorf((float)x / s);",
        "unsigned i = floorf((float)x / s) - 2;",
        "int i = floorf((float)(x - 3) / s);",
        "float u = x; u += 1; int i = floorf(u / s);",
        "int t = s; t *= 2; int i = floorf((float)x / t);",
        "float i_ = floorf((float)x / s); int i = 2;",
        "int i = 0; for (int q = 0; q < w; q++) i += floorf((float)q / s);",
        "int i = floorf(a[x] / s);",
    ],
)
def test_others_stay(body: str) -> None:
    assert refused(floored(kernel_of(TEXT % f"{body} {ROW}"))) == (
        "no quotient of an index is rounded down"
    )


def test_indices_that_no_guard_bounds_stay() -> None:
    text = TEXT.replace("if (x >= w * s || y >= h * s) return;", "if (y >= h * s) return;")
    assert "rounded down" in refused(floored(kernel_of(text % f"int i = (float)x / s; {ROW}")))


@pytest.mark.parametrize(("w", "fits"), [(2**23 - 1, True), (2**23, False)])
def test_sizes_that_no_float_holds_are_refused(w: int, fits: bool) -> None:
    launch = LaunchFacts("k", 1, (1, 1, 1), (16, 4, 1), {}, {"w": w, "h": 8, "s": 2})
    kernel = replace(kernel_of(TEXT % f"int i = (float)x / s; {ROW}"), facts=launch)
    assert isinstance(floored(kernel), Kernel) is fits


def test_what_is_never_computed_says_nothing() -> None:
    text = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 1.0f;
    return;
    out[(size_t)(i / m)] = (int)floorf((float)i / m);
}
"""
    assert isinstance(floored(kernel_of(text)), Refused)
