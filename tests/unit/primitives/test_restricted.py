"""Pointers that are said to lead to arrays of their own."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, kernels
from optiml_magic.kernels.primitives.lanes import Lanes, share
from optiml_magic.kernels.primitives.restricted import alone, held_up, restricted
from optiml_magic.proposers.rewrites.restrict_readonly import RestrictReadonly
from optiml_magic.source.program import parse_program
from tests.rewriting.offers import Offer
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

from .alike import kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float *a, float const* b, float* __restrict__ c, float* d, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int j = 0; j < 4; j++) { c[i] += a[j] * b[0]; d[i] = c[i]; }
}
"""
ARRAYS = {name: Array("f4", ("n",)) for name in "abcd"}
SIZES = {"n": 70}


def bound(text: str, *, given: str = "") -> Kernel:
    """The kernel with facts; ``given`` for `d` as well where it is named."""
    made = Made("one", text, ARRAYS, SIZES, {"n": 3}, inout=("c", "d"))
    if given:
        made = made.aliased(given, "d")
    stand = Stand(made)
    (kernel,) = kernels(parse_program(stand.text), stand.facts(stand.text))
    return kernel


def test_each_leads_to_its_own() -> None:
    after = written(restricted(bound(TEXT)))
    head = "const float *__restrict__ a, float const* __restrict__ b, float* __restrict__ c, "
    assert f"k({head}float* __restrict__ d, int n) {{" in after


def test_those_that_are_one_array_stay() -> None:
    kernel = bound(TEXT.replace("__restrict__", ""), given="c")
    assert [variable.name for variable in alone(kernel)] == ["a", "b"]
    assert not [s for s in RestrictReadonly().sites(kernel) if hasattr(s, "apply")]


def test_nothing_is_known_of_a_kernel_by_itself() -> None:
    assert refused(restricted(kernel_of(TEXT))) == (
        "no pointer is known to lead to an array of its own"
    )


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("c[i] = a[i] + b[i];", 0),
        ("c[i] = a[i];\n    d[i] = b[i];", 6),
        ("for (int j = 0; j < 4; j++) c[4 * i + j] = a[j];", 5),
        ("c[i] *= 2.0f;\n    c[i] += 1.0f;", 0),
    ],
)
def test_loads_that_wait_for_stores(body: str, line: int) -> None:
    start, end = TEXT.index("for (int j"), TEXT.index("\n}\n")
    assert held_up(kernel_of(TEXT[:start] + body + TEXT[end:])) == line


EXCHANGED = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float *a, float *__restrict__ c, float scale, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    c[i] *= scale;
    float s = c[i];
    for (int j = 0; j < m; j++) s += a[i * m + j];
    c[i] = s;
}
"""


@pytest.mark.parametrize("spelled", ["*__restrict__ c", "* __restrict c"])
def test_lanes_do_not_exchange_values_by_a_pointer_that_is_restricted(spelled: str) -> None:
    text = EXCHANGED.replace("*__restrict__ c", spelled)
    shared = share(kernel_of(text), (0,), Lanes("warp", 32, 256, (32,), (256,)))
    after = written(shared)
    assert "restrict" not in after
    arrays = {"a": Array("f4", ("n * m",)), "c": Array("f4", ("n",))}
    made = Made(
        "one", text, arrays, {"n": 70, "m": 40}, {"n": 3, "m": 5}, {"scale": 0.5},
        inout=("c",), exact=False,
    )  # fmt: skip
    stand = Stand(made)
    assert stand.applied(Offer("rule", "", after, rounds=True), text).sound
    (kernel,) = kernels(parse_program(after), stand.facts(after))
    assert [v.name for v in alone(kernel)] == ["a"]
