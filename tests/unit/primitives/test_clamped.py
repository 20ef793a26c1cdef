"""Places that tests bring back within bounds."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.clamped import clamped
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import kernel_of, refused, unchanged, written

PLACE = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* out, int n, int r) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    BODY
    out[i] = a[p];
}
"""
ARRAYS = {"a": Array("f4", ("n",)), "out": Array("f4", ("n",))}
BOTH = "int p = i - r; if (p < 0) p = 0; if (p >= n) p = n - 1;"


@pytest.mark.parametrize(
    ("body", "left"),
    [
        (BOTH, "int p = min(max(i - r, 0), n - 1);"),
        (BOTH.replace("p >= n)", "p > n - 1)"), "min(max(i - r, 0), n - 1)"),
        (BOTH.replace("p < 0)", "p <= -1)").replace("p = 0;", "{ p = 0; }"), "max(i - r, 0)"),
        (BOTH.replace("p < 0", "0 > p").replace("p >= n", "n <= p"), "max(i - r, 0)"),
        ("int p = i - r; p = p < 0 ? 0 : p; p = p >= n ? n - 1 : p;", "min(max(i - r, 0), n - 1);"),
        (BOTH.replace("i - r", "i * 0.75f - r"), "(int)(i * 0.75f - r)"),
        ("int q = i + r, p = i - r; int s = q; " + BOTH.partition(";")[2], "q = i + r, p = min(max(i - r"),
        ("int p = i - r, dummy; " + BOTH.partition(";")[2], "int p = min(max(i - r, 0), n - 1), dummy;"),
        ("int p = i - r; int q = i + r; if (p < 0) p = 0; if (q > n - 1) q = n - 1; "
        + BOTH.rpartition("; ")[2] + " p += 0;", "int q = min(i + r, n - 1);"),
    ],
)  # fmt: skip
def test_a_place_is_brought_back_where_it_is_declared(body: str, left: str) -> None:
    text = PLACE.replace("BODY", body)
    made = written(clamped(kernel_of(text)))
    assert left in made, made
    assert unchanged(text, made, ARRAYS, {"n": 70, "r": 3}, {"n": 5, "r": -2}) == "same"


@pytest.mark.parametrize(
    "body",
    [
        BOTH.replace("p >= n)", "p > n)").replace("if (p < 0) p = 0;", "p = max(p, 0);"),
        BOTH.replace("if (p < 0) p = 0; ", "").replace("p = n - 1", "p = n - 2"),
        "int p = i - r; if (p < 0) { p = 0; r = 1; } if (r == 1) p = 0;",
        "int p = i - r; if (p < 0) p = 0; else p = 1;",
        "int p = i - r; int q = p + 1; if (p < 0) p = 0; if (q > p) p = 0;",
        "int p = i - r; if (p < 0) p = 0; for (int t = 0; t < 2; ++t) p = t;",
    ],
)
def test_what_does_anything_else_stays(body: str) -> None:
    assert "no test" in refused(clamped(kernel_of(PLACE.replace("BODY", body))))


CHOICE = """\
for (int t = 0; t < 2; ++t) {
    int q = i + t - r;
    q = q < 0 ? 0 : q >= n ? n - 1 : q;
    sum += a[q];
}"""
ROUNDS = PLACE.replace("BODY", "float sum = 0.0f; BODY").replace("a[p]", "sum")


@pytest.mark.parametrize(
    ("body", "left"),
    [
        (CHOICE, "int q = min(max(i + t - r, 0), n - 1);"),
        (CHOICE.replace("q >= n ?", "q > n - 1 ?").replace("q < 0", "0 > q"), "min(max(i + t - r, 0)"),
        (CHOICE.replace("q < 0 ? 0 : q >= n ? n - 1", "q >= n ? n - 1 : q < 0 ? 0"),
         "int q = max(min(i + t - r, n - 1), 0);"),
    ],
)  # fmt: skip
def test_a_choice_brings_a_place_back_where_its_bounds_are_in_order(body: str, left: str) -> None:
    text = ROUNDS.replace("BODY", body)
    made = written(clamped(kernel_of(text)))
    assert left in made, made
    assert unchanged(text, made, ARRAYS, {"n": 70, "r": 3}, {"n": 5, "r": -2}) == "same"


@pytest.mark.parametrize(
    "body",
    [
        CHOICE.replace("n ? n - 1", "r ? r - 1"),  # which may be below 0
        CHOICE.replace("q < 0 ? 0", "q < 0 ? 1"),
        CHOICE.replace("? n - 1 : q", "? n - 1 : q + 1"),
        CHOICE.replace("q < 0 ? 0", "q < t ? t"),
        CHOICE.replace("q < 0 ?", "q > 0 ?"),
    ],
)
def test_another_choice_stays(body: str) -> None:
    assert "no test" in refused(clamped(kernel_of(ROUNDS.replace("BODY", body))))
