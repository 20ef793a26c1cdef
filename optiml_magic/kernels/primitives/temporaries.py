"""P25, temporaries: locals, casts and helpers that say double become float, but for the arguments.

Somebody wrote them, maybe for the sake of long sums: whether float will do is for the tolerance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Call, Cast, Expr, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.deciding import REASON, doubles, line_decided
from optiml_magic.kernels.primitives.places import reached
from optiml_magic.kernels.primitives.precision import in_float
from optiml_magic.kernels.tree import Block, Declare, Function, walk
from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.program import parse_program

_DOUBLE = re.compile(r"\bdouble\b")


@primitive
def in_single(kernel: Kernel) -> Kernel:
    """The kernel, and what it calls, with such temporaries in float, and what is around them."""
    _check(kernel, (kernel.function, *reached(kernel.unit, kernel.function)))
    plain = _heads(kernel)
    bodies: dict[Function, Block] = {}
    for function in (plain.function, *reached(plain.unit, plain.function)):
        swaps = dict(_swaps(function))
        if swaps:
            bodies[function] = edited(function.body, swaps)
    if not bodies and plain is kernel:
        raise NotLegal("no local says double")
    line = line_decided(kernel, doubles(kernel))
    if line:
        raise NotLegal(REASON, line)
    made = plain.with_bodies(bodies) if bodies else plain
    after = in_float(made)
    return after if isinstance(after, Kernel) else made


def _check(kernel: Kernel, functions: tuple[Function, ...]) -> None:
    for leaf in kernel.reading.verbatim:
        raise NotLegal(f"{leaf.reason} is not read", leaf.line)
    for function in functions:
        kinds = [function.result, *(v.type for v in function.parameters)]
        doubles = [kind for kind in kinds if _double(kernel, kind.base)]
        if doubles and (function is kernel.function or not _may_say_float(kernel, function)):
            raise NotLegal("an argument is double", function.line)
        for statement in walk(function.body):
            for expr in (e for top in statement.expressions for e in every(top)):
                if _elsewhere(kernel, expr):
                    raise NotLegal("what is double goes elsewhere", statement.line)


def _may_say_float(kernel: Kernel, function: Function) -> bool:
    """Whether the head of a helper can say float: it takes and gives numbers, and has no other."""
    same = [f for f in kernel.unit.functions if f.name == function.name]
    kinds = [function.result, *(v.type for v in function.parameters)]
    doubles = [kind for kind in kinds if _double(kernel, kind.base)]
    by_value = all(_DOUBLE.search(k.base) and not k.depth and not k.reference for k in doubles)
    head = function.head
    return (
        by_value and len(same) == 1 and not function.template
        and head is not None and kernel.unit.origin.plain(*head)
    )  # fmt: skip


def _heads(kernel: Kernel) -> Kernel:
    """The kernel beside helpers whose heads say float."""
    edits, raw = [], kernel.unit.text.encode()
    for function in reached(kernel.unit, kernel.function):
        if function.head is not None:
            start, end = kernel.unit.origin.origin(*function.head)
            head = raw[start:end].decode()
            if _DOUBLE.search(head):
                edits.append(Edit(start, end, _DOUBLE.sub("float", head)))
    if not edits:
        return kernel
    program = parse_program(apply(kernel.program.text, edits))
    launch = next(d for d in program.launches if str(d) == str(kernel.launch))
    return replace(kernel, program=program, launch=launch)


def _double(kernel: Kernel, spelled: str) -> bool:
    return bool(_DOUBLE.search(kernel.unit.aliases.get(spelled, spelled)))


def _elsewhere(kernel: Kernel, expr: Expr) -> bool:
    """Whether an expression says double where its bits count: of a pointer, or as an argument."""
    if isinstance(expr, Call):
        own = kernel.unit.called(expr.function, len(expr.arguments))
        named = "double" in expr.function and not own  # such as make_double2
        return named or any(_DOUBLE.search(part) for part in expr.template)
    return isinstance(expr, Cast) and "*" in expr.type and bool(_DOUBLE.search(expr.type))


def _swaps(function: Function) -> Iterator[tuple[Node, Node]]:
    """Declarations and casts with float in the place of double, those inside of others as well."""
    for statement in walk(function.body):
        inner: dict[Node, Node] = {}
        for top in statement.expressions:
            for expr in sorted(every(top), key=lambda e: len([*every(e)])):
                if isinstance(expr, Cast) and _DOUBLE.search(expr.type):
                    inner[expr] = _cast(expr, inner)
        if isinstance(statement, Declare) and _DOUBLE.search(statement.words):
            words = _DOUBLE.sub("float", statement.words)
            yield statement, replace(edited(statement, inner), span=None, words=words)
        elif inner:
            yield from inner.items()


def _cast(cast: Cast, inner: dict[Node, Node]) -> Cast:
    return replace(
        cast,
        span=None,
        type=_DOUBLE.sub("float", cast.type),
        spelled=_DOUBLE.sub("float", cast.spelled),
        operand=edited(cast.operand, inner),
    )
