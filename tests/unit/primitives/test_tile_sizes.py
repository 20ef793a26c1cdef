"""Tiles that are as large as a kernel is told, by a radius or a stride, counted for that number."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.sized import tile_sizes
from optiml_magic.kernels.primitives.unstaged import unstaged
from optiml_magic.model.facts import LaunchFacts
from tests.present import sampled

from .running import same
from .shapes import applied, kernel, refused

LINE = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32) shared((32 + 2 * r) * 4)
__global__ void k(const float* a, float* out, int n, int r) {
    extern __shared__ float s[];
    const int t = threadIdx.x, i = blockIdx.x * 32 + t;
    %s
    __syncthreads();
    if (i < n) {
        float sum = 0.0f;
        for (int k = 0; k <= 2 * r; ++k) sum += s[t + k];
        out[i] = sum;
    }
}
"""
STRIDE = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32) shared((31 * r + 8) * 4)
__global__ void k(const float* a, float* out, int n, int r) {
    extern __shared__ float s[];
    const int first = blockIdx.x * 32 * r, count = 31 * r + 8;
    for (int q = threadIdx.x; q < count; q += 32) s[q] = first + q < n ? a[first + q] : 0.0f;
    __syncthreads();
    const int o = blockIdx.x * 32 + threadIdx.x;
    if (o < n) {
        float sum = 0.0f;
        for (int k = 0; k < 8; ++k) sum += s[threadIdx.x * r + k];
        out[o] = sum;
    }
}
"""
PLANE = """\
#pragma optiml launch k grid(cdiv(n, 8), cdiv(n, 8)) block(8, 8) shared((8 + 2 * r) * (8 + 2 * r) * 4)
__global__ void k(const float* a, float* out, int n, int r) {
    extern __shared__ float s[];
    const int w = 8 + 2 * r, x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    for (int v = threadIdx.y; v < w; v += 8)
        for (int u = threadIdx.x; u < w; u += 8) {
            const int gx = blockIdx.x * 8 + u - r, gy = blockIdx.y * 8 + v - r;
            s[v * w + u] = gx >= 0 && gx < n && gy >= 0 && gy < n ? a[gy * n + gx] : 0.0f;
        }
    __syncthreads();
    if (x >= n || y >= n) return;
    float sum = 0.0f;
    for (int j = 0; j <= 2 * r; ++j)
        for (int i = 0; i <= 2 * r; ++i) sum += s[(threadIdx.y + j) * w + threadIdx.x + i];
    out[y * n + x] = sum;
}
"""  # fmt: skip
LOOP = "for (int q = t; q < 32 + 2 * r; q += 32) s[q] = %s;"
PARTS = """\
s[t + r] = %s;
    if (t < r) { s[t] = %s; s[t + 32 + r] = %s; }"""
ZERO = "%s >= 0 && %s < n ? a[%s] : 0.0f"
CLAMP = "a[min(max(%s, 0), n - 1)]"
SHAPES = {"a": ("n",), "out": ("n",)}


def told(text: str, **scalars: int) -> Kernel:
    """A kernel of which the launch is known to pass these numbers."""
    return replace(kernel(text), facts=LaunchFacts("k", 1, (3, 1, 1), (32, 1, 1), {}, scalars))


@pytest.mark.parametrize("border", [ZERO, CLAMP])
@pytest.mark.parametrize("radius", sampled([0, 1, 3, 31]))
def test_a_tile_with_a_halo_of_a_given_radius(border: str, radius: int) -> None:
    def at(place: str) -> str:
        return border.replace("%s", place)

    parts = PARTS % (at("i"), at("(i - r)"), at("(i + 32)"))
    for fill in (
        LOOP % at("(blockIdx.x * 32 + q - r)").replace("blockIdx", "(int)blockIdx"),
        parts,
    ):
        text = LINE % fill
        made = unstaged(told(text, n=77, r=radius))
        body = applied(made).program.text
        assert "__shared__" not in body
        assert f"#pragma optiml require r == {radius}" in body
        if radius:
            same(text, made, SHAPES, {"n": 77, "r": radius})


def test_a_long_window_is_one_as_well() -> None:
    text = LINE % (LOOP % "a[min((int)blockIdx.x * 32 + q, n - 1)]")
    made = unstaged(told(text, n=77, r=120))
    assert "#pragma optiml require r == 120" in applied(made).program.text
    same(text, made, SHAPES, {"n": 77, "r": 120})


def test_a_tile_that_is_read_at_a_given_stride() -> None:
    made = unstaged(told(STRIDE, n=77, r=3))
    assert "__syncthreads" not in applied(made).program.text
    same(STRIDE, made, SHAPES, {"n": 77, "r": 3})


def test_a_plane_with_a_halo_of_a_given_radius() -> None:
    made = unstaged(told(PLANE, n=21, r=2))
    assert "__syncthreads" not in applied(made).program.text
    same(PLANE, made, {"a": ("n", "n"), "out": ("n", "n")}, {"n": 21, "r": 2})


def test_sizes_of_arrays_are_no_sizes_of_tiles() -> None:
    assert tile_sizes(told(LINE % (LOOP % "a[0]"), n=40, r=3)) == {"r": 3}
    assert tile_sizes(told(STRIDE, n=40, r=3)) == {"r": 3}
    assert tile_sizes(told(PLANE, n=40, r=3)) == {"r": 3}


@pytest.mark.parametrize(
    ("fill", "scalars"),
    [
        (LOOP % "a[min((int)blockIdx.x * 32 + q, n - 1)]", {"n": 77}),
        (LOOP % "a[min((int)blockIdx.x * 32 + q, n - 1)]", {"n": 77, "r": 257}),
        (LOOP % "a[min((int)blockIdx.x * 32 + q, n - 1)]" + "\n    r += 1;", {"n": 77, "r": 3}),
        ("r = r + 0;\n    " + LOOP % "a[min((int)blockIdx.x * 32 + q, n - 1)]", {"n": 77, "r": 3}),
        ("for (int q = t; q < 31 + r; q += 32) s[q] = a[min(q, n - 1)];", {"n": 77, "r": 3}),
        ("for (int q = t; q < 32; q += 32) s[q + r] = a[min(q, n - 1)];", {"n": 77, "r": 3}),
        ("for (int q = t; q < 32 + 2 * r; q += 32) s[q] += a[min(q, n - 1)];", {"n": 77, "r": 3}),
        ("for (int q = t; q < 32 + 2 * r; q += 32) s[q] = out[min(q, n - 1)];", {"n": 77, "r": 3}),
        ("if (t < r) s[t] = a[t];\n    s[t + 2 * r] = a[min(i, n - 1)];", {"n": 77, "r": 3}),
    ],
)
def test_what_is_refused(fill: str, scalars: dict[str, int]) -> None:
    """Radii that nobody knows, are large or change; tiles that lack elements or are not brought."""
    assert refused(unstaged(told(LINE % fill, **scalars)))


def test_a_launch_that_passes_another_number_is_left_alone() -> None:
    text = LINE.replace("2 * r) * 4)", "2 * r) * 4) args(a, out, n, 2 * r)") % (LOOP % "a[0]")
    assert refused(unstaged(told(text, n=77, r=3)))
