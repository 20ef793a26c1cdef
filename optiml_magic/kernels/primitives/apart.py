"""A kernel of its own for each launch, where several launches name one, as two sweeps in turn do.

What is changed for one launch, such as its blocks, the other then does not see.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.dispatched import declaration
from optiml_magic.kernels.signature import split_name
from optiml_magic.model.facts import Facts
from optiml_magic.source.directives import LaunchDirective
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.program import Program, parse_program

_MOST = 4  # launches of a kernel that get one each: ours
_MANY, _SHORT = 8, 8192  # launches, where all copies have no more characters than that: ours


def apart(program: Program) -> Program:
    """The program with a copy of a kernel for each further launch of it.

    As it was where a kernel cannot be copied, where the host chooses one of its launches, or where
    there are many.
    """
    steps = program.alternatives
    for own in launched_often(program):
        alone = all(len(step) == 1 for step in steps if own in map(kernel_of, step))
        if alone:
            try:
                program = _copied(program, own)
            except NotLegal:
                continue
    return program


def launched_often(program: Program) -> dict[str, int]:
    """The kernels that several launches name, and how many these are."""
    launches = (launch for step in program.alternatives for launch in step)
    return {own: count for own, count in Counter(map(kernel_of, launches)).items() if count > 1}


def facts_apart(facts: Facts | None, before: Program, after: Program) -> Facts | None:
    """What is known of the launches, under the names and on the lines that they have now."""
    if facts is None or before is after:
        return facts
    now = {old.line: new for old, new in zip(before.launches, after.launches, strict=True)}
    known = tuple(
        replace(launch, line=own.line, kernel=own.kernel or launch.kernel)
        for launch in facts.launches
        if (own := now.get(launch.line)) is not None
    )
    return replace(facts, launches=known)


def kernel_of(launch: LaunchDirective) -> str:
    """The kernel that a launch names, without template arguments; nothing where it names none."""
    return split_name(launch.kernel or "")[0]


def _copied(program: Program, own: str) -> Program:
    first, *others = (launch for launch in program.launches if kernel_of(launch) == own)
    kernel = Kernel(program, first)
    function, unit, raw = kernel.function, kernel.unit, program.text.encode()
    start, end = declaration(unit, function)
    source, bare = raw[start:end].decode(), function.name.rpartition("::")[2]
    named = re.compile(rf"\b{re.escape(bare)}(?=\s*\()")
    if len(re.findall(rf"\b{re.escape(bare)}\b", source)) != 1 or not named.search(source):
        raise NotLegal("its name does not stand in front of its parameters alone", function.line)
    count = len(others) + 1
    if count > _MOST and (count > _MANY or count * len(source) > _SHORT):
        raise NotLegal("it has many launches", function.line)
    taken, edits, copies = list[str](), list[Edit](), list[str]()
    for launch in others:
        taken.append(kernel.fresh(f"{bare}_{len(taken) + 2}", *taken))
        spelled = launch.kernel or bare
        new = re.sub(rf"\b{re.escape(bare)}\b", taken[-1], spelled, count=1)
        edits.append(renamed(program, launch, new))
        copies.append(f"\n\n{named.sub(taken[-1], source)}")
    edits.append(Edit(end, end, "".join(copies)))
    if first.kernel is None:
        edits.append(renamed(program, first, bare))
    return parse_program(apply(program.text, edits))


def renamed(program: Program, launch: LaunchDirective, kernel: str) -> Edit:
    """The edit by which a launch names another kernel."""
    start, end = (len(program.text[:at].encode()) for at in (launch.start, launch.end))
    return Edit(start, end, str(replace(launch, kernel=kernel)))
