"""Sums that a loop keeps side by side, as one."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.rerolled import rerolled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(m, 32)) block(32)
__global__ void k(const float* a, float* out, int m, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= m) return;
    BODY
}
"""
ARRAYS = {"a": Array("f4", ("m", "n + 8")), "out": Array("f4", ("m",), "zeros")}
PAIR = "for (int k = 0; k < n; k += 2) { s += a[ROW + k]; t += a[ROW + k + 1]; } "
THREE = (
    "int k = 0; for (; k + 2 < n; k += 3) { s += a[ROW + k]; t += a[ROW + k + 1]; "
    "u += a[ROW + k + 2]; } for (; k < n; ++k) s += a[ROW + k]; "
)
INTS = "int s = 0, t = 0; for (int k = 0; k < n; k += 2) { s += k << 8; t += k + 1 << 8; } "


def of(body: str) -> str:
    return TEXT.replace("BODY", body.replace("ROW", "r * (n + 8)"))


@pytest.mark.parametrize(
    ("body", "end"),
    [
        ("float s = 0, t = 0; " + PAIR + "out[r] = s + t;", "out[r] = s;"),
        ("float s = 2, t = 0.0f; " + PAIR + "out[r] = (t + s) * 3;", "out[r] = s * 3;"),
        ("float s = 0, t = 0, u = 0; " + THREE + "out[r] = s + t + u;", "out[r] = s;"),
        ("float s = 0, t = 0, u = 0; " + THREE + "out[r] = (u + t) + (s + 1);", "out[r] = s + 1;"),
        (
            ("float s = 0, t = 0; double d = 0, e = 0; for (int k = 0; k < n; k += 2) "
            "{ s += a[ROW + k]; d += k; t += a[ROW + k + 1]; e += k + 1; } "
            "out[r] = s + t + (float)(d + e);"),
            "out[r] = s + (float)d;",
        ),
    ],
)  # fmt: skip
def test_they_are_one(body: str, end: str) -> None:
    before = of(body)
    found = rerolled(kernel_of(before))
    assert isinstance(found, Kernel), found
    after = written(found)
    assert end in after
    assert " t = " not in after
    assert found.arithmetic == ("the order of additions",)
    for n in (4, 38):
        assert end_of(before, after, ARRAYS, {"m": 33, "n": n}, {"m": 3, "n": 6}) == "same"


@pytest.mark.parametrize(
    "body",
    [
        "float s = 0, t = 1; " + PAIR + "out[r] = s + t;",  # it would begin at 1 no more
        "float s = 0, t = 0; " + PAIR + "out[r] = s - t;",
        "float s = 0, t = 0; " + PAIR + "out[r] = s + 2 * t;",
        "float s = 0, t = 0; " + PAIR + "out[r] = s + t + t;",
        "float s = 0, t = 0; " + PAIR + "s *= 2; out[r] = s + t;",
        "float s = 0, t = 0; " + PAIR + "out[r] = s + t; out[r] += t;",
        "float s = 0, t = 0; " + PAIR + "float x = s + t; out[r] = x + (s + t);",
        "float s = 0, t = 0; float* p = &t; " + PAIR + "*p = 0; out[r] = s + t;",
        "float s = 0, t = 0; t = 2; " + PAIR + "out[r] = s + t;",
        "float s = 0, t = 0, u = 0; " + THREE + "out[r] = s + t;",
        (
            "float s = 0, t = 0; for (int k = 0; k < n; k += 2) "
            "{ s += a[ROW + k] + t; t += a[ROW + k + 1] + s; } out[r] = s + t;"
        ),
        (
            "float s = 0, t = 0; for (int k = 0; k < n; k += 2) "
            "{ s += a[ROW + k]; t -= a[ROW + k + 1]; } out[r] = s + t;"
        ),
    ],
)
def test_sums_that_are_told_apart_stay(body: str) -> None:
    assert refused(rerolled(kernel_of(of(body)))).startswith("no round of a loop does the same")


@pytest.mark.parametrize(
    "body",
    [
        "int s = 0; float t = 0; " + PAIR + "out[r] = s + t;",
        "int s = 0, t = 0; " + PAIR + "out[r] = s + t;",  # of fractions
        "unsigned char s = 0, t = 0; " + PAIR.replace("a[ROW + k", "50 * (int)(a[ROW + k")
        .replace("]; ", "]); ") + "out[r] = s + t;",
        "float s = 0, t = 0; " + PAIR.replace("];", "] * s;") + "out[r] = s + t;",
        "float s = 0, t = 0; " + PAIR.replace("];", "] * t;") + "out[r] = s + t;",
        "float t = 0; for (int q = 0; q < 3; ++q) { float s = 0; " + PAIR + "out[r] += s + t; }",
        "float s = 0; for (int q = 0; q < 3; ++q) { float t = 0; " + PAIR + "out[r] += s + t; }",
        ("unsigned s = 0, t = 0; for (int k = 0; k < n; k += 2) { s += k << 30; t += k + 1 << 30; } "
        "float z = 1; out[r] = z + s + t;"),
        INTS + "float z = 1; out[r] = z + s + t;",  # one of all may be more than an int holds
        INTS + "long long z = 1; out[r] = z + s + t;",
        ("float s = 0, t = 0, u = 0; int k = 0; for (; k + 1 < n; k += 2) { s += a[ROW + k]; "
        "t += a[ROW + k + 1]; } for (; k < n; ++k) u += a[ROW + k]; out[r] = s + t - u;"),
    ],
)  # fmt: skip
def test_what_each_of_them_is_asked_for_stays(body: str) -> None:
    found = refused(rerolled(kernel_of(of(body))))
    assert found.startswith("no round of a loop does the same for several elements")


def test_whole_numbers_are_one_in_a_sum_of_their_own_type() -> None:
    before = of(INTS + "unsigned z = 1; out[r] = z + s + t;")
    after = written(rerolled(kernel_of(before)))
    assert "out[r] = z + s;" in after
    assert end_of(before, after, ARRAYS, {"m": 33, "n": 38}, {"m": 3, "n": 4}) == "same"


def test_what_is_left_may_go_to_another_of_them() -> None:
    rest = THREE.replace("++k) s +=", "++k) u +=")
    before = of("float s = 0, t = 0, u = 0; " + rest + "out[r] = s + t + u;")
    after = written(rerolled(kernel_of(before)))
    assert "out[r] = s;" in after
    assert end_of(before, after, ARRAYS, {"m": 33, "n": 37}, {"m": 3, "n": 5}) == "same"
