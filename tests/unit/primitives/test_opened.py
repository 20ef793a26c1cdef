"""Braces that stand by themselves: opened all at once, with names that nothing else has."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.allowance import Allowance
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.opened import opened
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const int* a, int* out, int n) {{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= n) return;
    int sum = 0;
    {body}
    out[r] = sum;
}}
"""
ARRAYS = {"a": Array("i4", ("n",)), "out": Array("i4", ("n",), "zeros")}


@pytest.mark.parametrize(
    ("body", "apart"),
    [
        ("{ int v = a[r]; sum += v; }", "int v = a[r]; sum += v;"),
        (
            "{ int v = a[r]; sum += v; } { int v = 2; sum *= v; }",
            "int v_2 = a[r]; sum += v_2; int v = 2; sum *= v;",
        ),
        (
            "{ int v = 3; { int w = a[r]; { int v = w; sum += v; } sum += w; } sum -= v; }",
            "int v = 3; int w = a[r]; int v_2 = w; sum += v_2; sum += w; sum -= v;",
        ),
        (
            "int v = 1; { int v = a[r], u = v; sum += u; } { int u = v; sum += u; }",
            "int v = 1; int v_2 = a[r], u_2 = v_2; sum += u_2; int u = v; sum += u;",
        ),
        (
            "for (int k = 0; k < 3; ++k) { { int n = a[r]; sum += n; } }",
            "for (int k = 0; k < 3; ++k) { int n_2 = a[r]; sum += n_2; }",
        ),
        (
            (
                "auto f = [](int k) { return k; }; "
                "{ auto f = [](int k) { return 2 * k; }; sum += f(a[r]); } sum -= f(r);"
            ),
            (
                "auto f = [](int k) { return k; }; "
                "auto f_2 = [](int k) { return 2 * k; }; sum += f_2(a[r]); sum -= f(r);"
            ),
        ),
    ],
)
def test_what_was_in_braces_keeps_apart(body: str, apart: str) -> None:
    text = TEXT.format(body=body)
    made = written(opened(kernel_of(text)))
    assert " ".join(made.split()) == " ".join(TEXT.format(body=apart).split())
    assert end_of(text, made, ARRAYS, {"n": 70}, {"n": 33}) == "same"


def test_what_a_switch_asks_about_has_a_name_for_each() -> None:
    one = "{ switch (sum & 1) { case 0: sum += a[r]; case 1: sum *= 3; } }"
    text = TEXT.format(body=f"{one} {one}")
    made = written(opened(kernel_of(text)))
    assert end_of(text, made, ARRAYS, {"n": 70}, {"n": 33}) == "same"


def test_hundreds_of_them_are_read_twice() -> None:
    body = " ".join(f"{{ int v = {n}; {{ int w = v; sum += w; }} }}" for n in range(200))
    text = TEXT.format(body=body)
    with Allowance(most=4 * len(text)).spent():
        made = opened(kernel_of(text))
        assert isinstance(made, Kernel)
        assert len(made.function.body.body) == 4 + 600
    assert "int v_200 = 198;" in made.program.text
    assert "int v = 199;" in made.program.text


@pytest.mark.parametrize(
    "body",
    [
        "{ typedef float T; T v = 2.5f; sum += v * 2; } sum += (T)3.5f;",
        "{ struct T { int v; }; T v = {a[r]}; sum += v.v; } sum += (T)3.5f;",
        "{ struct T { int v; } v = {a[r]}; sum += v.v; } sum += (T)3.5f;",
    ],
)
def test_braces_around_types_of_their_own_stay(body: str) -> None:
    text = f"typedef int T;\n{TEXT.format(body=body)}"
    assert refused(opened(kernel_of(text))) == "no braces stand by themselves"


def test_no_braces_are_refused() -> None:
    text = TEXT.format(body="if (n > 3) { sum = 1; }")
    assert refused(opened(kernel_of(text))) == "no braces stand by themselves"
