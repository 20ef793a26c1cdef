"""Elements of local arrays at rows that data choose, as a choice among all of them."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import in_turn
from optiml_magic.kernels.primitives.chosen_places import chosen_places
from optiml_magic.proposers.rewrites.scalarise_array import ScalariseArray, written_short
from tests.ideas import asked
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#define N 4
__device__ void put(float& to, float v) { to = v; }
__device__ float first(const float* v) { return v[0]; }
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, const int* at, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int p = (unsigned)at[i] % N;
    float m[N][3];
    for (int r = 0; r < N; ++r)
        for (int c = 0; c < 3; ++c) m[r][c] = x[(i * N + r) * 3 + c];
    float s = 0.0f;
    BODY
    for (int r = 0; r < N; ++r)
        for (int c = 0; c < 3; ++c) o[(i * N + r) * 3 + c] = m[r][c] + s;
}
"""
ARRAYS = {
    "x": Array("f4", ("n", "12")),
    "at": Array("i4", ("n",)),
    "o": Array("f4", ("n", "12"), "zeros"),
}
SWAP = "for (int c = 0; c < 3; ++c) { float t = m[0][c]; m[0][c] = m[p][c]; m[p][c] = t; }"
PIVOT = """for (int c = 0; c < 3; ++c) {
        int q = c;
        for (int r = c + 1; r < N; ++r) if (fabsf(m[r][c]) > fabsf(m[q][c])) q = r;
        if (q != c) for (int j = 0; j < 3; ++j) { float t = m[c][j]; m[c][j] = m[q][j]; m[q][j] = t; }
        for (int r = c + 1; r < N; ++r) {
            float f = m[r][c] / m[c][c];
            for (int j = 0; j < 3; ++j) m[r][j] -= f * m[c][j];
        }
    }"""


@pytest.mark.parametrize(
    "body",
    [
        SWAP,
        PIVOT,
        SWAP.replace("int c = 0; c < 3; ++c", "int c = 2; c >= 0; --c"),
        "m[p][1] = m[p][1] * 2.0f + m[0][1];",
        "m[p][1] += m[p][0]; m[p][2] *= 3.0f; m[p][0] -= m[p][1];",
        "m[p][0]++; --m[p][1];",
        "m[N - 1 - p][0] = m[p][1];",
        "m[p & 1][0] = m[p >> 1][1]; m[(p + 1) % N][2] = s;",
        "int q = p; m[q][0] = (float)(q = N - 1 - q);",  # the place is found behind the value
        "unsigned char q = p; m[q][0] = 1.0f; long long w = p; s = m[w][2];",
        "s = p > 1 ? m[p - 1][0] : m[p + 1][0];",
        "s = m[p][0] > m[0][0] && m[p][1] > 0.0f ? m[p][2] : -m[p][2];",
        "const int row = 1, value = 2; m[p][row] = value;",
        "if (p == 2) m[p][1] = 5.0f; else m[p][0] = 6.0f;",
        "int w[N] = {3, 2, 1, 0}; w[p] += 2.75f; s = w[p];",
        "short w[N] = {}; for (int j = 0; j < 9; ++j) { int b = (j * p) % N; w[b]++; } s = w[0] + 10 * w[p];",
        "double w[2] = {1, 2}; w[p / 2] = 0.1; s = (float)(w[0] + w[p % 2]);",
        "m[p][0] = m[p][1] / 0.0f; m[0][1] = m[p][0] - m[p][0];",
        "for (int c = 0; c < 3; ++c) { const int e = 2 - c; m[p][e] = m[0][c]; }",
    ],
)  # fmt: skip
def test_rows_that_data_choose(body: str) -> None:
    text = TEXT.replace("BODY", body)
    kernel = kernel_of(text)
    after = written(chosen_places(kernel))
    unrolled = written(in_turn(kernel, (chosen_places, written_short)))
    for made in (after, unrolled):
        assert end_of(text, made, ARRAYS, {"n": 77}, {"n": 3}) == "same"


@pytest.mark.parametrize(
    "body",
    [
        "m[0][1] = 2.0f;",
        "int q = 0; while (q < 3 && m[q][0] < m[p][0]) q++; s = m[q][1];",
        "float* q = &m[p][0]; *q = 2.0f;",
        "float* q = m[p]; q[1] = 2.0f;",
        "float& q = m[p][0]; q = 2.0f;",
        "put(m[p][0], 2.0f);",
        "s = first(m[p]);",
        "s = m[p][p % 3];",  # the next row, where it is too far
        "for (int c = 0; c < 4; ++c) s += m[p][c];",
        "s = m[(int)x[0] & 3][0];",  # a load for each row
        "s = m[at[i] & 3][0];",
        "volatile int q = p; s = m[q][0];",
        "int w = p; int& q = w; s = m[q][0];",
        "__shared__ int q; if (threadIdx.x == 0) q = p; __syncthreads(); s = m[q][0];",
        "m[p][0] = {2.0f};",
        "for (int j = 0; j < n; ++j) m[j % N][0] += 1.0f; s = m[p][0];",
        "s = (m[p][0] = 2.0f) + 1.0f;",
        "s = m[p][0]++;",
        "float b = m[p][0] = 3.0f; s = b;",
        "int q = p; s = m[q++][0];",
        "auto f = [&](int q) { return m[q][0]; }; s = f(p);",
        "float w[17]; for (int j = 0; j < 17; ++j) w[j] = j; s = w[p];",
        "volatile float w[4]; for (int j = 0; j < 4; ++j) w[j] = j; s = w[p];",
        "const float w[4] = {1, 2, 3, 4}; s = w[p];",
        "for (int c = 0; c < 3; ++c) { if (s > 9.0f) break; s += m[p][c]; }",
        "s = ((float*)m)[p];",
        "__shared__ float w[4]; if (threadIdx.x < 4) w[threadIdx.x] = 1.0f; __syncthreads(); s = w[p];",
    ],
)  # fmt: skip
def test_others_stay(body: str) -> None:
    assert refused(chosen_places(kernel_of(TEXT.replace("BODY", body))))


def test_rows_that_a_warp_brings_are_chosen_among_as_well() -> None:
    text = TEXT.replace("BODY", PIVOT)
    ideas, _ = asked(ScalariseArray(), text)
    found = {idea.title: idea.make() for idea in ideas}
    assert any("choose among all rows" in title for title in found)
    (after,) = (
        t
        for title, t in found.items()
        if "bring and store together" in title and "o in" in title and "x, o" in title
    )
    assert isinstance(after, str)
    assert "m[q]" not in after
    assert end_of(text, after, ARRAYS, {"n": 77}, {"n": 3}) == "same"


def test_arrays_that_are_searched_are_left_to_who_searches() -> None:
    body = "int q = 3; while (q > 0 && w[q - 1] > s) { w[q] = w[q - 1]; --q; } w[q] = s;"
    text = TEXT.replace("BODY", f"float w[4] = {{}}; {body} m[p][0] = w[2];")
    ideas, _ = asked(ScalariseArray(), text)
    assert not any("choose among" in idea.title for idea in ideas)
