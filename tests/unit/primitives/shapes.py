"""Kernels for the tests of primitives, and what a result is asked for."""

from __future__ import annotations

from optiml_magic.kernels.primitives.base import Kernel, Refused, kernels
from optiml_magic.kernels.reading import Access
from optiml_magic.source.program import parse_program

ROWS = """\
#pragma optiml launch k grid(cdiv(h, 256)) block(256)
__global__ void k(const float* a, const int* at, float* out, int w, int h) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    %s
}
"""
PLANE = """\
#pragma optiml launch k grid(cdiv(n, 16), cdiv(m, 16)) block(16, 16)
__global__ void k(const float* a, const float* b, float* out, int m, int n, int d) {
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m || j >= n) return;
    float s = 0.0f;
    %s
    out[i * n + j] = s;
}
"""


def kernel(text: str) -> Kernel:
    """The one kernel of a program, with nothing known of its arguments."""
    (found,) = kernels(parse_program(text), None)
    return found


def applied(found: Kernel | Refused) -> Kernel:
    """What a primitive made; a refusal fails the test with its reason."""
    assert isinstance(found, Kernel), found
    return found


def refused(found: Kernel | Refused) -> tuple[str, int]:
    """The reason and the line of a refusal."""
    assert isinstance(found, Refused), found.program.text
    return found.reason, found.line


def accesses(found: Kernel, array: str) -> list[Access]:
    """Those of one array, as the result is read."""
    return list(found.reading.of(array))
