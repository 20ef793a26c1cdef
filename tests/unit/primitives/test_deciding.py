"""Whether floats decide what must be exact: by branches, indices, functions, launches, or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from optiml_magic.kernels.expressions import Call, Expr
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.deciding import line_decided
from optiml_magic.kernels.tree import expressions, walk
from optiml_magic.model.facts import ArrayFacts, LaunchFacts
from optiml_magic.proposers.rewrites.fast_functions import FastFunctions
from optiml_magic.proposers.rewrites.float_literals import FloatLiterals
from optiml_magic.proposers.rewrites.read_once import ReadOnce
from tests.ideas import asked

from .alike import kernel_of

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__device__ float scaled(float v) {{ return 2.0f * expf(v); }}
__device__ bool far(float v) {{ return v > 1.5f; }}
__device__ void raise(float v, int& count) {{ if (v > 1.5f) count++; }}
__global__ void k(const float* x, float* out, int* count, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ float s[64];
    if (i >= n) return;
    {}
}}
"""
YES = {
    "a branch": "float v = expf(x[i]); if (v > 1) atomicAdd(count, 1);",
    "a branch the other way": "float v = expf(x[i]); if (v > 1) out[i] = v; else count[i] = 2;",
    "an index": "int b = (int)(expf(x[i]) * 8); atomicAdd(&count[b], 1);",
    "an element of floats": "atomicAdd(&out[(int)(expf(x[i]) * 8)], x[i]);",
    "an element that is stored": "out[(int)(expf(x[i]) * 8)] = 1.0f;",
    "a value": "count[i] = __float2int_rn(expf(x[i]));",
    "a choice": "count[i] = expf(x[i]) > 2 ? 1 : 0;",
    "a local that a branch sets": "int c = 0; float v = expf(x[i]); if (v > 1) c = 1; count[i] = c;",
    "a local that a branch raises": "int c = 0; for (int j = 0; j < n; ++j) if (expf(x[j]) > 1) c++; "
    "count[i] = c;",
    "rounds": "int c = 0; float v = expf(x[i]); while (v > 1) { v *= 0.5f; c += 1; } count[i] = c;",
    "a round that is left": "int c = 0; for (; c < n; ++c) { if (expf(x[c]) > 1) break; } count[i] = c;",
    "an end": "if (expf(x[i]) > 1) return; count[i] = 1;",
    "a function": "count[i] = scaled(x[i]) > 1;",
    "a function of it": "count[i] = far(expf(x[i]));",
    "a reference": "int c = 0; raise(expf(x[i]), c); count[i] = c;",
    "an array of the block": "s[threadIdx.x] = expf(x[i]); __syncthreads(); count[i] = s[0] > 1;",
    "an array of the thread": "float v[2]; v[0] = expf(x[i]); v[1] = 1; count[i] = v[i & 1] > 1;",
    "a pointer": "float v; float* p = &v; *p = expf(x[i]); count[i] = v > 1;",
    "another name": "float v = 0; float& r = v; r = expf(x[i]); count[i] = v > 1;",
    "the least": "int at = 0; float m = 9; for (int j = 0; j < n; ++j) { float d = expf(x[j]); "
    "if (d < m) { m = d; at = j; } } count[i] = at;",
}
NO = {
    "only floats": "out[i] = expf(x[i]);",
    "a float chosen": "float v = expf(x[i]); out[i] = v > 1 ? v : 0;",
    "another branch": "if (x[i] > 1) atomicAdd(count, 1); out[i] = expf(x[i]);",
    "another index": "int b = (int)x[i]; atomicAdd(&count[b], 1); out[b] = expf(x[i]);",
    "a branch of floats": "float v = expf(x[i]); if (v > 1) out[i] = v; count[i] = 1;",
}


def _calls(kernel: Kernel) -> Iterator[Expr]:
    functions = [*kernel.unit.functions]
    for e in (e for f in functions for s in walk(f.body) for e in expressions(s)):
        if isinstance(e, Call) and e.function == "expf":
            yield e


