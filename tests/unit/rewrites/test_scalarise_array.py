"""Which loops of a thread's own elements are written out."""

from __future__ import annotations

from optiml_magic.proposers.rewrites.scalarise_array import ScalariseArray
from optiml_magic.source.program import parse_program
from tests.ideas import asked
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of

TEXT = """
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v[8];
    for (int j = 0; j < 8; j++) v[j] = a[j * n + i];
    #pragma unroll
    for (int j = 0; j < 8; j++) c[j * n + i] = v[7 - j];
    for (int r = 0; r < 2; r++)
        for (int q = 0; q < 3; q++) c[8 * n + 6 * i + 3 * r + q] = v[r + q];
}"""

HELD = "hold a thread's elements of c in registers"


def test_what_lies_in_memory_and_what_is_local(propose, compiles):
    alone = TEXT.replace("c[j * n + i] = v[7 - j]", "v[j] *= v[7 - j]")
    ideas, refused = asked(ScalariseArray(), alone)
    assert not refused
    assert [(idea.title, idea.prior) for idea in ideas] == [
        ("unroll the loops that index a local array", 0.4),
        (f"{HELD}, which the lanes of a warp bring and store together: BLOCK = 128", 0.82),
        (HELD, 0.78),
    ]
    (_, rows, *_, held) = propose("scalarise_array", alone)
    assert "BLOCK in {64, 128, 256}" in rows.text
    assert ".local" not in compiles(rows.text)
    assert ".local" not in compiles(held.text)
    assert len(asked(ScalariseArray(), TEXT)[0]) == 2  # others are stored to: not held


def test_loops_without_end_are_none():
    ideas, refused = asked(
        ScalariseArray(), TEXT.replace("< 8", "< n").replace("< 2", "< n").replace("< 3", "< n")
    )
    assert (ideas, refused) == ([], [])


CELLS = """\
#pragma optiml launch k grid(cdiv(w, 32), cdiv(h, 4)) block(32, 4)
__global__ void k(const float* f, float* g, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float sum = 0.0f;
    for (int q = 0; q < 9; q++) sum += f[(y * w + (x + q) % w) * 9 + q];
    for (int q = 0; q < 9; q++) g[(y * w + x) * 9 + q] = sum * q;
}
"""


def test_cells_of_a_plane_are_stored_by_the_warps_of_its_rows(propose):
    rows = propose("scalarise_array", CELLS)[0].text
    assert "block(BLOCK_X, 1)" in rows
    assert "store_units<9>" in rows
    arrays = {"f": Array("f4", ("h", "w", "9")), "g": Array("f4", ("h", "w", "9"), "zeros")}
    for columns in (128, 64):
        after = parse_program(rows).with_values({"BLOCK_X": columns}).text
        assert end_of(CELLS, after, arrays, {"w": 97, "h": 5}, {"w": 3, "h": 1}) == "same"
