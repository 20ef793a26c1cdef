"""Arrays that threads carry through a loop: lanes hold a few elements each, or the array stays."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.divided import divide
from optiml_magic.kernels.primitives.lanes import Lanes
from optiml_magic.source.program import parse_program
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of, kernel_of, refused, written

LANES = Lanes("warp", 8, 64, (2, 4, 8, 16, 32), (64, 128))
SCAN = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, const float* b, float* out, float* last, int n, int m) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= n) return;
    float h[16];
    for (int e = 0; e < 16; e++) h[e] = 0.0f;
    for (int t = 0; t < m; t++) {
        float s = 0.0f;
        for (int e = 0; e < 16; e++) {
            h[e] = 0.5f * h[e] + x[t * n + c] * b[t * 16 + e];
            s += h[e] * b[e];
        }
        out[t * n + c] = s;
    }
    for (int e = 0; e < 16; e++) last[c * 16 + e] = h[e];
}
"""
ARRAYS = {"x": Array("f4", ("m", "n")), "b": Array("f4", ("m + 1", "16")),
          "out": Array("f4", ("m", "n"), "zeros"), "last": Array("f4", ("n", "16"), "zeros")}  # fmt: skip
_BEGUN = "float h[16];\n    for (int e = 0; e < 16; e++) h[e] = 0.0f;"


@pytest.mark.parametrize(
    "text",
    [
        SCAN,
        SCAN.replace(_BEGUN, "float h[16] = {0.0f};"),
        SCAN.replace(_BEGUN, "float h[20] = {};"),
        SCAN.replace("float h[16];", "float h[16], u[16];").replace("h[e] = 0.0f", "h[e] = u[e] = 0.0f"),
        SCAN.replace("float h[16]", "const int size = 16; float h[size]").replace("e < 16", "e < size"),
        SCAN.replace("__global__", "constexpr int S = 8;\n__global__").replace("h[16]", "h[2 * S]"),
        SCAN.replace("s += h[e]", "if (h[e] > 0.5f) continue; s += h[e]"),
        SCAN.replace("float s = 0.0f", "float s = x[t * n + c]").replace("s += h", "s = s - h"),
        SCAN.replace("s += h[e] * b[e]", "s = fmaxf(s, h[e])"),
        SCAN.replace("int e", "unsigned e").replace("e++", "++e"),
        SCAN.replace("[16]", "[12]").replace("e < 16", "e < 12"),
        SCAN.replace("out[t * n + c] = s;", "for (int e = 0; e < 16; ++e) h[e] += s; out[t * n + c] = s;"),
    ],
)  # fmt: skip
def test_lanes_hold_an_array_together(text: str) -> None:
    made = written(divide(kernel_of(text), LANES))
    assert "[own]" in made
    program = parse_program(made)
    (lanes, _) = program.tunes
    assert all((12 if "[12" in text else 16) % count == 0 for count in lanes.values)
    for count in lanes.values:
        chosen = program.with_values({"LANES": count}).text
        sizes = {"n": 37, "m": 5}
        assert end_of(text, chosen, ARRAYS, sizes, {"n": 70, "m": 3}, rounds=True) == "same"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("s += h[e] * b[e]", "s += h[15 - e] * b[e]"),
        ("s += h[e] * b[e]", "s += h[0] * b[e]"),
        ("out[t * n + c] = s;", "out[t * n + c] = s + h[3];"),
        ("for (int e = 0; e < 16; e++) last", "for (int e = 1; e < 16; e++) last"),
        ("for (int e = 0; e < 16; e++) last", "for (int e = 0; e < 8; e++) last"),
        ("for (int e = 0; e < 16; e++) last", "for (int e = 0; e < m; e++) last"),
        ("s += h[e] * b[e];", "s += h[e] * b[e]; if (s > 9.0f) break;"),
        ("s += h[e] * b[e];", "s = h[e] * s + b[e];"),
        ("last[c * 16 + e] = h[e]", "last[c] += h[e]"),
        ("float h[16];", "float h[16] = {1.0f};"),
        ("float h[16];", "__shared__ float h[16];"),
        ("float s = 0.0f;", "float s = 0.0f; float* g = h; g[0] += 1.0f;"),
    ],
)
def test_arrays_whose_elements_meet_stay(old: str, new: str) -> None:
    text = SCAN.replace(old, new)
    assert text != SCAN
    assert refused(divide(kernel_of(text), LANES))


def test_elements_that_are_not_dealt_out_evenly_stay() -> None:
    text = SCAN.replace("[16]", "[15]").replace("e < 16", "e < 15")
    assert "evenly" in refused(divide(kernel_of(text), LANES))
