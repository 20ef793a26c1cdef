"""Loops over tables of neighbours are written out with the numbers of these; other loops stay."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.known_offsets import known_offsets
from optiml_magic.proposers.rewrites.share_loads import ShareLoads
from tests.ideas import asked, made
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 8)) block(16, 8)
{0}
__global__ void k(const int* a, int* out, int w, int h) {{
    {1}
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
    int s = 0;
    {2}
    out[y * w + x] = s;
}}
"""
DX, DY = "dx[4] = {-1, 0, 1, 0}", "dy[4] = {0, -1, 0, 1}"
ROUND = "s = s * 3 + a[(y + dy[k]) * w + x + dx[k]];"
LOOP = f"for (int k = 0; k < 4; ++k) {ROUND}"
ARRAYS = {"a": Array("i4", ("w * h",), "positive"), "out": Array("i4", ("w * h",), "zeros")}
SIZES = {"w": 70, "h": 21}, {"w": 5, "h": 3}


@pytest.mark.parametrize(
    ("outside", "inside", "body"),
    [
        ("", f"const int {DX}, {DY};", LOOP),
        ("", f"constexpr short {DX}; signed char {DY};", LOOP),
        (f"__constant__ int {DX};\n__constant__ char {DY};  // down", "", LOOP),
        (f"__device__ const int {DX}, {DY};", "", f"#pragma unroll\n    {LOOP}"),
        (
            "__constant__ int off[][2] = { {-1, 0}, {0, -1},\n {1, 0}, {0, 1} };", "",
            (
                "for (int k = 3; k >= 0; k--) { int ny = y - off[k][1], nx = x + -off[k][0]; "
                "if (nx == 1 || k == 2) continue; s = s * 3 + k - a[ny * w + nx]; }"
            ),
        ),
        (
            "", f"const int {DX}, {DY};",
            (
                "for (int t = 1; t < 9; t += 2) { int k = t; s = s * 5 + "
                "a[(y + dy[(t + 1) % 4]) * w + x + dx[t & 3]] * dx[t / 4]; }"
            ),
        ),
        ("", f"const int {DX}, {DY};", f"if (a[y * w + x] > 1) {LOOP} {LOOP}"),
    ],
)  # fmt: skip
def test_rounds_say_which_neighbours_they_take(outside: str, inside: str, body: str) -> None:
    text = TEXT.format(outside, inside, body)
    after = written(known_offsets(kernel_of(text)))
    assert "for (" not in after
    assert "dx[k]" not in after
    assert end_of(text, after, ARRAYS, *SIZES) == "same"


@pytest.mark.parametrize(
    ("outside", "inside", "body"),
    [
        ("", f"int {DX}, {DY};", f"dx[1] = 1; {LOOP}"),
        ("", f"int {DX}, {DY}; int* p = dx;", f"p[1] = 1; {LOOP}"),
        ("", f"int {DX}, {DY};", f"int* p = &dx[1]; *p = 1; {LOOP}"),
        ("", f"const unsigned {DX}; const int {DY};", LOOP.replace("dy[k]", "0")),
        ("", f"const unsigned char {DX}; const int {DY};", LOOP.replace("dy[k]", "0")),
        ("", f"const int {DX}, {DY};", LOOP.replace("; ++k", " && s < 9; ++k")),
        ("", f"const int {DX}, {DY};", f"for (int k = 0; k < 4; ++k) {{ {ROUND} if (s > 9) break; }}"),
        ("", f"const int {DX}, {DY};", f"for (int k = a[x] & 3; k < 4; ++k) {ROUND}"),
        ("", f"const int {DX}, {DY};", "for (int k = 0; k < 4; ++k) s += dx[k] * a[y * w + x - k % 2];"),
        ("", f"const int {DX}, {DY};", "s = a[(y + dy[x & 3]) * w + x + dx[x & 3]];"),
        (f"__device__ int {DX}, {DY};", "", LOOP),
        (f"__constant__ int {DX}, {DY};", "int dx[4]; dx[0] = dx[1] = dx[2] = dx[3] = 1; const int* dy = a;",
         LOOP.replace("dy[k]", "0 * dy[k]")),
        ("__constant__ int dx[4] = {-01, 010, 0, 0};", f"const int {DY};", LOOP.replace("dy[k]", "0")),
    ],
)  # fmt: skip
def test_other_tables_and_loops_stay(outside: str, inside: str, body: str) -> None:
    found = known_offsets(kernel_of(TEXT.format(outside, inside, body)))
    assert refused(found) == "no short loop takes neighbours of its items by a table"


def test_items_share_the_neighbours_of_a_table() -> None:
    text = TEXT.format(f"__constant__ int {DX}, {DY};", "", LOOP)
    programs = [p.text for p in made(asked(ShareLoads(), text)[0])]
    assert programs
    for program in programs:
        assert end_of(text, program, ARRAYS, *SIZES) == "same"
