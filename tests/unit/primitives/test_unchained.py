"""Assignments of the value of another, as statements of their own."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.unchained import unchained
from tests.present import sampled

from .running import same
from .shapes import applied, kernel, refused

TEXT = """\
struct Bits { int low : 1; int high : 9; };
struct Pair { int key; float value; };
#define BOTH x = y
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* out, int n) {
    __shared__ float s[65], u[65];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    if (i >= n) return;
    float f = 1.5f, x = 2.5f, y = 3.5f; int j = 3, k = 4; unsigned int m = 5; bool b = false;
    double d = 6.5; long long w = 7; unsigned char c = 8; float2 v = {9, 9}; Pair p = {1, 2.5f};
    %s
    out[i] = f + x + y + j + k + m + b + (float)d + w + c + v.x + v.y + p.key + p.value;
}
"""
SHAPES = {"a": ("n",), "out": ("n",)}


def made(body: str) -> str:
    """What becomes of the statements of a kernel."""
    text = applied(unchained(kernel(TEXT % body))).program.text
    between = text[text.index("2.5f};") + 6 : text.index("out[i] =")]
    return " ".join(between.split())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("s[t] = u[t] = 0; f = s[t] + u[t];", "u[t] = 0; s[t] = 0; f = s[t] + u[t];"),
        ("x = y = f = 0.25f;", "f = 0.25f; y = 0.25f; x = 0.25f;"),
        ("x = j = k = 2.5f;", "k = 2.5f; j = 2.5f; x = j;"),
        ("x = j = a[i];", "j = a[i]; x = j;"),
        ("x = b = 2;", "b = 2; x = b;"),
        ("x = b = 1;", "b = 1; x = 1;"),
        ("x = c = 300;", "c = 300; x = c;"),
        ("x = m = -1;", "m = -1; x = m;"),
        ("w = m = -1;", "m = -1; w = m;"),
        ("d = x = 0.1;", "x = 0.1; d = x;"),
        ("j = x = 16777217;", "x = 16777217; j = x;"),
        ("x += y = 3;", "y = 3; x += y;"),
        ("j /= x = 2;", "x = 2; j /= x;"),
        ("x = y -= f = 3;", "f = 3; y -= f; x = y;"),
        ("v.x = v.y = 0.1f;", "v.y = 0.1f; v.x = 0.1f;"),
        ("p.value = p.key = 0;", "p.key = 0; p.value = 0;"),
        ("k = s[j] = 1; f = s[3];", "s[j] = 1; k = 1; f = s[3];"),
        ("x = y = a[i] > 0 ? j++ : j--;", "y = a[i] > 0 ? j++ : j--; x = y;"),
        ("BOTH = 2; /* so */ x = y = f;", "y = 2; x = 2; /* so */ y = f; x = y;"),
        ("x = y = -INFINITY; x = y = 1;", "y = -INFINITY; x = y; y = 1; x = 1;"),
        ("if (a[i] > 0) x = y = 0; else x = y = a[i];",
         "if (a[i] > 0) { y = 0; x = 0; } else { y = a[i]; x = y; }"),
        ("for (int q = 0; q < 3; ++q) x = y = a[i] * q;",
         "for (int q = 0; q < 3; ++q) { y = a[i] * q; x = y; }"),
    ],
)  # fmt: skip
def test_each_is_a_statement(body: str, words: str) -> None:
    assert made(body) == words


@pytest.mark.parametrize(
    "body",
    sampled([
        "s[t] = u[t] = 0; f = s[t] + u[t];",
        "x = j = k = 2.5f;",
        "x = j = 100.0f * a[i];",
        "x = b = 2;",
        "x = c = 300;",
        "w = m = -1; w %= 1000; m = 1;",
        "x = m = -1; x /= 65536.0f; m = 1;",
        "d = x = 0.1; d = (d - 0.1) * 1e10;",
        "j = x = 16777217; j -= 16777200; x = 0;",
        "j = 16777217; j *= x = 1; j -= 16777200;",
        "x = y -= f = 3;",
        "float& r = x; y = r = a[i];",
        "x = y = (y = 2) + 1;",
        "x = y = a[i] > 0 ? j++ : j--;",
        "switch (i % 3) { case 0: x = y = 1; break; default: x = y = a[i]; }",
    ], 5),
)  # fmt: skip
def test_the_same_results(body: str) -> None:
    same(TEXT % body, unchained(kernel(TEXT % body)), SHAPES, {"n": 70})


@pytest.mark.parametrize(
    "body",
    [
        "s[j] = j = 0; f = s[3];",  # which of the two is first
        "x = s[k] = k = 1;",
        "s[(int)u[t]] = u[t] = 0.0f; f = u[t];",
        "s[j] = u[k++] = 1.0f;",
        "int* r = &j; s[j] = *r = 0; f = s[3];",  # what else leads to it
        "int& r = j; s[r] = j = 0; f = s[3];",
        "out[i] = s[t] = a[i];",  # asked for again it would be another load
        "out[i] = u[t] += 1;",
        "volatile float q; x = q = 0.0f;",
        "Bits q; q.high = q.low = 1; j = q.high;",  # of one bit this is -1
        "for (j = k = 0; j < 4; ++j) k += 2;",
        "x = 1, y = f = 0;",
        "float q = x = 0; f = q;",
        "x = (y = 0) + 1;",
        "x = 0; y = 0;",
    ],
)
def test_refused(body: str) -> None:
    assert "takes the value of another" in refused(unchained(kernel(TEXT % body)))[0]
