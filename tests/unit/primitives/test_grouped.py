"""Loops over the parts of packed words: read a word once, for all of its parts."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import kernels
from optiml_magic.kernels.primitives.grouped import grouped
from optiml_magic.source.program import parse_program

from .running import same
from .shapes import applied, refused

ROWS = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const int* words, const float* x, float* y, int n, int m) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    float s = 0.0f;
    for (int i = 0; i < m; i++) {
        %s
    }
    y[row] = s;
}
"""
SHAPES = {"words": ("i4", "n", "m"), "x": ("m",), "y": ("n",)}
WORD = "int word = words[row * (m / 8 + 1) + i / 8];\n"


@pytest.mark.parametrize(
    "body",
    [
        WORD + "s += (word >> (4 * (i % 8)) & 15) * x[i];",
        WORD.replace("i / 8", "(i >> 3)") + "if ((word >> (i & 7)) & 1) s += x[i];",
        """int half = i % 2, byte = words[row * ((m + 1) / 2) + i / 2];
        if (x[i] < 0.0f) continue;
        s += (half ? byte >> 4 : byte & 15) * x[i] + i / 2;""",
        WORD + "{ s += word % 8 - i % 8; }",
    ],
)
@pytest.mark.parametrize("m", [5, 8, 43])
def test_a_word_is_read_once_for_its_parts(body: str, m: int) -> None:
    text = ROWS % body
    made = grouped(kernels(parse_program(text), None)[0])
    assert "i_word < m / " in applied(made).program.text
    same(text, made, SHAPES, {"n": 37, "m": m})


@pytest.mark.parametrize(
    "body",
    [
        "s += words[row * m + i] * x[i % 8];",  # nothing is read for several rounds
        WORD + "s += word * x[i];",  # no round has a part of its own
        WORD.replace("i / 8", "i / 8 + i") + "s += (word >> i % 8) * x[i];",
        WORD.replace("/ 8]", "/ 64]") + "s += (word >> i % 64) * x[i];",  # too many
        WORD + "if (word < 0) break;\ns += (word >> i % 8) * x[i];",
        WORD + "s += (word >> i % 8) * x[i];\nif (s > 3.0f) i++;",
    ],
)
def test_other_loops_stay_as_they_are(body: str) -> None:
    assert "parts of words" in refused(grouped(kernels(parse_program(ROWS % body), None)[0]))[0]
