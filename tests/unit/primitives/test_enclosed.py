"""Rounds that leave out what is behind a test."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.enclosed import enclosed
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import kernel_of, refused, unchanged, written

WINDOW = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* out, int n, int r) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    BODY
    out[i] = sum;
}
"""
ARRAYS = {"a": Array("f4", ("n",)), "out": Array("f4", ("n",))}
TWICE = """\
for (int j = 0; j < r; j++) {
    if (j == 1) { continue; }
    sum += j;
    if (sum > a[i]) continue;
    sum -= 0.5f;
}"""
INSIDE = "int p = i + j; if (p < 0 || p >= n) continue; sum += a[p];"
NESTED = f"""\
for (int t = 0; t < 2; t++) {{
    if (t == r) continue;
    for (int j = -r; j <= r; j++) {{ {INSIDE} }}
    sum *= 0.5f;
}}"""


@pytest.mark.parametrize(
    ("body", "left"),
    [
        (f"for (int j = -r; j <= r; j++) {{ {INSIDE} }}", "if (p >= 0 && p < n)"),
        (TWICE, "if (!(sum > a[i]))"),
        (f"int j = r; while (j-- > 0) {{ {INSIDE} }}", "if (p >= 0 && p < n)"),
        (f"int j = -r; do {{ {INSIDE} }} while (++j < r);", "if (p >= 0 && p < n)"),
        (NESTED, "if (t != r)"),
        (
            f"for (int j = -r; j <= r; j++) {{ if (j == 3) {{ sum++; continue; }} {INSIDE} }}",
            "p < n)",
        ),
    ],
)
def test_what_is_behind_a_test_stands_under_its_opposite(body: str, left: str) -> None:
    text = WINDOW.replace("BODY", body)
    made = written(enclosed(kernel_of(text)))
    assert left in made, made
    assert unchanged(text, made, ARRAYS, {"n": 70, "r": 3}, {"n": 5, "r": 7}) == "same"


@pytest.mark.parametrize(
    "body",
    [
        "for (int j = 0; j < r; j++) sum += a[i];",
        "for (int j = 0; j < r; j++) { sum += a[i]; if (j > 2) continue; }",
        "for (int j = 0; j < r; j++) { if (j > 2) break; sum += a[i]; }",
        "for (int j = 0; j < r; j++) { if (j > 2) continue; else sum += 1.0f; sum += a[i]; }",
    ],
)
def test_what_leaves_nothing_out_stays(body: str) -> None:
    assert "no round" in refused(enclosed(kernel_of(WINDOW.replace("BODY", body))))
