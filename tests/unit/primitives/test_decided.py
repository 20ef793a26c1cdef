"""How long a loop may be that is written out for several items."""

from __future__ import annotations

import pytest

from optiml_magic.proposers.rewrites.share_loads import ShareLoads
from tests.ideas import asked

SUMS = """\
#pragma optiml launch k grid(cdiv(n, 256), rows) block(256)
__device__ float wave(float v) { return 1.0f + sinf(v); }
__global__ void k(const float* x, float* out, int rows, int n) {
    int b = blockIdx.y, i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0.f;
    for (int j = 0; j < 64; ++j) s += x[b * 64 + j] * VALUE;
    out[b * n + i] = s;
}
"""


@pytest.mark.parametrize(
    ("value", "written_out"),
    [("(0.1f * i * j)", True), ("sinf(0.1f * i * j)", False), ("wave(0.1f * i * j)", False)],
)
def test_a_loop_of_long_functions_is_not_written_out(value: str, written_out: bool) -> None:
    (idea,) = asked(ShareLoads(), SUMS.replace("VALUE", value))[0]
    made = str(idea.make())
    assert ("#pragma unroll\n            for (int j = 0" in made) == written_out
