"""``#pragma unroll`` between the head of a statement and the loop that it leads to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.editing import edited
from optiml_magic.kernels.primitives.collapsed import collapse
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.printing import printed
from optiml_magic.kernels.tree import Block, If, Loop, Verbatim, walk
from optiml_magic.kernels.unit import lift
from tests.unit.primitives.running import same
from tests.unit.primitives.shapes import applied, kernel

HEADS = [
    "for (int j = 0; j < n; ++j)",
    "for (int j = 0; j < n; ++j)  // rows (all of them)",
    "for (int j = 0; j < n; ++j) /* a ) */",
    "while (n--)",
    "if (n > 4)",
    "if (n > 4) a[0] = 1; else",
    'for (const char* c = ")"; n < *c; ++n)',
]
HINTS = [
    "#pragma unroll",
    "#pragma unroll 4",
    "# pragma nounroll",
    "#pragma GCC unroll 2",
    "#pragma unroll  // all",
]
LAYER = """\
#pragma optiml launch k grid(cdiv(w, 32), h) block(32)
__global__ void k(const float* x, const float* f, float* y, int c, int h, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y;
    if (i >= w) return;
    float sum = 0;
    for (int q = 0; q < c; ++q)%s
        #pragma unroll
        for (int r = 0; r < 3; ++r)%s
            #pragma unroll
            for (int s = 0; s < 3; ++s) sum += x[(q * (h + 2) + j + r) * (w + 2) + i + s] * f[(q * 3 + r) * 3 + s];
    %sy[j * w + i] = sum;
}
"""
SHAPES = {"x": ("c", "h + 2", "w + 2"), "f": ("c", "9"), "y": ("h", "w")}


def _text(head: str, hint: str) -> str:
    return (
        f"__global__ void k(float* a, int n) {{\n    {head}\n    {hint}\n"
        "    for (int i = 0; i < 4; ++i) a[i] += n;\n}\n"
    )


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("hint", HINTS)
def test_what_stands_behind_a_hint_is_read(head: str, hint: str) -> None:
    text = _text(head, hint)
    unit = lift(text)
    (function,) = unit.kernels
    assert not any(isinstance(s, Verbatim) for s in walk(function.body))
    assert loops_in(function.body)[-1].line == 4
    assert printed(unit, function) == text


def test_a_hint_stays_where_a_loop_behind_it_changes() -> None:
    unit = lift(_text(HEADS[0], "#pragma unroll 2"))
    (function,) = unit.kernels
    _, inner = loops_in(function.body)
    again = edited(function.body, {inner: replace(inner, span=None)})
    assert "++j)\n    #pragma unroll 2\n    for (int i" in printed(
        unit, replace(function, body=again)
    )


@pytest.mark.parametrize("head", [HEADS[0], HEADS[3], HEADS[4], HEADS[5]])
def test_a_hint_goes_with_the_loop_that_it_is_about(head: str) -> None:
    unit = lift(_text(head, "#pragma unroll 2"))
    (function,) = unit.kernels
    around = next(s for s in walk(function.body) if isinstance(s, Loop | If))
    inner = loops_in(function.body)[-1]
    braces = Block(None, inner.line, (inner,))
    again = printed(unit, replace(function, body=edited(function.body, {inner: braces})))
    assert isinstance(around, Loop | If)
    assert "unroll" not in again
    assert lift(again).kernels


def test_a_hint_of_a_statement_of_its_own_stays_one() -> None:
    unit = lift("__global__ void k(int n) {\n f(n); // (a)\n#pragma unroll\n for (;n;) n--;\n}\n")
    (function,) = unit.kernels
    assert [getattr(s, "hints", None) for s in function.body.body] == [None, True, None]


@pytest.mark.parametrize(
    "braces", [("", "", ""), (" {", " {", "}}\n    ")], ids=["heads", "braces"]
)
def test_loops_are_one_whatever_hints_are_between(braces: tuple[str, str, str]) -> None:
    text = LAYER % braces
    made = collapse(kernel(text), 0)
    assert applied(made).program.text.count("for (") == 1
    same(text, made, SHAPES, {"c": 3, "h": 5, "w": 37})
