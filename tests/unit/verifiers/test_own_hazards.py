"""Hazards at smaller sizes than those of the task, where the input kernel may have its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from optiml_magic.devices.base import Case, Job
from optiml_magic.evaluation import stages
from optiml_magic.evaluation.finalists import hazards
from optiml_magic.evaluation.stages import Context, Measured
from optiml_magic.model.build import Build
from optiml_magic.model.hazard import Hazard
from optiml_magic.model.task import Task
from optiml_magic.model.verdict import Outcome, OutputCheck, Writer
from optiml_magic.preparation import Prepared
from optiml_magic.problem import prepare
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.verifiers.hazards import Inspection

TEXT = """#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}
"""
BEYOND = Inspection((Hazard("out_of_bounds", "an invalid read of 4 bytes", "", 4),))


@dataclass
class Tool:
    """Stands in for compute-sanitizer, which needs a card: it blames these builds, or all."""

    blamed: str = ""
    name: str = "tool"

    def put(self, case: Case) -> None:
        """It reads nothing."""

    def warm(self) -> None:
        """Nothing to start."""

    def close(self) -> None:
        """Nothing was started."""

    def inspect(self, runs: Sequence[tuple[Build, Job]]) -> list[Inspection]:
        return [BEYOND if self.blamed in build.ptx else Inspection(()) for build, _ in runs]

    def writer(self, build: Build, job: Job, check: OutputCheck) -> Writer | None:
        return None


@pytest.mark.parametrize("blamed", ["", "another"])
def test_what_the_input_kernel_does_as_well_is_not_held_against_others(blamed: str) -> None:
    def inputs(rng: np.random.Generator, n: int) -> dict[str, object]:
        return {"x": rng.random(n, dtype=np.float32), "n": n}

    task = Task(TEXT, lambda x, n: 2 * x, inputs, sizes={"n": 1 << 14}, outputs={"out": "f4[n]"})
    other = TEXT.replace("void k(", "void another(").replace("launch k", "launch another")
    with session(resolve({"device": "emulated:h200"}), task=task) as members:
        tools = replace(members.tools, inspector=Tool(blamed), inspect_seconds=0.0)
        context = Context.of(prepare(task, seeds=1), tools, exact=False, thorough=False)
        root = stages.prepare(TEXT, context)
        assert isinstance(root, Prepared)
        measured = stages.measure(root, context, math.inf, first=True)
        assert isinstance(measured, Measured)
        stages.learn(root, context, measured.measurement)
        candidate = stages.prepare(other, context)
        assert isinstance(candidate, Prepared)
        found, notes = hazards({1: candidate}, context, 1.0)
    if blamed:
        assert found[1].outcome is Outcome.OUT_OF_BOUNDS
    else:
        assert not found
        assert "the input kernel has some at n = " in notes[0]
