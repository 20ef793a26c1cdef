"""Locals that are declared where they get their first value."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.scoped import scoped
from tests.present import sampled

from .running import same
from .shapes import ROWS, applied, kernel, refused

SHAPES = {"a": ("h", "w"), "at": ("i4", "h"), "out": ("h", "w")}
SUM = "for (k = 0; k < w; k++) { v = a[r * w + k]; s += v * v; }"


@pytest.mark.parametrize(
    ("body", "made"),
    sampled([
        (f"int k; float v, s = 0.0f; {SUM} out[r * w] = s;", ["for (int k = 0;", "float v = a["]),
        (f"int k; float v, s = 0.0f; {SUM} {SUM} out[r * w] = s;", ["float v = a["]),
        (f"int i, k; i = r * w; float v, s = 0.0f; {SUM} out[i] = s;", ["int i = r * w"]),
        ("int k, j; for (k = 0; k < w; k++) { float s = 0; for (j = 0; j <= k; j++) s += a[r * w + j]; out[r * w + k] = s; }",
         ["for (int k = 0;", "for (int j = 0;"]),
        ("float v = 0.0f; int k = 0; while (k < w) { if (k % 2) { v = a[r * w + k]; out[r * w + k] = v; } else out[r * w + k] = 1; k++; }",
         ["{ float v = a[", "int k = 0"]),
        ("float s, c; for (int k = 0; k < w; k++) { sincosf(a[r * w + k], &s, &c); out[r * w + k] = s - c; }",
         ["float s;", "float c;"]),
        ("float v = a[r * w] + h; for (int k = 0; k < w; k++) { v = k; out[r * w + k] = v; }",
         ["float v = k"]),
        ("int k, j; float s = 0; for (k = 0, j = 1; k < 1; k++) s += j; for (; k < w; k++) s += a[r * w + k]; for (k = 0; k < w; k++) { s += k; } for (k = 0; k < w; k++) for (j = 0; j < 2; j++) out[r * w + k] = s + j;",
         ["int k, j;", "for (; k < w", "for (int k = 0; k < w; k++) { s", "for (int k = 0; k < w; k++) for (int j = 0;"]),
        ("int k; k = r; for (k = 0; k < w; k++) out[r * w + k] = k; out[r * w] = k;", ["int k = r;"]),
        ("const float* p; for (int k = 0; k < w; k++) { p = a + r * w; out[r * w + k] = p[k]; }",
         ["const float *p = a + r * w"]),
        ("float v; for (int k = 0; k < w; k++) { if (k == 2) continue; v = a[r * w + k]; if (v > 0) v = 1; out[r * w + k] = v; }",
         ["float v = a["]),
        ("int t[2], u[2], j; for (int k = 0; k < w; k++) { for (j = 0; j < 2; j++) { t[j] = k; u[j] = j; } out[r * w + k] = t[1] + u[k & 1]; }",
         ["int t[2];", "int u[2];", "for (int j = 0;"]),
        ("int t[4]; for (int k = 0; k < w; k++) { for (int j = 0; j < 4; j++) { t[j] = k; out[r * w + k] = j; } t[k & 3] += 2; out[r * w + k] += t[1]; }", ["int t[4]; for (int j"]),
        ("int t[2];\nfor (int k = 0; k < w; k++) {\n#pragma unroll\nfor (int j = 0; j < 2; j++) t[j] = k;\nout[r * w + k] = t[1]; }",
         ["{ int t[2]; #pragma unroll for (int j"]),
    ], 4),
)  # fmt: skip
def test_it_stands_where_it_is_needed(body: str, made: list[str]) -> None:
    text = ROWS % body
    found = scoped(kernel(text))
    flat = " ".join(applied(found).program.text.split())
    assert all(part in flat for part in made), flat
    for h, w in (1, 1), (300, 7):
        same(text, found, SHAPES, {"h": h, "w": w})


@pytest.mark.parametrize(
    "body",
    [
        "float v = 1; for (int k = 0; k < w; k++) { out[r * w + k] = v; v = a[r * w + k]; }",
        "float v = 1; for (int k = 0; k < w; k++) { if (a[r * w + k] > 0) v = k; out[r * w + k] = v; }",
        "int k = 0; for (k = 0; k < w; k++) out[r * w + k] = 1; out[r * w] = k;",
        "float v = 0; for (int k = 0; k < w; k++) v = a[r * w + k]; out[r * w] = v;",
        "float v; float* p = &v; for (int k = 0; k < w; k++) { v = k; out[r * w + k] = *p; }",
        "float v; float* p = a == out ? out : &v; for (int k = 0; k < w; k++) { v = *p; p = &v; out[r * w + k] = v; }",
        "int k = 0, m = k + 1; for (k = m; k < w; k++) out[r * w + k] = m;",
        "float s = 0; for (int k = 0; k < w; k++) s += a[r * w + k]; out[r * w] = s;",
        "volatile float v; for (int k = 0; k < w; k++) { v = k; out[r * w + k] = v; }",
        "int k; auto f = [&]() { return k; }; for (k = 0; k < w; k++) out[r * w + k] = f();",
        "int k = 0; int& o = k; for (k = 0; k < w; k++) out[r * w + k] = o;",
        "int k = 1; for (k = 0; k < w; k++) out[r * w + k] = 1; if (h > 1) k = 3; out[r * w] = k;",
        "float v[2]; for (int k = 0; k < w; k++) { v[0] = k; out[r * w + k] = v[0]; }",
        "int t[3]; for (int k = 0; k < w; k++) { for (int j = 0; j < 2; j++) t[j] = k; out[r * w + k] = t[1]; }",
        "int t[2]; for (int k = 0; k < w; k++) { for (int j = 0; j < 2; j++) if (k) t[j] = k; out[r * w + k] = t[1]; }",
        "int t[2] = {}; for (int k = 0; k < w; k++) { for (int j = 0; j < 2; j++) t[j] = t[0] + 1; out[r * w + k] = t[1]; }",
        "int t[2], *p = 0; for (int k = 0; k < w; k++) { if (p) out[r * w + k] = p[0]; for (int j = 0; j < 2; j++) t[j] = k; p = t; }",
        "float v = 0; for (int k = 0; k < w; k++) { float x = a[r * w + k]; v = v > x ? v : x; } out[r * w] = v;",
        "int i = 0; float v = a[r * w + i++]; for (int k = 0; k < w; k++) { v = k; out[r * w + k] = v + i; }",
    ],
)  # fmt: skip
def test_refused(body: str) -> None:
    assert "ahead of its use" in refused(scoped(kernel(ROWS % body)))[0]
