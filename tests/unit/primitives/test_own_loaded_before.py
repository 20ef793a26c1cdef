"""Elements of a thread's own, in front of the rounds that ask for them."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.loaded_before import own_loaded_before

from .running import same
from .shapes import applied, kernel, refused

PAIRS = """\
struct Body { float x, y, z, m; };
__device__ float near(const Body& a, const Body& b) { float d = a.x - b.x; return d * d + a.y * b.y + b.m; }
__device__ float given(Body a, Body b) { float d = a.x - b.x; return d * d + a.y * b.y + b.m; }
__device__ float some(const Body& a, const Body& b) { return b.x > 0.5f ? b.y : a.m; }
__device__ float beside(const Body& a, const Body& b) { return (&a)[1].x + b.x + a.x; }
__device__ float through(const Body& a, const Body& b) { return near(a, b) + a.z; }
__device__ float mine(Body& a, const Body& b) { return a.x + b.x; }
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(%s Body* p, const float* v, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, at = i;
    if (i >= n) return;
    float s = 0.0f;
    for (int j = 0; j < m; j++) { %s }
    out[i] = s;
}
"""
SHAPES = {"p": ("n + m", "4"), "v": ("n + m",), "out": ("n",)}

KEPT = {
    "by reference": ("s += near(p[i], p[j]);", "0 < m ? p[i] : Body{};"),
    "by value": ("s += given(p[i], p[j]);", "0 < m ? p[i] : Body{};"),
    "members": ("s += p[i].x * p[j].y + p[i].m;", "0 < m ? p[i] : Body{};"),
    "as a local": ("Body a = p[i]; a.x += 1.0f; s += a.x * p[j].y;", "0 < m ? p[i] : Body{};"),
    "by reference and by value": ("s += near(p[i], p[j]) + given(p[i], p[j]);", "p[i]"),
    "at times as well": ("s += p[i].x; if (p[j].x > 0.5f) s += near(p[i], p[j]);", "p[i]"),
    "a number": ("s += v[i] * p[j].x;", "0 < m ? v[i] : float(0);"),
    "both": ("s += v[i] * near(p[i], p[j]);", "v[i]"),
    "in a sum": ("s += near(p[i + 1], p[j]);", "p[i + 1]"),
    "in a loop within": ("for (int l = 0; l < 3; ++l) s += near(p[i], p[j]) * l;", "0 < m ? p[i]"),
    "of each round": ("for (int l = 0; l < 3; ++l) s += near(p[i + j], p[l]);", "const Body p_here = p[i + j];"),
    "through another": ("s += through(p[i], p[j]);", "p[i]"),
}  # fmt: skip


@pytest.mark.parametrize("case", KEPT)
def test_it_is_loaded_before_the_rounds(case: str) -> None:
    body, why = KEPT[case]
    text = PAIRS % ("const", body)
    made = own_loaded_before(kernel(text))
    shown = applied(made).program.text.partition("float s = 0.0f;")[2]
    assert why in shown
    assert shown.count("p[i]") <= 1
    for m in (5, 0):
        same(text, made, SHAPES, {"n": 70, "m": m})


STAYS = {
    "perhaps not there": "if (v[j] > 0.5f) s += near(p[i], p[j]);",
    "on a side": "s += v[j] > 0.5f ? p[i].x : 0.0f;",
    "by and": "s += v[j] > 0.5f && p[i].x > 0.0f;",
    "at times by a function": "s += some(p[i], p[j]);",
    "what lies beside it": "s += beside(p[i], p[j]);",
    "its address": "const Body* q = &p[i]; s += q->x;",
    "a reference": "const Body& a = p[i]; s += a.x;",
    "a pointer": "s += (p + i)->x;",
    "of what moves": "s += p[at].x; at += 1;",
    "by what is loaded": "s += p[(int)v[i]].x;",
    "left early": "if (v[j] > 2.0f) break; if (j > 1) s += p[i].x;",
    "same for all": "s += p[0].x * v[j];",
    "of each round alone": "s += p[i + j].x;",
    "hidden": "const float* p = v; s += p[i + j];",
}  # fmt: skip


@pytest.mark.parametrize("body", STAYS.values(), ids=STAYS)
def test_what_moves_or_may_not_be_there_stays(body: str) -> None:
    made = own_loaded_before(kernel(PAIRS % ("const", body)))
    if "v[i]" in body:
        assert "Body " not in applied(made).program.text.partition("float s = 0.0f;")[2]
        return
    reason, _ = refused(made)
    assert reason.startswith("no round loads an element of the thread's own")


WRITTEN = {
    "stored": "s += p[i].x; p[i].x = s;",
    "added to": "s += p[i].x; atomicAdd(&p[j].y, 1.0f);",
    "given to be changed": "s += mine(p[i], p[j]);",
    "volatile": "s += p[i].x;",
}  # fmt: skip


@pytest.mark.parametrize("case", WRITTEN)
def test_what_may_change_stays(case: str) -> None:
    text = PAIRS % ("volatile" if case == "volatile" else "", WRITTEN[case])
    reason, _ = refused(own_loaded_before(kernel(text)))
    assert reason.startswith("no round loads an element of the thread's own")


def test_threads_that_wait_are_left_alone() -> None:
    text = PAIRS % ("const", "s += p[i].x; __syncthreads();")
    reason, _ = refused(own_loaded_before(kernel(text)))
    assert reason == "its threads wait for each other"


def test_a_long_structure_stays() -> None:
    text = (PAIRS % ("const", "s += p[i].x;")).replace(
        "float x, y, z, m;", "float x, y, z, m, more[16];"
    )
    reason, _ = refused(own_loaded_before(kernel(text)))
    assert reason == "a thread has no room for what its rounds load"


def test_a_structure_that_is_made_by_a_function_of_its_own_stays() -> None:
    made = "float x, y, z, m; __device__ Body(float v) : x(v), y(v), z(v), m(v) {}"
    text = (PAIRS % ("const", "s += p[i].x;")).replace("float x, y, z, m;", made)
    reason, _ = refused(own_loaded_before(kernel(text)))
    assert reason.startswith("no round loads an element of the thread's own")
