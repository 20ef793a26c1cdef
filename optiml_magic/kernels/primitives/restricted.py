"""P21, qualify: pointers that lead to arrays of their own say so.

A compiler has to assume that a store may change what any other pointer leads to, so it neither
keeps nor reorders loads across one. Source: CUDA C++ Programming Guide, "__restrict__".
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.tree import Variable
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.program import parse_program

_WORD = re.compile(r"\b__restrict(?:__)?\s*\b")


@primitive
def restricted(kernel: Kernel) -> Kernel:
    """The kernel with ``__restrict__`` on the pointers that ``alone`` names."""
    found = alone(kernel)
    if not found:
        raise NotLegal("no pointer is known to lead to an array of its own")
    edits, raw = [], kernel.unit.text.encode()
    for variable in found:
        assert variable.span is not None
        start, end = kernel.unit.origin.origin(*variable.span)
        spelled = raw[start:end].decode()
        name = variable.name
        if not spelled.endswith(name) or not kernel.unit.origin.plain(*variable.span):
            raise NotLegal(f"`{name}` is not declared in one place", variable.line)
        apart = "" if spelled[: -len(name)].endswith(("*", " ")) else " "
        edits.append(Edit(end - len(name), end, f"{apart}__restrict__ {name}"))
    return _edited(kernel, edits)


def shared_by_threads(kernel: Kernel, names: Collection[str]) -> Kernel:
    """The kernel without ``__restrict__`` on these pointers, by which threads exchange values.

    A compiler keeps what such a pointer led to over a barrier, since nobody else is to write it.
    """
    edits, raw = [], kernel.unit.text.encode()
    for variable in kernel.function.parameters:
        if variable.name not in names or not variable.restrict or variable.span is None:
            continue
        start, end = kernel.unit.origin.origin(*variable.span)
        spelled = raw[start:end].decode()
        plain = _WORD.sub("", spelled)
        if plain == spelled or not kernel.unit.origin.plain(*variable.span):
            raise NotLegal(f"`{variable.name}` says that nobody else writes it", variable.line)
        edits.append(Edit(start, end, plain))
    return _edited(kernel, edits) if edits else kernel


def _edited(kernel: Kernel, edits: list[Edit]) -> Kernel:
    program = parse_program(apply(kernel.program.text, edits))
    launch = next(d for d in program.launches if str(d) == str(kernel.launch))
    return replace(kernel, program=program, launch=launch)


def alone(kernel: Kernel) -> tuple[Variable, ...]:
    """The pointers to which no other one of the launch leads, and that do not say so yet.

    Only what the launch is bound to tells: of a kernel by itself nothing is known. An array by
    which threads exchange values at a barrier is not one thread's own.
    """
    facts = kernel.facts
    if facts is None:
        return ()
    exchanged = _exchanged(kernel)
    found = []
    for variable in kernel.function.parameters:
        own = facts.arrays.get(variable.name)
        if own is None or variable.restrict or variable.type.depth != 1 or variable.extents:
            continue
        if variable.name in exchanged:
            continue
        others = (n for n in facts.arrays if n != variable.name)
        if variable.type.volatile or any(facts.aliased(variable.name, n) for n in others):
            continue
        found.append(variable)
    return tuple(found)


def _exchanged(kernel: Kernel) -> frozenset[str]:
    """What is written and touched otherwise as well, where threads wait for each other."""
    if not kernel.reading.barriers:
        return frozenset()
    touched = {a.array for a in kernel.reading.accesses if a.mode != "store" and a.array}
    return frozenset(kernel.reading.written & touched)


def held_up(kernel: Kernel) -> int:
    """The line of a load that has to wait for a store to another array; 0 where none has.

    It comes after the store, or is in one loop with it.
    """
    accesses = [a for a in kernel.reading.accesses if a.space == "global" and a.array]
    for at, store in enumerate(accesses):
        if store.mode == "load":
            continue
        for place, load in enumerate(accesses):
            later = place > at or bool({*store.loops} & {*load.loops})
            if load.mode == "load" and load.array != store.array and later:
                return load.line
    return 0
