"""Against figures of the vendor's occupancy calculator."""

from __future__ import annotations

import pytest

from optiml_magic.chips import chip
from optiml_magic.model.build import Resources
from optiml_magic.model.launch import Launch
from optiml_magic.profilers.occupancy import occupancy


def fit(name: str, threads: int, registers: int, shared: int = 0, blocks: int = 10**6):  # type: ignore[no-untyped-def]
    launch = Launch("k", (blocks, 1, 1), (threads, 1, 1), shared, ())
    return occupancy(chip(name), launch, Resources(registers, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("name", "threads", "registers", "shared", "blocks", "limiter"),
    [
        ("h200", 256, 32, 0, 8, "warps"),
        ("h200", 256, 64, 0, 4, "registers"),
        ("h200", 1024, 64, 0, 1, "registers"),
        ("h200", 32, 16, 0, 32, "blocks"),
        ("h200", 256, 32, 48 * 1024, 4, "shared"),
        ("a100", 256, 32, 48 * 1024, 3, "shared"),
        ("t4", 256, 32, 0, 4, "warps"),
        ("rtx4090", 256, 40, 0, 6, "warps"),
        ("h200", 128, 255, 0, 2, "registers"),
    ],
)
def test_known_configurations(  # type: ignore[no-untyped-def]
    name: str, threads: int, registers: int, shared: int, blocks: int, limiter: str
) -> None:
    found = fit(name, threads, registers, shared)
    assert (found.blocks, found.limiter) == (blocks, limiter)


def test_a_small_grid_is_its_own_limit() -> None:
    found = fit("h200", 256, 32, blocks=132)
    assert found.limiter == "grid"
    assert found.warps == 8
    assert found.waves == pytest.approx(1 / 8)


def test_a_block_that_does_not_fit_has_no_occupancy() -> None:
    assert fit("t4", 256, 32, shared=65 * 1024).blocks == 0
