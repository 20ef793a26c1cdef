"""What each thread does behind the last barrier as a loop, and scalars that one thread works with."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.one_round import one_round
from optiml_magic.kernels.primitives.scalars_held import scalars_held
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(h) block(64)
__global__ void k(const float* a, float* o, int h, int n) {
    __shared__ float x[64];
    __shared__ float most, sum;
    int t = threadIdx.x, row = blockIdx.x;
    x[t] = t < n ? a[row * n + t] : 0.0f;
    __syncthreads();
    ALONE
    __syncthreads();
    LAST
}
"""
PARTS = {
    "ALONE": "if (t == 0) { most = x[0]; for (int i = 1; i < n; i++) most = fmaxf(most, x[i]); "
    "sum = 0.0f; for (int i = 0; i < n; i++) sum += x[i] - most; }",
    "LAST": "float v = 0.0f; for (int i = 0; i < n; i++) v += x[i] * (i ^ t); "
    "o[row * 64 + t] = v * most + sum;",
}
ARRAYS = {"a": Array("f4", ("h", "n")), "o": Array("f4", ("h", "64"), "zeros")}
SIZES, OTHERS = {"h": 3, "n": 41}, {"h": 1, "n": 2}


def text_of(parts: dict[str, str]) -> str:
    text = TEXT
    for name, words in {**PARTS, **parts}.items():
        text = text.replace(name, words)
    return text


@pytest.mark.parametrize(
    "last",
    [
        PARTS["LAST"],
        (
            "int d = threadIdx.x; float v = 0.0f; for (int i = 0; i < n; i++) v += x[i] * d; "
            "o[row * 64 + d] = v;"
        ),
        "if (t < n) { float v = 0.0f; for (int i = 0; i < n; i++) v += x[i] * t; o[row * 64 + t] = v; }",
        (
            "if (threadIdx.x < 80) { float v = 0.0f; for (int i = 0; i < n; i++) v += x[i] * t; "
            "o[row * 64 + t] = v; }"
        ),
        "if (t < 70 - n) for (int i = 0; i < n; i++) o[row * 64 + t] += x[i] * t;",
        (
            "for (int i = 0; i < n; i++) o[row * 64 + threadIdx.x] += "
            "threadIdx.x - 5 > 3 ? x[i] : 1.0f;"
        ),
        (
            "unsigned d = threadIdx.x; for (int i = 0; i < n; i++) o[row * 64 + d] += "
            "d - 5 > 3 ? x[i] : 1.0f;"
        ),
        (
            "auto d = threadIdx.x; for (int i = 0; i < n; i++) o[row * 64 + d] += "
            "d - 5 > 3 ? x[i] : 1.0f;"
        ),
        "if (threadIdx.x < n - 3) for (int i = 0; i < n; i++) o[row * 64 + t] += x[i];",
        "int m = n--; if (t < n) for (int i = 0; i < m; i++) o[row * 64 + t] += x[i];",
    ],
)
def test_threads_have_a_round_each(last: str) -> None:
    before = text_of({"LAST": last})
    after = written(one_round(kernel_of(before)))
    assert "+= 64)" in after
    assert end_of(before, after, ARRAYS, SIZES, OTHERS) == "same"


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        ("o[row * 64 + t] = most;", "no loop of a thread's own"),
        ("for (int i = t; i < 64; i += 64) o[row * 64 + i] = most;", "share the rounds"),
        ("for (int i = 0; i < n; i++) o[row * 64] += 1.0f;", "no loop of a thread's own"),
        ("if (t > 9) return; for (int i = 0; i < n; i++) o[row * 64 + t] += x[i];", "leaves"),
        ("for (int i = 0; i < n; i++) o[row * 64 + t] += __shfl_xor_sync(~0u, x[t], 1);",
         "exchange"),
    ],
)  # fmt: skip
def test_what_is_no_round_of_a_thread_stays(last: str, reason: str) -> None:
    assert reason in refused(one_round(kernel_of(text_of({"LAST": last}))))


def test_a_guard_of_another_type_is_no_bound() -> None:
    text = text_of({"LAST": "if (t < m) for (int i = 0; i < n; i++) o[row * 64 + t] += x[i] * t;"})
    text = text.replace("int n)", "int n, long long m)")
    after = written(one_round(kernel_of(text)))
    assert "< 64;" in after
    assert "if (element < m)" in after


@pytest.mark.parametrize(
    "alone",
    [
        PARTS["ALONE"],
        (
            "if (threadIdx.x == 0) { sum = 2.0f; most = 1.0f; for (int i = 0; i < n; i++) "
            "{ sum += x[i]; most *= sum; } }"
        ),
        "if (t == 5) { most = 3.0f; sum = 0.0f; for (int i = 0; i < n; i++) sum += x[i] * most; }",
    ],
)
def test_one_thread_works_with_locals(alone: str) -> None:
    before = text_of({"ALONE": alone})
    after = written(scalars_held(kernel_of(before)))
    assert "sum_own" in after
    assert end_of(before, after, ARRAYS, SIZES, OTHERS) == "same"


@pytest.mark.parametrize(
    "alone",
    [
        "if (t == 0) { for (int i = 0; i < n; i++) sum += x[i]; }",  # goes on from what it was
        "if (t == 0) { if (n > 3) sum = 0.0f; for (int i = 0; i < n; i++) sum += x[i]; }",
        "if (t < 2) { sum = 0.0f; for (int i = 0; i < n; i++) sum += x[i]; }",
        "if (t == n) { sum = 0.0f; for (int i = 0; i < n; i++) sum += x[i]; }",
        "if (t == 0) { sum = 0.0f; float& s = sum; for (int i = 0; i < n; i++) { sum += x[i]; s += 1; } }",
        "__shared__ const float* p; if (t == 0) { p = x; for (int i = 0; i < n; i++) p++; }",
        "if (t == 0) { sum = 0.0f; if (n == 1) return; for (int i = 0; i < n; i++) sum += x[i]; }",
    ],
)
def test_scalars_that_others_may_ask_for_stay(alone: str) -> None:
    assert "no thread works" in refused(scalars_held(kernel_of(text_of({"ALONE": alone}))))
