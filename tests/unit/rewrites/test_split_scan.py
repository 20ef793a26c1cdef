"""Running sums of few threads: what the rule offers, and when it says nothing."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import kernels
from optiml_magic.kernels.primitives.grids import needed
from optiml_magic.proposers.rewrites.split_scan import SplitScan
from optiml_magic.source.program import parse_program
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


@pytest.mark.parametrize(
    ("grid", "block"), [("cdiv(w, 64)", 64), ("cdiv(w, 1)", 1), ("w", 1), ("cdiv(w, 8) * 8", 1)]
)
def test_a_launch_says_how_many_columns_there_are_whatever_its_blocks(
    grid: str, block: int
) -> None:
    """Columns that are fewer than a warp get a block each before they are taken in parts."""
    text = SUMS.replace("cdiv(w, 64)", grid).replace("block(64)", f"block({block})")
    (kernel,) = kernels(parse_program(text), None)
    found = needed(kernel, "x", loads=True)
    assert found is not None
    assert str(found) == "w"
