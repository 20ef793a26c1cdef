"""Numbers that a launch passes stand in its kernel: ``args(x, 2, n)`` makes ``const float a = 2;``.

Rules then see what is the same for all threads of the launch, and what it passes has names, so
that it may be one with the launch beside it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace

from optiml_magic.errors import SourceError
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.dispatched import declaration
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.signature import split_name
from optiml_magic.kernels.tree import Variable
from optiml_magic.kernels.types import named
from optiml_magic.source.directives import LaunchDirective
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.expressions import Expression
from optiml_magic.source.lexer import lex
from optiml_magic.source.program import Program, parse_program

_WIDE = 1 << 31  # from which on a literal without a suffix may have another type


def passed(program: Program) -> Program:
    """The program with such numbers in kernels that one launch alone names.

    As it was where a kernel changes such a parameter, or where a macro has a part of its head.
    """
    names = [split_name(launch.kernel or "")[0] for launch in program.launches]
    for at, name in enumerate(names):
        launch = program.launches[at]
        if names.count(name) == 1 and any(_number(a) is not None for a in launch.args or ()):
            try:
                program = _made(program, launch)
            except NotLegal:
                continue
    return program


def _number(argument: Expression) -> int | None:
    if argument.names or argument.arrays:
        return None
    try:
        return argument.evaluate({})
    except SourceError:
        return None


def _made(program: Program, launch: LaunchDirective) -> Program:
    kernel = Kernel(program, launch)
    function, given = kernel.function, launch.args or ()
    if len(given) != len(function.parameters):
        raise NotLegal("its launch passes more or less than its parameters", function.line)
    values = {p: _shown(n) for p, a in zip(function.parameters, given, strict=True)
              if (n := _number(a)) is not None and _holds(kernel, p, n)}  # fmt: skip
    return with_constants(kernel, values)


def with_constants(kernel: Kernel, values: Mapping[Variable, str]) -> Program:
    """The program whose kernel has these parameters as constants of its own, where they stay.

    What they are is said by the parameters that are left; one launch alone names the kernel.
    """
    program, launch, function = kernel.program, kernel.launch, kernel.function
    unit, raw = kernel.unit, kernel.program.text.encode()
    declaration(unit, function)
    bare = function.name.rpartition("::")[2]
    if len(re.findall(rf"\b{re.escape(bare)}\b", lex(program.text).code)) != 1:
        raise NotLegal("the kernel is named elsewhere in the text", function.line)
    changed = {v.name for v in Effects(kernel).changed(function.body)} | Effects(kernel).moved
    values = {p: words for p, words in values.items() if p.name not in changed}
    if not values:
        raise NotLegal("the kernel changes every parameter that could be a constant", function.line)
    span = function.body.span
    if span is None or not unit.origin.whole(*span):
        raise NotLegal("a macro makes its body", function.line)
    start = unit.origin.origin(*span)[0] + 1
    if raw[start - 1 : start] != b"{":
        raise NotLegal("where its body begins is not known", function.line)
    spelled = [f"\n    const {p.type.base} {p.name} = {words};" for p, words in values.items()]
    left = tuple(
        argument
        for parameter, argument in zip(function.parameters, launch.args or (), strict=True)
        if parameter not in values
    )
    new = replace(launch, args=left)
    begin, end = (len(program.text[:at].encode()) for at in (launch.start, launch.end))
    edits = [*without_parameters(kernel, values), Edit(start, start, "".join(spelled)),
             Edit(begin, end, str(new))]  # fmt: skip
    return parse_program(apply(program.text, edits))


def _holds(kernel: Kernel, parameter: Variable, number: int) -> bool:
    """Whether a parameter is a plain number, of a type that holds this one as it is passed."""
    if parameter.type.depth or parameter.array or parameter.type.reference:
        return False
    kind = named(parameter.type.base, kernel.unit.aliases)
    if kind.depth or kind.lanes != 1 or kind.size is None:
        return False
    if kind.kind == "float":
        return kind.size >= 4 and -(1 << 24) <= number <= 1 << 24
    if kind.kind == "bool":
        return number in (0, 1)
    bits = 8 * kind.size - kind.signed
    return kind.kind == "int" and (-(1 << bits) if kind.signed else 0) <= number < 1 << bits


def _shown(number: int) -> str:
    return str(number) if -_WIDE < number < _WIDE else f"{number}LL"


def without_parameters(kernel: Kernel, unasked: Collection[Variable]) -> list[Edit]:
    """What takes these parameters out of the head, with a comma each."""
    spans = []
    for parameter in kernel.function.parameters:
        if parameter.span is None or not kernel.unit.origin.whole(*parameter.span):
            raise NotLegal("where its parameters stand is not known", kernel.function.line)
        spans.append(kernel.unit.origin.origin(*parameter.span))
    gone = [parameter in unasked for parameter in kernel.function.parameters]
    first = gone.index(False) if False in gone else len(gone)
    edits = [Edit(spans[at - 1][1], spans[at][1], "") for at in range(first, len(gone)) if gone[at]]
    if first:
        end = spans[first][0] if first < len(gone) else spans[-1][1]
        edits.append(Edit(spans[0][0], end, ""))
    return edits
