"""A row that a thread adds to in memory, as a local array until its end."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.row_held import row_held
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#define D 4
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* x, float* out, float* more, int n, int w, int u) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int d = 0; d < D; d++) out[i * D + d] = 0.0f;
    for (int j = 0; j < w; j++)
        for (int d = 0; d < D; d++) out[i * D + d] += x[j] * d;
    LAST
}
"""
ZERO, ADD = "out[i * D + d] = 0.0f;", "out[i * D + d] += x[j] * d;"


def text_of(*changes: str) -> str:
    text = TEXT
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text, old
        text = text.replace(old, new)
    return text.replace("    LAST\n", "")


@pytest.mark.parametrize(
    "changes",
    [
        (),
        ("    for (int j", "    if (i < u) for (int j"),
        (ZERO, "out[i * D + d] = d < u ? 0.0f : 1.0f;"),
        (ZERO, "out[i * D + d] = more[i * D + d] = 0.5f;"),
        ("LAST", "for (int d = 0; d < D; d++) more[i * D + d] = out[i * D + d] * 2.0f;"),
        ("LAST", "if (x[i] > 1.0f) return; more[i] = 1.0f;"),
        ("LAST", "i = 0;"),
        ("if (i >= n) return;", "if (i >= n) return; float* row = out + i * D;",
         "out[i * D + d]", "row[d]"),
    ],
)  # fmt: skip
def test_rows_are_held(changes: tuple[str, ...]) -> None:
    before = text_of(*changes)
    after = written(row_held(kernel_of(before)))
    assert "out_row[4];" in after
    arrays = {"x": Array("f4", ("n + 8",)), "out": Array("f4", ("n * 4",)),
              "more": Array("f4", ("n * 4",), "zeros")}  # fmt: skip
    sizes, small = {"n": 37, "w": 7, "u": 3}, {"n": 2, "w": 1, "u": 1}
    assert end_of(before, after, arrays, sizes, small) == "same"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ((ZERO, "if (d < u) " + ZERO), "before it has a value"),
        (("for (int d = 0; d < D; d++) " + ZERO, "if (i < u) for (int d = 0; d < D; d++) " + ZERO),
         "before it has a value"),
        ((ZERO, "out[i * D + d] *= 2.0f;"), "before it has a value"),
        ((ZERO, "{ if (d == 2) continue; " + ZERO + " }"), "ends before"),
        (("d < D; d++) out[i * D + d] +=", "d < D - 1; d++) out[i * D + d] +="), "is one row"),
        ((ADD, "out[i * D + d + 1] += x[j];"), "is one row"),
        ((ADD, "out[i * D + (D - 1 - d)] += x[j];"), "is one row"),
        (("out[i * D + d]", "out[d * n + i]"), "is one row"),
        (("    for (int j", "    i = i / 2 * 2 + i % 2;\n    for (int j"), "is one row"),
        (("    for (int j", "    if (x[i] > 1.0f) return;\n    for (int j"), "ends before"),
        ((ADD, "atomicAdd(&out[i * D + d], x[j]);"), "not followed"),
        ((ADD, "out[i * D + d]++;"), "not followed"),
        ((ADD, "out[i * D + d] += f(out, i);", "__global__",
          "__device__ float f(float* o, int i) { return o[i * 4]; }\n__global__"), "not followed"),
        (("LAST", "if (i > 0) more[i] = out[(i - 1) * D];"), "not followed"),
        ((ZERO, "((int*)out)[i * D + d] = 3;"), "of several types"),
        (("i * D + d", "(int)more[i] * 0 + i * D + d"), "is changes"),
        (("#define D 4", "#define D 300"), "small number"),
        ((ADD, "more[i * D + d] = x[j];"), "no row"),
    ],
)  # fmt: skip
def test_other_rows_stay(changes: tuple[str, ...], reason: str) -> None:
    assert reason in refused(row_held(kernel_of(text_of(*changes))))
