"""Blocks that find an extreme and its place as one thread: the same results, what is refused."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.raised import raised
from tests.present import drawn
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

HEAD = """\
#pragma optiml launch k grid(h) block(64)
__global__ void k(const float* a, float* o, int* p, int h, int w) {
    __shared__ float v[64];
    __shared__ int at[64];
    int t = threadIdx.x, row = blockIdx.x;
"""
LOOP = """\
    float best = -INFINITY;
    int place = -1;
    for (int i = t; i < w; i += 64) {
        if (a[row * w + i] > best) { best = a[row * w + i]; place = i; }
    }
"""
STORED = HEAD + LOOP + "    v[t] = best; at[t] = place;\n    __syncthreads();\n"
END = "    __syncthreads();\n    if (t == 0) { o[row] = v[0]; p[row] = at[0]; }\n}\n"
TAKE = "{ v[t] = v[t + d]; at[t] = at[t + d]; }"
FIRST = "v[t + d] > v[t] || (v[t + d] == v[t] && at[t + d] < at[t])"
HALVES = "for (int d = 32; d > 0; d >>= 1) { if (t < d) { BRANCH } __syncthreads(); }"


def halves(branch: str) -> str:
    return HALVES.replace("BRANCH", branch)


#: How a block combines ``v`` and ``at``.
TREES = {
    "halves": halves(f"if ({FIRST}) {TAKE}"),
    "turned round": halves("if (v[t] < v[t + d] || (v[t] == v[t + d] && at[t] > at[t + d])) "
                           "{ at[t] = at[t + d]; v[t] = v[t + d]; }"),
    "one test": f"for (int d = 32; d > 0; d /= 2) {{ if (t < d && ({FIRST})) {TAKE} __syncthreads(); }}",
    "in locals": halves("float x = v[t], y = v[t + d]; int j = at[t + d];"
                        " if (y > x || (y == x && j < at[t])) { v[t] = y; at[t] = j; }"),
    "by one thread": "if (t == 0) { float x = v[0]; int j = at[0]; for (int d = 1; d < 64; ++d)"
                     " if (v[d] > x || (v[d] == x && at[d] < j)) { x = v[d]; j = at[d]; }"
                     " v[0] = x; at[0] = j; }",
    "lanes": "for (int d = 16; d > 0; d >>= 1) { float y = __shfl_down_sync(~0u, best, d);"
             " int j = __shfl_down_sync(~0u, place, d);"
             " if (y > best || (y == best && j < place)) { best = y; place = j; } }"
             " __syncthreads(); if (t % 32 == 0) { v[t / 32] = best; at[t / 32] = place; } __syncthreads();"
             " if (t < 32) { best = t < 2 ? v[t] : -INFINITY; place = t < 2 ? at[t] : -1;"
             " for (int d = 16; d > 0; d >>= 1) { float y = __shfl_down_sync(~0u, best, d);"
             " int j = __shfl_down_sync(~0u, place, d);"
             " if (y > best || (y == best && j < place)) { best = y; place = j; } }"
             " if (t == 0) { v[0] = best; at[0] = place; } }",
}  # fmt: skip
ARRAYS = {"a": Array("f4", ("h", "w")), "o": Array("f4", ("h",), "zeros"), "p": Array("i4", ("h",), "zeros")}  # fmt: skip
SIZES, OTHERS = {"h": 5, "w": 150}, {"h": 2, "w": 7}


@pytest.mark.parametrize("name", TREES)
def test_every_tree_finds_one_place(name: str) -> None:
    text = f"{STORED}    {TREES[name]}\n{END}"
    made = raised(kernel_of(text))
    assert isinstance(made, Kernel)
    assert not made.arithmetic
    after = written(made)
    body = after.partition("{")[2]
    assert "__shared__" not in body
    assert body.count("for (") == 1
    if drawn(name):
        assert end_of(text, after, ARRAYS, SIZES, OTHERS) == "same"


#: Trees that do not ask which of two equals is the first.
ANY = {
    "halves": halves(f"if (v[t + d] > v[t]) {TAKE}"),
    "one test": f"for (int d = 32; d > 0; d /= 2) {{ if (t < d && v[t + d] > v[t]) {TAKE} __syncthreads(); }}",
    "by one thread": "if (t == 0) for (int d = 1; d < 64; ++d) if (v[d] > v[0]) { v[0] = v[d]; at[0] = at[d]; }",
}  # fmt: skip


@pytest.mark.parametrize("name", ANY)
def test_a_tree_that_takes_any_of_equals_finds_the_first(name: str) -> None:
    text = f"{STORED}    {ANY[name]}\n{END}"
    made = raised(kernel_of(text))
    assert isinstance(made, Kernel)
    assert made.arithmetic == ("which of several equal extremes is kept",)
    after = written(made)
    assert "__shared__" not in after
    apart = {**ARRAYS, "a": Array("f4", ("h", "w"), "order")}
    assert end_of(text, after, apart, SIZES, OTHERS) == "same"


#: One element a thread, a least one with another value beside its place, and a wide counter.
KERNELS = {
    "an element a thread": HEAD + """\
    int i = row * 64 + t, n = h * w;
    v[t] = i < n ? a[i] : -INFINITY; at[t] = i;
    __syncthreads();
""" + halves(f"if ({FIRST}) {TAKE}") + END,
    "an element a thread, in their order": HEAD + """\
    int i = row * 64 + t, n = h * w;
    v[t] = i < n ? a[i] : -INFINITY; at[t] = i;
    __syncthreads();
    for (int d = 1; d < 64; d *= 2) { if (t % (2 * d) == 0 && v[t] < v[t + d]) """ + TAKE + """ __syncthreads(); }
""" + END,
    "a least one and more": HEAD.replace("__shared__ int at[64];", "__shared__ int at[64]; __shared__ float z[64];") + """\
    float best = 1e30f, with = 0.0f;
    int place = 0;
    for (int i = t; i < w; i += blockDim.x) {
        float x = a[row * w + i];
        if (x < best) { best = x; place = i; with = x * x; }
    }
    v[t] = best; at[t] = place; z[t] = with;
    __syncthreads();
""" + halves("if (v[t + d] < v[t] || (v[t + d] == v[t] && at[t + d] < at[t])) "
             "{ v[t] = v[t + d]; at[t] = at[t + d]; z[t] = z[t + d]; }") + END.replace("v[0]", "z[0]"),
    "whole numbers": (STORED + halves(f"if ({FIRST}) {TAKE}") + END).replace("float", "int").replace("-INFINITY", "-100000"),
    "a counter of 64 bits": (STORED + halves(f"if ({FIRST}) {TAKE}") + END).replace("int place", "long long place")
        .replace("__shared__ int at", "__shared__ long long at").replace("int i = t", "long long i = t"),
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_combined_is_the_same(name: str) -> None:
    text, whole = KERNELS[name], name == "whole numbers"
    arrays = {k: Array("i4", v.shape, v.content) for k, v in ARRAYS.items()} if whole else ARRAYS
    after = written(raised(kernel_of(text)))
    assert "__shared__" not in after
    assert end_of(text, after, arrays, SIZES, OTHERS) == "same"


#: Trees of which the place does not belong to the extreme, or is another one of several equals.
WRONG = {
    "stops early": HALVES.replace("d > 0", "d > 1").replace("BRANCH", f"if ({FIRST}) {TAKE}"),
    "another place": halves("if (v[t + d] > v[t]) { v[t] = v[t + d]; at[t] = at[t]; }"),
    "no place": halves("if (v[t + d] > v[t]) { v[t] = v[t + d]; }"),
    "the place of another": halves("if (v[t + d] > v[t]) { v[t] = v[t + d]; at[t] = at[d]; }"),
    "the lesser one": halves(f"if (v[t + d] < v[t]) {TAKE}"),
    "the last of equals": halves(f"if ({FIRST.replace('at[t + d] <', 'at[t + d] >')}) {TAKE}"),
    "equals as well": halves(f"if (v[t + d] >= v[t]) {TAKE}"),
    "a sum of places": halves("if (v[t + d] > v[t]) { v[t] = v[t + d]; at[t] += at[t + d]; }"),
    "an extreme apart": halves("v[t] = fmaxf(v[t], v[t + d]);")
        + " if (t == 0 && v[1] > v[0]) { v[0] = v[1]; at[0] = at[1]; }",
    "what is beyond all": TREES["lanes"].replace(": -INFINITY", ": 3.0f"),
    "a place where none is": TREES["lanes"].replace("at[t] : -1", "at[t] : -2"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_place_is_refused(name: str) -> None:
    refused(raised(kernel_of(f"{STORED}    {WRONG[name]}\n{END}")))


#: Loops of which the threads do not know what the rounds of one would.
LOOPS = {
    "the last of equals": LOOP.replace("> best", ">= best"),
    "begins apart": LOOP.replace("place = -1", "place = t"),
    "a place that falls": LOOP.replace("place = i", "place = w - i"),
    "a loaded place": LOOP.replace("place = i", "place = (int)a[i]"),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_that_keeps_another_is_refused(name: str) -> None:
    tree = halves(f"if ({FIRST}) {TAKE}")
    text = STORED.replace(LOOP, LOOPS[name])
    assert text != STORED
    refused(raised(kernel_of(f"{text}    {tree}\n{END}")))
