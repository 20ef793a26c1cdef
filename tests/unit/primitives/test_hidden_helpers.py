"""Functions that are put beside a kernel, and locals of their names."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.spelled_names import hidden
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from tests.ideas import asked, made
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of

HELPER = (
    "template <int LANES> __device__ __forceinline__ int lanes_sum(int value) { return value; }"
)
TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    BODY
}
"""


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("int lanes_sum = 3; out[i] = lanes_sum;", "lanes_sum"),
        ("float a = 1, lanes_sum; lanes_sum = a; out[i] = lanes_sum;", "lanes_sum"),
        ("for (int lanes_sum = 0; lanes_sum < 3; ++lanes_sum) out[i] += 1;", "lanes_sum"),
        ("int lanes_sums = 3, value = 2; out[i] = lanes_sums + value;", ""),
    ],
)
def test_a_local_may_hide_a_function_of_ours(body: str, name: str) -> None:
    assert hidden(HELPER, kernel_of(TEXT.replace("BODY", body)).function) == name


ROWS = """\
FIRST
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0;
    for (int j = 0; j < m; ++j) s += a[i * m + j];
    out[i] = LAST;
}
"""
OWN = "__device__ float {0}(float x) {{ return x * 3; }}"
OF_TWO = "template <int T, class V> __device__ V {0}(V x) {{ return x * T; }}"
OF_ONE = "template <int T> __device__ float {0}(float x) {{ return x * T; }}"


def of_both(text: str, last: str = "s") -> str:
    """A text with two names that functions of ours have."""
    first = "\n".join(text.format(name) for name in ("lanes_sum", "block_sum"))
    return ROWS.replace("FIRST", first).replace("LAST", last)


@pytest.mark.parametrize(
    "text",
    [
        of_both(OWN),
        of_both(OWN, "lanes_sum(s) + block_sum (s)"),
        of_both(OF_TWO),
        of_both(OF_ONE),
        of_both("__device__ float {0}[4];"),
        of_both("namespace q {{ " + OF_TWO + " }} using namespace q;"),
        of_both("// {0} is a good name."),
    ],
)
def test_a_function_of_ours_has_another_name_than_one_of_the_program(text: str) -> None:
    found = made(asked(RowToLanes(), text)[0])
    assert found
    arrays = {"a": Array("f4", ("n", "m")), "out": Array("f4", ("n",), "zeros")}
    for one in found:
        assert "_sum_2<" in one.text
        end = end_of(text, one.text, arrays, {"n": 20, "m": 3000}, {"n": 3, "m": 37}, rounds=True)
        assert end == "same"


@pytest.mark.parametrize("text", [OF_TWO, OF_ONE])
def test_a_kernel_that_calls_a_function_like_ours_gets_none(text: str) -> None:
    body = of_both(text, "lanes_sum<3>(s) + block_sum<3>(s)")
    arrays = {"a": Array("f4", ("n", "m")), "out": Array("f4", ("n",), "zeros")}
    for one in made(asked(RowToLanes(), body)[0]):
        assert "_sum_2" not in one.text
        end = end_of(body, one.text, arrays, {"n": 20, "m": 3000}, {"n": 3, "m": 37}, rounds=True)
        assert end == "same"


LOCALS = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0;
    for (int j = 0; j < m; ++j) s += a[i * m + j];
    float lanes_sum = s * 2, block_sum = s + 1;
    out[i] = TEST ? lanes_sum : block_sum;
}
"""


@pytest.mark.parametrize("test", ["lanes_sum<3.0f", "block_sum < lanes_sum"])
def test_a_function_of_ours_has_another_name_than_a_local(test: str) -> None:
    text = LOCALS.replace("TEST", test)
    found = made(asked(RowToLanes(), text)[0])
    arrays = {"a": Array("f4", ("n", "m")), "out": Array("f4", ("n",), "zeros")}
    names = {word for one in found for word in ("lanes_sum_2<", "block_sum_2<") if word in one.text}
    assert names == {"lanes_sum_2<", "block_sum_2<"} - ({"lanes_sum_2<"} if "<3" in test else set())
    for one in found:
        end = end_of(text, one.text, arrays, {"n": 20, "m": 3000}, {"n": 3, "m": 37}, rounds=True)
        assert end == "same"
