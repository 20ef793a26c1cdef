"""Sines and cosines by addresses of locals, as two values."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.sines_apart import sines_apart
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

WAVES = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, const double* d, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i], s, c;
    double e = d[i], t, u;
    BODY
}
"""
ARRAYS = {"a": Array("f4", ("n",)), "d": Array("f8", ("n",)), "out": Array("f4", ("n",), "zeros")}
APART = {
    "sincosf(x, &s, &c); out[i] = s + 3 * c;": "s = sinf(x);",
    "sincosf(a[i] * 2.0f, &s, &c); out[i] = s - c;": "c = cosf(a[i] * 2.0f);",
    "out[i] = 0; for (int k = 0; k < 3; k++) { sincosf(x * k, &s, &c); out[i] += s * c; }":
        "s = sinf(x * k);",
    "if (x > 0.3f) { sincospif(x, &s, &c); out[i] = s / c; }": "s = sinpif(x);",
    "sincos(e, &t, &u); out[i] = (float)(t + u);": "u = cos(e);",
    "sincosf((float)e + x, &c, &s); out[i] = c;": "c = sinf((float)e + x);",
    "sincos(x, &t, &u); out[i] = 1e6 * (t - (float)t);": "t = sin((double)x);",
    "sincos(x + 0.3f, &t, &u); out[i] = 1e6 * (u - (float)u);": "u = cos((double)(x + 0.3f));",
}  # fmt: skip
KEPT = {
    "s = x; sincosf(s, &s, &c); out[i] = s + c;": "no sine",
    "float p[2]; sincosf(x, &p[0], &p[1]); out[i] = p[0];": "no sine",
    "sincosf(x++, &s, &c); out[i] = s;": "no sine",
    "float* p = &s; *p = x; sincosf(*p, &s, &c); out[i] = s + c;": "more leads",
    "float& r = s; r = x; sincosf(r, &s, &c); out[i] = s + c;": "more leads",
    "double sin, cos; sincos(e, &sin, &cos); out[i] = (float)(sin - cos);": "no sine",
    "if (x > 0) sincosf(x, &s, &c); out[i] = x;": "no sine",
}


@pytest.mark.parametrize("body", APART)
def test_both_are_values_of_their_own(body: str) -> None:
    text = WAVES.replace("BODY", body)
    after = written(sines_apart(kernel_of(text)))
    assert APART[body] in after
    assert "sincos" not in after
    assert end_of(text, after, ARRAYS, {"n": 70}, {"n": 33}) == "same"


@pytest.mark.parametrize("body", KEPT)
def test_angles_that_may_change_between_both_stay(body: str) -> None:
    reason = refused(sines_apart(kernel_of(WAVES.replace("BODY", body))))
    assert reason.startswith(KEPT[body])
