"""Parameters that a kernel changes, as locals from there on."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.copied_parameters import copied_parameters
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__device__ int lower(int& left, int by) { left -= by; return left; }
__global__ void k(const int* a, int* out, int n, int m) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= n) return;
    const int* p = a + i * m;
    int s = 0;
    BODY
    out[i] = s;
}
"""
ARRAYS = {"a": Array("i4", ("n", "m"), "positive"), "out": Array("i4", ("n",))}
SIZES, SMALL = {"n": 71, "m": 13}, {"n": 3, "m": 1}


@pytest.mark.parametrize(
    ("body", "before"),
    [
        ("while (m-- > 0) s += *p++;", "int m_2 = m;"),
        ("while (m-- > 0) s += *p++; s += m;", "int m_2 = m;"),
        ("for (; m; m--) s = s * 3 + p[m - 1];", "int m_2 = m;"),
        ("s = m; m = 2 * m + 1; for (int j = 0; j < m / 2; j++) s += p[j] * m;", "int m_2 = m;"),
        ("if (i > 5) { s = m; if (s > 1) { s--; m -= 1; s += m; } }", "s--;\n"),
        ("if (i > 5) { m -= 1; s = m; } else s = m * 3;", "int m_2 = m;"),
        ("if (m-- > 5) { s = m; m += i; } s += m * 7;", "int m_2 = m;"),
        ("m = n - 1; n = m + i; s = n * 3 + m;", "int n_2 = n;"),
        ("a += i * m; for (int j = 0; j < m; j++) s += a[j];", "const int *a_2 = a;"),
        ("a += i * m; for (int j = 0; j < m; j++) s = s * 3 + *a++;", "const int *a_2 = a;"),
        ("if (i > 5) { a += i; s = a[0]; } else s = a[1];", "const int *a_2 = a;"),
        ("for (int j = 0; j < 3; j++) { s += m; if (j == i) m++; }", "int m_2 = m;"),
    ],
)
def test_a_local_changes_in_its_place(body: str, before: str) -> None:
    text = TEXT.replace("BODY", body)
    after = written(copied_parameters(kernel_of(text)))
    assert before in after
    assert "i * m;" in after
    assert end_of(text, after, ARRAYS, SIZES, SMALL) == "same"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("s = m;", "no parameter changes"),
        ("p += m;", "no parameter changes"),
        ("int* q = &m; m--; s = *q;", "no whole number or pointer of its own"),
        ("int& q = m; m--; s = q;", "no whole number or pointer of its own"),
        ("auto f = [&]() { return m; }; m--; s = f();", ""),
        ("const int** q = &a; a += m; s = **q;", "no whole number or pointer of its own"),
        ('asm("" : "+r"(m)); m--; s = m;', ""),
    ],
)
def test_not_where_more_leads_to_it(body: str, reason: str) -> None:
    assert reason in refused(copied_parameters(kernel_of(TEXT.replace("BODY", body))))


def test_a_function_may_change_it() -> None:
    text = TEXT.replace("BODY", "int q = m; s = lower(m, 2) + m * q;")
    made = copied_parameters(kernel_of(text))
    if hasattr(made, "program"):
        assert end_of(text, written(made), ARRAYS, SIZES, SMALL) == "same"
