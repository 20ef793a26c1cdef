"""A kernel that does nothing, for a process of ncu to count before anything else is known."""

from __future__ import annotations

from optiml_magic.devices.base import Case, Job
from optiml_magic.model.build import Build, CompileFailure
from optiml_magic.model.launch import Launch, LaunchPlan
from optiml_magic.profilers.roofs import Compile

_TEXT = 'extern "C" __global__ void nothing() {}\n'
_NAME = "nothing"
_ONE = (1, 1, 1)


def nothing(compile_: Compile) -> tuple[Case, Build, Job] | None:
    """A run of it without inputs; None where it does not compile."""
    build = compile_(_TEXT, (_NAME,))
    if isinstance(build, CompileFailure):
        return None
    plan = LaunchPlan((Launch(build.names[_NAME], _ONE, _ONE, 0, ()),))
    return Case(_NAME, ()), build, Job(_NAME, plan, 0, False, 1 << 20)
