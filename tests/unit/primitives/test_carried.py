"""What the rounds before stored, in locals of the rounds that ask for it."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.carried import carried
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.vectors import vectorise
from tests.present import sampled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* x, float* y, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    %s
}
"""
ARRAYS = {"x": Array("f4", ("n", "m")), "y": Array("f4", ("n", "m"))}


def made(body: str) -> Kernel | Refused:
    return carried(kernel_of(TEXT % body))


@pytest.mark.parametrize(
    ("body", "kept"),
    sampled([
        ("for (int t = 1; t < m; t++) y[i * m + t] = y[i * m + t - 1] + x[i * m + t];", "y_1"),
        ("for (int t = 1; t < m; t++) y[i * m + t] += y[i * m + t - 1];", "y_1"),
        ("for (int t = 2; t < m; ++t) y[i * m + t] = y[i * m + t - 1] * 0.5f - y[i * m + t - 2];",
         "y_2"),
        ("for (int t = 1; t < m; ++t) y[t * n + i] = fmaxf(y[(t - 1) * n + i], x[t * n + i]);",
         "y_1"),
        ("for (int t = m - 2; t >= 0; --t) y[i * m + t] = y[i * m + t + 1] * 0.5 + x[i * m + t];",
         "y_1"),
        ("float* row = y + i * m; for (int t = 0; t < m - 1; t++) row[t + 1] -= row[t] * x[t];",
         "y_1"),
        ("for (int t = 1; t < m; t++) { y[i * m + t] = y[i * m + t - 1] + y[i * m]; }", "y_1"),
        ("for (int a = 0; a < 3; a++) for (int t = 1; t < m; t++) y[i * m + t] = y[i * m + t - 1] + a;",
         "y_1"),
    ], 3),
)  # fmt: skip
def test_a_local_is_what_the_round_before_stored(body: str, kept: str) -> None:
    after = written(made(body))
    assert f"{kept} = " in after
    sizes = {"n": 33, "m": 37}, {"n": 40, "m": 1}
    assert end_of(TEXT % body, after, ARRAYS, *sizes, rounds=True) == "same"


def test_what_is_stored_goes_by_strips() -> None:
    body = "for (int t = 1; t < m; t++) y[i * m + t] = y[i * m + t - 1] + x[i * m + t];"
    plain = made(body)
    assert isinstance(plain, Kernel)
    assert len(loops_in(plain.function.body)) == 1
    after = written(vectorise(plain, 0, strips=(8, 16)))
    assert "y_items[t_item] = y_now;" in after
    sizes = {"n": 33, "m": 44}, {"n": 40, "m": 3}
    assert end_of(TEXT % body, after, ARRAYS, *sizes, rounds=True) == "same"


@pytest.mark.parametrize(
    "body",
    [
        "for (int t = 1; t < m; t++) if (x[t] > 0) y[i * m + t] = y[i * m + t - 1];",
        "for (int t = 0; t < m; t++) y[i * m + t] = t > 0 ? y[i * m + t - 1] + 1 : 0;",
        "for (int t = 2; t < m; t++) y[i * m + t] = y[i * m + t - 2] + 1;",
        "for (int t = 1; t < m; t++) { y[i * m + t] = y[i * m + t - 1]; y[i * m] = t; }",
        "for (int t = 1; t < m; t++) { y[i * m + t] = t; float v = y[i * m + t - 1]; y[i * m] = v; }",
        "for (int t = 1; t < m; t++) { if (x[t] > 1) continue; y[i * m + t] = y[i * m + t - 1]; }",
        "for (int t = 1; t < m; t++) y[i * m + t % 3] = y[i * m + (t - 1) % 3];",
        "for (int t = 1; t < m; t++) y[i * m] = y[i * m] + x[t];",
        "for (int t = 2; t < m; t += 2) y[i * m + t] = y[i * m + t - 1] + x[t];",
        "int s = 0; for (int t = 1; t < m; t++) { s += t % 2; y[i * m + s] = y[i * m + s - 1]; }",
        "for (int t = 1; t < m; t++) { y[i * m + t] = x[t]; if (y[i * m + t - 1] > 0) y[i * m] = 1; }",
    ],
)  # fmt: skip
def test_what_is_not_certainly_the_same_element_stays(body: str) -> None:
    assert refused(made(body)) == "no loop asks for what its rounds before stored"
