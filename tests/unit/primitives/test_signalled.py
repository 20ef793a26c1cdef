"""Flags that loops set, and locals that are more than that."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.signalled import signalled
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from tests.ideas import asked, made
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, int* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int ok = 1, other = 3;
    bool seen = false;
    float best = -9;
    %s
    out[i * 3] = ok + (best > 0);
    out[i * 3 + 1] = other;
    out[i * 3 + 2] = seen;
}
"""
ARRAYS = {"a": Array("f4", ("n", "m"), "odd"), "out": Array("i4", ("n", "3"), "zeros")}


def result(body: str) -> Kernel | Refused:
    return signalled(kernel_of(TEXT % body))


@pytest.mark.parametrize(
    "body",
    [
        "for (int k = 0; k < m; k++) if (a[i * m + k] > 1) ok = 0;",
        "for (int k = 0; k < m; k++) { if (a[i * m + k] > 1) { seen = true; } else ok = -2; }",
        "for (int k = 0; k < m; k++) for (int q = k; q < m; q++) if (a[i * m + q] < 0) seen = true;",
        "for (int k = 0; k < m; k++) { if (a[i * m + k] > 1) ok = other; else if (k > 3) ok = other; }",
        "#pragma unroll 2\n    for (int k = 0; k < m; k++) if (a[i * m + k] > 1) ok = 0;",
        "if (m > 1) for (int k = 0; k < m; k++) if (a[i * m + k] > 1) ok = 0;",
        "for (int q = 0; q < 2; q++) { ok = 2; for (int k = 0; k < m; k++) if (a[k] > 1) ok = q; }",
    ],
)
def test_they_are_combined(body: str) -> None:
    after = written(result(body))
    assert "met |= 1;" in after
    assert end_of(TEXT % body, after, ARRAYS, {"n": 70, "m": 9}, {"n": 33, "m": 1}) == "same"


@pytest.mark.parametrize(
    "body",
    [
        "for (int k = 0; k < m; k++) if (a[i * m + k] > 1 && ok) ok = 0;",
        "for (int k = 0; k < m; k++) if (a[i * m + k] > 1) ok = k;",
        "for (int k = 0; k < m; k++) if (a[i * m + k] > 1) ok = 0; else ok = 1;",
        "for (int k = 0; k < m; k++) { if (a[i * m + k] > 1) ok = 0; other += ok; }",
        "for (int k = 0; k < m; k++) { if (a[i * m + k] > best) { best = a[i * m + k]; ok = 0; } }",
        "for (int k = 0; k < m; k++) { if (a[i * m + k] > 1) { ok = 0; break; } }",
        "int& r = ok; for (int k = 0; k < m; k++) { if (a[i * m + k] > 1) ok = 0; other += r; }",
        "int* p = &ok; for (int k = 0; k < m; k++) { if (a[i * m + k] > 1) ok = 0; other += *p; }",
        "for (int k = 0; k < m; k++) { if (a[i * m + k] > 1) ok = other; other = k; }",
        "for (int k = 0; k < m; k++) if (a[i * m + k] > 1) best = 3;",
    ],
)
def test_others_stay(body: str) -> None:
    assert refused(result(body)) == "no loop sets a flag that nobody asks for in it"


def test_lanes_share_the_rounds_that_set_a_flag() -> None:
    text = TEXT % "for (int k = 0; k < m; k++) if (a[i * m + k] > 1) ok = 0;"
    ideas, refusals = asked(RowToLanes(), text)
    assert not refusals
    for one in made(ideas):
        assert "__shfl_xor_sync" in one.text
        assert end_of(text, one.text, ARRAYS, {"n": 70, "m": 29}, {"n": 33, "m": 1}) == "same"
