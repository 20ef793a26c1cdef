"""Which launch has the tail, and what is said of it."""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.chips import chip
from optiml_magic.findings.tail_effect import TailEffect
from optiml_magic.model.build import Build, Resources
from optiml_magic.model.facts import Facts, LaunchFacts
from optiml_magic.model.hypothesis import TIME
from optiml_magic.model.launch import Launch, LaunchPlan
from optiml_magic.model.measurement import Measurement
from optiml_magic.profilers.metrics import fitted
from optiml_magic.profilers.occupancy import occupancy

from .test_subject import subject

TEXT = """\
// two launches
#pragma optiml launch first grid(528) block(512)
#pragma optiml launch second grid(529) block(512)
__global__ void first(float* out) { out[threadIdx.x] = 1.0f; }
__global__ void second(float* out) { out[threadIdx.x] = 2.0f; }
"""
LAUNCHES = (("first", 528), ("second", 529))
NARROW = Resources(16, 0, 0, 0, 0)


def test_the_launch_with_one_block_too_many_is_named_by_its_line() -> None:
    launches = tuple(Launch(n, (g, 1, 1), (512, 1, 1), 0, ()) for n, g in LAUNCHES)
    fit = occupancy(chip("h200"), launches[1], NARROW)
    measured = Measurement("h200", "events", 1e-3, 1.01, tuple(fitted(fit)), (), ())
    facts = tuple(
        LaunchFacts(x.kernel, line, x.grid, x.block, {}, {}) for line, x in enumerate(launches, 2)
    )
    found = replace(
        subject(TEXT, measured=measured),
        plan=LaunchPlan(launches),
        build=Build("", b"", {}, {"first": NARROW, "second": NARROW}, (), (), ""),
        facts=Facts(facts, {}, 0.0, 0.0, "h200"),
    )
    (finding,) = TailEffect().diagnose(found)
    assert finding.line == 3
    assert "Of 529 blocks 528 fit on the chip at once, so they take 2 waves" in finding.cause
    stride, smaller = finding.actions
    assert (stride.metric, stride.direction) == ("launch__waves_per_multiprocessor", "lower")
    assert (smaller.rewrite, smaller.metric) == ("block_size", TIME)
