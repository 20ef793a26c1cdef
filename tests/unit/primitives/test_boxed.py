"""A block for each small matrix, as threads of a box."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.boxed import boxed

from .running import same
from .shapes import applied, kernel, refused

BATCH = """\
#pragma optiml launch k grid(%s) block(%s)
__global__ void k(const float* a, const float* b, float* out, int m, int h) {
    %s
}
"""
PLACES = "int i = threadIdx.y, j = threadIdx.x, z = blockIdx.x; "
PRODUCT = (
    "float s = 0; for (int k = 0; k < 12; ++k) s += a[(z * 12 + i) * 12 + k] * "
    "b[(z * 12 + k) * 12 + j]; out[(z * 12 + i) * 12 + j] = s;"
)
EVERY = "((blockIdx.y * m + blockIdx.x) * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x"
SHAPES = dict.fromkeys(("a", "b", "out"), ("m", "144"))


@pytest.mark.parametrize(
    ("block", "body"),
    [
        ("12, 12", PLACES + PRODUCT),
        ("12, 12", PLACES + "if (i < j) return; out[z * 144 + j * 12 + i] = a[z * 144 + i * 12 + j] + i;"),
        ("36, 4", PLACES + "out[z * 144 + threadIdx.x + blockDim.x * i] = a[z * 144 + i + 4 * j];"),
        ("2, 72", PLACES + "out[z * 144 + i * 2 + j] = blockDim.y + 3 * blockDim.z + threadIdx.z + b[z * 144 + j];"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("m", [1, 9])
def test_matrices(block: str, body: str, m: int) -> None:
    text = BATCH % ("m", block, body)
    made = boxed(kernel(text))
    assert ", m) block(" in str(applied(made).launch)
    same(text, made, SHAPES, {"m": m, "h": 1})


def test_matrices_of_several_heads() -> None:
    text = BATCH % ("m, h", "12, 12", f"out[{EVERY}] = a[{EVERY}] + blockIdx.y;")
    made = boxed(kernel(text))
    assert "cdiv(12, 12), m * h) block(16, 12)" in str(applied(made).launch)
    shapes = dict.fromkeys(SHAPES, ("h", "m", "144"))
    same(text, made, shapes, {"m": 5, "h": 3})


@pytest.mark.parametrize(
    ("grid", "block", "body", "reason"),
    [
        ("m", "144", "out[blockIdx.x * 144 + threadIdx.x] = 1;", "block of two axes"),
        ("m", "3, 3", PLACES + "out[z * 144 + i * 12 + j] = 1;", "few threads"),
        ("m", "12, 12, 1", PLACES + "__syncthreads(); out[z * 144 + i * 12 + j] = 1;", "wait"),
        ("m", "12, 12", "out[blockIdx.x * 12 + threadIdx.x] = 1;", "their place in the block"),
        ("m", "12, 12", PLACES + "out[z * 144 + i * 12 + j] = gridDim.x;", "their place in the block"),
        ("m, h, 2", "12, 12", PLACES + "out[z * 144 + i * 12 + j] = blockIdx.z;",
         "their place in the block"),
        ("cdiv(m, 12)", "12, 12", "int at = blockIdx.x * 12 + threadIdx.x; if (at < m) out[at * 144 + threadIdx.y] = 1;",
         "asks for its index"),
        ("size(out) / 144", "12, 12", PLACES + "out[z * 144 + i * 12 + j] = 1;", "say alike"),
    ],
)  # fmt: skip
def test_refused(grid: str, block: str, body: str, reason: str) -> None:
    assert reason in refused(boxed(kernel(BATCH % (grid, block, body))))[0]
