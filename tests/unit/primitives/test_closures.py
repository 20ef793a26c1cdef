"""Loops that call lambdas, which change locals that they refer to, or ask for them."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.rounds import shareable
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from optiml_magic.proposers.rewrites.split_reduction import SplitReduction
from tests.ideas import asked, made
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const int* x, int* y, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int s = 7, c = 3;
    BODY
    y[i] = s + c;
}
"""
ARRAYS = {"x": Array("i4", ("n", "m")), "y": Array("i4", ("n",), "zeros")}
LOOP = "for (int j = 0; j < m; ++j) "
V = "x[i * m + j]"
CHANGING = {
    "adds and asks": f"auto f = [&](int v) {{ return c += v; }}; {LOOP} s += f({V}) & 3;",
    "adds": f"auto f = [&](int v) {{ c += v; }}; {LOOP} f({V});",
    "goes on": f"auto f = [&](int v) {{ c = c * 3 + v; return c; }}; {LOOP} s += f({V});",
    "a state of its own": f"auto f = [=](int v) mutable {{ return c += v; }}; {LOOP} s += f({V}) & 3;",
    "counts": f"auto f = [&c](int v) {{ return c++ < 5 ? v : 0; }}; {LOOP} s += f({V});",
    "a copy of it": f"auto f = [&](int v) {{ c = c * 3 + v; }}; auto g = f; {LOOP} g({V});",
    "asks": f"auto f = [&](int v) {{ return v * c; }}; {LOOP} {{ s += f({V}); ++c; }}",
}


@pytest.mark.parametrize("name", CHANGING)
def test_rounds_that_meet_in_a_lambda_are_not_shared(name: str) -> None:
    text = TEXT.replace("BODY", CHANGING[name])
    kernel = kernel_of(text)
    (loop,) = loops_in(kernel.function.body)
    effects = Effects(kernel)
    assert "c" in {v.name for v in effects.changed(loop.body)}
    with pytest.raises(NotLegal):
        shareable(kernel, loop, effects)
    for rule in (RowToLanes(), SplitReduction()):
        for one in made(asked(rule, text)[0])[:2]:
            sizes, others = {"n": 5, "m": 70}, {"n": 2, "m": 3}
            assert end_of(text, one.text, ARRAYS, sizes, others) in ("same", "narrowed")


@pytest.mark.parametrize("captures", ["&", "=", "&c"])
def test_one_that_only_computes_is_called_by_all(captures: str) -> None:
    body = f"auto f = [{captures}](int v) {{ v *= c; return v; }}; {LOOP} s += f({V});"
    text = TEXT.replace("BODY", body)
    kernel = kernel_of(text)
    (loop,) = loops_in(kernel.function.body)
    assert [r.place for r in shareable(kernel, loop, Effects(kernel))] == ["s"]
