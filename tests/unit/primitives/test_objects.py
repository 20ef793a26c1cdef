"""What objects refer to and change is not taken to stay as it is."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import NotLegal, where_legal
from optiml_magic.kernels.primitives.coarsened import Coarse, coarsen
from optiml_magic.kernels.primitives.effects import Effects
from tests.rewriting.writing import Array

from .alike import kernel_of, unchanged, written

TEXT = """\
struct Sum { float& r; __device__ Sum(float& z) : r(z) {} __device__ void add(float d) { r += d; } };
struct Bare { float& r; __device__ void add(float d) { r += d; } };
struct Taking { float r; __device__ Taking(float& z) { r = z; z += 1.0f; } };
struct Led { const float* r; __device__ Led(const float& z) : r(&z) {} };
struct Derived : Bare { float w; };
struct Outer { Sum in; float w; };
struct Point { float x, y; __device__ Point(float a, float b) : x(a), y(b) {}
    __device__ float dot(const Point& o) const { return x * o.x + y * o.y; } };
struct Line { Point a; float w; };
struct View { const float* p; int n; __device__ float at(int i) const { return p[i]; } };
struct Gain { float w; __device__ Gain(float z) : w(z) {}
    __device__ float operator()(float x) { w += x; return w; } };
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0.0f, t = 2.0f;
    BODY
}
"""


def effects(body: str) -> Effects:
    return Effects(kernel_of(TEXT.replace("BODY", body)))


@pytest.mark.parametrize(
    ("made", "stays"),
    [
        ("Sum r(s);", False),
        ("Sum r{s};", False),
        ("Sum r = Sum(s);", False),
        ("auto r = Sum(s);", False),
        ("Bare r{s};", False),
        ("Bare r = {s};", False),
        ("auto r = Bare{s};", False),
        ("Taking r(s);", False),
        ("Led r(s);", False),
        ("Derived r{{s}, t};", False),
        ("Outer r{Sum(s), t};", False),
        ("Unseen r(s);", False),
        ("Point r(s, t);", True),
        ("Point r = Point(s, t);", True),
        ("Line r{Point(s, t), t};", True),
        ("View r = {a + i, n};", True),
        ("Gain r(s);", True),
        ("float2 r = make_float2(s, t);", True),
        ("double r(s);", True),
    ],
)
def test_what_an_object_is_made_of_may_change(made: str, *, stays: bool) -> None:
    found = effects(f"{made} out[i] = s;")
    assert ("s" in {v.name for v in found.lasting}) == stays
    assert ("s" in {v.name for v in found.lent}) != stays


@pytest.mark.parametrize("made", ["Sum(s).add(a[i]);", "Sum{s}.add(a[i]);", "Bare{s}.add(a[i]);"])
def test_nothing_is_moved_across_an_object_without_a_name(made: str) -> None:
    with pytest.raises(NotLegal, match="without a name"):
        effects(f"{made} out[i] = s;").straightforward()


@pytest.mark.parametrize(
    "body",
    [
        "Sum r(s); r.add(a[i]); out[i] = s + t;",
        "Bare r{s}; r.add(a[i]); out[i] = s + t;",
        "auto r = Sum(s); r.add(a[i]); out[i] = s + t;",
        "Taking r(s); out[i] = r.r + s + a[i];",
        "Gain r(t); out[i] = r(a[i]) + r(s);",
        "auto r = Gain(t); out[i] = r(a[i]) + r(s);",
        "Point r(s, t); out[i] = r.dot(Point(a[i], t));",
    ],
)
def test_items_have_objects_of_their_own(body: str) -> None:
    before = TEXT.replace("BODY", body)
    after = written(where_legal(coarsen, kernel_of(before), Coarse(0, 2, 32)))
    arrays = {"a": Array("f4", ("n",)), "out": Array("f4", ("n",), "zeros")}
    assert unchanged(before, after, arrays, {"n": 203}, {"n": 5}) == "same"
