"""Members that a round asks for one by one, as those of an element that it loads as a whole."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.whole_elements import whole_elements
from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct
from optiml_magic.proposers.rewrites.kernel_rule import Site
from tests.present import sampled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#define RE(x) a[x].re
struct Pair { float re, im; };
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const Pair* a, float* out, int n, int m) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= n) return;
    float s = 0, t = 0;
    for (int j = 0; j < m; ++j) %s
    out[2 * i] = s;
    out[2 * i + 1] = t;
}
"""
ARRAYS = {"a": Array("re:f4 im:f4", ("m", "n")), "out": Array("f4", ("n", "2"), "zeros")}
SIZES = {"n": 67, "m": 9}, {"n": 1, "m": 3}
THERE = "a[j * n + i]"
ROUNDS = (
    ("s += A.re * 2 - A.im;", 1),
    ("s += A.re;", 1),
    ("{ s += RE(j * n + i); t += A.im; }", 1),
    ("if (j & 1) { s += A.re + A.im; } else { t += A.re; }", 2),
    ("{ s += A.re; t += j & 1 ? A.re : A.im; }", 1),
    ("{ int p = j * n + i; s += a[p].re; { int p = i; s += a[p].im; } t += a[p].im; }", 2),
    ("{ if (j == 0) continue; s += a[j * n + i - n].re; t += a[j * n + i - n].im; }", 1),
    ("{ int a_item = j; s += A.re + a_item; t += A.im; }", 1),
    ("{ const Pair* r = a + j * n; s += r[i].re; t += r[i].im; }", 1),
    ("{ const float* r = &A.re; s += r[0]; t += A.im; }", 1),
    ("{ unsigned p = j * n + i; s += a[p - 1u + 1u].re; t += a[p - 1u + 1u].im; }", 1),
    ("for (int q = 0; q < 2; ++q) { s += A.re; t += A.im * q; }", 1),
)


@pytest.mark.parametrize(("inside", "items"), sampled([*ROUNDS], 5))
def test_a_round_loads_an_element_once(inside: str, items: int) -> None:
    text = TEXT % inside.replace("A.", f"{THERE}.")
    after = written(whole_elements(kernel_of(text)))
    assert after.count("const Pair a_item") + after.count("const Pair r_item") == items
    assert end_of(text, after, ARRAYS, *SIZES) == "same"


@pytest.mark.parametrize(
    "inside",
    [
        "if (j & 1) s += A.re + A.im;",
        "{ if (j & 1) s += A.re; t += A.im; }",
        "s += j & 1 ? A.re : A.im;",
        "{ bool q = j > 2 && A.re > 0; s += q; t += A.im; }",
        "{ int p = j * n + i; s += a[p].re; p = i; t += a[p].im; }",
        "{ const Pair* r = a + j * n; s += r[i].re; r = a; t += r[i].im; }",
        "{ int p = j * n + i; float x = a[p].re, q = p = i, y = a[p].im; s += x + y + q; }",
        "{ int p = j * n + i; s += a[p++].re; }",
        "{ const Pair& r = A; s += r.re; t += r.im; }",
    ],
)
def test_what_may_be_another_element_or_none_stays(inside: str) -> None:
    text = TEXT % inside.replace("A.", f"{THERE}.")
    assert "one element alone" in refused(whole_elements(kernel_of(text)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("float re, im;", "float re, im, more[3];"),
        ("const Pair* a", "const volatile Pair* a"),
        ("    out[2 * i] = s;", "    a[i].re = s;"),
    ],
)
def test_elements_that_are_long_or_change_stay(old: str, new: str) -> None:
    text = (TEXT % f"{{ s += {THERE}.re; t += {THERE}.im; }}").replace(old, new)
    text = text.replace("const Pair* a", "Pair* a") if "a[i]" in new else text
    assert "one element alone" in refused(whole_elements(kernel_of(text)))


PRODUCT = """\
struct Pair { float re, im; };
#pragma optiml launch k grid(cdiv(n, 16), cdiv(m, 16)) block(16, 16)
__global__ void k(const Pair* a, const float* c, const float* d, Pair* out, int m, int n, int r) {
    int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
    if (i >= m || j >= n) return;
    float re = 0, im = 0;
    for (int k = 0; k < r; ++k) {
        re += a[i * r + k].re * c[k * n + j] - a[i * r + k].im * d[k * n + j];
        im += a[i * r + k].re * d[k * n + j] + a[i * r + k].im * c[k * n + j];
    }
    out[i * n + j].re = re;
    out[i * n + j].im = im;
}
"""


def test_rows_of_pairs_have_tiles() -> None:
    rule = BlockedProduct()
    (site,) = rule.sites(rule.shaped(kernel_of(PRODUCT)))
    assert isinstance(site, Site), site
    made = site.apply()
    assert isinstance(made, Kernel), made
    point = {"BM": 16, "BN": 32, "BK": 16, "TM": 2, "TN": 2, "BLOCKS": 1}
    after = made.program.with_values(point).text
    arrays = {
        "a": Array("re:f4 im:f4", ("m", "r")), "c": Array("f4", ("r", "n")),
        "d": Array("f4", ("r", "n")), "out": Array("re:f4 im:f4", ("m", "n"), "zeros"),
    }  # fmt: skip
    sizes = {"m": 19, "n": 37, "r": 21}, {"m": 1, "n": 5, "r": 3}
    assert end_of(PRODUCT, after, arrays, *sizes, rounds=True) == "same"
