"""Pairs without that of an item with itself, whose inner rounds all items make."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.asked_late import asked_late
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.model.facts import ArrayFacts, LaunchFacts
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* __restrict__ x, const int* __restrict__ set,
                  float* __restrict__ out, int n, int dim) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0.0f;
    for (int j = 0; j < n; ++j) {
        BODY
    }
    out[i] = s;
}
"""
N, D = 70, 5
ROWS = {
    "x": ArrayFacts("x", "in", "float32", (N, D), 4 * N * D, 256),
    "set": ArrayFacts("set", "in", "int32", (N,), 4 * N, 256),
    "out": ArrayFacts("out", "out", "float32", (N,), 4 * N, 256),
}
ARRAYS = {
    "x": Array("f4", ("n", "dim")), "set": Array("i4", ("n",), "below n"),
    "out": Array("f4", ("n",), "zeros"),
}  # fmt: skip
FAR = (
    "float d = 0.0f; "
    "for (int m = 0; m < dim; ++m) { float t = x[i * dim + m] - x[j * dim + m]; d += t * t; } "
)
LATE = [
    f"if (j == i) continue; {FAR} s += d;",
    f"if (i != j) {{ {FAR} if (d > 1.0f) s += 1.0f; }}",
    f"int own = set[j]; if (!(i == j)) {{ {FAR} int o = own + 1; s += d * o; }}",
    f"if (j == i) continue; int o = set[j]; {FAR} if (o > 3) continue; s += d;",
]
EARLY = {
    f"if (set[j] == i) continue; {FAR} s += d;": "no round",
    f"if (j > i) continue; {FAR} s += d;": "no round",
    "if (j == i) continue; float d = x[j * dim] - x[i * dim]; s += d;": "no round",
    f"if (j == i) continue; s += 1.0f; {FAR} s += d;": "no round",
    f"if (j == i) continue; int q = 7 / (j - i); {FAR} s += d * q;": "no round",
    "if (j == i) continue; float d = 0.0f; for (int m = 0; m < dim; ++m) d += x[set[j] * dim + m]; "
    "s += d;": "who is left out",
    "if (j == i) continue; float d = 0.0f; for (int m = 0; m < dim; ++m) d += x[j * dim + m - 1]; "
    "s += d;": "who is left out",
    "if (j == i) continue; float d = 0.0f; "
    "for (int m = 0; m < dim; ++m) { if (x[m] > 2.0f) break; d += x[j * dim + m]; } s += d;":
        "no round",
}  # fmt: skip


def _kernel(body: str) -> Kernel:
    facts = LaunchFacts("k", 1, (3, 1, 1), (32, 1, 1), ROWS, {"n": N, "dim": D})
    return replace(kernel_of(TEXT.replace("BODY", body)), facts=facts)


@pytest.mark.parametrize("body", LATE)
def test_who_is_left_out_finds_what_all_find(body: str) -> None:
    after = written(asked_late(_kernel(body)))
    assert after.index("d += t * t") < max(after.find("!="), after.find("!(i == j)"))
    assert "require size(x) >= dim * n" in after
    text, sizes = TEXT.replace("BODY", body), ({"n": N, "dim": D}, {"n": 33, "dim": 1})
    assert end_of(text, after, ARRAYS, *sizes) == "same"


@pytest.mark.parametrize("body", EARLY)
def test_others_ask_first(body: str) -> None:
    assert refused(asked_late(_kernel(body))).startswith(EARLY[body])
