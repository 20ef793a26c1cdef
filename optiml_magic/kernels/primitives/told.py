"""A kernel is told the sizes that its launch alone reads, ``n`` of ``n / 256`` blocks.

Where a grid ends is then known to the kernel: rules that give a block more to do, or a thread less,
have to ask for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from optiml_magic.kernels.primitives.apart import kernel_of
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.defined import said_in
from optiml_magic.model.facts import Facts
from optiml_magic.source.directives import LaunchDirective
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.expressions import parse_expression
from optiml_magic.source.program import Program, parse_program

_GREATEST = 2**31 - 1


def told(program: Program, inputs: Mapping[str, int]) -> Program:
    """The program with an ``int`` parameter for each such size; ``inputs`` are those of the task.

    Kernels with several launches stay as they are, and so do those that have the name themselves.
    """
    for at, launch in enumerate(program.launches):
        alone = [kernel_of(d) for d in program.launches].count(kernel_of(launch)) == 1
        if alone and _sizes(program, launch, inputs):
            try:
                program = _made(program, program.launches[at], inputs)
            except NotLegal:
                continue
    return program


def facts_told(facts: Facts | None, program: Program) -> Facts | None:
    """What is known of the launches of such a program, with the sizes among their scalars."""
    if facts is None:
        return None
    by_line = {launch.line: launch for launch in program.launches}
    known = []
    for launch in facts.launches:
        own = by_line.get(launch.line)
        given = Kernel(program, own).function.parameters if own is not None else ()
        missing = launch.inputs.keys() - launch.scalars.keys()
        more = {
            p.name: launch.inputs[p.name] for p in given if not p.type.depth and p.name in missing
        }
        known.append(replace(launch, scalars={**launch.scalars, **more}) if more else launch)
    return replace(facts, launches=tuple(known))


def _sizes(program: Program, launch: LaunchDirective, inputs: Mapping[str, int]) -> list[str]:
    passed = [a for a in launch.args or () if a.name is None and said_in(a, inputs)]
    read = {name for part in (*launch.grid, *passed) for name in part.names}
    read -= program.values.keys()
    return sorted(name for name in read if 0 < inputs.get(name, 0) <= _GREATEST)


def _made(program: Program, launch: LaunchDirective, inputs: Mapping[str, int]) -> Program:
    kernel = Kernel(program, launch)
    function = kernel.function
    last = function.parameters[-1].span if function.parameters else None
    if last is None or function.template:
        raise NotLegal("where its parameters end is not known")
    seen = kernel.unit.syntax.text[slice(*function.span)].decode()
    sizes = [n for n in _sizes(program, launch, inputs) if not re.search(rf"\b{n}\b", seen)]
    if not sizes:
        return program
    _, end = kernel.unit.origin.origin(*last)
    edits = [Edit(end, end, "".join(f", int {name}" for name in sizes))]
    if launch.args is not None:
        given = (*launch.args, *map(parse_expression, sizes))
        start, stop = (len(program.text[:at].encode()) for at in (launch.start, launch.end))
        edits.append(Edit(start, stop, str(replace(launch, args=given))))
    return parse_program(apply(program.text, edits))
