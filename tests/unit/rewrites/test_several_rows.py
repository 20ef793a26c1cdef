"""Rows that a thread takes together: what vectors along a row do not take, and no load is shared."""

from __future__ import annotations

import pytest

from optiml_magic.source.program import parse_program

_PLANE = """
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
__global__ void k(const float* a, float* o, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    %s
}"""


@pytest.mark.parametrize(
    "body",
    [
        "o[y * w + x] = a[y * w + w - 1 - x];",
        "o[y * w + x] = x <= y ? a[y * w + x] : 0.0f;",
        "float f = x * 0.37f; int p = f; o[y * w + x] = a[y * w + p] + f;",
    ],
)
def test_all_rows_are_loaded_before_any_is_stored(propose, compiles, body):
    found = propose("several_rows", _PLANE % body)
    assert [parse_program(p.text).values["ITEMS_Y"] for p in found] == [4, 8]
    compiles(found[0].text)


def test_a_test_of_the_diagonal_stays_in_each_item(propose):
    body = "o[y * w + x] = x <= y ? a[y * w + x] : 0.0f;"
    first = propose("several_rows", _PLANE % body)[0].text
    inside = first.partition("const bool inside")[2].partition(";")[0]
    assert "<= y" not in inside
    assert first.count("? a") == 2


@pytest.mark.parametrize(
    "body",
    [
        "o[y * w + x] = a[y * w + x] + a[(y + 1) * w + x];",  # of share_loads
        "float s = 0; for (int k = 0; k < w; ++k) s += a[y * w + k]; o[y * w + x] = s;",
        "o[y * w + x] = 1.0f;",
        "o[y * w + x] = a[x];",
    ],
)
def test_other_kernels_are_left_alone(propose, body):
    assert not propose("several_rows", _PLANE % body)


_SYSTEM = """
#pragma optiml launch k grid(cdiv(m, 128)) block(128)
__global__ void k(const float* l, float* x, int n, int m) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= m) return;
    for (int i = 0; i < n; ++i) {
        float s = x[i * m + c];
        for (int j = 0; j < i; ++j) s -= l[i * n + j] * x[j * m + c];
        x[i * m + c] = s / l[i * n + i];
    }
}"""


def test_rows_of_a_triangular_system_ask_together_for_those_before(propose, compiles):
    found = propose("several_rows", _SYSTEM)
    assert [parse_program(p.text).values["ROWS"] for p in found] == [8, 16, 4]
    assert "float s[ROWS];" in found[0].text
    assert not found[0].arithmetic
    compiles(found[0].text)
