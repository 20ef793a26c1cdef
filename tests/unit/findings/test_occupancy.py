"""What limits how many warps are resident, and what is advised against which limit."""

from __future__ import annotations

from optiml_magic.findings.occupancy_limiter import OccupancyLimiter
from optiml_magic.model.finding import Finding
from optiml_magic.model.measurement import Measurement, Metric

from .test_subject import subject


def found(percent: float, waves: float, grid: int, **limits: float) -> list[Finding]:
    """Of a kernel on 132 multiprocessors; ``limits`` are blocks of one, by resource."""
    given = {
        "sm__maximum_warps_per_active_cycle_pct": percent,
        "launch__waves_per_multiprocessor": waves,
        "launch__grid_size": grid,
        **{f"launch__occupancy_limit_{name}": value for name, value in limits.items()},
    }
    metrics = tuple(Metric(name, value, "", "estimated") for name, value in given.items())
    measured = Measurement("h200", "events", 1e-5, 1.01, metrics, (), ())
    return list(OccupancyLimiter().diagnose(subject(measured=measured)))


def test_blocks_of_one_warp_leave_half_of_the_warps_out_and_larger_ones_mend_it() -> None:
    (finding,) = found(50.0, 60.0, 250_000, blocks=32, warps=64)
    assert "the limit is blocks" in finding.cause
    (action,) = finding.actions
    assert (action.rewrite, action.metric) == (
        "block_size",
        "sm__maximum_warps_per_active_cycle_pct",
    )
    assert action.factor[1] == finding.gain[1] == 2.0


def test_half_of_the_warps_is_enough_where_registers_are_the_limit() -> None:
    assert found(50.0, 60.0, 250_000, registers=4, warps=8) == []
    (finding,) = found(37.5, 60.0, 250_000, registers=3, warps=8)
    assert "the limit is registers" in finding.cause


def test_a_grid_that_reaches_nearly_all_multiprocessors_needs_threads_not_smaller_blocks() -> None:
    (finding,) = found(12.5, 0.12, 128, warps=8)
    assert [action.rewrite for action in finding.actions] == ["row_to_lanes", "split_reduction"]
    (finding,) = found(12.5, 0.09, 100, warps=8)
    rewrites = [action.rewrite for action in finding.actions]
    assert rewrites == ["row_to_lanes", "split_reduction", "block_size"]
    assert finding.actions[2].factor[1] == 1.32


def test_most_of_the_chip_idle_is_a_warning() -> None:
    (finding,) = found(12.5, 0.03, 33, warps=8)
    assert finding.severity == "warning"
    assert "leaves 99 of 132 multiprocessors without any" in finding.cause
    assert finding.gain[1] == 4.0