def line(body: str, arrays: Mapping[str, ArrayFacts] | None = None) -> int:
    kernel = kernel_of(TEXT.format(body))
    if arrays is not None:
        known = LaunchFacts("k", 1, (1, 1, 1), (64, 1, 1), arrays, {})
        kernel = replace(kernel, facts=known)
    return line_decided(kernel, _calls(kernel))


@pytest.mark.parametrize("name", YES)
def test_whole_numbers_that_a_float_decides(name: str) -> None:
    assert line(YES[name]) == 9


@pytest.mark.parametrize("name", NO)
def test_whole_numbers_that_no_changed_float_decides(name: str) -> None:
    assert line(NO[name]) == 0


def test_a_tolerance_leaves_room() -> None:
    loose = ArrayFacts("count", "out", "int32", (64,), 256, 256)
    assert line(YES["an index"], {"count": loose}) == 0
    assert line(YES["an index"], {"count": replace(loose, exact=True)}) == 9


def test_a_launch_behind_decides_by_what_it_is_left() -> None:
    text = """\
#pragma optiml scratch near f4[n]
#pragma optiml launch k grid(cdiv(n, 64)) block(64) args(x, near, n)
#pragma optiml launch l grid(cdiv(n, 64)) block(64) args(near, out, count, n)
__global__ void k(const float* x, float* v, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) v[i] = expf(x[i]);
}
__global__ void l(const float* x, float* out, int* count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { out[i] = x[i]; if (x[i] > 1) count[i] = 1; }
}
"""
    for made, told in ((text, 10), (text.replace("if (x[i] > 1) count", "count"), 0)):
        ideas, refused = asked(FastFunctions(), made)
        assert bool(ideas) == (told == 0)
        assert [r.line for r in refused] == [told] * bool(told)


def test_precision_is_kept_where_it_decides() -> None:
    head = "#pragma optiml launch k grid(cdiv(n, 64)) block(64)\n__global__ void k("
    inside = (
        f"{head}const unsigned* s, unsigned* inside, int n) {{\n"
        "    int i = blockIdx.x * 64 + threadIdx.x;\n    double x = (double)s[i] / 4294967296.0;\n"
        "    if (i < n && x * x <= 0.3) atomicAdd(inside, 1);\n}\n"
    )
    ideas, (refused,) = asked(FloatLiterals(), inside)
    assert not ideas
    assert (refused.line, "must be exact" in refused.reason) == (4, True)
    ideas, _ = asked(
        FloatLiterals(), inside.replace("atomicAdd(inside, 1)", "((float*)inside)[i] = x")
    )
    assert ideas
    # A constant that a float holds is the same number in float.
    half = (
        f"{head}const float* x, int* count, int n) {{\n    int i = blockIdx.x * 64 + threadIdx.x;\n"
        "    if (i < n && x[i] * 2.0 > 0.5) count[i] = 1;\n}\n"
    )
    assert asked(FloatLiterals(), half)[0]
    for other in ("* 3.0 > 0.5", "> 0.3", "+ 0.5 > x[0]"):
        ideas, (refused,) = asked(FloatLiterals(), half.replace("* 2.0 > 0.5", other))
        assert not ideas, other


def test_rows_are_read_once_without_reciprocals_where_they_decide() -> None:
    text = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, float* out, int n, int m) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= n) return;
    float s = 0;
    for (int j = 0; j < m; ++j) s += x[j * n + i];
    for (int j = 0; j < m; ++j) out[j * n + i] = x[j * n + i] / s;
}
"""
    for made, some in ((text, True), (text.replace("float* out", "signed char* out"), False)):
        ideas, _ = asked(ReadOnce(), made)
        assert ideas
        assert any("divisions" in word for i in ideas for word in i.arithmetic) == some
