"""Functions that update by compare-and-swap, which are atomic operations; and what only looks so."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, in_turn
from optiml_magic.kernels.primitives.expanded import all_expanded
from optiml_magic.kernels.primitives.gathered import gathered
from optiml_magic.kernels.primitives.raised import raised
from optiml_magic.kernels.swapping import swapping
from optiml_magic.kernels.unit import lift_program
from optiml_magic.source.program import parse_program
from tests.present import drawn
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, written

GREATEST = """\
__device__ float update(float* address, float value) {
    int* bits = (int*)address;
    int old = *bits, assumed;
    do {
        assumed = old;
        old = atomicCAS(bits, assumed, __float_as_int(fmaxf(value, __int_as_float(assumed))));
    } while (assumed != old);
    return __int_as_float(old);
}
"""
STORED = """\
__device__ float update(float* address, float value) {
    float old = *address, assumed;
    if (old >= value) return old;
    do {
        assumed = old;
        old = __int_as_float(atomicCAS((int*)address, __float_as_int(assumed), __float_as_int(value)));
        if (old >= value) break;
    } while (old != assumed);
    return old;
}
"""
WHILE = """\
__device__ void update(float* address, float value) {
    int old = __float_as_int(*address);
    while (value > __int_as_float(old)) {
        int assumed = old;
        if ((old = atomicCAS((int*)address, assumed, __float_as_int(value))) == assumed) break;
    }
}
"""
DOUBLE = """\
__device__ double update(double* address, double val) {
    unsigned long long int* address_as_ull = (unsigned long long int*)address;
    unsigned long long int old = *address_as_ull, assumed;
    do {
        assumed = old;
        old = atomicCAS(address_as_ull, assumed,
                        __double_as_longlong(val + __longlong_as_double(assumed)));
    } while (assumed != old);
    return __longlong_as_double(old);
}
"""
WHOLE = """\
__device__ int update(int* p, int v) {
    int seen = *p, was;
    do {
        was = seen;
        if (was <= v) return was;
        seen = atomicCAS(p, was, v);
    } while (seen != was);
    return seen;
}
"""
IN_TEST = """\
__device__ void update(float* p, float v) {
    int old = *(int*)p, assumed;
    do { assumed = old; }
    while ((old = atomicCAS((int*)p, assumed, __float_as_int(v < __int_as_float(assumed) ? v : __int_as_float(assumed)))) != assumed);
}
"""
IN_A_LOCAL = """\
__device__ float update(float* address, float value) {
    unsigned int* bits = (unsigned int*)address;
    unsigned int old, next, seen = *bits;
    do {
        old = seen;
        next = __float_as_uint(__uint_as_float(old) + value);
    } while ((seen = atomicCAS(bits, old, next)) != old);
    return __uint_as_float(seen);
}
"""
LARGER = """\
__device__ void update(int* p, int v) {
    int seen = *p, was;
    do {
        was = seen;
        const int larger = max(was, v);
        seen = atomicCAS(p, was, larger);
    } while (seen != was);
}
"""
FOUND = {
    "kept in a local": (IN_A_LOCAL, "+"), "the greatest in a local": (LARGER, "max"),
    "fmaxf": (GREATEST, "max"), "stored where it is greater": (STORED, "max"),
    "while it is greater": (WHILE, "max"), "a sum of doubles": (DOUBLE, "+"),
    "the least whole number": (WHOLE, "min"), "swapped in the test": (IN_TEST, "min"),
}  # fmt: skip
TYPES = {"a sum of doubles": ("double", "f8"), "the least whole number": ("int", "i4"),
         "the greatest in a local": ("int", "i4")}  # fmt: skip


def _op(function: str) -> str | None:
    text = (
        f"{function}\n__global__ void k(float* o) {{}}\n#pragma optiml launch k grid(1) block(1)\n"
    )
    return swapping(lift_program(parse_program(text)).functions[0])


@pytest.mark.parametrize("name", FOUND)
def test_it_is_an_atomic_operation(name: str) -> None:
    function, op = FOUND[name]
    assert _op(function) == op


ALL = """\
#pragma optiml init(o) = 0
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
%s
__global__ void k(const %s* a, %s* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) update(o, a[i]);
}
"""


@pytest.mark.parametrize("name", FOUND)
def test_a_block_updates_once(name: str) -> None:
    kind, dtype = TYPES.get(name, ("float", "f4"))
    function, op = FOUND[name]
    text = ALL % (function, kind, kind)
    (kernel,) = [kernel_of(all_expanded(parse_program(text)).text)]
    after = written(gathered(kernel))
    names = {"+": "atomicAdd", "min": "atomicMin", "max": "atomicMax"}
    own = "update" if kind == "float" and op != "+" else names[op]
    assert f") {own}(o, o_part);" in after
    if drawn(name):
        arrays = {"a": Array(dtype, ("n",)), "o": Array(dtype, ("1",), "zeros")}
        assert end_of(text, after, arrays, {"n": 300}, {"n": 1}, rounds=True) == "same"


BLOCKS = """\
#pragma optiml init(o) = 0
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
%s
__global__ void k(const float* a, float* o, int n) {
    __shared__ float part[64];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    part[t] = i < n ? a[i] : -3e38f;
    __syncthreads();
    for (int d = 32; d > 0; d /= 2) {
        if (t < d) part[t] = fmaxf(part[t], part[t + d]);
        __syncthreads();
    }
    if (t == 0) update(o, part[0]%s);
}
"""


def test_threads_update_by_their_own_parts() -> None:
    text = BLOCKS % (GREATEST, "")
    after = written(raised(kernel_of(text)))
    assert "__syncthreads" not in after
    arrays = {"a": Array("f4", ("n",)), "o": Array("f4", ("1",), "zeros")}
    assert end_of(text, after, arrays, {"n": 300}, {"n": 1}) == "same"
    least = GREATEST.replace("fmaxf", "fminf")
    for other in (BLOCKS % (GREATEST, " * 2.0f"), BLOCKS % (least, "")):
        made = written(raised(kernel_of(other)))  # by what a block has together
        assert "int thread = 0" in made
        assert end_of(other, made, arrays, {"n": 300}, {"n": 1}) == "same"
    whole = in_turn(kernel_of(text), (raised, gathered))
    assert isinstance(whole, Kernel)
    assert end_of(text, written(whole), arrays, {"n": 300}, {"n": 1}) == "same"


#: What is changed of a function, so that it is no such operation any more.
OTHERS = [
    (GREATEST, "fmaxf(value, __int_as_float(assumed))", "value - __int_as_float(assumed)"),
    (GREATEST, "fmaxf(value, __int_as_float(assumed))", "value"),
    (GREATEST, "fmaxf(value, __int_as_float(assumed))", "fmaxf(value, assumed)"),
    (GREATEST, "__float_as_int(fmaxf(value, __int_as_float(assumed)))",
     "(int)fmaxf(value, __int_as_float(assumed))"),
    (GREATEST, "fmaxf(value, __int_as_float(assumed))", "fmaxf(2 * value, __int_as_float(assumed))"),
    (GREATEST, "assumed = old;", "assumed = old; address[1] = value;"),
    (GREATEST, "assumed = old;", "assumed = old; value += 1.0f;"),
    (GREATEST, "atomicCAS(bits,", "atomicCAS(bits + 1,"),
    (GREATEST, "} while (assumed != old)", "} while (assumed == old)"),
    (GREATEST, "} while (assumed != old)", "} while (value > 0.0f)"),
    (GREATEST, "assumed = old;", "assumed = old; if (value < 0.0f) break;"),
    (GREATEST, "assumed = old;", "assumed = old; if (__int_as_float(old) <= value) break;"),
    (GREATEST, "assumed = old;", "if (assumed != old) assumed = old;"),
    (GREATEST, "int* bits = (int*)address;", "int* bits = (int*)(address + 1);"),
    (GREATEST, "int old = *bits, assumed;", "int old = *bits, assumed; if (old == assumed) return 0.0f;"),
    (GREATEST, "float value)", "float value, int more)"),
    (STORED, "    if (old >= value) return old;\n", ""),
    (STORED, "        if (old >= value) break;\n", ""),
    (STORED, "if (old >= value) break", "if (old <= value) break"),
    (STORED, "if (old >= value) return old", "if (assumed >= value) return old"),
    (WHILE, "while (value > __int_as_float(old))", "while (value != __int_as_float(old))"),
    (WHILE, "while (value > __int_as_float(old))", "while (1)"),
    (WHILE, "int assumed = old;", "int assumed = 0;"),
    (DOUBLE, "unsigned long long int*", "unsigned int*"),
    (DOUBLE, "val + ", "val * val + "),
    (DOUBLE, "} while (assumed != old);", "} while (true);"),
    (WHOLE, "if (was <= v) return was;\n        seen", "if (seen > 3) return was;\n        seen"),
    (WHOLE, "was = seen;\n        if (was <= v) return was;", "if (was <= v) return was;\n        was = seen;"),
    (WHOLE, "int v)", "long long v)"),
    (IN_A_LOCAL, "old = seen;", ""),
    (IN_A_LOCAL, "+ value);", "+ value); next += 1;"),
    (IN_A_LOCAL, "+ value);", "+ value); if (seen > 3) next = 0;"),
    (IN_A_LOCAL, "next, seen", "seen"),
    (IN_A_LOCAL, "unsigned int old, next,", "int next; unsigned long long old,"),
    (LARGER, "const int larger", "const short larger"),
    (LARGER, "was = seen;\n        const int larger = max(was, v);", "const int larger = max(was, v); was = seen;"),
    (LARGER, "max(was, v);", "max(was, v); v = larger;"),
    (IN_TEST, "v < __int_as_float(assumed)", "v < 2.0f"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "old", "new"), OTHERS)
def test_others_are_looked_into(function: str, old: str, new: str) -> None:
    assert old in function
    assert _op(function.replace(old, new)) not in ("+", "min", "max", "&", "|", "^")
