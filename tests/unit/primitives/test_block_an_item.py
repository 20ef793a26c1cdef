"""Blocks that take several items, a grid apart, as a block for each."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.block_an_item import block_an_item
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

HEAD = "#pragma optiml launch k grid(3) block(64)\n"
TEXT = HEAD + (
    "__global__ void k(const float* x, float* y, int items) {\n"
    "    __shared__ float s[64];\n    const int t = threadIdx.x;\n"
    "    for (int b = blockIdx.x; b < items; b += gridDim.x) {\n"
    "        const float* row = x + b * 64;\n        s[t] = row[t];\n        __syncthreads();\n"
    "        float v = 0.0f;\n        for (int i = 0; i < 64; ++i) { if (i > t) break; v += s[i]; }\n"
    "        y[b * 64 + t] = v;\n        __syncthreads();\n    }\n}\n"
)
ARRAYS = {"x": Array("f4", ("items * 64",)), "y": Array("f4", ("items * 64",), "zeros")}
LOOP = "int b = blockIdx.x; b < items; b += gridDim.x"


def text_of(*changes: str) -> str:
    text = TEXT
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text, old
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(
    ("changes", "grid"),
    [
        ((), "grid(items)"),
        (("int t = threadIdx.x;", "int t = threadIdx.x, first = blockIdx.x, by = gridDim.x;",
          LOOP, "long b = first; b < items; b += by"), "grid(items)"),
        (("    for (int b", "    #pragma unroll 1\n    for (int b"), "grid(items)"),
        ((LOOP, "int at = blockIdx.x * 64; at < items; at += 64 * gridDim.x",
          "x + b * 64", "x + at", "y[b * 64 + t]", "y[at + t]"), "grid((items + 63) / 64)"),
    ],
)  # fmt: skip
def test_an_item_has_a_block(changes: tuple[str, ...], grid: str) -> None:
    text = text_of(*changes)
    after = written(block_an_item(kernel_of(text)))
    assert "gridDim.x;" not in after.replace("by = gridDim.x;", "")
    assert grid in after
    assert end_of(text, after, ARRAYS, {"items": 8}, {"items": 2}) == "same"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (("= threadIdx.x;", "= threadIdx.x; float v = 0.0f;", "        float v = 0.0f;\n", ""),
         "a round goes on with what others left"),
        (("= threadIdx.x;", "= threadIdx.x; s[t] = 1.0f;"), "more is done before its items"),
        (("y[b * 64 + t]", "y[blockIdx.x * 64 + t]"), "it asks for more of its blocks"),
        (("= threadIdx.x;", "= threadIdx.x; const int at = blockIdx.x * 64;",
          "y[b * 64 + t]", "y[at + t]"), "it asks for more of its blocks"),
        (("v += s[i];", "v += s[i] * gridDim.x;"), "it asks for more of its blocks"),
        (("        __syncthreads();\n    }\n}", "        __syncthreads();\n    }\n    y[0] = 1;\n}"),
         "not all that a block does"),
        (("        float v", "        if (b == 5) return;\n        float v"), "is not followed"),
        (("        float v", "        if (b == 5) continue;\n        float v"),
         "a round may be left"),
        (("= threadIdx.x;", "= threadIdx.x, v = 3;"), "a name means another thing"),
        (("b += gridDim.x", "b += 3"), "its rounds are not those of a block's items"),
        (("b = blockIdx.x", "b = blockIdx.x + 1"), "its rounds are not those of a block's items"),
        (("b < items", "b < (int)x[0]"), "how many items there are"),
        (("grid(3)", "grid(1)"), "the launch does not know"),
    ],
)  # fmt: skip
def test_rounds_that_stay(changes: tuple[str, ...], reason: str) -> None:
    assert reason in refused(block_an_item(kernel_of(text_of(*changes))))
