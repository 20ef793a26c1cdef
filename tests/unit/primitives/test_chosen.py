"""Elements that the data choose, stored to by loops over all, so that lanes may divide the array."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.chosen import chosen
from optiml_magic.kernels.primitives.divided import divide
from optiml_magic.kernels.primitives.lanes import Lanes
from optiml_magic.source.program import parse_program
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of, kernel_of, refused, written

LANES = Lanes("warp", 8, 64, (2, 8, 32), (64, 128))
TOP = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, const int* c, int* best, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float left[32];
    float most = x[i * 32];
    for (int e = 0; e < 32; e++) most = fmaxf(most, x[i * 32 + e]);
    for (int e = 0; e < 32; e++) left[e] = x[i * 32 + e] - most;
    for (int k = 0; k < 3; k++) {
        int at = 0;
        float value = -1e30f;
        for (int e = 0; e < 32; e++) if (left[e] > value) { value = left[e]; at = e; }
        left[at] = -1e30f;
        best[i * 3 + k] = at;
        out[i * 3 + k] = value;
    }
}
"""
ARRAYS = {"x": Array("f4", ("n", "32")), "c": Array("i4", ("n",), "positive"),
          "best": Array("i4", ("n", "3"), "zeros"), "out": Array("f4", ("n", "3"), "zeros")}  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        TOP,
        TOP.replace("left[at] = -1e30f", "left[(at + c[i]) % 32] -= 2.0f * value"),
        TOP.replace("left[at] = -1e30f", "left[at ^ 1]++"),
        TOP.replace("left[at] = -1e30f;", "if (c[i] & 1) left[at] *= 0.5f;"),
    ],
)
def test_lanes_store_to_what_is_theirs(text: str) -> None:
    made = chosen(kernel_of(text))
    assert "for (int element = 0; element < 32; ++element)" in written(made)
    assert end_of(text, written(made), ARRAYS, {"n": 37}, {"n": 5}) == "same"
    divided = parse_program(written(divide(kernel_of(written(made)), LANES)))
    for count in (2, 8, 32):
        now = divided.with_values({"LANES": count}).text
        assert end_of(text, now, ARRAYS, {"n": 37}, {"n": 5}, rounds=True) == "same"


def test_loops_beside_are_shared_as_well() -> None:
    made = written(divide(kernel_of(written(chosen(kernel_of(TOP)))), LANES))
    assert "most = lanes_fmax<LANES>(most);" in made


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("left[at] = -1e30f;", "", "no element of a local array is chosen"),
        ("left[at] = -1e30f", "left[3] = -1e30f", "no element of a local array is chosen"),
        ("out[i * 3 + k] = value", "out[i * 3 + k] = left[at]", "asks for elements as well"),
        ("left[at] = -1e30f", "left[at++] = -1e30f", "no element of a local array is chosen"),
    ],
)
def test_arrays_that_stay(old: str, new: str, reason: str) -> None:
    assert old in TOP
    found = refused(chosen(kernel_of(TOP.replace(old, new))))
    assert reason in found or "no local array has an element" in found
