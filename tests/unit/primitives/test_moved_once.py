"""What a round moves in several places, moved once at its end."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
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
    (f"{ROUNDS} {{ s += x[r * n * 4 + i++]; y[r * n * 4 + i] = s; }}", "i += 1;"),
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
    f"auto f = [&] {{ return *p; }}; {ROUNDS} {{ s += f(); p++; s -= f(); p++; }}",
    f"{ROUNDS} {{ int w = 1; s += *p; p += w; s -= *p; w = 2; p += w; }}",
    f"int w = 1; {ROUNDS} {{ p += w; {{ int w = 3; s -= p[w]; }} p += 1; }}",
    f"unsigned u = 1; {ROUNDS} {{ s += *p; p += u; s += *p; p += u; }}",
    f"long long w = 1LL << 32; {ROUNDS} {{ s += x[i++]; i += w; }}",
]  # fmt: skip


def test_a_loop_that_is_left_early_inside_of_another() -> None:
    loop = f"for (int t = 0; t < 3; ++t) {ROUNDS} {{ s += *p++; if (s > 4) break; s += *p++; }}"
    given = kernel(WALK % loop)
    assert moved_once(given, 1) is given


@pytest.mark.parametrize(("n", "h"), [(1, 3), (5, 33)])
@pytest.mark.parametrize(
    "loop",
    [
        f"{ROUNDS} {{ s += *p; p += 03; s -= *p; p += 1; *q = s; q += 4; }}",
        f"for (int t = 0; t < 2; ++t) {{ {ROUNDS} {{ s += *p; p++; }} s *= 0.5f; }} *q = s;",
        f"for (int t = 0; t < 2; ++t) {{ int c = 0; {ROUNDS} {{ s += x[c++]; }} s *= 0.5f + c; }} *q = s;",
    ],
)  # fmt: skip
def test_counted_inside_of_another_loop(loop: str, n: int, h: int) -> None:
    text = WALK % loop
    same(text, counted(kernel(text), loop.startswith("for (int t")), SHAPES, {"n": n, "h": h})


@pytest.mark.parametrize(
    "loop",
    [
        f"{ROUNDS} {{ int w = x[k] > 0; s += *p; p += w; }} *q = s;",
        f"auto f = [&] {{ return *p; }}; {ROUNDS} {{ s += f(); p++; }} *q = s;",
    ],
)
def test_steps_that_differ_and_functions_that_ask(loop: str) -> None:
    text = WALK % loop
    made = counted(kernel(text), 0)
    if isinstance(made, Kernel):
        same(text, made, SHAPES, {"n": 5, "h": 33})


@pytest.mark.parametrize("loop", STAYS)
def test_it_stays(loop: str) -> None:
    given = kernel(WALK % loop)
    assert moved_once(given, 0) is given
