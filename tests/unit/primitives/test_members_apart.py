"""Shared arrays of vectors and structures, as an array for each member."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.members_apart import members_apart
from optiml_magic.kernels.primitives.raised import raised
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
struct Best { float v; int at; };
struct Long { float v[2]; };
struct Made { float v; int at; __device__ Made() {} };
template <typename T> __device__ void swapped(T& a, T& b) { T c = a; a = b; b = c; }
__device__ float summed(float2 a) { return a.x + a.y; }
__device__ int moved(int& t) { return t = 31 - t; }
__device__ float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y - b.y); }
__device__ void operator+=(float2& a, float2 b) { a.x += b.x; a.y += b.y; }
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, float* o, int n) {
    int t = threadIdx.x, i = blockIdx.x * 32 + t;
    const float mine = i < n ? a[i] : 0.0f;
    DECLARES
    BODY
    if (i < n) o[i] = r;
}
"""
ARRAYS = {"a": Array("f4", ("n",)), "o": Array("f4", ("n",), "zeros")}
SIZES, OTHERS = {"n": 77}, {"n": 5}


def text_of(declares: str, body: str) -> str:
    return TEXT.replace("DECLARES", declares).replace("BODY", body)


@pytest.mark.parametrize(
    ("declares", "body"),
    [
        ("__shared__ float2 s[32];",
         "s[t] = make_float2(mine, t); __syncthreads(); float r = s[31 - t].x + s[t / 2].y;"),
        ("__shared__ float2 s[32];",
         "s[t].x = mine; s[t].y = 2.0f; __syncthreads(); float r = summed(s[31 - t]);"),
        ("__shared__ Best s[32]; int s_v = 3;",
         "Best b = {mine, t}; s[t] = b; __syncthreads(); float r = s[31 - t].v + s[t / 2].at + s_v;"),
        ("__shared__ float4 s[4][8], u[8]; __shared__ int w[2];",
         ("s[t / 8][t % 8] = make_float4(mine, t, 2, 3); u[t % 8] = make_float4(1, 2, 3, 4); w[t % 2] = 1; __syncthreads();"
         " float r = s[t % 4][t / 4].w - s[t % 4][t / 4].x + u[t / 4].y + w[0];")),
        ("__shared__ float2 s[32];",  # a value that is made of the element it replaces
         "s[t] = make_float2(mine, 1.0f); s[t] = make_float2(s[t].y, s[t].x); float r = s[t].x - 2.0f * s[t].y;"),
        ("__shared__ float2 s[32];",
         ("s[t] = make_float2(mine, 1.0f); __syncthreads(); for (int h = 16; h > 0; h >>= 1) {"
         " if (t < h) s[t] = s[t + h]; __syncthreads(); } float r = s[0].x + s[0].y;")),
        ("__shared__ float2 s[32], q[32];",
         "s[t] = make_float2(mine, 1.0f); q[31 - t] = s[t]; __syncthreads(); const float2 e = q[t], f = s[t]; float r = e.x * 3 - f.y;"),
        ("__shared__ float2 s[32];",  # its own operator stands for what it says
         "s[t] = make_float2(mine, 1.0f); __syncthreads(); float2 e = s[t] + s[31 - t]; float r = e.x + e.y;"),
        ("__shared__ float2 s[32];",  # where it is stored is known behind the value
         "s[t] = make_float2(0.0f, 0.0f); __syncthreads(); s[t] = make_float2(moved(t), mine); float r = t + s[t].x + s[t].y;"),
        ("__shared__ float2 s[32];",
         "float2 e = make_float2(mine, 1.0f); s[t] = e; e = s[t]; e.x += 1.0f; float r = e.x + s[t].x;"),
        ("__shared__ float2 s[32];",  # a copy stays what it was
         "s[t] = make_float2(mine, 1.0f); const float2 e = s[t]; s[t].x = 5.0f; float r = e.x + s[t].x;"),
        ("__shared__ float2 s[32];",
         "s[t] = make_float2(mine, 1.0f); float2 e = s[t]; e.x = 5.0f; float r = e.x + s[t].x;"),
        ("__shared__ float2 s[32];",
         "s[t] = make_float2(mine, 1.0f); s[t].x += 2.0f; s[t].y++; float r = s[t].x + s[t].y;"),
        ("__shared__ float2 s[32];",  # a copy that is changed by another name
         "s[t] = make_float2(mine, 1.0f); Best e = {s[t].x, 2}; float2 f = s[t]; float& p = f.x; p = 5.0f; float r = f.x + e.v;"),
        ("__shared__ float2 s[32]; float r = 0.0f;",
         "s[t] = make_float2(mine, 1.0f); __syncthreads(); for (float2 e = s[31 - t]; r < e.y; r += 1.0f) r += e.x * e.x;"),
        ("__shared__ float2 s[32]; float r = 0.0f;",
         "s[t] = make_float2(mine, 1.0f); __syncthreads(); if (float2 e = s[31 - t]; e.x > 0.0f) r = e.y;"),
        ("__shared__ double2 s[32];",
         "s[t] = make_double2(mine, 1.0); float r = (float)(s[t].x + s[t].y);"),
    ],
)  # fmt: skip
def test_each_member_has_an_array(declares: str, body: str) -> None:
    text = text_of(declares, body)
    after = written(members_apart(kernel_of(text)))
    assert "float2 s[" not in after
    assert "Best s[" not in after
    assert end_of(text, after, ARRAYS, SIZES, OTHERS) == "same"


