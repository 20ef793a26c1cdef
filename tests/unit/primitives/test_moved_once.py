"""What a round moves in several places, moved once at its end."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.counted import counted
from optiml_magic.kernels.primitives.moved_once import moved_once

from .running import same
from .shapes import applied, kernel

WALK = """\
#pragma optiml launch k grid(cdiv(h, 32)) block(32)
__global__ void k(const float* x, float* y, int n, int h) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    float s = 0;
    int i = 0;
    const float* p = x + r * n * 4;
    float* q = y + r * n * 4;
    %s
}
"""
SHAPES = {"x": ("h", "4*n"), "y": ("h", "4*n")}
ROUNDS = "for (int k = 0; k < n; ++k)"
LOOPS = [
    ("int m = n; while (m--) { float a = *p++, b = *p++; s += a - b; p += 2; *q = s; q += 4; }",
     "p += 4;"),
    (f"{ROUNDS} {{ s = fabsf(s - *p++); *q++ = s; s += *p; ++p; *q++ = s; if (s > 2) s -= *p; p += 2; q += 2; }}",
     "p += 4;"),
    (f"{ROUNDS} {{ float a = x[r * n * 4 + i++]; q[i] = a; i++; q[i - 2] = p[i]; i = i + 2; }} if (i != 4 * n) y[0] = 9;",
     "i += 4;"),
    (f"const int w = 1; {ROUNDS} {{ s += *p; p += w; *q = s; q = w + q; s *= p[0]; p = p + 3; q[w] = s; q += 3; }}",
     "p += w + 3;"),
    (f"{ROUNDS} {{ s += *p++; for (int j = 0; j < 2; ++j) s -= p[j] * *q; p += 3; q[0] = s; ++q; *q++ = *--p; ++p; q += 2; }}",
     "p += 4;"),
]  # fmt: skip


@pytest.mark.parametrize(("n", "h"), [(1, 3), (2, 33), (41, 2)])
@pytest.mark.parametrize(("loop", "moved"), LOOPS)
def test_it_is_moved_once(loop: str, moved: str, n: int, h: int) -> None:
    text = WALK % loop
    made = moved_once(kernel(text), 0)
    assert moved in applied(made).program.text
    same(text, made, SHAPES, {"n": n, "h": h})
    same(text, counted(kernel(text), 0), SHAPES, {"n": n, "h": h})


STAYS = [
    f"{ROUNDS} {{ y[r * n * 4 + i++] = p[i]; i += 3; }}",
    f"{ROUNDS} {{ s += *p++ - *p++; }}",
    f"{ROUNDS} {{ s += *p++; if (s > 4) continue; p++; }}",
    f"{ROUNDS} {{ s += *p++; if (s > 4) break; p++; }} *q = *p;",
    f"{ROUNDS} {{ s += *p++; if (s > 4) p++; }}",
    f"{ROUNDS} {{ s += *p++; for (int j = 0; j < 2; ++j) s -= *p++; }}",
    f"{ROUNDS} {{ s += *p++; p += i; i = 1 - i; }}",
    f"{ROUNDS} {{ const float*& o = p; s += *o++; s -= *p++; }}",
    "unsigned char c = 0; " + ROUNDS + " { s += x[c++]; s -= x[c++]; }",
    "float c = 0; " + ROUNDS + " { c += 1; s *= c; c += 2.5f; }",
    "for (int k = 0; k < n; ++k, ++p) { s += *p++; s -= *p++; }",
    f"{ROUNDS} {{ s += *p++; {{ p++; }} }}",
    f"long long w = 1LL << 32; {ROUNDS} {{ s += x[i++]; i += w; }}",
]  # fmt: skip


@pytest.mark.parametrize("loop", STAYS)
def test_it_stays(loop: str) -> None:
    given = kernel(WALK % loop)
    assert moved_once(given, 0) is given
