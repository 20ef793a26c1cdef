"""P26, sizes in ints: a kernel that counts in 64 bits, or without a sign, counts in ``int``.

Programs take ``size_t`` for every size, and what is made of sizes has that type as well: places of
threads, counters, places in arrays. Where none of these is beyond 31 bits, which the launch then
asks of the sizes, an ``int`` holds them. A place below zero was one far beyond all sizes: what is
compared with a size is then asked whether it is negative.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from optiml_magic.kernels.editing import edited
from optiml_magic.kernels.expressions import (
    Braces,
    Call,
    Cast,
    Lambda,
    Name,
    Unread,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.between import Between
from optiml_magic.kernels.primitives.int_places import Ints, is_wide
from optiml_magic.kernels.primitives.type_names import names_in
from optiml_magic.kernels.tree import Blank, Declare, Variable, Verbatim, walk
from optiml_magic.kernels.types import CType, named
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.expressions import parse_expression
from optiml_magic.source.program import parse_program

_WORD = re.compile(r"[A-Za-z_]\w*")
_OF_TYPES = ("sizeof", "alignof", "noexcept", "typeid")


@primitive
def in_ints(kernel: Kernel) -> Kernel:
    """The kernel whose sizes and places are ints."""
    function = kernel.function
    if function.template:
        raise NotLegal("it is a template", function.line)
    if not any(is_wide(_kind(kernel, v)) for v in _variables(kernel)):
        raise NotLegal("it counts in ints")
    between = Between(kernel)
    chosen = _chosen(kernel, between)
    if not chosen:
        raise NotLegal("it has no sizes or places that an int is known to hold", function.line)
    _stand_alone(kernel, chosen)
    swaps = Ints(kernel, between, chosen).swaps()
    asked = [RequireDirective(parse_expression(words)) for words in between.asked]
    made = kernel.rewritten(edited(function.body, swaps), directives=asked)
    return _declared(made, [v for v in function.parameters if v in chosen])


def _variables(kernel: Kernel) -> Iterator[Variable]:
    yield from kernel.function.parameters
    for statement in walk(kernel.function.body):
        if isinstance(statement, Declare):
            yield from statement.variables


def _kind(kernel: Kernel, variable: Variable) -> CType:
    """The type of a variable, of ``auto`` that of its value."""
    value = variable.value if variable.type.base == "auto" else None
    told = kernel.reading.types.get(value) if value is not None else None
    return told or named(variable.type.base, kernel.unit.aliases)


def _chosen(kernel: Kernel, between: Between) -> frozenset[Variable]:
    """The sizes, places and counters that an int holds."""
    found = set[Variable]()
    for variable in kernel.function.parameters:
        if _is_one(kernel, between, variable):
            found.add(variable)
    for statement in walk(kernel.function.body):
        if isinstance(statement, Declare):
            known = [_is_one(kernel, between, v) for v in statement.variables]
            if all(known) and re.fullmatch(r"[\w\s:]+", statement.words):
                found.update(statement.variables)
    return frozenset(found)


def _is_one(kernel: Kernel, between: Between, variable: Variable) -> bool:
    effects = between.effects
    if (
        not is_wide(_kind(kernel, variable))
        or variable.array
        or variable.type.depth
        or variable.type.reference
    ):
        return False
    if variable.type.volatile or variable in effects.lent:
        return False
    if variable.storage == "parameter":
        size = between.held(variable)
        return size is not None and size.low == size.high and between.fits(size)
    lasting = variable in effects.lasting and variable.storage == "local"
    if not lasting and (variable.storage != "local" or between.counts(variable) is None):
        return False
    return between.fits(between.held(variable))


def _stand_alone(kernel: Kernel, chosen: frozenset[Variable]) -> None:
    """Raise NotLegal where a part that is not read asks for one of these, or for its type."""
    body, called = kernel.function.body, {v.name for v in chosen}
    if names_in(kernel, body):
        raise NotLegal("it declares types or macros of its own", kernel.function.line)
    for statement in walk(body):
        parts = [e for top in statement.expressions for e in every(top)]
        if isinstance(statement, Verbatim):
            parts += [e for top in statement.mentions for e in every(top)]
            asked = any(isinstance(e, Name) and e.name in called for e in parts)
            if asked or statement.inner:
                raise NotLegal(f"{statement.reason} is not read", statement.line)
        words = [statement.words] if isinstance(statement, Declare) else []
        words += [e.type for e in parts if isinstance(e, Cast | Braces)]
        words += [one for e in parts if isinstance(e, Call) for one in e.template]
        if isinstance(statement, Blank):  # such as what is asserted of a type
            words.append(kernel.show(statement))
        for part in parts:
            if isinstance(part, Call) and part.function in _OF_TYPES:
                words += [e.name for e in every(part) if isinstance(e, Name)]
        if called & {name for one in words for name in _WORD.findall(one)}:
            raise NotLegal("it asks for the type of a size", statement.line)
        for part in parts:
            if isinstance(part, Lambda | Unread) and any(
                isinstance(e, Name) and e.name in called for e in every(part)
            ):
                raise NotLegal("a part that is not read asks for a size", statement.line)


def _declared(kernel: Kernel, parameters: list[Variable]) -> Kernel:
    """The kernel with these parameters as ints."""
    raw, edits, called = kernel.unit.text.encode(), list[Edit](), {v.name for v in parameters}
    for variable in kernel.function.parameters:
        if variable.name not in called:
            continue
        if variable.span is None or not kernel.unit.origin.plain(*variable.span):
            raise NotLegal(f"`{variable.name}` is not declared in one place", variable.line)
        start, end = kernel.unit.origin.origin(*variable.span)
        words = re.fullmatch(rf"([\w\s:]+)\b{variable.name}", raw[start:end].decode())
        if words is None:
            raise NotLegal(f"`{variable.name}` is not declared in one place", variable.line)
        const = "const " if "const" in words[1].split() else ""
        edits.append(Edit(start, end, f"{const}int {variable.name}"))
    if not edits:
        return kernel
    program = parse_program(apply(kernel.program.text, edits))
    launch = next(d for d in program.launches if str(d) == str(kernel.launch))
    return replace(kernel, program=program, launch=launch)
