"""Sums and products that a launch passes, ``args(h, B * H)``, as constants of other parameters.

``const int n = B * H;`` means in the kernel what the launch says in its grid. So does a size that
is passed twice, ``args(a, b, n, n)``.
"""

from __future__ import annotations

from collections.abc import Mapping

from optiml_magic.kernels.primitives.apart import kernel_of
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.passed import with_constants
from optiml_magic.kernels.tree import Variable
from optiml_magic.kernels.types import named
from optiml_magic.source.directives import LaunchDirective
from optiml_magic.source.expressions import Binary, Expression, Name, Node, Number
from optiml_magic.source.program import Program

_SIZES = (4, 8)


def defined(program: Program, inputs: Mapping[str, int]) -> Program:
    """The program with such constants in kernels that one launch alone names.

    ``inputs`` are the whole numbers of the task, none of which may be negative in these.
    """
    names = [kernel_of(launch) for launch in program.launches]
    for at, name in enumerate(names):
        if names.count(name) == 1 and program.launches[at].args is not None:
            try:
                program = _made(program, program.launches[at], inputs)
            except NotLegal:
                continue
    return program


def said_in(argument: Expression, inputs: Mapping[str, int]) -> bool:
    """Whether an argument is a sum of products of sizes, and more than one of them alone."""
    plain = not argument.arrays and _grows(argument.tree)
    return plain and bool(argument.names) and all(inputs.get(n, 0) > 0 for n in argument.names)


def _made(program: Program, launch: LaunchDirective, inputs: Mapping[str, int]) -> Program:
    kernel = Kernel(program, launch)
    parameters, given = kernel.function.parameters, launch.args or ()
    if len(given) != len(parameters):
        raise NotLegal("its launch passes more or less than its parameters", kernel.function.line)
    known = {
        p.name
        for p, a in zip(parameters, given, strict=True)
        if a.name == p.name and _whole(kernel, p)
    }
    values = {
        p: _words(p, a) for p, a in zip(parameters, given, strict=True)
        if p.name not in known and _whole(kernel, p) and a.names and a.names <= known
        and said_in(a, inputs)
    }  # fmt: skip
    return with_constants(kernel, values)


def _words(parameter: Variable, argument: Expression) -> str:
    base = parameter.type.base
    first = min(argument.names, key=str(argument).index)
    wide = base != "int" and isinstance(argument.tree, Binary)
    return str(argument).replace(first, f"({base}){first}", 1) if wide else str(argument)


def _whole(kernel: Kernel, parameter: Variable) -> bool:
    kind = named(parameter.type.base, kernel.unit.aliases)
    plain = not parameter.type.depth and not parameter.type.reference and not parameter.array
    return plain and kind.kind == "int" and kind.size in _SIZES


def _grows(node: Node) -> bool:
    """Whether nothing is taken away on the way, so that no part is more than the whole."""
    match node:
        case Number(value=value):
            return value >= 0
        case Name():
            return True
        case Binary(op="+" | "*", left=left, right=right):
            return _grows(left) and _grows(right)
    return False
