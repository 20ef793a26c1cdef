"""Threads' own elements of shared memory in registers."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.own_registers import own_registers
from optiml_magic.proposers.rewrites.unstage import Unstage
from tests.ideas import asked

from .running import same
from .shapes import applied, kernel, refused

PLANE = """\
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 8)) block(16, 8)
__global__ void k(const float* a, float* out, int w, int h, int steps) {
    __shared__ float s[8][17], next[8][16], sums[8][16];
    int tx = threadIdx.x, ty = threadIdx.y;
    int x = blockIdx.x * 16 + tx, y = blockIdx.y * 8 + ty;
    s[ty][tx] = x < w && y < h ? a[y * w + x] : 0.25f;
    sums[ty][tx] = 0.0f;
    __syncthreads();
    for (int i = 0; i < steps; ++i) {
        if (tx > 0 && ty < 7) next[ty][tx] = s[ty][tx] + s[ty + 1][tx - 1];
        else next[ty][tx] = s[ty][tx] * 0.5f;
        __syncthreads();
        s[ty][tx] = next[ty][tx];
        s[ty][tx] += 0.5f * s[ty][tx];
        sums[ty][tx] += s[ty][tx];
        __syncthreads();
    }
    if (x < w && y < h) out[y * w + x] = s[0][tx] + sums[ty][tx];
}
"""
SHAPES, SIZES = {"a": ("h", "w"), "out": ("h", "w")}, {"w": 21, "h": 19, "steps": 3}
LINE = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* out, int n) {
    __shared__ float s[130];
    int t = threadIdx.x;
    %s
}
"""


def test_what_others_ask_for_is_stored_as_well() -> None:
    made = own_registers(kernel(PLANE))
    shown = applied(made).program.text
    assert "__shared__ float s[8][17];\n    float s_own;\n    float next_own;" in shown
    assert "next_own = s_own + s[ty + 1][tx - 1];" in shown
    assert "s_own += 0.5f * s_own;\n            s[ty][tx] = s_own;" in shown
    assert "sums_own += s_own;" in shown
    assert "= s[0][tx] + sums_own;" in shown
    same(PLANE, made, SHAPES, SIZES)


def test_it_is_an_idea_whether_or_not_the_tile_may_go() -> None:
    ideas, _ = asked(Unstage(), PLANE)
    assert [i.title for i in ideas] == [
        "hold in registers what each thread asks for of its own in s, next, sums"
    ]


ALIKE = "s[%s] = a[t]; __syncthreads(); out[t] = s[%s];"
NOT = {
    "of two threads": ALIKE % ("t / 2", "t / 2"),
    "of a round": "for (int i = 0; i < 2; ++i) { s[t + i] = a[t]; out[t] = s[t + i]; __syncthreads(); }",
    "stored for others": "s[t] = a[t]; s[t + 64] = 0.0f; out[t] = s[t];",
    "never loaded": "s[t] = a[t]; __syncthreads(); out[t] = s[63 - t];",
    "its address": "s[t] = a[t]; float* p = s; out[t] = s[t] + p[0];",
    "added to by all": "s[t] = 0.0f; atomicAdd(&s[t], a[t]); out[t] = s[t];",
    "part of something": "float x = s[t] = a[t]; __syncthreads(); out[t] = s[t] + s[63 - t] + x;",
    "by a local that moves": "int k = t; s[k] = a[t]; k = 63 - k; out[t] = s[k];",
}


@pytest.mark.parametrize("case", NOT)
def test_what_is_not_a_threads_own_stays(case: str) -> None:
    reason, _ = refused(own_registers(kernel(LINE % NOT[case])))
    assert reason


@pytest.mark.parametrize("at", ["2 * t", "63 - t", "t + 3", "t % 64"])
def test_an_element_of_its_own_may_be_anywhere(at: str) -> None:
    text = LINE % (ALIKE % (at, at)).replace("a[t]", "a[t] + blockIdx.x")
    shown = applied(own_registers(kernel(text))).program.text
    assert "__shared__" not in shown
    assert "s_own = a[t] + blockIdx.x;" in shown
