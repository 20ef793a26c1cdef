"""Rows and columns of a plane of threads that have nothing to do with each other."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.lines_apart import lines_apart
from optiml_magic.kernels.primitives.raised import raised

from .running import same
from .shapes import applied, kernel, refused

ROWS = """\
#pragma optiml launch k grid(GRID) block(32, 4)
__global__ void k(float* x, float* y, int n, int m) {
    __shared__ float part[4][32];
    int lane = threadIdx.x, line = threadIdx.y, row = FIRST * 4 + line;
    float v = 0;
    if (row < m)
        for (int c = lane; c < n; c += 32) v += x[row * n + c];
    part[line][lane] = v;
    __syncthreads();
    for (int k = 16; k > 0; k >>= 1) {
        if (lane < k) part[line][lane] += part[line][lane + k];
        __syncthreads();
    }
    if (lane == 0 && row < m) y[row] = part[line][0];
}
"""
COLUMNS = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32, 8)
__global__ void k(const float* x, float* y, int n, int m) {
    __shared__ float part[8][33];
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    float v = 0;
    if (c < n)
        for (int r = threadIdx.y; r < m; r += blockDim.y) v += x[r * n + c];
    part[threadIdx.y][threadIdx.x] = v;
    __syncthreads();
    for (int k = 4; k > 0; k /= 2) {
        if (threadIdx.y < k) part[threadIdx.y][threadIdx.x] += part[threadIdx.y + k][threadIdx.x];
        __syncthreads();
    }
    if (threadIdx.y == 0 && c < n) y[c] = part[0][threadIdx.x];
}
"""
SHAPES = {"x": ("m", "n"), "y": ("m",)}
TALL = ROWS.replace("GRID", "1, cdiv(m, 4)").replace("FIRST", "blockIdx.y")
WIDE = ROWS.replace("GRID", "(m + 3) / 4").replace("FIRST", "blockIdx.x")
FLAT = (
    WIDE.replace("part[4][32]", "part[128]").replace("part[line][lane", "part[t")
    .replace("part[line][0]", "part[line * 32]").replace("float v = 0;", "float v = 0; int t = PLACE;")
)  # fmt: skip


@pytest.mark.parametrize(("n", "m"), [(1, 1), (37, 5), (70, 9)])
@pytest.mark.parametrize(
    "text",
    [
        TALL,
        WIDE,
        WIDE.replace("row = blockIdx.x * 4 + line", "row = line + blockDim.y * blockIdx.x"),
        FLAT.replace("PLACE", "line * blockDim.x + lane"),
        FLAT.replace("PLACE", "(threadIdx.y << 5) + lane"),
        FLAT.replace("PLACE", "lane + 32 * line"),
        WIDE.replace("y[row] =", "y[row] = row % 4 + line * gridDim.y + "),
    ],
)
def test_a_row_a_block(text: str, n: int, m: int) -> None:
    made = lines_apart(kernel(text))
    assert "block(32)" in str(applied(made).launch)
    assert "[32]" in applied(made).program.text
    same(text, made, SHAPES, {"n": n, "m": m})
    same(text, raised(kernel(text)), SHAPES, {"n": n, "m": m}, rounds=True)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (37, 5), (70, 19)])
def test_a_column_a_block(n: int, m: int) -> None:
    shapes = {"x": ("m", "n"), "y": ("n",)}
    made = lines_apart(kernel(COLUMNS))
    assert "grid(n) block(8)" in str(applied(made).launch)
    same(COLUMNS, made, shapes, {"n": n, "m": m})
    same(COLUMNS, raised(kernel(COLUMNS)), shapes, {"n": n, "m": m}, rounds=True)


def test_a_row_may_be_changed_in_its_place() -> None:
    text = WIDE.replace(
        "if (lane == 0 && row < m) y[row]",
        "if (row < m) for (int c = lane; c < n; c += 32) x[row * n + c] /= part[line][0];\n"
        "    if (lane == 0 && row < m) y[row]",
    )
    same(text, lines_apart(kernel(text)), SHAPES, {"n": 70, "m": 9})


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("part[line][lane + k]", "part[3 - line][lane + k]", "more of `part` than is its own"),
        ("part[line][lane + k]", "part[lane][line]", "more of `part` than is its own"),
        ("y[row] =", "y[row] = part[0][lane] +", "more of `part` than is its own"),
        ("row = blockIdx.x * 4 + line", "row = blockIdx.x * 3 + line", "its lines are not those"),
        ("row = blockIdx.x * 4 + line", "row = blockIdx.x + line", "its lines are not those"),
        ("y[row] =", "y[row] = gridDim.x +", "counts the blocks"),
        ("y[row] =", "y[row] = *&part[line][0] + part[line - 1 + 1][0] +", "than is its own"),
        ("part[line][lane] = v;", "float* p = part[line]; p[lane] = v;", "not a plane of elements"),
        ("part[line][lane] = v;", "part[line][lane] = v; x[row * n] = 3;", "what another stores"),
        ("x[row * n + c];", "y[m - 1 - row];", "what another stores"),
        ("block(32, 4)", "block(32, 4) shared(128)", "dynamic shared memory"),
        ("block(32, 4)", "block(32, 4, 2)", "two axes"),
        ("float v = 0;", "float v = __syncthreads_count(n > 3);", "agrees"),
        (
            "part[line][lane] = v;",
            "if (line == 0) y[0] = 1; __syncthreads(); part[line][lane] = v;",
            "what another stores",
        ),
    ],
)
def test_lines_that_have_to_do_with_each_other_stay(old: str, new: str, reason: str) -> None:
    assert old in WIDE
    text = WIDE.replace(old, new)
    if "p[lane]" in new:
        text = text.replace("part[line][lane] +=", "part[line][lane] = part[line][lane] +")
    assert reason in refused(lines_apart(kernel(text)))[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if (lane < k)", "if (lane < k + 1)"),  # the last lane asks for the next line's first
        ("int k = 16", "int k = 32"),
        ("part[t + k]", "part[t * 1 + k + 31]"),
        ("part[128]", "part[130]"),
    ],
)
def test_a_part_of_another_line_in_an_array_of_one_extent_stays(old: str, new: str) -> None:
    text = FLAT.replace("PLACE", "line * 32 + lane")
    assert old in text
    found = refused(lines_apart(kernel(text.replace(old, new))))[0]
    assert "part" in found or "plane" in found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if (lane == 0 && row < m) y[row] = part[line * 32];",
         "t = 32 * line; if (lane == 0 && row < m) y[row] = part[t];"),
        ("if (lane == 0 && row < m) y[row] = part[line * 32];",
         "{ int lane = 3; if (threadIdx.x == 0 && row < m) y[row] = part[t] + lane; }"),
    ],
)  # fmt: skip
def test_an_index_that_changes_or_whose_names_are_hidden_stays(old: str, new: str) -> None:
    text = FLAT.replace("PLACE", "line * 32 + lane")
    assert old in text
    assert "t" in refused(lines_apart(kernel(text.replace(old, new))))[0]
