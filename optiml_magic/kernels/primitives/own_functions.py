"""Functions of its own for a kernel that a dispatch chooses, where the other side has them too.

What a step changes in them then leaves the other side, which is the input kernel, as it was.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.dispatched import declaration
from optiml_magic.kernels.primitives.places import reached
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.program import parse_program


@primitive
def own_functions(kernel: Kernel) -> Kernel:
    """The functions that it shares with other kernels under names of their own."""
    if kernel.launch.condition is None:
        raise NotLegal("no other launch stands beside its own")
    unit, raw = kernel.unit, kernel.program.text.encode()
    others = (k for k in unit.kernels if k is not kernel.function)
    theirs = set(chain.from_iterable(reached(unit, other) for other in others))
    shared = [f for f in reached(unit, kernel.function) if f in theirs]
    if not shared:
        raise NotLegal("no other kernel calls its functions")
    if any(f.method or "::" in f.name for f in shared):
        raise NotLegal("a function that it shares belongs to a structure or a namespace")
    names: dict[str, str] = {}
    for function in shared:
        if function.name not in names:
            names[function.name] = kernel.fresh(f"{function.name}_fast", *names.values())
    called = re.compile(rf"\b({'|'.join(map(re.escape, names))})(?=\s*[(<])")

    def renamed(start: int, end: int) -> str:
        return called.sub(lambda found: names[found[1]], raw[start:end].decode())

    own = [f for f in unit.functions if f.name in names]
    places = sorted(declaration(unit, function) for function in own)
    start, end = declaration(unit, kernel.function)
    copies = "".join(f"{renamed(*place).strip()}\n\n" for place in places)
    program = parse_program(
        apply(kernel.program.text, [Edit(start, end, copies + renamed(start, end))])
    )
    launch = next(d for d in program.launches if str(d) == str(kernel.launch))
    return replace(kernel, program=program, launch=launch)
