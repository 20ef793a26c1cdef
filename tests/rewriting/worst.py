"""Kernels that a rule got wrong once, cut down to what it stumbled over."""

from __future__ import annotations

from .writing import Array, Made

_ROWS = {"a": Array("f4", ("rows", "cols")), "out": Array("f4", ("rows",), "zeros")}

#: The number of the row comes from a macro, so it differs from thread to thread all the same.
ROW_FROM_A_MACRO = Made(
    "row_from_a_macro",
    """\
#define GID (blockIdx.x * blockDim.x + threadIdx.x)
#pragma optiml launch row_sum grid(cdiv(rows, 32)) block(32)
__global__ void row_sum(const float* a, float* out, int rows, int cols) {
    int row = GID;
    if (row < rows) {
        float s = 0.0f;
        for (int j = 0; j < cols; ++j) s += a[row * cols + j];
        out[row] = s;
    }
}
""",
    _ROWS,
    {"rows": 1, "cols": 1},
    {"rows": 33, "cols": 37},
)

WORST: tuple[Made, ...] = (ROW_FROM_A_MACRO,)
