"""Tiles that turn: whatever the launch, each element comes to where it went before."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.digits import Digits
from optiml_magic.kernels.primitives.transposed import Tile, turn
from optiml_magic.kernels.primitives.turns import Turn
from tests.present import sampled

from .running import same
from .shapes import applied, kernel, refused

_PLANE = """\
#pragma optiml launch k grid(cdiv(cols, 32), cdiv(rows, 8)) block(32, 8)
__global__ void k(const float* a, float* out, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || col >= cols) return;
    %s
}
"""
PLANE = _PLANE % "out[col * rows + row] = a[row * cols + col];"
FLAT = """\
#pragma optiml launch k grid(cdiv(n * c * hw, 128)) block(128)
__global__ void k(const float* a, float* out, int n, int c, int hw) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * c * hw) return;
    int image = i / (c * hw), channel = i / hw % c, p = i - i / hw * hw;
    float v = 2.0f * a[i] + channel;
    out[(image * hw + p) * c + channel] = v > 1.0f ? v : a[i];
}
"""
LINES = """\
#pragma optiml launch k grid(cdiv(cols, 64), rows) block(64)
__global__ void k(const unsigned char* a, unsigned char* out, int rows, int cols) {
    int x = blockIdx.x * 64 + threadIdx.x;
    if (x < cols) out[x * rows + blockIdx.y] = a[blockIdx.y * cols + x];
}
"""
VOLUME = """\
#pragma optiml launch k grid(cdiv(nx, 8), cdiv(ny, 4), cdiv(nz, 2)) block(8, 4, 2)
__global__ void k(const double* a, double* out, int nx, int ny, int nz) {
    int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
    int z = blockIdx.z * 2 + threadIdx.z;
    if (x < nx && y < ny && z < nz) out[(x * ny + y) * nz + z] = a[(z * ny + y) * nx + x];
}
"""
MACRO = """\
#define AT(i, j, ld) ((i) * (ld) + (j))
#pragma optiml launch k grid((rows + 7) / 8, cdiv(cols, 8)) block(8, 8)
__global__ void k(const float* a, float* out, int rows, int cols) {
    if (blockIdx.x * 8 + threadIdx.x >= rows || blockIdx.y * 8 + threadIdx.y >= cols) return;
    float v = a[AT(blockIdx.x * 8 + threadIdx.x, blockIdx.y * 8 + threadIdx.y, cols)];
    out[AT(blockIdx.y * 8 + threadIdx.y, blockIdx.x * 8 + threadIdx.x, rows)] = v;
}
"""
STEPS = """\
#pragma optiml launch k grid(cdiv(b * c * d * e, 64)) block(64)
__global__ void k(const float* a, float* out, int b, int c, int d, int e) {
    %s i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (%s)b * c * d * e) return;
    int q = i %% e, p = i / e %% d, r = (i / (d * e)) %% c, s = i / (c * d * e) %% b;
    out[((p * b + s) * e + q) * c + r] = a[i] + r;
}
"""
CASES = {
    "digits of an index": (
        STEPS % ("int", "int"),
        {"a": ("b", "c", "d", "e"), "out": ("d", "b", "e", "c")},
        {"b": 2, "c": 13, "d": 3, "e": 19},
    ),
    "digits of a wide index": (
        STEPS % ("size_t", "size_t"),
        {"a": ("b", "c", "d", "e"), "out": ("d", "b", "e", "c")},
        {"b": 3, "c": 11, "d": 2, "e": 18},
    ),
    "macro": (MACRO, {"a": ("rows", "cols"), "out": ("cols", "rows")}, {"rows": 12, "cols": 19}),
    "plane": (PLANE, {"a": ("rows", "cols"), "out": ("cols", "rows")}, {"rows": 37, "cols": 45}),
    "flat": (
        FLAT,
        {"a": ("n", "c", "hw"), "out": ("n", "hw", "c")},
        {"n": 2, "c": 13, "hw": 35},
    ),
    "lines of bytes": (
        LINES,
        {"a": ("u1", "rows", "cols"), "out": ("u1", "cols", "rows")},
        {"rows": 9, "cols": 70},
    ),
    "volume of doubles": (
        VOLUME,
        {"a": ("f8", "nz", "ny", "nx"), "out": ("f8", "nx", "ny", "nz")},
        {"nx": 11, "ny": 5, "nz": 18},
    ),
}


@pytest.mark.parametrize("name", sampled(CASES))
def test_a_copy_that_turns_stays_what_it_was(name: str) -> None:
    text, shapes, sizes = CASES[name]
    values = {"TILE_ROWS": 16, "TILE_COLS": 32, "THREADS": 32, "PAD": 1}
    same(text, turn(kernel(text), Tile()), shapes, sizes, values)


def test_lanes_load_along_one_index_and_store_along_the_other() -> None:
    found = applied(turn(kernel(PLANE.replace("float", "double")), Tile()))
    (load,) = found.reading.of("a")
    (store,) = found.reading.of("out")
    for access, lanes in ((load, "TILE_COLS"), (store, "TILE_ROWS")):
        assert access.index is not None
        by = access.index.coefficient(f"%(threadIdx.x, {lanes})")
        assert by is not None
        assert by.value == 1
    (barrier,) = found.reading.barriers
    assert barrier.guard == ()
    assert barrier.loops == ()


def test_an_index_is_cut_where_the_kernel_cuts_it() -> None:
    digits = Digits(kernel(FLAT))
    (own,) = digits.axes.values()
    assert [str(d.count) for d in own] == ["None", "c", "hw"]
    assert [str(d.weight) for d in own] == ["c*hw", "hw", "1"]
    parts = Turn(kernel(FLAT))
    assert [str(d.name) for d in (parts.load, parts.store)] == ["@x2", "@x1"]
    (turned,) = parts.turned
    assert len(turned.accesses) == 2


TURN = "out[col * rows + row] = v + a[row * cols + col];"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("out[col * rows + row] = a[row * cols + col]; __syncthreads();", "its threads wait"),
        ("cols = cols; out[col * rows + row] = a[row * cols + col];", "it changes its parameter"),
        (
            "float v = a[row * cols + col]; for (;;) { if (v > 1) return; out[col * rows + row] = v; }",
            "the kernel is left within a loop",
        ),
        (
            f"float v = 0; for (int k = 0; k < 9; ++k) v += a[row * 9 + k]; {TURN}",
            "rounds would load `a` against the grain",
        ),
        ("out[row * cols + col] = a[row * cols + col];", "nothing is loaded along another"),
        ("out[col * rows + row] = out[row * cols + col];", "nothing is loaded along another"),
    ],
)
def test_what_cannot_be_turned_is_refused(body: str, reason: str) -> None:
    assert refused(turn(kernel(_PLANE % body), Tile()))[0].startswith(reason)


def test_without_a_bound_on_what_it_stores_a_tile_may_not_reach_further() -> None:
    text = PLANE.replace("if (row >= rows || col >= cols) return;", "")
    assert refused(turn(kernel(text), Tile()))[0].startswith("its guards and its launch")
    exact = text.replace("cdiv(cols, 32)", "cols / 32").replace("cdiv(rows, 8)", "rows")
    assert refused(turn(kernel(exact), Tile()))[0].startswith("its guards and its launch")
    lines = exact.replace("cols / 32", "cols").replace("block(32, 8)", "block(1, 1)")
    shapes = {"a": ("rows", "cols"), "out": ("cols", "rows")}
    same(lines, turn(kernel(lines), Tile(16, 16)), shapes, {"rows": 21, "cols": 19})


def test_no_thread_divides_for_digits_that_the_tile_has() -> None:
    made = applied(turn(kernel(STEPS % ("int", "int")), Tile())).program.text
    ours = ("THREADS", "TILE_")
    cuts = [s for s in made.rpartition("__syncthreads")[2].splitlines() if "/" in s or "%" in s]
    assert all(any(name in line for name in ours) for line in cuts if "aligned" not in line), cuts
