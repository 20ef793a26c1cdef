"""What is lifted of a text beside its kernels."""

from __future__ import annotations

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


def test_methods_are_functions_that_no_plain_call_means() -> None:
    unit = lift(METHODS)
    methods = [f.name for f in unit.functions if f.method]
    assert methods == ["add", "operator[]", "operator()"]
    assert [f.line for f in unit.called("add", 2)] == [7]
    assert unit.called("add", 1) == ()
    assert {a.array for a in read(unit, unit.kernels[0]).accesses} == {"x"}
