"""Running sums of few threads: what the rule offers, and when it says nothing."""

from __future__ import annotations

import pytest

from optiml_magic.proposers.rewrites.split_scan import SplitScan
from tests.ideas import asked, made

SUMS = """
#pragma optiml launch sums grid(cdiv(w, 64)) block(64)
__global__ void sums(const float* x, float* y, int h, int w) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= w) return;
    float s = 0.0f;
    for (int r = 0; r < h; r++) { s += x[r * w + c]; y[r * w + c] = s; }
}"""


def test_the_parts_are_two_launches(compiles) -> None:
    (idea,), refused = asked(SplitScan(), SUMS)
    assert idea.arithmetic == ("the order of additions",)
    assert not refused
    text, *_ = (proposal.text for proposal in made([idea]))
    compiles(text)
    assert text.count("#pragma optiml launch") == 2
    (exact,), _ = asked(SplitScan(), SUMS.replace("float", "int").replace("0.0f", "0"))
    assert exact.arithmetic == ()


@pytest.mark.parametrize("old", ["s += x[r * w + c]; ", "y[r * w + c] = s;"])
def test_what_only_adds_up_or_only_stores_has_no_parts(old: str) -> None:
    assert not asked(SplitScan(), SUMS.replace(old, ""))[0]


def test_rows_that_are_fewer_than_a_warp_have_a_block_for_each_part() -> None:
    """Twelve chromosomes: a block of one thread has as many items as its launch says, too."""
    one = SUMS.replace("cdiv(w, 64)", "cdiv(w, 1)").replace("block(64)", "block(1)")
    for text in (one, one.replace("cdiv(w, 1)", "w")):
        (idea,), _ = asked(SplitScan(), text)
        parts, *_ = (proposal.text for proposal in made([idea]))
        assert parts.count("#pragma optiml launch") == 2
