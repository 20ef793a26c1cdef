"""Parameters under the names of what their one launch passes."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.apart import apart
from optiml_magic.kernels.primitives.as_passed import as_passed, facts_as_passed
from optiml_magic.kernels.primitives.base import kernels
from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct
from optiml_magic.proposers.rules import plain
from optiml_magic.source.program import parse_program
from tests.ideas import asked
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

from .alike import end_of

TEXT = """\
#pragma optiml launch add grid(cdiv(N, 64)) block(64) args(x, y, N, 2)
struct Pair { float a; int n; };
__global__ void add(const float* a, float* c, int n, float by) {
    // a and n as they are
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Pair p = {1.0f, n};
    if (i < p.n) c[i] = a[i] * by + p.a;
}
"""
ARRAYS = {"x": Array("f4", ("N",)), "y": Array("f4", ("N",), "zeros")}
PRODUCTS = """\
#pragma optiml scratch h f4[M * H]
#pragma optiml launch product grid(cdiv(H, 16), cdiv(M, 16)) block(16, 16) args(x, U, h, M, H, K)
#pragma optiml launch product grid(cdiv(N, 16), cdiv(M, 16)) block(16, 16) args(h, V, y, M, N, H)
__global__ void product(const float* a, const float* b, float* c, int m, int n, int k) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m || col >= n) return;
    float s = 0.0f;
    for (int i = 0; i < k; i++) s += a[row * k + i] * b[i * n + col];
    c[row * n + col] = s;
}
"""


def test_what_is_passed_by_name_has_that_name() -> None:
    made = as_passed(parse_program(TEXT)).text
    assert "add(const float* x, float* y, int N, float by)" in made
    assert "y[i] = x[i] * by + p.a;" in made
    assert "// a and n as they are" in made
    assert "Pair p = {1.0f, N};" in made
    assert "if (i < p.n)" in made
    assert end_of(TEXT, made, ARRAYS, {"N": 70}, {"N": 3}) == "same"
    assert as_passed(parse_program(made)).text == made


def test_two_names_change_places() -> None:
    text = TEXT.replace("const float* a, float* c", "const float* y, float* x")
    text = text.replace("c[i] = a[i]", "x[i] = y[i]")
    made = as_passed(parse_program(text)).text
    assert "add(const float* x, float* y, int N" in made
    assert end_of(text, made, ARRAYS, {"N": 70}, {"N": 3}) == "same"


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("int i =", "int N = n, i =", "int N,"),
        ("int i =", "int N = n; x(N); int i =", "float* a"),
        ("int i =", "struct Own { int n; } o = {n}; int i = o.n * 0 +", "int n,"),
        ("args(x, y, N, 2)", "args(y, y, N, 2)", "const float* a, float* c"),
        ("struct Pair", "#define N 70\nstruct Pair", "int n,"),
        ("struct Pair", "#define FIRST a[0]\nstruct Pair", "const float* a,"),
        ("struct Pair", "#pragma optiml tune N in {70} = 70\nstruct Pair", "int n,"),
    ],
)
def test_names_that_mean_something_else_stay(old: str, new: str, kept: str) -> None:
    assert kept in as_passed(parse_program(TEXT.replace(old, new))).text


def test_a_local_of_that_name_has_another() -> None:
    text = TEXT.replace("int i =", "float x = a[0], y = 2.0f; int i =").replace(
        "* by", "* y * by + x"
    )
    made = as_passed(parse_program(text)).text
    assert "float x_2 = x[0], y_2 = 2.0f;" in made
    assert "y[i] = x[i] * y_2 * by + x_2 + p.a;" in made
    assert end_of(text, made, ARRAYS, {"N": 70}, {"N": 3}) == "same"


def test_each_launch_of_a_kernel_has_tiles() -> None:
    program = plain(parse_program(PRODUCTS), {})
    heads = [k.function.parameters for k in kernels(program, None)]
    assert [[p.name for p in head] for head in heads] == [
        ["x", "U", "h", "M", "H", "K"], ["h", "V", "y", "M", "N", "H"],
    ]  # fmt: skip
    ideas, _ = asked(BlockedProduct(), program.text)
    assert sum("tiles in shared memory" in idea.title for idea in ideas) >= len(heads)


def test_facts_have_the_names_too() -> None:
    before = apart(parse_program(TEXT))
    after = as_passed(before)
    stand = Stand(Made("one", TEXT, ARRAYS, {"N": 70}, {"N": 3}))
    found = facts_as_passed(stand.facts(TEXT), before, after, after)
    assert found is not None
    (launch,) = found.launches
    assert {*launch.arrays} == {"x", "y"}
    assert launch.scalars["N"] == 70
    assert facts_as_passed(None, before, after, after) is None
