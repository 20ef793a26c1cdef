"""Numbers chosen by arithmetic: whole warps, blocks for all multiprocessors, warps enough."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.filling import filling
from optiml_magic.model.facts import Facts, LaunchFacts
from optiml_magic.source.program import parse_program

TEXT = """\
#pragma optiml tune B in {16, 48, 64, 256, 1024, 2048} = 64
#pragma optiml launch k grid(cdiv(n, B)) block(B)
__global__ void k(float* a, int n) {}
"""
LAUNCH = parse_program(TEXT).launches[0]


def share(width: int, n: int | None = None) -> float:
    facts = None
    if n is not None:
        found = LaunchFacts("k", LAUNCH.line, (1, 1, 1), (1, 1, 1), {}, {"n": n})
        facts = Facts((found,), {}, 0.0, 0.0, "h200")
    return filling(LAUNCH, {"B": width}, facts)


@pytest.mark.parametrize(
    ("width", "expected"), [(64, 1.0), (16, 0.5), (48, 0.75), (2048, 0.0), (256, 1.0)]
)
def test_without_facts_whole_warps_count(width: int, expected: float) -> None:
    assert share(width) == expected


def test_every_multiprocessor_wants_its_blocks() -> None:
    assert share(64, 132 * 256) > share(256, 64 * 256)  # a chip of 132: half without a block
    assert share(256, 1 << 24) == pytest.approx(1.0, abs=0.02)
    assert share(1024, 133 * 1024) < 0.6  # one block more than there are multiprocessors
    assert share(2048, 1 << 24) == 0.0
