"""Searches of local arrays, and loops that nearly are."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.searched import searched
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, const int* c, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v[7];
    int w[7];
    for (int q = 0; q < 7; q++) {
        v[q] = a[i * 7 + q];
        w[q] = c[i * 7 + q];
    }
    int j = 0;
    %s
    for (int q = 0; q < 7; q++) out[i * 7 + q] = v[q] + w[q];
    out[7 * n + i] = j;
}
"""
ARRAYS = {
    "a": Array("f4", ("n", "7"), "odd"), "c": Array("i4", ("n", "7"), "positive"),
    "out": Array("f4", ("n", "8"), "zeros"),
}  # fmt: skip
SORT = """\
for (int q = 1; q < 7; ++q) {
        float key = v[q];
        int own = w[q];
        %s
    }"""


SHORT = {
    "SWAP(v)": "float t = v[p]; v[p] = v[p - 1]; v[p - 1] = t;",
    "SWAP(w)": "int t = w[p]; w[p] = w[p - 1]; w[p - 1] = t;",
    "PUT": "v[j] = key; w[j] = own;",
    "DOWN": "j = 5; while (j > 2 && v[j] > 0) { v[j] = w[j - 1]; --j; } w[j] = 1;",
}


def result(body: str) -> Kernel | Refused:
    return searched(kernel_of(text(body)))


def text(body: str) -> str:
    """A kernel that asks for ``j`` in the end only where the body does not say how to move it."""
    whole = TEXT % body
    for short, meant in SHORT.items():
        whole = whole.replace(short, meant)
    return whole if "KEEP" in body else whole.replace("    out[7 * n + i] = j;\n", "")


@pytest.mark.parametrize(
    "body",
    [
        SORT % "j = q - 1; while (j >= 0 && v[j] > key) { v[j + 1] = v[j]; j--; } v[j + 1] = key;",
        SORT % "for (j = q; j > 0 && v[j - 1] > key; --j) v[j] = v[j - 1]; v[j] = key;",
        SORT
        % "for (j = q - 1; j >= 0; j--) { if (v[j] <= key) break; v[j + 1] = v[j]; } v[j + 1] = key;",
        SORT % "for (int p = q; p > 0 && v[p - 1] < v[p]; --p) { SWAP(v) }",
        SORT % "for (int p = q; p > 0; --p) { if (w[p - 1] > w[p]) { SWAP(w) } else break; }",
        SORT
        % "j = q; while (j > 0 && key < v[j - 1]) { v[j] = v[j - 1]; w[j] = w[j - 1]; --j; } PUT",
        SORT
        % "j = q; while (true) { if (!(j > 0 && key < v[j - 1])) break; v[j] = v[j - 1]; --j; } PUT",
        "float x = v[3] * 2; j = 6; while (j > 0 && v[j - 1] < x) { v[j] = v[j - 1]; j--; } v[j] = x;",
        "j = 0; while (j < 6 && v[j] < 0.3f) { w[j] += 1; ++j; } if (w[j] > 3) w[j] = j * 2;",
        "j = 1; while (j < 6 && v[j + 1] > w[0]) { v[j] = v[j + 1]; ++j; } v[j] = 9; DOWN",
        "j = 7; while (j > 0 && v[j - 1] < 1) j--; for (int p = 6; p > j; --p) v[p] = w[p - 1]; if (j < 7) v[j] = 1;",
    ],
)
def test_they_come_to_all_places(body: str) -> None:
    after = written(result(body))
    assert "bool open = true;" in after
    assert "while" not in after
    assert end_of(text(body), after, ARRAYS, {"n": 70}, {"n": 33}) == "same"


@pytest.mark.parametrize(
    "body",
    [
        "j = 6; while (j > 0 && v[j - 1] < 1) { v[j] = v[j - 1]; j--; } v[j] = 1; // KEEP",
        "j = 6; while (j > 0 && v[j - 1] < 1) { v[j] = v[j - 1]; j -= 2; } v[j] = 1;",
        "j = 6; while (j > 0 && v[j - 1] < 1) { v[j] = v[j - 1]; j--; if (v[j] > 8) j--; } v[j] = 1;",
        "j = 6; while (j > 0 && v[j - 1] < 1) { if (v[j] > 8) return; v[j] = v[j - 1]; j--; } v[j] = 1;",
        "j = 6; while (j > 0 && v[--j] < 1) { v[j] = 2; } v[j] = 1;",
        "j = 6; while (v[j - 1] < 1 && v[0] > 1e9f) { v[j] = v[j - 1]; j--; } v[j] = 1;",
        SORT
        % "unsigned p = q; while (p > 0 && v[p - 1] > key) { v[p] = v[p - 1]; p--; } v[p] = key;",
        "j = 6; while (j > 0) { v[j] = v[j - 1]; j--; } v[j] = 1;",
        "j = c[i] % 7; while (j > 3 && v[j - 1] < 1) { v[j] = v[j - 1]; j--; } v[j] = 1;",
        "j = 6; do { v[j] = v[j - 1]; j--; } while (j > 0 && v[j] < 1); v[j] = 1;",
        "float* p = v; j = 6; while (j > 0 && v[j - 1] < 1) { v[j] = p[j - 1]; j--; } v[j] = 1;",
        "j = 6; while (j > 0 && a[j] < 1) j--; out[7 * n] = j;",
        "j = 6; while (j > 0 && v[j] < 1) j--; { int j = 3; v[j] = 1; } v[j] = 2;",
        "j = 6; while (j > 0 && v[j] < 1) j--; for (int p = 0; p < n; ++p) v[j] += 2;",
        "j = 6; while (j > 0 && v[j] < 1) j--; for (int p = 0; p < j; ++p) if (v[p] > 2) break;",
    ],
)
def test_others_stay(body: str) -> None:
    assert refused(result(body)) == "no loop looks for a place in a local array"
