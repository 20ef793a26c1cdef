"""Arrays and numbers that a task lacks are all named at once, with the line to write."""

from __future__ import annotations

import numpy as np
import pytest

from optiml_magic.errors import BindingError, UsageError
from optiml_magic.model.task import Task
from optiml_magic.problem import prepare

KERNEL = """\
#pragma optiml launch scale grid(cdiv(n, 32)) block(32)
__global__ void scale(const float* x, const int* at, const float4* v, float* y, float a, int n) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i < n) y[i] = a * x[at[i]] + v[i].x;
}
"""


def refused(kernel: str, **inputs: object) -> BindingError:
    with pytest.raises(BindingError) as error:
        prepare(Task(kernel=kernel, inputs=inputs), seeds=1)
    return error.value


def test_all_that_is_missing_is_named_at_once() -> None:
    error = refused(KERNEL)
    assert error.message == (
        "no arrays named `x`, `at` and `v`, and no value for the parameters `a` and `n`"
    )
    assert error.fix == (
        "define them, with your own sizes for the words in capitals: x = np.ones(SIZE, np.float32);"
        " at = np.ones(SIZE, np.int32); v = np.ones((SIZE, 4), np.float32); a = NUMBER; n = NUMBER"
    )


def test_what_is_there_is_not_named() -> None:
    error = refused(KERNEL, x=np.ones(9, np.float32), v=np.ones((9, 4), np.float32), n=9)
    assert error.message == "no array named `at`, and no value for the parameter `a`"


def test_one_that_is_missing_keeps_its_own_words() -> None:
    arrays = {"x": np.ones(9, np.float32), "at": np.ones(9, np.int32)}
    error = refused(KERNEL, **arrays, v=np.ones((9, 4), np.float32), a=2.0)
    assert error.message == "no value for the parameter `n`"
    assert error.fix == "define `n`, or give it in the task's inputs"


def test_what_the_kernel_takes_already_is_not_meant() -> None:
    kernel = KERNEL.replace("int n)", "int n, int n2)").replace("i < n)", "i < n2)")
    arrays = {"x": np.ones(9, np.float32), "at": np.ones(9, np.int32)}
    error = refused(kernel, **arrays, v=np.ones((9, 4), np.float32), a=2.0, n=9)
    assert error.message == "no value for the parameter `n2`"
    assert error.fix == "define `n2`, or give it in the task's inputs"


WHOLE = (
    "__global__ void k(const float* x, const int* at, float* y, int n) { y[0] = x[at[n]]; }\n"
    "int main() { int n = 64; float *x, *y; int* d; cudaMalloc(&x, n * sizeof(float));"
    " cudaMalloc(&d, n * sizeof(int)); load(d); k<<<1, 64>>>(x, d, y, n); }\n"
)


def test_arrays_beside_one_that_is_as_large_as_allocated_are_made_up() -> None:
    assert refused(WHOLE).message == "no array named `at`"
    given = {"at": np.zeros(64, np.int32)}
    assert prepare(Task(WHOLE, inputs=given), seeds=1).instances[0].values["x"].shape == (64,)
    assert refused(WHOLE, at=np.zeros(65, np.int32)).message == "no array named `x`"


def test_arrays_that_are_too_large_to_make_up_are_named() -> None:
    text = (
        "__global__ void k(const float* x, float* y, int n) { y[threadIdx.x] = x[n]; }\n"
        "int main() { int n = 1 << 28; float *x, *y; cudaMalloc(&x, n * sizeof(float));"
        " k<<<1, 64>>>(x, y, n); }\n"
    )
    with pytest.raises(UsageError, match="1 GiB, and no array of more than 256 MiB is made up"):
        prepare(Task(kernel=text), seeds=1)


def test_numbers_that_no_size_gives_are_named_with_the_arrays() -> None:
    sized = KERNEL.replace("__global__", "#pragma optiml size n = size(x)\n__global__")
    assert refused(sized).message == (
        "no arrays named `x`, `at` and `v`, and no value for the parameter `a`"
    )


def test_an_array_that_the_host_sizes_is_made_once_its_numbers_are_there() -> None:
    kernel = "__global__ void k(const float* x, float* y, int n) { y[threadIdx.x] = x[n - 1]; }\n"
    host = "int main(int c, char** v) { int n = atoi(v[1]); cudaMalloc(&a, n * sizeof(float));\n"
    text = f"{kernel}{host}k<<<1, 32>>>(a, b, n); }}"
    error = refused(text)
    assert error.message == "no value for the parameter `n`"
    prepared = prepare(Task(kernel=text, inputs={"n": 40}, outputs={"y": "float32[32]"}), seeds=1)
    assert prepared.instances[0].values["x"].size == 40


def test_members_of_a_struct_are_said_to_be_its() -> None:
    kernel = """\
#pragma optiml launch k grid(1) block(32)
struct Pair { int n; const float* x; };
__global__ void k(Pair p, float* y) { if (threadIdx.x < p.n) y[threadIdx.x] = p.x[threadIdx.x]; }
"""
    error = refused(kernel)
    assert error.message == "no array named `p_x`, and no value for the parameter `p_n`"
    assert error.fix.endswith("p_n = NUMBER; `Pair p` of `k` is passed as p_n, p_x")
