from __future__ import annotations

import pytest

from optiml_magic.bench.floors import SECTOR, Floor, Gather
from optiml_magic.bench.suite import SUITE
from optiml_magic.chips import chip
from optiml_magic.profilers.roofs import published

H200 = chip("h200")
ROOFS = published(H200)


def test_the_longest_resource_is_the_floor() -> None:
    by_memory = Floor(48 * 10**9)
    assert by_memory.seconds(H200, ROOFS) == (pytest.approx(0.01), "memory")
    by_special = Floor(1, special=int(16 * 132 * 1.98e9))
    assert by_special.seconds(H200, ROOFS) == (pytest.approx(1.0), "special")
    by_operations = Floor(1, flops=int(2 * H200.fp32_flops))
    assert by_operations.seconds(H200, ROOFS) == (pytest.approx(2.0), "fp32")
    assert Floor(1).seconds(H200, ROOFS) == (ROOFS.launch, "launch")


def test_a_gather_moves_whole_sectors_and_a_cache_keeps_some_of_them() -> None:
    few = Gather(1000, 4, 1 << 30)
    assert few.moved(0) == pytest.approx(1000 * SECTOR, rel=1e-3)
    many = Gather(1 << 26, 4, 1 << 20)
    assert many.distinct == pytest.approx(1 << 20)
    assert many.moved(1 << 20) == pytest.approx(1 << 20)
    assert many.moved(1 << 19) == pytest.approx((1 << 20) + ((1 << 31) - (1 << 20)) / 2)
    wide = Gather(10, 3072, 1 << 30)
    assert wide.moved(0) == pytest.approx(10 * 3072, rel=1e-3)


@pytest.mark.parametrize("entry", SUITE, ids=lambda e: e.name)
def test_work_on_a_gpu_is_well_above_what_a_launch_costs(entry) -> None:  # type: ignore[no-untyped-def]
    seconds, _ = entry.floor(**entry.full).seconds(H200, ROOFS)
    assert 6 * ROOFS.launch < seconds < 5e-3
