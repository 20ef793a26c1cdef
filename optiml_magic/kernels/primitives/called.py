"""Kernels whose parameters are called as what their launch passes, so that two may be one."""

from __future__ import annotations

import re
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.tree import Declare, Variable, expressions, walk
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.program import parse_program


@primitive
def called_alike(kernel: Kernel) -> Kernel:
    """The kernel with its parameters under the names of what is passed; nothing else changes."""
    given, function = kernel.launch.args, kernel.function
    if given is None:
        return kernel
    named: dict[Variable, str] = {}
    for parameter, argument in zip(function.parameters, given, strict=True):
        if argument.name is None:
            raise NotLegal(f"what is passed as `{parameter.name}` has no name", function.line)
        named[parameter] = argument.name
    if len({*named.values()}) < len(named):
        raise NotLegal("one array is passed under two names", function.line)
    others = {v: new for v, new in named.items() if v.name != new}
    hidden = {v.name for s in walk(function.body) if isinstance(s, Declare) for v in s.variables}
    for new in others.values():
        if new in hidden:
            raise NotLegal(f"a local is called `{new}` as well", function.line)
    swaps: dict[Node, Node] = {
        e: Name(None, others[e.variable], e.variable)
        for e in expressions(function.body)
        if isinstance(e, Name) and e.variable in others
    }
    body = edited(function.body, swaps) if swaps else function.body
    made = kernel.rewritten(body, launch=replace(kernel.launch, args=None), tidy=False)
    raw, edits = made.program.text.encode(), []
    for parameter in made.function.parameters:
        new = next((n for v, n in others.items() if v.name == parameter.name), "")
        if new and parameter.span is not None:
            start, end = made.unit.origin.origin(*parameter.span)
            words = raw[start:end].decode()
            edits.append(
                Edit(
                    start,
                    end,
                    re.sub(rf"\b{parameter.name}\b(?!.*\b{parameter.name}\b)", new, words),
                )
            )
    program = parse_program(apply(made.program.text, edits))
    again = next(d for d in program.launches if str(d) == str(made.launch))
    return replace(made, program=program, launch=again)
