"""By which branches of a text threads leave a kernel early."""

from __future__ import annotations

import pytest

from optiml_magic.kernels import exits
from optiml_magic.kernels.unit import lift


def early_returns(text: str) -> tuple[int, ...]:
    return exits.early_returns(lift(text))


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("if (c) return;\n__syncthreads();", (2,)),
        ("if (c) { out[0] = 1; return; }", (2,)),
        ("x();\nif (c &&\n d) { x(); return; }\nx();", (3, 4)),
        ("if (c) {\n x();\n if (d) return;\n x();\n}", (2, 3, 4, 5, 6)),
        ("for (;;)\n if (c) return;", (2, 3)),
        ("for (;;) {\n if (c) return;\n __syncthreads(); }", (3,)),
        ("switch (c) {\n case 1: x(); return;\n default: x(); }", (2, 3, 4)),
        ("switch (c) {\n case 1: return;\n default: __syncthreads(); }", ()),
        ("if (c) x(); else { x(); return; }", (2,)),
        ("if (c) __syncthreads();", ()),
        ("if (c) {\n if (d) return;\n block.sync();\n}", (3,)),
        ("if (c) return; if (d) __syncthreads();", ()),
        ("if (c) x();", ()),
        ("if (c) x([&] { return 1; });", ()),
        ("auto f = [&] { if (c) return 1; return 2; };", ()),
        ("return;", ()),
    ],
)
def test_lines_of_what_has_a_return_and_no_barrier(body: str, lines: tuple[int, ...]) -> None:
    assert early_returns(f"__global__ void k(int c) {{\n{body}\n}}\n") == lines


def test_what_a_helper_returns_from_is_not_the_kernel() -> None:
    helper = "__device__ int f(int c) {\n if (c) return 1;\n return 2;\n}\n"
    assert early_returns(helper) == ()
    assert early_returns(helper.replace("__device__ int", "__global__ void")) == (2,)


@pytest.mark.parametrize("text", ["if (c) return", ""])
def test_a_text_that_is_no_program_has_none(text: str) -> None:
    assert early_returns(text) == ()


def test_lines_are_those_of_the_text_that_macros_stand_in() -> None:
    text = "#define OUT(c, \\\n v) if (c) { out[0] = v; return; }\n__global__ void k(int c) {\n"
    assert early_returns(text + "OUT(c,\n 1)\n__syncthreads();\nif (c) return; }") == (4, 5, 7)
