"""Members of structures that a moving pointer leads to, as those of elements of its array."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.counted import counted
from optiml_magic.kernels.primitives.whole_elements import whole_elements
from tests.present import sampled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
struct Inner { short lo, hi; };
struct Item { float re; short lo, hi; float im; };
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const Item* a, float* out, int n, int m) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= n) return;
    float s = 0, t = 0;
    int c = 0;
    LOOP
    out[2 * i] = s + c;
    out[2 * i + 1] = t;
}
"""
ARRAYS = {
    "a": Array("re:f4 lo:i2 hi:i2 im:f4", ("n", "m")),
    "out": Array("f4", ("n", "2"), "zeros"),
}
SIZES = {"n": 67, "m": 9}, {"n": 1, "m": 3}
ROW = "const Item* p = a + i * m; "
WALKS = (
    ROW + "for (int j = 0; j < m; ++j, ++p) { s += p->re; t += p->im; }",
    ROW + "for (int j = m; j > 0; --j, ++p) { s = s * 2 + p->re; t -= p->im * j; }",
    ROW + "for (int j = 0; j < m; ++j) { s += p->re; c += p->hi; p++; }",
    ROW + "for (int j = 0; j < m; ++j) { s += (*p).re - (*p).lo; ++p; }",
    ROW + "for (int j = 0; j < m; ++j) { s += p[0].re; t += p[0].im; p += 1; }",
    ROW + "const Item* e = p + m; for (; p < e; ++p) { s += p->re; c += p->lo; }",
    ROW + "const Item* e = p + m; while (p != e) { s += p->re; t += p->im; p++; } c = p - a;",
    "const Item* p = a + i * m + m - 1; for (int j = 0; j < m; ++j, --p) { s = s * 3 + p->re; }",
    "const Item* p = &a[i * m]; int j = 0; do { s += p->re; t += p->im; ++p; } while (++j < m);",
    ROW + "for (int j = 0; j < m - 1; ++j, ++p) { s += p[1].re - p->re; t += p[1].im; }",
    ROW + "for (int j = 0; j + 1 < m; j += 2, p += 2) { s += p->re; t += (p + 1)->im; }",
    ROW + "for (int j = 0; j < m; ++j, ++p) { int m = 3; s += p->re * m; t += p->im; }",
    ROW + "for (int j = 0; j < m; ++j, ++p) { int a = j; s += p->re * a; t += p->im; }",
    ROW + "for (int j = 0; j < m; ++j, ++p) { const Item q = *p; s += q.re; t += p->im; }",
    ROW + "const Item* q = p; for (int j = 0; j < m; ++j, ++p) { s += p->re * q->im; t += q->re; }",
    ROW + "for (int j = 0; j < m; ++j, ++p) { if (p->lo < 0) continue; s += p->re; t += p->im; }",
    ROW + "for (int j = 0; j < m; ++j, ++p) { if (p->lo > 90) break; s += p->re; t += p->im; }",
    "for (int q = 0; q < 2; ++q) { " + ROW + "for (int j = 0; j < m; ++j, ++p) s += p->re * q; }",
    ROW + "for (int j = 0; j < m; ++j) { s += p->re; t += (p++)->im; }",
    ROW + "for (int j = 0; j < m; ++j, ++p) { const Item& r = *p; s += r.re; t += p->im; }",
    ROW + "for (int j = 0; j < m; ++j, ++p) { const short* r = &p->lo; s += r[1]; t += p->im; }",
    "const float* p = &a[i * m].re; for (int j = 0; j < m; ++j, p += 3) { s += p[0]; t += p[2]; }",
    (
        "const Inner* p = (const Inner*)&a[i * m].lo; for (int j = 0; j < m; ++j, p += 3) { c += p->lo;"
        " s += p->hi; }"
    ),
    (
        "const Inner* p = (const Inner*)(a + i * m); for (int j = 0; j < 3 * m; ++j, ++p)"
        " c += p->lo;"
    ),
)


@pytest.mark.parametrize("loop", sampled([*WALKS], 6))
def test_a_walk_is_what_it_was(loop: str) -> None:
    """Counted where that is legal, and with elements as a whole where rounds ask for enough."""
    text = TEXT.replace("LOOP", loop)
    at = loop.startswith("for (int q")
    for made in (counted(kernel_of(text), int(at)), whole_elements(kernel_of(text))):
        if isinstance(made, Kernel):
            assert end_of(text, written(made), ARRAYS, *SIZES) == "same"


def test_elements_have_the_names_of_their_array() -> None:
    text = written(counted(kernel_of(TEXT.replace("LOOP", WALKS[0])), 0))
    assert "s += a[i * m + k_2].re;" in text
    text = written(counted(kernel_of(TEXT.replace("LOOP", WALKS[3])), 0))
    assert "a[i * m + k_2].lo" in text
    text = written(whole_elements(kernel_of(TEXT.replace("LOOP", WALKS[1]))))
    assert "const Item a_item = a[i * m + k_2];" in text


@pytest.mark.parametrize("loop", WALKS[-2:])
def test_a_pointer_into_an_element_leads_to_none(loop: str) -> None:
    made = counted(kernel_of(TEXT.replace("LOOP", loop)), 0)
    assert "what a moving pointer leads to" in refused(made)
