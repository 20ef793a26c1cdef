"""What blocks with a row each add to all columns, by columns in a launch behind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.model.facts import Facts, LaunchFacts
from optiml_magic.model.idea import Idea
from optiml_magic.proposers.rewrites.merge_runs import MergeRuns
from optiml_magic.source.program import parse_program
from tests.ideas import view_of
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of

TEXT = """\
#pragma optiml launch k grid(n) block(64)
__global__ void k(const float* x, const float* y, float* o, float* g, int n, int d) {
    int row = blockIdx.x, t = threadIdx.x;
    __shared__ float part[64];
    float s = 0.0f;
    for (int i = t; i < d; i += blockDim.x) s += x[row * d + i] > 0.2f ? 1.0f : 0.0f;
    part[t] = s;
    __syncthreads();
    for (int apart = 32; apart > 0; apart /= 2) {
        if (t < apart) part[t] += part[t + apart];
        __syncthreads();
    }
    float m = rintf(part[0]);
    for (int i = t; i < d; i += blockDim.x) {
        o[row * d + i] = y[row * d + i] - m;
        atomicAdd(&g[i], x[row * d + i] < 0.5f ? m : 1.0f);
    }
}
"""
ARRAYS = {
    "x": Array("f4", ("n", "d")),
    "y": Array("f4", ("n", "d")),
    "o": Array("f4", ("n", "d"), "zeros"),
    "g": Array("f4", ("d",), "zeros"),
}


def ideas(text: str) -> list[Idea]:
    launch = LaunchFacts("k", 1, (4096, 1, 1), (64, 1, 1), {}, {"n": 4096, "d": 512})
    view = replace(view_of(text), find_facts=lambda: Facts((launch,), {}, 1e-5, 1e-8, "h200"))
    found = MergeRuns().propose(parse_program(text), view)
    return [i for i in found if isinstance(i, Idea)]


@pytest.mark.parametrize("lanes", ["lanes of a warp", "a block"])
def test_a_row_is_shared_again_where_its_sums_are_left_to_a_launch_behind(lanes: str) -> None:
    (idea,) = [i for i in ideas(TEXT) if lanes in i.title]
    assert "by columns, what all items update in g; " in idea.title
    after = idea.make()
    assert isinstance(after, str), after
    sizes = {"n": 70, "d": 37}, {"n": 3, "d": 130}
    assert end_of(TEXT, after, ARRAYS, *sizes, rounds=True) == "same"


def test_what_the_kernel_writes_is_not_asked_for_behind() -> None:
    assert not ideas(TEXT.replace("x[row * d + i] < 0.5f", "o[row * d + i] < 0.5f"))


PUSHED = """\
#pragma optiml launch k grid(cdiv(m, 16), cdiv(n, 16)) block(16, 16)
__global__ void k(const float* a, const float* b, float* out, int n, int m, int d) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r >= n || c >= m) return;
    for (int i = 0; i < d; i++) atomicAdd(&out[c * d + i], a[r * m + c] * b[r * d + i]);
}
"""


def test_an_element_that_no_data_name_has_a_thread_that_adds_up() -> None:
    found = MergeRuns().propose(parse_program(PUSHED), view_of(PUSHED))
    (idea,) = [i for i in found if isinstance(i, Idea) and "a thread for each element" in i.title]
    assert idea.arithmetic == ("the order of additions",)
    after = idea.make()
    assert isinstance(after, str), after
    arrays = {
        "a": Array("f4", ("n", "m")),
        "b": Array("f4", ("n", "d")),
        "out": Array("f4", ("m", "d"), "numbers"),
    }
    sizes = {"n": 29, "m": 19, "d": 21}, {"n": 1, "m": 1, "d": 1}
    assert end_of(PUSHED, after, arrays, *sizes, rounds=True) == "same"