@pytest.mark.parametrize(
    ("declares", "body"),
    [
        ("__shared__ float s[32];", "s[t] = mine; float r = s[t];"),
        ("float2 s[32];", "s[t] = make_float2(mine, 1); float r = s[t].x;"),
        ("__shared__ float2 s[32];", "float2* p = s; p[t] = make_float2(mine, 1); float r = p[t].x;"),
        ("__shared__ float2 s[32];", "float2* p = &s[t]; *p = make_float2(mine, 1); float r = s[t].x;"),
        ("__shared__ float2 s[32];", "float2& p = s[t]; p = make_float2(mine, 1); float r = s[t].x;"),
        ("__shared__ float2 s[32];", "float& p = s[t].x; p = mine; float r = s[t].x;"),
        ("__shared__ float2 s[32];", "s[t].x = 0; atomicAdd(&s[t].x, mine); float r = s[t].x;"),
        ("__shared__ float2 s[32];", "*s = make_float2(1, 1); float r = s[0].x;"),
        ("__shared__ float2 s[32];", "s[t] = make_float2(mine, 1); float r = ((float*)s)[2 * t];"),
        ("__shared__ float2 s[32];", "s[t] = make_float2(mine, 1); swapped(s[t], s[t]); float r = s[t].x;"),
        ("__shared__ float2 s[32];", "s[t] = make_float2(mine, 1); s[t] += s[t]; float r = s[t].x;"),
        ("__shared__ float2 s[32];", "float2 e = s[t] = make_float2(mine, 1); float r = e.x;"),
        ("__shared__ float2 s[33]; int j = t;", "s[j++] = make_float2(mine, 1); float r = s[t].x;"),
        ("__shared__ float2 s[32];", "s[moved(t)] = make_float2(mine, 1); float r = s[t].x;"),
        ("__shared__ Best s[32];", "s[t].at = t; s[s[t].at].v = mine; float r = s[t].v;"),
        ("__shared__ Long s[32];", "s[t].v[0] = mine; float r = s[t].v[0];"),
        ("__shared__ Made s[32];", "s[t].v = mine; float r = s[t].v;"),
        ("__shared__ volatile float2 s[32];", "s[t].x = mine; float r = s[t].x;"),
        ("__shared__ float2 s[32];", "s[t].x = mine; auto f = [&](int j) { return s[j].x; }; float r = f(t);"),
        ("extern __shared__ float2 s[];", "s[t].x = mine; float r = s[t].x;"),
        ("__shared__ float2 s[32]; float r = 0.0f;", "s[t].x = mine; __syncthreads(); for (auto& e : s) r += e.x;"),
        ("__shared__ float2 s[32];", "s[t] = make_float2(mine, 1); auto [p, q] = s[t]; float r = p + q;"),
    ],
)  # fmt: skip
def test_others_stay(declares: str, body: str) -> None:
    assert refused(members_apart(kernel_of(text_of(declares, body))))


ROW = """\
struct Best { float v; int at; };
#pragma optiml launch k grid(n) block(64)
__global__ void k(const float* a, float* o, int n, int d) {
    __shared__ KIND s[64];
    const float* row = a + blockIdx.x * d;
    BEGIN
    for (int j = threadIdx.x; j < d; j += 64) ROUND
    s[threadIdx.x] = b;
    __syncthreads();
    for (int h = 32; h > 0; h >>= 1) {
        if (threadIdx.x < h) { TREE }
        __syncthreads();
    }
    if (threadIdx.x == 0) o[blockIdx.x] = END;
}
"""


@pytest.mark.parametrize(
    ("kind", "begin", "step", "tree", "end"),
    [
        ("float2", "float b_x = 0, b_y = 0;", "{ b_x += row[j]; b_y += row[j] * row[j]; }",
         "float2 c = s[threadIdx.x], e = s[threadIdx.x + h]; s[threadIdx.x] = make_float2(c.x + e.x, c.y + e.y);",
         "s[0].x - s[0].y"),
        ("Best", "float b_v = -1e30f; int b_at = 0;", "if (row[j] > b_v) { b_v = row[j]; b_at = j; }",
         ("if (s[threadIdx.x + h].v > s[threadIdx.x].v || (s[threadIdx.x + h].v == s[threadIdx.x].v &&"
         " s[threadIdx.x + h].at < s[threadIdx.x].at)) s[threadIdx.x] = s[threadIdx.x + h];"),
         "s[0].v + s[0].at"),
    ],
)  # fmt: skip
def test_a_block_that_combines_two_numbers_at_once_is_raised(
    kind: str, begin: str, step: str, tree: str, end: str
) -> None:
    text = ROW.replace("KIND", kind).replace("BEGIN", begin).replace("ROUND", step)
    text = text.replace("TREE", tree).replace("END", end)
    made = "make_float2(b_x, b_y)" if kind == "float2" else "Best{b_v, b_at}"
    text = text.replace("s[threadIdx.x] = b;", f"s[threadIdx.x] = {made};")
    found = raised(kernel_of(text))
    assert isinstance(found, Kernel), found
    assert "__shared__" not in found.program.text
    arrays = {"a": Array("f4", ("n", "d")), "o": Array("f4", ("n",), "zeros")}
    rounds = kind == "float2"
    end_now = end_of(
        text, found.program.text, arrays, {"n": 5, "d": 301}, {"n": 3, "d": 7}, rounds=rounds
    )
    assert end_now == "same"
