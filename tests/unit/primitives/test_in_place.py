"""Functions in which a block's threads wait, where a kernel calls them: the same, or refused."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Refused
from optiml_magic.kernels.primitives.in_place import in_place
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TREE = "for (int d = 32; d > 0; d >>= 1) { if (t < d) part[t] += part[t + d]; __syncthreads(); }"
ADDING = f"""\
__device__ void add_up(float v, float* target) {{
    __shared__ float part[64];
    int t = threadIdx.x;
    part[t] = v;
    __syncthreads();
    {TREE}
    if (t == 0) atomicAdd(target, part[0]);
}}
"""
KERNEL = """\
#pragma optiml init(o) = 0
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    %s
}
"""
LINE = {"a": Array("f4", ("n",)), "o": Array("f4", ("4",), "zeros")}
#: How a kernel calls it, beside what the function itself is.
CALLS = {
    "a local": (ADDING, "float x = i < n ? a[i] : 0.0f; add_up(x, o);"),
    "an expression": (ADDING, "add_up(i < n ? a[i] * 2 : 0.0f, &o[1]);"),
    "names that meet": (ADDING, "float t = i < n ? a[i] : 0.0f; float part = 2.0f; add_up(t * part, o);"),
    "another type": (ADDING, "double v = i < n ? a[i] : 0.0; add_up(v, o);"),
    "a whole number": (ADDING, "add_up(i < n, o);"),
    "a moved copy": (
        ADDING.replace("part[t] = v;", "v *= 2.0f; target += 1; part[t] = v;"),
        "float v = i < n ? a[i] : 0.0f; add_up(v, o); if (i < n && v > 1e30f) o[3] = v;",
    ),
    "a member of a copy": (
        ADDING.replace("float v,", "float2 v,").replace("part[t] = v;", "part[t] = v.x; v.x = 2.0f;"),
        "float2 v = make_float2(i < n ? a[i] : 0.0f, 1.0f); add_up(v, o); if (v.x == 2.0f) o[3] = 1.0f;",
    ),
    "an element of a copy": (
        "struct Two { float v[2]; };\n"
        + ADDING.replace("float v,", "Two v,").replace("part[t] = v;", "part[t] = v.v[0]; v.v[0] = 2.0f;"),
        "Two v{{i < n ? a[i] : 0.0f, 1.0f}}; add_up(v, o); if (v.v[0] == 2.0f) o[3] = 1.0f;",
    ),
    "the size of a pointer": (
        ADDING.replace("float* target", "float* own, float* target").replace("= v;", "= v + sizeof(own);"),
        "__shared__ float own[64]; add_up(i < n ? a[i] : 0.0f, own, o);",
    ),
    "a reference": (
        ADDING.replace("float v,", "float& v,").replace("    if (t == 0)", "    v = 0.0f;\n    if (t == 0)"),
        "float x = i < n ? a[i] : 0.0f; add_up(x, o); if (x != 0.0f) o[2] = 1.0f;",
    ),
    "a local that a pointer leads to": (
        ADDING.replace("float v,", "float* x, float v,").replace("part[t] = v;", "*x += 1.0f; part[t] = *x * v;"),
        "float x = i < n ? a[i] : 0.0f; float* p = &x; add_up(p, x, o);",
    ),
    "shared memory that is given": (
        ADDING.replace("    __shared__ float part[64];\n", "").replace("float* target", "float* part, float* target"),
        "__shared__ float own[64]; float x = i < n ? a[i] : 0.0f; add_up(x, own, o); __syncthreads(); add_up(x, own, o + 1);",
    ),
    "twice": (ADDING, "float x = i < n ? a[i] : 0.0f; add_up(x, o); __syncthreads(); add_up(x * x, o + 1);"),
    "twice, names that meet": (
        ADDING, "float part = i < n ? a[i] : 0.0f; int t = 2; add_up(part, o); __syncthreads(); add_up(part * t, o + t);",
    ),
    "what the first call leaves": (
        ADDING.replace("part[64];", "part[64], all;").replace("= v;", "= anew ? v : v * all;").replace("float v,", "bool anew, float v,")
        .replace("    if (t == 0)", "    if (t == 0) all = part[0] > 0.0f ? 2.0f : 3.0f;\n    if (t == 0)"),
        "float x = i < n ? a[i] : 0.0f; add_up(true, x, o); __syncthreads(); add_up(false, x, o + 1); __syncthreads(); add_up(false, x, o + 2);",
    ),
    "extents of its own": (
        ADDING.replace("    __shared__ float part[64];", "    const int SIZE = 64;\n    __shared__ float part[SIZE];"),
        "add_up(i < n ? a[i] : 0.0f, o); __syncthreads(); add_up(1.0f, o + 1);",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_it_stands_where_it_is_called(name: str) -> None:
    function, call = CALLS[name]
    text = function + KERNEL % call
    after = written(in_place(kernel_of(text)))
    body = after[after.index("__global__") :]
    assert "add_up(" not in body
    assert "__syncthreads" in body
    assert end_of(text, after, LINE, {"n": 517}, {"n": 3}, rounds=True) == "same"


#: Functions whose bodies would be something else among the kernel's statements.
OTHERS = {
    "in a branch as well": (ADDING, "add_up(1.0f, o); __syncthreads(); if (n > 2) add_up(2.0f, o);"),
    "by another function as well": (f"{ADDING}__device__ void both(float* o) {{ add_up(1.0f, o); }}\n", "add_up(1.0f, o); __syncthreads(); both(o);"),
    "shared in a branch": (
        ADDING.replace("    __shared__", "    {\n    __shared__").replace("part[0]);\n}", "part[0]);\n    }\n}"),
        "add_up(1.0f, o); __syncthreads(); add_up(2.0f, o);",
    ),
    "in rounds": (ADDING, "for (int k = 0; k < 2; ++k) { add_up(1.0f, o); __syncthreads(); }"),
    "left early": (ADDING.replace("    if (t == 0)", "    if (t > 0) return;\n    if (t == 0)"), "add_up(1.0f, o);"),
    "a result": (ADDING.replace("void", "float").replace("part[0]);\n", "part[0]);\n    return part[0];\n"), "add_up(1.0f, o);"),
    "a template": (f"template <typename T>\n{ADDING}", "add_up(1.0f, o);"),
    "a name of the kernel": (ADDING.replace("[64]", "[SIZE]").replace("__device__", "constexpr int SIZE = 64;\n__device__"), "int SIZE = 3; add_up(SIZE, o);"),
    "no barrier": ("__device__ void add_up(float v, float* target) { atomicAdd(target, v); }\n", "add_up(1.0f, o);"),
    "a reference to an element": (ADDING.replace("float v", "float& v"), "add_up(o[3], o);"),
    "in a branch": (ADDING, "if (n > 2) add_up(1.0f, o);"),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_others_stay(name: str) -> None:
    function, call = OTHERS[name]
    found = in_place(kernel_of(function + KERNEL % call))
    assert isinstance(found, Refused), found.program.text
    assert refused(found)
