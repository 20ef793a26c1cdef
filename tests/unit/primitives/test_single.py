"""A local that takes an index apart step by step becomes a local for each step."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.single import single

from .running import same
from .shapes import applied, kernel, refused

_KERNEL = """\
#pragma optiml launch k grid(cdiv(n * m, 32)) block(32)
__global__ void k(const float* a, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * m) return;
    %s
}
"""
SHAPES = {"a": ("n", "m"), "out": ("m", "n")}
SIZES = {"n": 9, "m": 14}


@pytest.mark.parametrize(
    "body",
    [
        "int t = i; int x = t % m; t /= m; int y = t; out[x * n + y] = a[i];",
        "int t = i; const int x = t % m; t = t / m; if (t < n) { out[x * n + t] = a[i]; }",
        "unsigned t = i, u = 0; u += t % m; t -= u; t /= m; out[u * n + t] = a[t * m + u];",
        "int t = i; int x; x = t % m; t /= m; for (int k = 0; k < 2; ++k) out[x * n + t] = a[i];",
        "long long t = i; int x = t % m; t /= m; { int t = x; out[t * n + i / m] = a[i]; }",
        "int t = i; if (t % 2 == 0) { int x = t % m; t /= m; if (t < n) out[x * n + t] = a[i]; }",
    ],
)
def test_each_step_has_a_local_and_means_the_same(body: str) -> None:
    made = applied(single(kernel(_KERNEL % body)))
    assert "t_2 = " in made.program.text
    same(_KERNEL % body, made, SHAPES, SIZES)


@pytest.mark.parametrize(
    "body",
    [
        "int t = i; t += 1; out[t - 1] = a[i];",  # nothing is taken apart
        "int t = i; if (m > 1) t /= m; out[i] = t + a[i];",
        "int t = i; if (m > 1) { t /= m; out[t] = a[i]; } else { out[t] = a[i]; }",
        "int t = i; if (m > 1) { t /= m; out[t] = a[i]; } if (m == 1) out[t] = a[i];",
        "int t = i; if ((t -= m) > 1) { t /= m; out[t] = a[i]; }",
        "int t = i; while (t > m) { t /= m; out[t] = a[i]; }",
        "int t = i; for (int k = 0; k < 2; ++k) t /= m; out[i] = t + a[i];",
        "int t = i; int& u = t; t /= m; u = 3; out[i] = t + a[i];",
        "int t = i; int* u = &t; t /= m; *u = 3; out[i] = t + a[i];",
        "int t = i; auto f = [&] { return t; }; t /= m; out[i] = f() + a[i];",
        "int t = i; int x = (t /= m) + 1; out[i] = x + a[i];",
    ],
)
def test_what_changes_in_another_way_stays(body: str) -> None:
    assert refused(single(kernel(_KERNEL % body)))


@pytest.mark.parametrize(
    "body",
    [
        "a += i; out += i / m; out[i % m * n] = a[0];",
        "const float* p = a; p += i / m * m; p = p + i % m; out[i % m * n + i / m] = *p;",
        "a += i / m * m; for (int k = 0; k < 2; ++k) { out[i % m * n + i / m] = a[i % m] + k; }",
        "out[i] = 0; out = out + i; if (n > 1) { out[0] = a[i]; }",
        "a += i; float s = 0; for (int k = i; k < n; k += 2) { s += *a; a += 2; } out[i] = s;",
        "const float* p = &a[1]; a = &a[i]; if (n > 1) a -= 1; out[i] = p[-1] + a[n > 1];",
        "a += i; for (int k = 0; k < 2; ++k) { if (k < i) --a; } out[i] = *a;",
    ],
)
def test_a_pointer_that_moves_is_another_from_there_on(body: str) -> None:
    made = applied(single(kernel(_KERNEL % body)))
    assert (
        " *a_2 = " in made.program.text
        or " *p_3 = " in made.program.text
        or " *out_2 =" in made.program.text
    )
    same(_KERNEL % body, made, SHAPES, SIZES)


@pytest.mark.parametrize(
    "body",
    [
        "out[i] = a[i];",
        "if (m > 1) a += 1; out[i] = a[i - (m > 1)];",
        "for (int k = 0; k < 2; ++k) { out[i] = *a; a += 1; }",
        "const float** q = &a; a += 1; *q -= 1; out[i] = a[i];",
        "const float*& q = a; a += 1; q -= 1; out[i] = a[i];",
        "out[i] = *(a += i);",
        "for (int k = 0; k < 2; ++k) { out[i] = *a; a += 1; } a += i;",
        "const float** q = &a; a += 1; for (int k = 0; k < 2; ++k) *q += 1; out[i] = a[i];",
        "auto f = [&] { a += 1; }; a += 1; f(); out[i] = a[i];",
    ],
)
def test_a_pointer_that_moves_in_another_way_stays(body: str) -> None:
    assert "no local takes" in refused(single(kernel(_KERNEL % body)))[0]
