"""Maps that add up beside what they store: steps of solvers, losses with their gradients."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.spelled_names import beside_macros
from optiml_magic.proposers.rewrites.block_sum import BlockSum
from tests.ideas import asked
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of

STEP = """\
#define THREADS 64
__device__ void add_up(float v, float* target) {
    __shared__ float part[THREADS];
    int t = threadIdx.y * blockDim.x + threadIdx.x;
    part[t] = v;
    __syncthreads();
    for (unsigned d = THREADS / 2; d > 0; d >>= 1) { if (t < d) part[t] += part[t + d]; __syncthreads(); }
    if (t == 0) atomicAdd(target, part[0]);
}
#pragma optiml init(o) = 0
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* r, float* z, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = 0.0f;
    if (i < n) {
        z[i] += 0.5f * a[i];
        float d = r[i] - 0.25f * a[i];
        r[i] = d;
        v = d * d;
    }
    add_up(v, o);
}
"""
PLANE = (
    STEP.replace("grid(cdiv(n, 64)) block(64)", "grid(cdiv(n, 16), cdiv(n, 4)) block(16, 4)")
    .replace("int i =", "int y = blockIdx.y * 4 + threadIdx.y, x =")
    .replace("if (i < n) {", "if (x < n && y < n) {\n        int i = y * n + x;")
)
ROUNDS = STEP.replace("v = d * d;", "for (int j = 0; j < n; ++j) v += d * a[j];")
LINE = {
    "a": Array("f4", ("n",)), "r": Array("f4", ("n",)), "z": Array("f4", ("n",)),
    "o": Array("f4", ("1",), "zeros"),
}  # fmt: skip
SQUARE = {n: Array(a.dtype, ("n", "n") if n != "o" else ("1",), a.content) for n, a in LINE.items()}


@pytest.mark.parametrize("text", [STEP, PLANE, ROUNDS])
def test_threads_that_store_add_up_over_blocks(text: str) -> None:
    ideas, _ = asked(BlockSum(), text)
    assert ideas
    arrays, sizes = (SQUARE, {"n": 37}) if text is PLANE else (LINE, {"n": 517})
    for idea in ideas:
        after = idea.make()
        if isinstance(after, str):
            assert "block_sum<BLOCK>" in after
            assert end_of(text, after, arrays, sizes, {"n": 3}, rounds=True) == "same"


def test_a_block_that_adds_up_already_gains_less_where_that_is_little_beside_the_rest() -> None:
    first, *others = [max(i.prior for i in asked(BlockSum(), t)[0]) for t in (STEP, PLANE, ROUNDS)]
    assert first > 0.8
    assert all(other < 0.6 for other in others)


def test_a_helper_whose_names_are_macros_is_the_same_each_time_it_is_made() -> None:
    helper = "template <int THREADS> __device__ int wide() { return THREADS; }"
    program = "#define THREADS 64\n#pragma optiml tune THREADS_2 in {1, 2} = 1\n"
    once = beside_macros(helper, program)
    assert "int THREADS_3>" in once
    assert beside_macros(helper, f"{program}{once}") == once


def test_a_type_of_a_helper_that_is_a_macro_has_another_name() -> None:
    helper = "template <class T> __device__ T once(T x) { return x * T(1); }"
    made = beside_macros(helper, "#define T 298.0\n")
    assert made == "template <class T_2> __device__ T_2 once(T_2 x) { return x * T_2(1); }"
