"""Shared arrays that are named by planes, as an array for each."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.planes_apart import planes_apart
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const int* a, int* o, int n) {
    int t = threadIdx.x, i = blockIdx.x * 32 + t;
    DECLARES
    BODY
    if (i < n) o[i] = r;
}
"""
ARRAYS = {"a": Array("i4", ("n",)), "o": Array("i4", ("n",), "zeros")}
SIZES, OTHERS = {"n": 77}, {"n": 5}
BODY = """s[0][t] = i < n ? a[i] : 0; s[1][t] = 2 * s[0][t]; __syncthreads();
    int r = s[0][31 - t] - 3 * s[1][t / 2];"""


def text_of(declares: str, body: str) -> str:
    return TEXT.replace("DECLARES", declares).replace("BODY", body)


@pytest.mark.parametrize(
    ("declares", "body", "words"),
    [
        ("__shared__ int s[2][32];", BODY, "int s_0[32], s_1[32];"),
        ("__shared__ int u[3], s[2][32], v;", BODY + " v = r; u[0] = r;",
         "int u[3], s_0[32], s_1[32], v;"),
        ("__shared__ int s[4][32];", BODY, "int s_0[32], s_1[32];"),
        ("__shared__ volatile int s[2][32]; int s_0 = 1;", BODY + " r += s_0;",
         "int s_0_2[32], s_1[32]; int s_0"),
        ("__shared__ int s[2][8][4];",
         "s[0][t / 4][t % 4] = t; s[1][t % 8][t / 8] = t; __syncthreads(); int r = s[0][t % 8][t / 8];", "int s_0[8][4], s_1[8][4];"),
        ("__shared__ int s[2][32];",
         "int r = 0; s[0][t] = t; __syncthreads(); for (int j = 0; j < 32; ++j) r += s[0][j];",
         "int s_0[32];"),
    ],
)  # fmt: skip
def test_each_plane_is_an_array(declares: str, body: str, words: str) -> None:
    text = text_of(declares, body)
    after = written(planes_apart(kernel_of(text)))
    assert words in " ".join(after.split())
    assert end_of(text, after, ARRAYS, SIZES, OTHERS) == "same"


@pytest.mark.parametrize(
    ("declares", "body"),
    [
        ("__shared__ int s[64];", "s[t] = t; int r = s[t];"),
        ("__shared__ int s[2][32];", "s[t % 2][t] = t; int r = s[t % 2][t];"),
        ("__shared__ int s[2][32];", "s[0][t] = t; int r = s[i % 2][t];"),
        ("__shared__ int s[2][32];", "s[0][t] = t; int* p = s[0]; int r = p[t];"),
        ("__shared__ int s[2][32];", "s[0][t] = t; int r = *s[0];"),
        ("__shared__ int s[2][32];", "s[0][t] = t; int* p = &s[0][0]; int r = p[t];"),
        ("__shared__ int s[2][32];", "s[0][t] = t; int (*p)[32] = s; int r = p[0][t];"),
        ("__shared__ int s[2][16];", "s[0][t] = t; int r = s[0][t];"),  # runs into the next
        ("__shared__ int s[2][32];", "s[0][t] = t; int r = s[1][t - 32];"),
        ("__shared__ int s[2][32];", "s[0][t] = t; int r = s[0][a[0]];"),
        ("__shared__ int s[9][32];", "s[0][t] = t; int r = s[0][t];"),  # many names
        ("int s[2][32];", "s[0][t] = t; int r = s[0][t];"),
    ],
)
def test_others_stay(declares: str, body: str) -> None:
    assert refused(planes_apart(kernel_of(text_of(declares, body))))
