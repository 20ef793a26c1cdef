"""Squares around a mean from sums of the loop that finds it; braces opened."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused, kernels
from optiml_magic.kernels.primitives.fused import fused
from optiml_magic.kernels.primitives.moments import one_pass
from optiml_magic.kernels.primitives.opened import opened
from optiml_magic.source.program import parse_program

from .running import same_of_many as same
from .shapes import applied

COLUMNS = """\
#pragma optiml launch k grid(cdiv(cols, 64)) block(64)
__global__ void k(const float* x, float* out, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= cols) return;
    float sum = 0.0f;
    for (int r = 0; r < rows; ++r) sum += x[r * cols + c];
    float mean = sum / rows;
    float squares = 0.0f;
    for (int q = 0; q < rows; ++q) {
        float d = x[q * cols + c] - mean;
        squares += d * d;
    }
    out[c] = squares / rows;
}
"""
SHAPES = {"x": ("rows", "cols"), "out": ("cols",)}
ADDED = "        squares += d * d;\n"
NEST = """\
#pragma optiml launch k grid(cdiv(c, 32)) block(32)
__global__ void k(const float* x, float* out, int n, int c, int p) {
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < c) {
        double mean = 0.0;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < p; j++)
                mean += x[(i * c + k) * p + j];
        mean /= n * p;
        double v = 0.0;
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < p; j++) v += pow(x[(i * c + k) * p + j] - mean, 2);
        }
        out[k] = v;
    }
}
"""
TWO = """\
#pragma optiml scratch mean f4[cols]
#pragma optiml launch means grid(cdiv(cols, 64)) block(64)
#pragma optiml launch spread grid(cdiv(cols, 64)) block(64)
__global__ void means(const float* x, float* mean, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c < cols) {
        float s = 0.0f;
        for (int r = 0; r < rows; ++r) s += x[r * cols + c];
        mean[c] = s / rows;
    }
}
__global__ void spread(const float* x, const float* mean, float* out, int rows, int cols) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c < cols) {
        float s = 0.0f;
        for (int r = 0; r < rows; ++r) s += (mean[c] - x[r * cols + c]) * (mean[c] - x[r * cols + c]);
        out[c] = sqrtf(s / rows);
    }
}
"""


def kernel(text: str) -> Kernel:
    return kernels(parse_program(text), None)[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("float d = x[q * cols + c] - mean;", "const float v = x[q * cols + c], d = mean - v;"),
        (ADDED, "        float t = d;\n        squares = squares + t * d;\n"),
        ("    float mean", "    if (c % 2) sum = -sum;\n    float mean"),
        ("float squares = 0.0f", "float squares = mean"),
        ("x[q * cols + c] - mean", "fabsf(x[q * cols + c]) * c - mean"),
    ],
)
def test_one_loop_finds_both(old: str, new: str) -> None:
    text = COLUMNS.replace("v = x[q", "v = x[q").replace(old, new) if old else COLUMNS
    text = text.replace(
        "const float v = x[q * cols + c], d", "const float v = x[q * cols + c]; float d"
    )
    made = one_pass(kernel(text))
    assert applied(made).program.text.count("for (") == 1
    same(text, made, SHAPES, {"rows": 37, "cols": 71}, rounds=True)


def test_nests_of_loops() -> None:
    made = one_pass(kernel(NEST))
    assert applied(made).program.text.count("for (") == 2
    same(NEST, made, {"x": ("n", "c", "p"), "out": ("c",)}, {"n": 5, "c": 33, "p": 7}, rounds=True)


def test_two_launches_joined() -> None:
    joined = fused(kernel(TWO))
    made = one_pass(applied(opened(applied(joined))))
    text = applied(made).program.text
    assert text.count("for (") == 1
    assert text.count("#pragma optiml launch") == 1
    same(TWO, made, SHAPES, {"rows": 29, "cols": 70}, rounds=True)


def test_no_round_at_all_leaves_the_sum_as_it_was() -> None:
    text = COLUMNS.replace("squares / rows", "squares")
    made = one_pass(
        kernel(text.replace("int rows", "int none, int rows").replace("< rows", "< none"))
    )
    assert "0 < none ?" in applied(made).program.text
    assert "if (0 < none) {" in applied(made).program.text


@pytest.mark.parametrize(
    ("old", "new", "reason", "line"),
    [
        ("d * d", "d * mean", "what it sums up are no squares of differences", 9),
        ("x[q * cols + c] - mean", "x[q * cols + c] - q", "no squares around one value", 9),
        ("x[q * cols + c] - mean", "x[q * cols + c] * sum - mean", "`sum` comes from the loop", 9),
        ("float d", "int d", "a difference becomes a whole number", 9),
        ("float d", "short d", "a difference becomes a whole number", 9),
        ("d * d", "(int)(d * d)", "a difference becomes a whole number", 9),
        ("d * d", "(int)d * (int)d", "a difference becomes a whole number", 9),
        (
            "float d = x[q * cols + c] - mean",
            "unsigned d = rows - (unsigned)(c * q)",
            "a difference without a sign wraps around",
            9,
        ),
        (ADDED, "        out[c] = d;\n" + ADDED, "more than to sum up", 11),
        (ADDED, "        if (d > 0.0f) squares += d * d;\n", "more than to sum up", 9),
        ("sum += x[r", "if (r == 3) continue; else sum += x[r", "left before its end", 6),
        ("d * d", "d * squares", "more than to sum up", 9),
        ("q < rows", "q < cols", "no loop sums up squares", 0),
        ("const float* x", "float* x", "`x` is written before it is read again", 10),
    ],
)
def test_refused_with_its_line(old: str, new: str, reason: str, line: int) -> None:
    text = COLUMNS.replace(old, new)
    if old.startswith("const float* x"):
        text = text.replace("    float mean", "    x[c] = sum; float mean")
    refused = one_pass(kernel(text))
    assert isinstance(refused, Refused), refused.program.text
    assert reason in refused.reason
    assert refused.line == line


def test_braces_are_opened_and_names_stay_apart() -> None:
    text = COLUMNS.replace(
        "    float sum", "    { float squares = x[c]; { out[c] = squares; } }\n    float sum"
    )
    made = opened(kernel(text))
    body = applied(made).program.text
    assert "float squares_2 = x[c];" in body
    assert body.count("{") == 2
    same(text, made, SHAPES, {"rows": 5, "cols": 66})
    refused = opened(kernel(COLUMNS))
    assert isinstance(refused, Refused)
