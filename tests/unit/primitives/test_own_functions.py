"""Functions that a kernel shares with the other side of its dispatch."""

from __future__ import annotations

from optiml_magic.kernels.primitives.base import kernels
from optiml_magic.kernels.primitives.own_functions import own_functions
from optiml_magic.proposers.rewrites.float_literals import FloatLiterals
from optiml_magic.source.program import parse_program
from tests.ideas import asked, made

from .shapes import applied, refused

SIDES = """\
__device__ float inner(float v) { return 2.0 * v; }
__device__ float half(float v) { return 0.5 * inner(v); }
#pragma optiml launch fast grid(cdiv(n, 64)) block(64) if (n < 4000000)
#pragma optiml launch k grid(cdiv(n, 32)) block(32) else
__global__ void fast(const float* a, float* out, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) out[i] = half(a[i]) + inner(a[i]);
}
__global__ void k(const float* a, float* out, int n) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < n) out[i] = half(a[i]) + inner(a[i]);
}
"""


def test_what_is_made_float_leaves_the_other_side_as_it_was() -> None:
    (one,) = made(asked(FloatLiterals(), SIDES)[0])
    before, _, other = one.text.partition("__global__ void k(")
    assert "half(a[i]) + inner(a[i])" in other
    assert "return 0.5 * inner(v);" in before
    assert "return 0.5f * inner_fast(v);" in before
    assert "half_fast(a[i]) + inner_fast(a[i])" in before


def test_a_kernel_that_shares_none_is_left_alone() -> None:
    alone = SIDES.replace(" if (n < 4000000)", "").replace(" else", "")
    first, _ = kernels(parse_program(alone), None)
    assert refused(own_functions(first))[0] == "no other launch stands beside its own"
    first, *_ = kernels(parse_program(SIDES.replace("half(a[i]) + inner(a[i])", "a[i]")), None)
    assert refused(own_functions(first))[0] == "no other kernel calls its functions"


def test_all_functions_of_a_name_go_along() -> None:
    text = SIDES.replace(
        "__device__ float half", "__device__ int inner(int v) { return v; }\n__device__ float half"
    )
    first, *_ = kernels(parse_program(text), None)
    shown = applied(own_functions(first)).program.text
    assert shown.count("inner_fast(int v)") == shown.count("inner_fast(float v)") == 1
