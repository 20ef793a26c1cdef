"""Kernels whose parameters are called as what their launch passes, so that two may be one."""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.primitives.as_passed import as_passed
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.program import parse_program


@primitive
def called_alike(kernel: Kernel) -> Kernel:
    """The kernel with its parameters under the names of what is passed; nothing else changes."""
    given, function = kernel.launch.args, kernel.function
    if given is None:
        return kernel
    for parameter, argument in zip(function.parameters, given, strict=True):
        if argument.name is None:
            raise NotLegal(f"what is passed as `{parameter.name}` has no name", function.line)
    passed = [argument.name for argument in given]
    if len({*passed}) < len(passed):
        raise NotLegal("one array is passed under two names", function.line)
    at = [str(launch) for launch in kernel.program.launches].index(str(kernel.launch))
    program = as_passed(kernel.program)
    launch = program.launches[at]
    for parameter, name in zip(Kernel(program, launch).function.parameters, passed, strict=True):
        if parameter.name != name:
            raise NotLegal(f"`{name}` already names something else in the kernel", function.line)
    own = replace(launch, args=None)
    start, end = (len(program.text[:place].encode()) for place in (launch.start, launch.end))
    program = parse_program(apply(program.text, [Edit(start, end, str(own))]))
    return replace(kernel, program=program, launch=program.launches[at])
