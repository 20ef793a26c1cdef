"""Forms in the names that hold at a loop."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.vectors import vectorise

from .alike import kernel_of, written

TEXT = """\
#pragma optiml launch k grid(cdiv(h, 32), cdiv(w, 4)) block(32, 4)
__global__ void k(const int* at, const int* from, const float* b, float* out, int w, int h) {
    int OTHER = blockIdx.y * blockDim.y + threadIdx.y;
    if (OTHER >= w) return;
    for (int OWN = blockIdx.x * blockDim.x + threadIdx.x; OWN < h; OWN += 64) {
        float s = 0.0f;
        for (int k = from[OWN]; k < from[OWN + 1]; k++) s += b[at[k]] * OTHER;
        out[OWN * w + OTHER] = s;
    }
}
"""


@pytest.mark.parametrize(("other", "own"), [("x", "y"), ("y", "x"), ("c", "z"), ("c", "r")])
def test_a_counter_may_be_called_as_an_axis_of_the_grid(other: str, own: str) -> None:
    text = TEXT.replace("OTHER", other).replace("OWN", own)
    found = vectorise(kernel_of(text), 1)
    assert isinstance(found, Kernel), found
    assert f"int up_k = (from[{own}] + 3)" in written(found)
