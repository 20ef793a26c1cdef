"""Further parameters of a kernel, behind those that it has, and kernels that take the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.tidying import tidied
from optiml_magic.kernels.tree import Variable
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


def kernel_beside(
    kernel: Kernel,
    name: str,
    body: str,
    further: Iterable[str],
    given: Sequence[Variable] | None = None,
) -> str:
    """The text of a kernel of that name with this one's parameters, or those given, and others."""
    function, raw = kernel.function, kernel.unit.syntax.text
    taken = function.parameters if given is None else given
    shown = [raw[slice(*p.span)].decode() for p in taken if p.span is not None]
    head = raw[slice((function.whole or function.span)[0], function.span[0])].decode()
    words = ", ".join([*shown, *further])
    return head + tidied(f"__global__ void {name}({words}) {{\n{body}\n}}")
