"""Locals that hold what another one holds, in whose place that is meant."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.copied import copied, copied_within
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* x, float* out, float* more, int n, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float m = x[i];
    STEPS
}
"""


def ends(before: str, after: str) -> str:
    arrays = {"x": Array("f4", ("n * 2",)), "out": Array("f4", ("n",), "zeros"),
              "more": Array("f4", ("n",), "zeros")}  # fmt: skip
    return end_of(before, after, arrays, {"n": 37, "w": 7}, {"n": 1, "w": 1})


@pytest.mark.parametrize(
    "steps",
    [
        "float a = m; m = a; out[i] = a;",
        "float a = m; float b = a; m = 2.0f; out[i] = a + b;",
        "float a = m; float b = a; a = 2.0f; out[i] = a + b; more[i] = m;",
        "float q = x[i + 1]; float a = m; m = q; q = a; out[i] = m; more[i] = q + a;",
        "float a = m; float z = atomicAdd(&more[i], 1.0f); out[i] = a;",
        "float a = m; { float a = 3.0f; more[i] = a; } out[i] = a;",
        "float a = m; float y = 1.0f; float& r = y; r = a; out[i] = y + a;",
        "float a = m; { float m = 2.0f; more[i] = m; } out[i] = a;",
    ],
)
def test_copies_give_their_place_away(steps: str) -> None:
    before = TEXT.replace("STEPS", steps)
    assert ends(before, written(copied(kernel_of(before)))) == "same"


@pytest.mark.parametrize(
    "steps",
    [
        "float a = m; m = m + 1.0f; out[i] = a; more[i] = m;",
        "float a = m; { float m = 2.0f; out[i] = a + m; }",
        "float a = m; for (int m = 0; m < w; m++) more[i] += a + m;",
        "float a = m; for (int j = 0; j < w; j++) { more[i] += a; m = m * 2.0f; }",
        "float a = m; float& r = a; r = 3.0f; out[i] = a;",
        "float a = m; float* r = &m; *r = 3.0f; out[i] = a;",
        "float a = 0.0f; if (w > 2) a = m; out[i] = a;",
        "double a = m; out[i] = a / 3;",
        "int a = m; out[i] = a;",
        "float a = m; a = (m = 3.0f); out[i] = a + m;",
        "float a[1]; a[0] = m; out[i] = a[0];",
        "volatile float a = m; out[i] = a;",
        "float a = n; out[i] = a;",
    ],
)
def test_what_is_no_copy_stays(steps: str) -> None:
    assert "no local is a copy" in refused(copied(kernel_of(TEXT.replace("STEPS", steps))))


@pytest.mark.parametrize(
    "steps",
    [
        "for (int j = 0; j < w; j++) { float a = m; out[i] += a * j; }",
        "for (int j = 0; j < w; j++) { float a = m, b = a; out[i] += a * b; }",
        "if (w > 2) { const float a = m; out[i] = a; } m = 3.0f; more[i] = m;",
        "for (int j = 0; j < w; j++) { float a = m; float c = a; out[i] += a * c; }",
        (
            "float a = 7.0f; for (int j = 0; j < w; j++) { float a = m; float c = a; out[i] += c; } "
            "more[i] = a;"
        ),
    ],
)
def test_copies_in_inner_blocks(steps: str) -> None:
    before = TEXT.replace("STEPS", steps)
    found = copied_within(kernel_of(before))
    if "b = a" in steps:  # declared with another one
        assert "no local of an inner" in refused(found)
        return
    assert " a = m" not in written(found)
    assert ends(before, written(found)) == "same"


@pytest.mark.parametrize(
    "steps",
    [
        "for (int j = 0; j < w; j++) { float a = m; m += 1.0f; out[i] += a; }",
        "for (int j = 0; j < w; j++) { float a = m; a += 1.0f; out[i] += a; }",
        "for (int j = 0; j < w; j++) { float a = m; { float m = 2.0f; out[i] += a * m; } }",
        "for (int j = 0; j < w; j++) { float a = m; float& r = m; r += 1.0f; out[i] += a; }",
        "for (int j = 0; j < w; j++) { int a = m; out[i] += a; }",
    ],
)
def test_copies_in_inner_blocks_that_stay(steps: str) -> None:
    found = copied_within(kernel_of(TEXT.replace("STEPS", steps)))
    assert "no local of an inner" in refused(found)
