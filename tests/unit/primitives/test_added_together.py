"""Neighbouring floats that atomic operations add one after the other, by one of them."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.added_together import added_together

from .running import same
from .shapes import applied, kernel, refused

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float2* v, const int* to, float2* s, float* t, float* u, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = v[i].x, b = v[i].y;
    %s
}
"""
SHAPES = {"v": ("n", "2"), "to": ("i4", "n"), "s": ("n", "2"), "t": ("n", "4"), "u": ("n", "4")}


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("atomicAdd(&s[i / 2].x, a); atomicAdd(&s[i / 2].y, b * 2);", 2),
        ("float2* at = &s[i % 5]; atomicAdd(&at->y, b); atomicAdd(&at->x, 1.5);", 2),
        ("float* at = t + 4 * (i / 3); atomicAdd(at, a); atomicAdd(at + 1, b); atomicAdd(at + 2, 1); atomicAdd(at + 3, 2);", 4),
        ("atomicAdd(&t[2 * (i / 3)], a); atomicAdd(&u[i / 2], 1.0f); atomicAdd(&t[2 * (i / 3) + 1], b);", 2),
        ("int j = abs(to[i]) % n; atomicAdd(&s[j].x, a); atomicAdd(&s[j].y, b); atomicAdd(&s[i].x, -a); atomicAdd(&s[i].y, -b);", 2),
        ("int j = i / 2, k = i / 3; atomicAdd(&t[4 * j], a); atomicAdd(&t[4 * k + 1], b); atomicAdd(&t[4 * k], a); atomicAdd(&t[4 * j + 1], 2);", 2),
        ("for (int k = 0; k < 3; ++k) { atomicAdd(&t[2 * ((i + k) % n)], a); atomicAdd(&t[2 * ((i + k) % n) + 1], k); }", 2),
    ],
)  # fmt: skip
@pytest.mark.parametrize("n", [1, 77])
def test_at_once(body: str, count: int, n: int) -> None:
    text = TEXT % body
    made = added_together(kernel(text))
    assert f"add_at_once<{count}>(" in applied(made).program.text
    same(text, made, SHAPES, {"n": n})


@pytest.mark.parametrize(
    "body",
    [
        "atomicAdd(&t[3 * i], a); atomicAdd(&t[3 * i + 1], b);",
        "atomicAdd(&t[2 * i], a); atomicAdd(&t[2 * i + 2], b);",
        "t[0] = atomicAdd(&s[i].x, a); atomicAdd(&s[i].y, b);",
        "atomicAdd(&s[i].x, a); b = s[i].x; atomicAdd(&s[i].y, b);",
        "atomicAdd(&s[i].x, a); if (a > b) atomicAdd(&s[i].y, b);",
        "atomicExch(&s[i].x, a); atomicAdd(&s[i].y, b);",
        "int k = 0; atomicAdd(&t[2 * i + 1], (float)k++); atomicAdd(&t[2 * i], (float)k++);",
        "int k = 0; atomicAdd(&t[2 * i], a); atomicAdd(&u[k++], 1.f); atomicAdd(&t[2 * i + 1], (float)k);",
        "int k = i; atomicAdd(&t[2 * k++], a); atomicAdd(&t[2 * k - 1], b);",
    ],
)
def test_refused(body: str) -> None:
    assert "no neighbouring floats" in refused(added_together(kernel(TEXT % body)))[0]
