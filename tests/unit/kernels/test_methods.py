"""What is lifted of a text beside its kernels."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.read import read
from optiml_magic.kernels.unit import lift

METHODS = """\
template <typename T> struct Row {
    T* p;
    __device__ void add(int i) { p[i] += 1; }
    __device__ T& operator[](int i) { return p[i]; }
    __device__ T operator()(int i) const { return p[i]; }
};
__device__ void add(float* p, int i) { p[i] += 1; }
__global__ void k(float* x) { add(x, 3); }
"""


def test_types_of_a_template_may_have_no_names() -> None:
    unit = lift("template <typename> struct Of;\ntemplate <typename = int> void none();\n"
                "__global__ void k(float* x) { x[0] = std::max(x[1], 0.f); }\n")  # fmt: skip
    assert [f.name for f in unit.kernels] == ["k"]


def test_methods_are_functions_that_no_plain_call_means() -> None:
    unit = lift(METHODS)
    methods = [f.name for f in unit.functions if f.method]
    assert methods == ["add", "operator[]", "operator()"]
    assert [f.line for f in unit.called("add", 2)] == [7]
    assert unit.called("add", 1) == ()
    assert {a.array for a in read(unit, unit.kernels[0]).accesses} == {"x"}


PARTICLES = """\
struct Inner {{ float a, b; }};
struct P {{
    float3 pos; {members}
    float age;
    __device__ void step(float dt) {{ {body} }}
    __device__ float far() {{ return sqrtf(pos.x * pos.x); }}
}};
__device__ float at[4];
__device__ void reset(float to) {{ at[1] = to; }}
__device__ void far_(float to) {{ if (to > 0) far_(to - 1); reset(to); }}
__global__ void k(P* p, float* q, float dt) {{
    int i = threadIdx.x;
    P one = p[i];
    one.step({given});
    q[i] = one.far();
    p[i] = one;
}}
"""


@pytest.mark.parametrize("members", ["", "Inner inner;", "int counts[3];", "double d;"])
@pytest.mark.parametrize(
    "body", ["pos.x += dt; age += dt;", "if (age > dt) age = fmaxf(age - dt, pos.y);", "far;"]
)
def test_a_method_of_a_local_of_numbers_changes_that_alone(members: str, body: str) -> None:
    unit = lift(PARTICLES.format(members=members, body=body.replace("far;", ""), given="dt"))
    found = read(unit, unit.kernels[0])
    assert not found.unclear
    assert {(a.array, a.mode) for a in found.accesses} == {
        ("p", "load"), ("p", "store"), ("q", "store"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("members", "body", "unclear"),
    [
        ("float* to;", "*to = dt;", "p"),  # it may lead anywhere
        ("long long to;", "*(float*)to = dt;", "p"),
        ("", "at[0] = dt;", "at"),  # of all threads
        ("", "reset(dt);", "at"),
        ("", "far_(dt);", "at"),
    ],
)
def test_a_method_that_goes_elsewhere_is_seen_to(members: str, body: str, unclear: str) -> None:
    unit = lift(PARTICLES.format(members=members, body=body, given="dt"))
    found = read(unit, unit.kernels[0])
    stored = {a.array for a in found.accesses if a.mode == "store"}
    assert unclear in stored | found.unclear


MATRIX = """\
struct Matrix {
    float* data; int cols; float own[2];
    __device__ float get(int r, int c) const { return data[r * cols + c]; }
    __device__ float operator()(int r) { return get(r, 0) + 1; }
    __device__ void set(int r, int c, float v) { if (c < cols) data[r * cols + c] = v; }
    __device__ void grow() { cols += 1; }
};
__global__ void k(float* x, float* y, int w) {
    Matrix a{x, w}, b{y, w};
    int i = threadIdx.x;
    BODY
}
"""


def test_methods_of_a_local_are_looked_through() -> None:
    unit = lift(MATRIX.replace("BODY", "b.set(i, 2, a.get(i, 1));"))
    found = read(unit, unit.kernels[0])
    assert not found.unclear
    assert [(a.array, a.mode, str(a.index)) for a in found.accesses] == [
        ("x", "load", "1 + threadIdx.x*w"), ("y", "store", "2 + threadIdx.x*w"),
    ]  # fmt: skip
    assert all(a.call is not None for a in found.accesses)


def test_a_method_that_changes_its_object_is_seen_to() -> None:
    unit = lift(MATRIX.replace("BODY", "a.grow(); y[i] = a.get(i, 1);"))
    (load,) = [a for a in read(unit, unit.kernels[0]).accesses if a.mode == "load"]
    assert str(load.index) == "1 + threadIdx.x + threadIdx.x*w"


@pytest.mark.parametrize("body", ["y[i] = a(i);", "Matrix* p = &a; y[i] = p->get(i, 1);"])
def test_methods_that_are_not_looked_through_leave_it_open(body: str) -> None:
    unit = lift(MATRIX.replace("BODY", body))
    assert "x" in read(unit, unit.kernels[0]).unclear


ELEMENTS = """\
struct Body {
    float at, speed;
    __device__ float ahead(float t) const { return at + speed * t; }
    __device__ void go(float t) { at += speed * t; speed *= 0.5f; }
    __device__ void stop() { speed = 0.0f; }
    __device__ void twice() { stop(); }
};
__global__ void k(Body* all, Body* other, float t) {
    int i = threadIdx.x;
    BODY
}
"""


@pytest.mark.parametrize(
    ("body", "stored"),
    [
        ("all[i].go(other[i].ahead(t));", {"2*threadIdx.x", "1 + 2*threadIdx.x"}),
        ("(all + i)->stop();", {"1 + 2*threadIdx.x"}),
        ("Body* own = &all[i + 1]; own->stop();", {"3 + 2*threadIdx.x"}),
        ("Body& own = all[i]; own.stop();", {"1 + 2*threadIdx.x"}),
        ("other[0].at = all[i].ahead(t);", set()),
    ],
)
def test_a_method_stores_to_its_object_in_memory(body: str, stored: set[str]) -> None:
    unit = lift(ELEMENTS.replace("BODY", body))
    found = read(unit, unit.kernels[0])
    assert not found.unclear
    assert {str(a.index) for a in found.of("all") if a.mode != "load"} == stored
    assert all(a.mode == "load" for a in found.of("other") if stored)


def test_an_object_in_memory_is_left_open_where_its_method_is_not_looked_through() -> None:
    unit = lift(ELEMENTS.replace("BODY", "all[i].twice(); other[i].ahead(t);"))
    assert read(unit, unit.kernels[0]).unclear == {"all"}
