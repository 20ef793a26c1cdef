"""What stands beside a way out, behind it."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.left_early import left_early
from optiml_magic.proposers.rewrites.vectorise_map import VectoriseMap
from tests.ideas import asked
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, float* out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {0}
}}
"""
ARRAYS = {"x": Array("f4", ("n",)), "out": Array("f4", ("n",))}


@pytest.mark.parametrize(
    ("body", "now"),
    [
        ("if (i >= n) return; else out[i] = x[i];", "if (i >= n) return;"),
        ("if (i >= n) { return; } else { float v = x[i]; out[i] = v * v; }", "float v = x[i];"),
        ("if (i >= n) return; else { float v = x[i]; out[i] = v; }\n    float v = 2.0f; out[i] += v;", "{ float v = x[i]; out[i] = v; }"),
        ("if (i >= n) return;\n    float s = 0.0f;\n    for (int k = 0; k < n; k++) { if (x[k] < 0.0f) continue; else s += x[k]; }\n    out[i] = s;", "continue;"),
        ("if (i >= n) return; else if (x[i] > 0.0f) return; else out[i] = x[i];", "if (x[i] > 0.0f) return;"),
    ],
)  # fmt: skip
def test_behind_it(body: str, now: str) -> None:
    text = TEXT.format(body)
    after = written(left_early(kernel_of(text)))
    assert now in after
    assert "else" not in after
    assert end_of(text, after, ARRAYS, {"n": 70}, {"n": 3}) == "same"


@pytest.mark.parametrize(
    "body",
    ["if (i < n) out[i] = x[i];", "if (i >= n) return; out[i] = x[i];",
     "if (i < n && x[i] > 0.0f) { out[i] = 1.0f; return; } else if (i < n) out[i] = 2.0f;"],
)  # fmt: skip
def test_nothing_beside_it(body: str) -> None:
    assert "no branch that only leaves" in refused(left_early(kernel_of(TEXT.format(body))))


def test_items_are_taken_in_vectors() -> None:
    ideas, _ = asked(VectoriseMap(), TEXT.format("if (i >= n) return; else out[i] = x[i];"))
    assert ideas
    named = "int b = blockIdx.x; int t = threadIdx.x; int at = b * blockDim.x + t; if (at < n) out[at] = x[at];"
    ideas, _ = asked(VectoriseMap(), TEXT.format(named))
    assert ideas
