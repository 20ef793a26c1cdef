"""What the tools look at: a measurement, and the program, the build and the launches it is of."""

from __future__ import annotations

from dataclasses import dataclass

from optiml_magic.chips import Chip
from optiml_magic.model.build import Build
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.model.measurement import Measurement
from optiml_magic.source.program import Program


@dataclass(frozen=True)
class Subject:
    """One program on one chip, as measured."""

    chip: Chip
    measured: Measurement
    program: Program
    build: Build
    plan: LaunchPlan
