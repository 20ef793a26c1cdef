"""``T a(x, y);`` makes an object of variables; of types it declares a function."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.printing import Printer
from optiml_magic.kernels.read import read
from optiml_magic.kernels.tree import Declare, Statement, Verbatim
from optiml_magic.kernels.unit import Unit, lift

TEXT = """\
struct C {
    float r, i;
    __device__ C(float a, float b = 0) : r(a), i(b) {}
    __device__ float norm() { return r * r + i * i; }
};
__device__ float at[4];
__global__ void k(float* p, const float* q, float x, float y, int i, int j) {
    float z = 2, *row = p + i;
    BODY
    p[i] = 1;
}
"""


def second(body: str) -> tuple[Unit, Statement]:
    unit = lift(TEXT.replace("BODY", body))
    return unit, unit.kernels[0].body.body[1]


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        ("C a(x, y);", [["x", "y"]]),
        ("C a(x);", [["x"]]),
        ("const C a(x, z), b(z, x);", [["x", "z"], ["z", "x"]]),
        ("C a(q[i], p[j]);", [["q[i]", "p[j]"]]),
        ("C a(q[i + 1], row[0]);", [["q[i + 1]", "row[0]"]]),
        ("C a(x * y, z);", [["x * y", "z"]]),
        ("C a(x * q[i], z);", [["x * q[i]", "z"]]),
        ("int n(i & j);", [["i & j"]]),
        ("float s(0), t(x);", [["0"], ["x"]]),
        ("C a(x /* the first */, y);", [["x", "y"]]),
    ],
)
def test_variables_are_what_it_is_made_of(body: str, parts: list[list[str]]) -> None:
    unit, statement = second(body)
    assert isinstance(statement, Declare)
    shown = [
        [Printer(unit).expression(e) for e in v.initial or (v.value,) if e is not None]
        for v in statement.variables
    ]
    assert shown == parts
    assert all(v.opening == "(" for v in statement.variables)
    assert not read(unit, unit.kernels[0]).verbatim


@pytest.mark.parametrize(
    "body",
    [
        "float f(int);",
        "float f(C, C);",
        "float f(int i);",
        "float f(x, float y);",
        "float f(float, z);",
        "float f();",
        "C a(unknown, x);",
        "float (*f)(float);",
    ],
)
def test_types_are_a_function_s(body: str) -> None:
    assert isinstance(second(body)[1], Verbatim)


def test_what_an_object_is_made_of_is_loaded() -> None:
    unit, _ = second("C a(q[i], x); p[j] = a.norm();")
    accesses = read(unit, unit.kernels[0]).accesses
    assert [(a.array, a.mode, str(a.index)) for a in accesses] == [
        ("q", "load", "i"), ("p", "store", "j"), ("p", "store", "i"),
    ]  # fmt: skip
