"""What neighbouring items add to neighbouring floats, by one atomic operation for several."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.coarsened import Coarse, coarsen
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, written

SCATTER = """\
#pragma optiml launch k grid(cdiv(t * d, 32)) block(32)
__global__ void k(const float* g, const int* at, float* o, int t, int d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < t * d) {
        int r = i / d, c = i % d;
        BODY
    }
}
"""
ARRAYS = {
    "g": Array("f4", ("t", "d")),
    "at": Array("i4", ("t",), "below t"),
    "o": Array("f4", ("t + 1", "d"), "numbers"),
}
TOGETHER = [
    "atomicAdd(&o[at[r] * d + c], g[i]);",
    "float v = g[i] * 2.0f; atomicAdd(o + at[r] * d + c, v + g[i]);",
    "if (g[i] > 0.0f) atomicAdd(&o[at[r] * d + c], g[i]); else atomicAdd(&o[at[r] * d + c], 1.0f);",
    "atomicAdd(&o[i], g[i]);",
    "atomicAdd(&o[at[r] * d + c], 1.0);",
]
ALONE = [
    "if (g[i] > 0.0f) atomicAdd(&o[at[r] * d + c], g[i]);",  # not for every item
    "atomicAdd(&o[at[r] * d + c / 2], g[i]);",
    "atomicAdd(&o[at[r] * d + (d - 1 - c)], g[i]);",
    "atomicExch(&o[i], g[i]);",
    "atomicAdd(&o[i], g[i]); atomicAdd(&o[i + d], g[i]);",
]


def made(body: str) -> tuple[str, str]:
    text = SCATTER.replace("BODY", body)
    return text, written(coarsen(kernel_of(text), Coarse(4, 2, 32)))


@pytest.mark.parametrize("body", TOGETHER)
def test_neighbouring_floats_are_added_to_at_once(body: str) -> None:
    text, after = made(body)
    if body.count("atomicAdd") == 1:
        assert "add_at_once<4>(&o[" in after
    for t, d in ((40, 16), (7, 4), (33, 6), (1, 1)):
        assert end_of(text, after, ARRAYS, {"t": t, "d": d}, {"t": 5, "d": 8}) == "same"


@pytest.mark.parametrize("body", ALONE)
def test_what_is_added_otherwise_is_added_alone(body: str) -> None:
    text = SCATTER.replace("BODY", body)
    found = coarsen(kernel_of(text), Coarse(4, 2, 32))
    after = found.program.text if hasattr(found, "program") else ""
    assert "add_at_once" not in after
    if after:
        sizes = {"t": 40, "d": 16}
        assert end_of(text, after, ARRAYS, sizes, {"t": 5, "d": 8}) == "same"
