"""Short methods of local structures, written out where they are called."""

from __future__ import annotations

import re

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.methods_out import methods_out
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
__constant__ float rate = 2;
__device__ float half(float v) { return v * 0.5f; }
struct Grid {
    float* data; int rows, cols; float own[2];
    __device__ float get(int r, int c) const { return data[r * cols + c]; }
    __device__ float operator()(int r, int c) const { return data[r * cols + c]; }
    __device__ float& at(int r, int c) { return data[r * cols + c]; }
    __device__ void set(int r, int c, float v) { data[r * cols + c] = v; }
    __device__ void grow(int by) { cols += by; }
    __device__ void keep(float v) { own[1] = v; }
    __device__ float& first() { return own[0]; }
    __device__ int size() const { return rows * cols; }
    __device__ float twice(float v) const { return v + v; }
    __device__ float moved(int r) const { r += 1; return data[r]; }
    __device__ float scaled(int r) const { return half(data[r]); }
    __device__ float named(int k) const { return data[k] + rate; }
    __device__ int whole(int r) const { return data[r]; }
    __device__ float tenth(int r) const { return data[r] * 0.1; }
    __device__ bool second(int k) const { return k & 2; }
    __device__ unsigned char low(int k) const { return k + 250; }
    __device__ auto same(int k) const { return k + 1; }
    __device__ void both(int k, float v) { data[k + 1] = (data[k] = v + 1) + v; }
};
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
__global__ void k(float* in, float* out, int w, int h) {
    int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r >= h || c >= w) return;
    Grid a{in, h, w}, b{out, h, w};
    BODY
}
"""
ARRAYS = {"in": Array("f4", ("h", "w")), "out": Array("f4", ("h", "w"), "zeros")}


@pytest.mark.parametrize(
    ("body", "stands"),
    [
        ("b.set(r, c, a.get(r, c) * 2);", "b.data[r * b.cols + c] = a.data[r * a.cols + c] * 2;"),
        ("out[r * w + c] = a(r, c);", "= a.data[r * a.cols + c];"),
        ("b.set(r, c, a.twice(a.get(r, c)));", "= a.data[r * a.cols + c] + a.data[r * a.cols + c]"),
        ("b.set(r, c, c % 3);", "= (float)(c % 3);"),
        ("b.set(r, c, a.get(r - 0, (c + 1) % w));", "a.data[(r - 0) * a.cols + (c + 1) % w]"),
        ("for (int i = 0; i < 3; ++i) b.set(r, c, a.get(r, (c + i) % w));", "(c + i) % w]"),
        ("b.set(r, c, a.size());", "= (float)(a.rows * a.cols);"),
        ("b.set(r, c, a.whole(c) * 0.5f);", "= (int)a.data[c] * 0.5f;"),
        ("b.set(r, c, a.tenth(c) == 0.1f);", "= (float)((float)(a.data[c] * 0.1) == 0.1f);"),
        ("b.set(r, c, a.second(c) + 1);", "= (float)((bool)(c & 2) + 1);"),
        ("b.set(r, c, a.low(c) + 1);", "= (float)((unsigned char)(c + 250) + 1);"),
        ("if (c == 0 && w > 1) b.both(r * w, 3);", "= (b.data[r * w] = (float)3 + 1) + (float)3;"),
    ],
)
def test_a_method_stands_where_it_was_called(body: str, stands: str) -> None:
    before = TEXT.replace("BODY", body)
    found = methods_out(kernel_of(before))
    assert isinstance(found, Kernel), found
    after = written(found)
    assert stands in after
    assert end_of(before, after, ARRAYS, {"w": 33, "h": 17}, {"w": 5, "h": 3}) == "same"


@pytest.mark.parametrize(
    ("body", "stands"),
    [
        ("b.at(r, c) = a.at(r, c) + 1;", "b.data[r * b.cols + c] = a.data[r * a.cols + c] + 1;"),
        ("b.at(r, c) += 2;", "b.data[r * b.cols + c] += 2;"),
        ("b.at(r, (c + 1) % w) -= a.at(r, c);", "-= a.data[r * a.cols + c];"),
    ],
)
def test_a_reference_stands_for_its_place(body: str, stands: str) -> None:
    found = methods_out(kernel_of(TEXT.replace("BODY", body)))
    assert isinstance(found, Kernel), found
    after = written(found)
    assert stands in after
    plain = re.sub(r"([ab])\.at\((r), (c|\(c \+ 1\) % w)\)", r"\1.data[\2 * w + \3]", body)
    before = TEXT.replace("BODY", plain)
    assert end_of(before, after, ARRAYS, {"w": 33, "h": 17}, {"w": 5, "h": 3}) == "same"


@pytest.mark.parametrize(
    "body",
    [
        "a.first() = 2; out[r * w + c] = a.get(r, c);",  # a reference to a member
        "a.keep(1); out[r * w + c] = a.get(r, c);",
        "a.grow(1); b.data[r * w + c] = 1;",  # a member changes, by a method
        "a.cols = w - 0; out[r * w + c] = a.get(r, c);",
        "Grid& o = a; o.cols = w; out[r * w + c] = a.get(r, c);",
        "out[r * w + c] = a.moved(r);",  # two statements
        "out[r * w + c] = a.named(r);",  # it asks for a variable of the file
        "int i = 0; out[r * w + c] = a.get(r, i++);",
        "int rows = 0; { Grid a{out, h, w}; out[r * w + c] = a.get(r, rows); }",  # two are `a`
        "auto half = [](float v) { return v * 2; }; out[r * w + c] = a.scaled(r) + half(1);",
        "out[r * w + c] = a.same(c);",  # of a type that is not said
        "if (c == 0 && w > 1) b.both(r * w, b.data[r * w]);",  # an argument that it changes
        "out[r * w + c] = 1;",
    ],
)
def test_what_is_no_expression_of_its_object_stays(body: str) -> None:
    found = refused(methods_out(kernel_of(TEXT.replace("BODY", body))))
    assert found.startswith("no short method of a local is called")


ELEMENTS = """\
struct Body { float at, speed; int seen;
    __device__ float ahead(float t) const { return at + speed * t; }
    __device__ void stop() { speed = 0; }
    __device__ void put(float x, float v) {
        at = x;  // where it is
        speed += v * at;
        ++seen;
    }
    __device__ void twice(float x) { x *= 2; at = x; }
    __device__ void named(float x) { float y = x; at = y; speed = y; }
};
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const Body* from, Body* to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = i * 0.5f;
    BODY
}
"""
BODIES = {name: Array("at:f4 speed:f4 seen:i4", ("n",)) for name in ("from", "to")}


@pytest.mark.parametrize(
    ("body", "stands"),
    [
        ("to[i].stop();", "to[i].speed = 0;"),
        ("to[n - 1 - i].put(x, 2);", "++to[n - 1 - i].seen;"),
        (
            "if (i % 2) { to[i].put(from[i].ahead(x), x); }",
            "put((float)(from[i].at + from[i].speed * x), x)",
        ),
        ("Body* own = &to[i]; own->put(x, i);", "(*own).at = x;"),
        ("float v = from[i].ahead(3); to[i].put(v, x);", "to[i].speed += x * to[i].at;"),
        ("if (x > 1) to[i].put(x, x);", "if (x > 1)"),
    ],
)
def test_a_method_of_an_element_stands_where_it_was_called(body: str, stands: str) -> None:
    before = ELEMENTS.replace("BODY", body)
    found = methods_out(kernel_of(before))
    if isinstance(found, Kernel):
        after = written(found)
        assert stands in after
        assert end_of(before, after, BODIES, {"n": 70}, {"n": 1}) == "same"
    else:
        assert body.startswith("if (x")  # several statements have no place there


@pytest.mark.parametrize(
    "body",
    [
        "to[i].put(to[i].speed, to[i].at);",
        "float& v = to[i].speed; to[i].put(x, v);",
        "to[to[i].seen].put(x, x);",
        "to[i++].put(x, x);",
        "to[i].twice(x);",
        "to[i].named(x);",
    ],
)
def test_a_method_of_an_element_stays_where_its_parts_may_meet(body: str) -> None:
    assert refused(methods_out(kernel_of(ELEMENTS.replace("BODY", body))))


def test_members_that_methods_alone_may_speak_of_stay_theirs() -> None:
    text = ELEMENTS.replace("BODY", "to[i].stop();")
    for hidden in (
        text.replace("struct Body { float", "class Body { float").replace("seen;", "seen; public:"),
        text.replace("{ float at", "{ private: float at").replace("seen;", "seen; public:", 1),
    ):
        assert refused(methods_out(kernel_of(hidden)))
    shown = text.replace("struct Body { float", "class Body { public: float")
    assert isinstance(methods_out(kernel_of(shown)), Kernel)
