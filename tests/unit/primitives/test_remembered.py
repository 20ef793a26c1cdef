"""Elements at places that loops keep, and those that must be asked for anew."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.remembered import remembered
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from tests.ideas import asked, made
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, const int* c, int* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int best = 0, other = -1, sum = 0;
    float worst = 0;
    %s
    out[i * 3] = best;
    out[i * 3 + 1] = other + (int)worst;
    out[i * 3 + 2] = sum;
}
"""
ARRAYS = {
    "a": Array("f4", ("n", "m"), "odd"), "c": Array("i4", ("n", "m"), "below m"),
    "out": Array("i4", ("n", "3"), "zeros"),
}  # fmt: skip


def result(body: str) -> Kernel | Refused:
    return remembered(kernel_of(TEXT % body))


@pytest.mark.parametrize(
    "body",
    [
        "for (int k = 1; k < m; k++) if (a[i * m + k] > a[i * m + best]) best = k;",
        "for (int k = 0; k < m; k++) { if (a[i * m + best] < a[i * m + k]) { best = k; sum++; } }",
        "int k = 1; while (k < m) { if (!(a[i * m + k] <= a[i * m + best])) best = k; k++; }",
        "#pragma unroll 2\n    for (int k = m - 1; k >= 0; k--) if (a[i * m + k] > a[i * m + best]) best = k;",
        "for (int k = 1; k < m; k++) { float x = a[i * m + k]; if (x >= a[i * m + best]) best = k; }",
        "for (int k = 0; k < m; k++) { int j = c[i * m + k]; if (a[j] > a[best]) best = j; }",
        "for (int k = 1; k < m; k++) { float x = a[i * m + k]; worst += a[i * m + best] - x; if (x < 0) best = k; }",
    ],
)
def test_they_are_kept(body: str) -> None:
    after = written(result(body))
    assert "float a_best = a[" in after
    sizes = {"n": 70, "m": 9}, {"n": 33, "m": 1}
    assert end_of(TEXT % body, after, ARRAYS, *sizes) == "same"


@pytest.mark.parametrize(
    "body",
    [
        "for (int k = 1; k < m; k++) if (a[i * m + k] > a[i * m + best]) best = k + 1;",
        "for (int k = 1; k < m; k++) if (a[i * m + k] > a[i * m + best]) best += 1;",
        "for (int k = 1; k < m; k++) if (c[i * m + k] > a[i * m + best]) best = k;",
        "for (int k = 0; k < m; k++) if (other < 0 || a[i * m + k] > a[i * m + other]) other = k;",
        "for (int k = 0; k < m; k++) { if (a[i * m + k] > 0) other = k; if (other >= 0) sum += a[i * m + other] > 0; }",
        "for (int k = 0; k < m; k++) { other = k; if (a[i * m + k] > a[i * m + other]) sum = k; }",
        "for (int k = 1; k < m; k++) if (out[i] > out[best]) best = k;",
        "for (int k = 1; k < m; k++) if (a[i + k] > a[i + sum + best]) { best = k; sum = 1; }",
        "for (int k = 1; k < m; k++) if (a[i * m] > a[i * m + best]) { best = k; break; }",
        "for (int k = 1; k < m; k++) { if (k % 2 == 0 && a[i * m + k] > a[i * m + best]) best = k; }",
        "for (int k = 1; k < m; k++) for (int q = 0; q < k; q++) if (a[i * m + q] > a[i * m + best]) best = q;",
    ],
)
def test_others_stay(body: str) -> None:
    reason = refused(result(body))
    assert reason == "no loop asks for the element at a place that it keeps"


def test_lanes_share_the_rounds_that_look_for_the_greatest() -> None:
    text = TEXT % "for (int k = 1; k < m; k++) if (a[i * m + k] > a[i * m + best]) best = k;"
    ideas, refusals = asked(RowToLanes(), text)
    assert not refusals
    for one in made(ideas):
        assert "__shfl_xor_sync" in one.text
        assert end_of(text, one.text, ARRAYS, {"n": 70, "m": 29}, {"n": 33, "m": 1}) == "same"
