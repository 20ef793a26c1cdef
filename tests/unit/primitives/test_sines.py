"""Sines and cosines of one angle, found at once: no bit changes."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.sines import sines_at_once
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

WAVES = """\
__device__ float both(float x) { float a = sinf(x) + 2.0f; return a * cosf(x); }
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, const double* d, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i], sum = 0.0f;
    BODY
    out[i] = sum;
}
"""
ARRAYS = {
    "a": Array("f4", ("n",)),
    "d": Array("f8", ("n",)),
    "out": Array("f4", ("n",), "zeros"),
}
PAIRED = {
    "float s = sinf(x); float c = cosf(x); sum = s * c;": 1,
    "sum = cosf(x * 3.0f) - 2.0f * sinf(x * 3.0f);": 1,
    "float y = x; sum = sin(y); y += 1.0f; sum += cos(y) * sin(y);": 1,
    "for (int j = 0; j < 3; ++j) { sum += cosf(x + j); sum += sinf(x + j); }": 1,
    "double e = d[i]; sum = sin(e) * 3.0; sum += cos(e);": 1,
    "sum = cosf(a[i]) + sinf(a[i]) * sinf(a[i]);": 1,
    "float s = sinpif(x), c = cospif(x); sum = s + c;": 1,
    "sum = sinf(x) + cosf(x); x = x * x; sum += cosf(x) + sinf(x);": 2,
    "sum = both(x);": 1,
    "if (sinf(x) > 0.2f) sum = 1.0f; sum += cosf(x);": 1,
    "sum = x > 0.5f ? 1.0f : 2.0f; sum += sinf(-x) * cosf(-x);": 1,
}
ALONE = [
    "sum = sinf(x) + cosf(x + 1.0f);",
    "sum = sinf(x); x += 1.0f; sum += cosf(x);",
    "sum = sinf(x); if (i > 3) sum += cosf(x);",
    "sum = x > 0.5f ? sinf(x) : cosf(x);",
    "sum = sinf(a[i]); out[i] = 1.0f; sum += cosf(a[i]);",
    "sum = sinf(x++) + cosf(x++);",
    "float y = x + 1.0f, s = sinf(y); sum = s;",
    "sum = sinf(x) + sinf(x);",
    "float s = sinf(a[i]) + (out[i] = 4.0f); sum = s + cosf(a[i]);",
    "float s = sinf(a[i]); float u = out[i] = 3.0f; sum = s + cosf(a[i]) + u;",
    "float2 p = {x, x}, *r = &p; float s = sinf(r->x); p.x = 2; sum = s + cosf(r->x);",
    "float& y = x; sum = sinf(x); y = 3.0f; sum += cosf(x);",
    "float* p = &x; sum = sinf(x); *p = 3.0f; sum += cosf(x);",
    "auto f = [&]() { x += 1.0f; return 1.0f; }; float s = sinf(x); sum = f(); sum += s * cosf(x);",
    "float t[2] = {x, x}; float s = sinf(t[0]), u = (t[0] = 2.0f); sum = s + cosf(t[0]) + u;",
]


@pytest.mark.parametrize("body", PAIRED)
def test_both_of_an_angle_are_found_at_once(body: str) -> None:
    text = WAVES.replace("BODY", body)
    if "both(" not in body:
        text = text.split("\n", 1)[1]
    after = written(sines_at_once(kernel_of(text)))
    assert after.count("= sine_and_cosine") == PAIRED[body]
    assert end_of(text, after, ARRAYS, {"n": 70}, {"n": 33}) == "same"


@pytest.mark.parametrize("body", ALONE)
def test_what_is_not_one_angle_stays(body: str) -> None:
    text = WAVES.replace("BODY", body).split("\n", 1)[1]
    assert "no angle" in refused(sines_at_once(kernel_of(text)))


def test_a_function_of_the_text_is_not_the_librarys() -> None:
    text = "__device__ float sinf(float x) { return x; }\n" + WAVES.replace(
        "BODY", "sum = sinf(x) + cosf(x);"
    ).split("\n", 1)[1]  # fmt: skip
    assert "no angle" in refused(sines_at_once(kernel_of(text)))


REFERENCES = {
    "float& f(float& x) { x += 1; return x; }": "float s = sinf(x); sum = f(x); sum += s + cosf(x);",
    "float f(float& x, float& y) { float s = sinf(x); y = 3; return s + cosf(x); }": "sum = f(x, x);",
    "float f(float& x, float* y) { float s = sinf(x); *y = 3; return s + cosf(x); }":
        "sum = f(x, &x);",
}  # fmt: skip


@pytest.mark.parametrize("function", REFERENCES)
def test_what_a_reference_is_given_to_changes(function: str) -> None:
    text = (
        f"__device__ {function}\n" + WAVES.replace("BODY", REFERENCES[function]).split("\n", 1)[1]
    )
    assert "no angle" in refused(sines_at_once(kernel_of(text)))
