"""The members that candidates are evaluated with, chosen by the composition."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from optiml_magic.chips import Chip
from optiml_magic.compilers.base import CompileOptions, Compiler
from optiml_magic.devices.base import Device
from optiml_magic.findings import Tool
from optiml_magic.model.roofline import Roofs
from optiml_magic.profilers.base import Profiler
from optiml_magic.profilers.levels import Levels
from optiml_magic.timings import Timings
from optiml_magic.verifiers.hazards import Inspector

# Which candidates are inspected for hazards: all that run, those that would be the best so far,
# those that are left at the end, or only an input kernel that is to be its own oracle.
Extent = Literal["all", "winners", "finalists", "oracle"]


@dataclass(frozen=True)
class Tools:
    """The members of one session."""

    compiler: Compiler
    options: CompileOptions
    device: Device
    chip: Chip
    profiler: Profiler
    findings: tuple[Tool, ...]
    instructions: int  # budget of one launch, where the device can count
    levels: Levels  # beside the durations, asked once for each batch
    roofs: Callable[[], Roofs]  # of the chip; the first call may measure them
    inspector: Inspector | None = None  # of hazards, where somebody can look for them
    extent: Extent = "winners"
    inspect_seconds: float = math.inf  # that looking for hazards of one program may take
    timings: Timings = field(default_factory=Timings)
    trial_seconds: float = math.inf  # for each of the things that ``Trials`` lists
