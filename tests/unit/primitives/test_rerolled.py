"""Loops unrolled by hand, rolled up again."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.rerolled import rerolled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(m, 32)) block(32)
__global__ void k(const float* a, const int* at, float* out, int m, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= m) return;
    float s = 0.5f, t = 0;
    BODY
    out[r] = s + t;
}
"""
ARRAYS = {
    "a": Array("f4", ("m", "n + 8")), "at": Array("i4", ("n + 8",), "zeros"),
    "out": Array("f4", ("m",), "zeros"),
}  # fmt: skip
ROW = "r * (n + 8)"


def of(text: str) -> str:
    return TEXT.replace("BODY", text.replace("ROW", ROW))


TWO = "s += a[ROW + k]; s += a[ROW + k + 1];"
FOUR = (
    "s += a[ROW + k] * at[k]; s += a[ROW + k + 1] * at[k + 1]; "
    "s += a[ROW + 2 + k] * at[k + 2]; s += a[k + ROW + 3] * at[3 + k];"
)
REST = " for (; k < n; ++k) s += a[ROW + k] * at[k];"


@pytest.mark.parametrize(
    ("body", "head", "sizes"),
    [
        (f"for (int k = 0; k < n; k += 2) {{ {TWO} }}", "k < n; ++k", (4, 38)),
        (f"for (int k = 0; k < n; k = k + 4) {{ {FOUR} }}", "k < n; ++k", (4, 36)),
        (f"for (int k = 4; k < n - 2; k += 2) {{ {TWO} }}", "k < n - 2; ++k", (8, 38)),
        (f"for (int k = 0; k < n / 2 * 2; k += 2) {{ {TWO} }}", "k < n / 2 * 2; ++k", (5, 38)),
        (f"int k = 0; for (; k + 3 < n; k += 4) {{ {FOUR} }}{REST}", "k < n; ++k", (3, 4, 37)),
        (f"int k; for (k = 0; k <= n - 4; k += 4) {{ {FOUR} }}{REST}", "k < n; ++k", (3, 5, 37)),
        (
            ("for (int k = 0; k < n; k += 3) { s += a[ROW + k]; if (k + 1 < n) s += a[ROW + k + 1]; "
            "if (k + 2 < n) { s += a[ROW + k + 2]; } }"),
            "k < n; ++k", (1, 5, 36),
        ),
        ("for (int k = 0; k < n; k += 2) s += a[ROW + k] + a[ROW + k + 1];", "k < n", (4, 38)),
        (
            ("for (int k = 0; k < n; k += 2) { float u = a[ROW + k]; s += u * (k % 3); "
            "float v = a[ROW + k + 1]; s += v * ((k + 1) % 3); }"),
            "k < n; ++k", (4, 38),
        ),
        (
            ("const float* p = a + ROW; for (int k = 0; k < n; k += 2) "
            "{ s = fmaxf(s, p[k]); s = fmaxf(s, p[k + 1]); }"),
            "k < n; ++k", (4, 38),
        ),
        (
            ("for (int k = 0; k < n; k += 2) { if (a[ROW + k] > 0) { s += 1; t += k; } "
            "if (a[ROW + k + 1] > 0) { s += 1; t += k + 1; } }"),
            "k < n; ++k", (4, 38),
        ),
        (
            "for (int k = 0; k < n; k += 2) { s += a[ROW + at[k]]; s += a[ROW + at[k + 1]]; }",
            "k < n; ++k", (4, 38),
        ),
    ],
)  # fmt: skip
def test_a_round_for_each_element_does_the_same(
    body: str, head: str, sizes: tuple[int, ...]
) -> None:
    before = of(body)
    found = rerolled(kernel_of(before))
    assert isinstance(found, Kernel), found
    after = written(found)
    assert head in after
    assert "+ 1]" not in after
    assert bool(found.arithmetic) == ("+ k] + a" in before)
    for n in sizes:
        assert end_of(before, after, ARRAYS, {"m": 33, "n": n}, {"m": 3, "n": sizes[0]}) == "same"


