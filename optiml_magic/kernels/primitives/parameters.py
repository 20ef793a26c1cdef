"""Further parameters of a kernel, behind those that it has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.program import parse_program


def with_parameters(kernel: Kernel, declared: Iterable[str]) -> Kernel:
    """The kernel with these parameters as well; its launch passes them already."""
    last = kernel.function.parameters[-1].span
    if last is None:
        raise NotLegal("where its parameters end is not known")
    if b"=" in kernel.unit.syntax.text[slice(*last)]:
        raise NotLegal("a parameter behind one with a default value has to have one")
    _, end = kernel.unit.origin.origin(*last)
    edit = Edit(end, end, "".join(f", {one}" for one in declared))
    program = parse_program(apply(kernel.program.text, [edit]))
    launch = next(d for d in program.launches if str(d) == str(kernel.launch))
    return replace(kernel, program=program, launch=launch)
