"""Which loops of a thread's own elements are written out."""

from __future__ import annotations

from optiml_magic.proposers.rewrites.scalarise_array import ScalariseArray
from tests.ideas import asked

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


def test_searches_come_to_all_places_and_their_arrays_lie_in_registers(propose, compiles):
    sorting = """
    for (int j = 1; j < 8; j++) {
        float key = v[j];
        int at = j - 1;
        while (at >= 0 && v[at] > key) {
            v[at + 1] = v[at];
            at--;
        }
        v[at + 1] = key;
    }
    for (int r = 0; r < 2; r++)"""
    text = TEXT.replace("\n    for (int r = 0; r < 2; r++)", sorting)
    assert ".local" in compiles(text)
    ideas, _ = asked(ScalariseArray(), text)
    assert ideas[0].title == "look for a place in v with constant indices"
    (places, *_) = propose("scalarise_array", text)
    assert ".local" not in compiles(places.text)