@pytest.mark.parametrize(
    "body",
    [
        f"for (int k = 0; k < n; ++k) {{ {TWO} }}",  # each element twice
        f"for (int k = 0; k < n; k += 4) {{ {TWO} }}",  # every second pair
        "for (int k = 0; k < n; k += 2) { s += a[ROW + k + 1]; s += a[ROW + k]; }",
        "for (int k = 0; k < n; k += 2) { s += a[ROW + k]; t += a[ROW + k + 1]; } s *= 2;",
        "for (int k = 0; k < n; k += 2) { s += a[ROW + k]; t += a[ROW + k + 1]; } s = s + t + t;",
        "t = 1; for (int k = 0; k < n; k += 2) { s += a[ROW + k]; t += a[ROW + k + 1]; }",
        "for (int k = 0; k < n; k += 2) { s += a[ROW + k]; t += a[ROW + k + 1]; if (t > 9) break; }",
        "float u = 1; for (int k = 0; k < n; k += 2) { s += a[ROW + k]; u += a[ROW + k + 1]; } s += u;",
        "for (int k = 0; k < n; k += 2) { s += a[ROW + k]; s -= a[ROW + k + 1]; }",
        "for (int k = 0; k < n; k += 2) { s += a[ROW + k]; s += a[ROW + k + 2]; }",
        "for (int k = 0; k < n; k += 2) { s += a[ROW + k] * 2; s += a[ROW + k + 1] * 3; }",
        "for (int k = 0; k < n; k += 2) { s += a[ROW + k] * k; s += a[ROW + k + 1] * k; }",
        "for (int k = 0; k < n; k += 2) { s += a[ROW + k / 2]; s += a[ROW + k / 2 + 1]; }",
        "for (int k = 0; k < n; k += 2) { s += a[ROW + k]; k++; s += a[ROW + k + 1]; }",
        f"for (int k = 0; k < n + at[0]; k += 2) {{ {TWO} }}",
        f"int k = 0; for (; k + 2 < n; k += 4) {{ {FOUR} }}{REST}",
        f"int k = 0; for (; k + 3 < n; k += 4) {{ {FOUR} }} s += 1; {REST}",
        f"int k = 0; for (; k + 3 < n; k += 4) {{ {FOUR} }} for (; k < n - 1; ++k) s += a[ROW + k] * at[k];",
        f"int k = 0; for (; k + 3 < n; k += 4) {{ {FOUR} }} for (; k < n; ++k) s += a[ROW + k];",
        f"for (int k = 0; k + 3 < n; k += 4) {{ {FOUR} }}",  # the rest is left out
        "for (int k = 0; k < n; k += 2) { s += a[ROW + k]; if (k + 2 < n) s += a[ROW + k + 1]; }",
        (
            "int k = 0; for (; k < n; k += 3) { s += a[ROW + k]; if (k + 1 < n) s += a[ROW + k + 1]; "
            "if (k + 2 < n) s += a[ROW + k + 2]; } t = k;"
        ),  # where it ended is asked for
        "const float* p = a + ROW; for (int k = 0; k < n; k += 2) { s += *p++; s += p[0]; }",
        "for (int k = 0; k < n; k += 2) { float s = a[ROW + k]; t += s; t += a[ROW + k + 1]; }",
        "for (int k = 0; k < n; k += 2) { s += a[ROW + k] + 2 * a[ROW + k + 1]; }",
        "int c = 0; for (int k = 0; k < n; k += 2) c += a[ROW + k] + a[ROW + k + 1]; s = c;",
        "bool c = 0; for (int k = 0; k < n; k += 2) c += (at[k] - 1) + (at[k + 1] + 1); s = c;",
        "for (int k = 0; k < n; k += 2) s += (unsigned)at[k] + (unsigned)at[k + 1];",  # wraps
        "for (int k = 0; k < n; k += 2) { int x = at[k]; s += a[x]; int y = at[k + 1]; s += a[x]; }",
        (
            "int p = 0; for (int k = 0; k < n; k += 2) { int q = p; s += a[p + k]; p = at[k]; "
            "int w = p; s += a[q + k + 1]; p = at[k + 1]; }"
        ),
    ],
)
def test_what_differs_from_element_to_element_stays(body: str) -> None:
    found = refused(rerolled(kernel_of(of(body))))
    assert found.startswith("no round of a loop does the same for several elements")


@pytest.mark.parametrize(
    "body",
    [
        f"n -= 1; for (int k = 0; k < n; k += 2) {{ {TWO} }}",
        f"{{ int n = r | 1; for (int k = 0; k < n; k += 2) {{ {TWO} }} }}",
        f"{{ const int n = 5; for (int k = 0; k < n; k += 2) {{ {TWO} }} }}",
        f"for (int k = 0; k < 5; k += 2) {{ {TWO} }}",
        f"int k; for (k = 0; k < 5; k += 2) {{ {TWO} }} t = k;",
        f"for (int k = 0; k < n - 010; k += 2) {{ {TWO} }}",  # no directive has such a number
        f"int q = r % 2; for (int k = 2 * q; k < 2 * q + 3; k += 2) {{ {TWO} }}",
    ],
)
def test_rounds_that_go_past_their_bound_stay(body: str) -> None:
    """The bound is no size that the launch has, or a number that is no multiple."""
    found = refused(rerolled(kernel_of(of(body))))
    assert found.startswith("no round of a loop does the same for several elements")
