"""Tiles whose extent has a name, in other extents."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.retiled import retiled
from tests.present import sampled

from .running import same
from .shapes import applied, kernel, refused

LINE = """\
#define W 64
#pragma optiml launch k grid(cdiv(n, 64 - 2 * steps)) block(64)
__global__ void k(const float* a, float* out, int n, int steps) {
    __shared__ float u[W], v[W];
    int t = threadIdx.x;
    int x = blockIdx.x * (W - 2 * steps) + t - steps;
    bool inside = x >= 0 && x < n;
    if (inside) u[t] = a[x];
    int west = x > 0 ? t - 1 : t, east = x < n - 1 ? t + 1 : t;
    __syncthreads();
    for (int s = 1; s <= steps; s++) {
        bool computed = inside && t >= s && t < W - s;
        if (computed) v[t] = u[t] + 0.5f * (u[west] + u[east] - 2.0f * u[t]);
        __syncthreads();
        if (computed) u[t] = v[t];
        __syncthreads();
    }
    if (inside && t >= steps && t < W - steps) out[x] = u[t];
}
"""
PLANE = """\
constexpr int TILE = 16;  // of a block
#pragma optiml launch k grid(cdiv(w, 16 - 2), cdiv(h, 16 - 2)) block(16, 16)
__global__ void k(const float* a, float* out, int w, int h, int steps) {
    __shared__ float s[TILE][TILE + 1];
    int tx = threadIdx.x, ty = threadIdx.y;
    int x = blockIdx.x * (TILE - 2) + tx - 1, y = blockIdx.y * (TILE - 2) + ty - 1;
    s[ty][tx] = x >= 0 && y >= 0 && x < w && y < h ? a[y * w + x] : 0.0f;
    __syncthreads();
    if (tx < 1 || tx >= TILE - 1 || ty < 1 || ty >= TILE - 1) return;
    if (x < w && y < h) out[y * w + x] = s[ty - 1][tx] + s[ty + 1][tx] - s[ty][tx - 1] * s[ty][tx + 1];
}
"""
ONE, BOTH = {"a": ("n",), "out": ("n",)}, {"a": ("h", "w"), "out": ("h", "w")}


@pytest.mark.parametrize("extent", sampled([64, 128, 512], 2))
def test_a_line_of_several_steps(extent: int) -> None:
    made = retiled(kernel(LINE))
    shown = applied(made).program.text
    assert "#define W EXTENT\n" in shown
    assert "tune EXTENT in {64, 128, 256, 512, 1024} = 64\n" in shown
    assert "grid(cdiv(n, EXTENT - 2 * steps)) block(EXTENT)" in shown
    same(LINE, made, ONE, {"n": 300, "steps": 3}, {"EXTENT": extent})


def test_a_plane_and_what_fits_a_block() -> None:
    made = retiled(kernel(PLANE))
    shown = applied(made).program.text
    assert shown.startswith("#define TILE EXTENT  // of a block\n")
    assert "tune EXTENT in {16, 32} = 16 if EXTENT * EXTENT <= 1024\n" in shown
    for extent in (16, 32):
        same(PLANE, made, BOTH, {"w": 50, "h": 37, "steps": 1}, {"EXTENT": extent})


def test_a_tile_without_a_rim_may_be_smaller() -> None:
    text = PLANE.replace(" - 2", "").replace(" - 1, y", ", y").replace("+ ty - 1", "+ ty")
    text = text.replace(
        "    if (tx < 1 || tx >= TILE - 1 || ty < 1 || ty >= TILE - 1) return;\n", ""
    )
    text = text[: text.index("out[y")] + "out[y * w + x] = s[ty][tx];\n}\n"
    made = retiled(kernel(text))
    assert "in {8, 16, 32} = 16" in applied(made).program.text
    same(text, made, BOTH, {"w": 50, "h": 37, "steps": 1}, {"EXTENT": 8})


NOT = {
    "another number": (LINE.replace("0.5f", "0.5f * 64"), "another number"),
    "half of it": (LINE.replace("0.5f", "(t & 31)"), "another number"),
    "two names": (LINE.replace("v[W]", "v[V]").replace("#define W", "#define V 64\n#define W"),
                  "no single name"),
    "no name": (LINE.replace("#define W 64\n", "").replace("W", "64"), "no single name"),
    "elsewhere": (LINE + "__global__ void other(float* b) { b[W] = 1.0f; }\n", "`other` asks for `W`"),
    "other steps": (LINE.replace("(W - 2 * steps)", "(W - steps)"), "side by side|steps otherwise"),
    "an end of its own": (LINE.replace("inside && t >= s", "inside && t >= 1"), "where tiles end"),
    "a sum of each": (LINE.replace("out[x] = u[t]", "out[blockIdx.x] = u[0]"), "which item"),
    "places in a tile": (LINE.replace("a[x]", "a[t]"), "where tiles end"),
    "lanes": (LINE.replace("u[t] = v[t]", "u[t] = __shfl_sync(~0u, v[t], 0)"), "said elsewhere"),
    "bounds": (LINE.replace("void k", "void __launch_bounds__(64) k"), "said elsewhere"),
    "nothing shared": (LINE.replace("__shared__ ", ""), "share no tile"),
}  # fmt: skip


def test_a_tile_fits_shared_memory() -> None:
    text = LINE.replace("v[W]", "v[W][12]").replace("v[t]", "v[t][0]")
    assert "in {64, 128, 256, 512} = 64" in applied(retiled(kernel(text))).program.text


@pytest.mark.parametrize("case", NOT)
def test_what_may_depend_on_its_extent_stays(case: str) -> None:
    text, why = NOT[case]
    reason, _ = refused(retiled(kernel(text)))
    assert any(part in reason for part in why.split("|")), reason
