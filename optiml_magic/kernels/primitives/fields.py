"""Normal form: a local vector whose members change becomes a local for each of its members.

``float3 a = make_float3(0, 0, 0); ... a.x += d.x * w;`` becomes ``float a_x = 0, ...; a_x += ...``,
so that each sum is seen to be one. What only holds what it was given stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Braces,
    Call,
    Expr,
    Lambda,
    Member,
    Name,
    Step,
    Unary,
    Unread,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.tree import Block, Declare, Evaluate, Statement, Variable, walk
from optiml_magic.kernels.types import CType, named

_FIELDS = "xyzw"


@dataclass(frozen=True)
class _Vector:
    """A local that is taken apart, and the names of what it becomes."""

    variable: Variable
    type: CType
    names: tuple[str, ...]

    def name(self, field: str) -> str:
        return self.names[_FIELDS.index(field)]

    @property
    def whole(self) -> str:
        return f"make_{self.type.name}({', '.join(self.names)})"


@primitive
def fields(kernel: Kernel) -> Kernel:
    """The kernel with such locals taken apart; there must be one."""
    found = {vector.variable: vector for vector in _vectors(kernel)}
    if not found:
        raise NotLegal("no member of a local vector changes")
    swaps: dict[Node, Node] = {}
    bases = set[Expr]()
    body = kernel.function.body
    for expr in (e for s in walk(body) for top in s.expressions for e in every(top)):
        match expr:
            case Member(base=Name(variable=Variable() as own) as base, field=field) if own in found:
                swaps[expr] = Name(None, found[own].name(field))
                bases.add(base)
    for expr in (e for s in walk(body) for top in s.expressions for e in every(top)):
        if isinstance(expr, Name) and expr.variable in found and expr not in bases:
            swaps[expr] = text(found[expr.variable].whole)
    changes: dict[Node, Node | tuple[Statement, ...]] = {**swaps}
    for statement in walk(body):
        made = _written(kernel, statement, found, swaps)
        if made:
            changes[statement] = tuple(map(lines, made))
    return kernel.rewritten(edited(body, changes))


def _written(
    kernel: Kernel, statement: Statement, found: dict[Variable, _Vector], swaps: dict[Node, Node]
) -> list[str]:
    """The statements that one becomes which declares or gives whole vectors; else none."""

    def shown(expr: Expr) -> str:
        return kernel.show(Evaluate(None, 0, expr), swaps).strip().removesuffix(";")

    match statement:
        case Declare(variables=(variable,)) if variable in found:
            vector = found[variable]
            kind, given = vector.type.lane.name, _parts(kernel, variable, vector.type)
            if given is not None:
                pairs = zip(vector.names, map(shown, given), strict=True)
                return [f"{kind} {', '.join(f'{name} = {value}' for name, value in pairs)};"]
            if variable.value is None:
                return [f"{kind} {', '.join(vector.names)};"]
            whole = kernel.fresh(f"{variable.name}_whole")
            begun = f"const {vector.type.name} {whole} = {shown(variable.value)};"
            each = ", ".join(
                f"{n} = {whole}.{f}" for n, f in zip(vector.names, _FIELDS, strict=False)
            )
            return [begun, f"{kind} {each};"]
        case Evaluate(expression=Assign(op="=", target=Name(variable=own), value=value)):
            if own is None or own not in found:
                return []
            vector = found[own]
            made = _made(kernel, value, vector.type)
            if made is not None and _in_turn(own, made):
                pairs = zip(vector.names, map(shown, made), strict=True)
                return [f"{name} = {value};" for name, value in pairs]
            whole = kernel.fresh(f"{own.name}_next")
            begun = f"const {vector.type.name} {whole} = {shown(value)};"
            parts = [f"{n} = {whole}.{f};" for n, f in zip(vector.names, _FIELDS, strict=False)]
            return ["\n".join(["{", begun, *parts, "}"])]
    return []


def _parts(kernel: Kernel, variable: Variable, kind: CType) -> Sequence[Expr] | None:
    """What the members of a local begin with, where its declaration says so one by one."""
    if variable.value is not None:
        return _made(kernel, variable.value, kind)
    return variable.initial if len(variable.initial) == kind.lanes else None


def _made(kernel: Kernel, value: Expr, kind: CType) -> Sequence[Expr] | None:
    """The members of a vector that is made of them."""
    match value:
        case Call(function=function, arguments=given) if function == f"make_{kind.name}":
            members = () if kernel.unit.called(function, len(given)) else given
        case Braces(members=members):
            pass
        case _:
            return None
    return members if len(members) == kind.lanes else None


def _in_turn(variable: Variable, members: Sequence[Expr]) -> bool:
    """Whether no member is made of those that are given a value before it."""
    before = set[str]()
    for field, member in zip(_FIELDS, members, strict=False):
        for expr in every(member):
            match expr:
                case Member(base=Name(variable=own), field=other) if own is variable:
                    if other in before:
                        return False
                case Name(variable=own) if own is variable and expr not in _bases(member):
                    return False
        before.add(field)
    return True


def _bases(expr: Expr) -> set[Expr]:
    return {e.base for e in every(expr) if isinstance(e, Member)}


def _vectors(kernel: Kernel) -> Iterator[_Vector]:
    """Locals of built-in vector types that change in a loop, and that nobody else may reach."""
    body, taken = kernel.function.body, list[str]()
    exprs = [e for s in walk(body) for top in s.expressions for e in every(top)]
    looped = {e for loop in loops_in(body) for s in walk(loop) for top in s.expressions
              for e in every(top)}  # fmt: skip
    changed = {_target(e) for e in exprs if e in looped}
    reached = _reached(kernel, exprs)
    inside = [s for block in walk(body) if isinstance(block, Block) for s in block.body]
    for statement in (s for s in inside if isinstance(s, Declare) and len(s.variables) == 1):
        (variable,) = statement.variables
        if variable not in changed or variable in reached or variable.type.reference:
            continue
        kind = named(variable.type.base, kernel.unit.aliases)
        plain = variable.storage == "local" and not variable.array and not variable.type.depth
        if not plain or kind.kind != "vector" or kind.lane.name not in _MADE:
            continue
        if variable.initial and _parts(kernel, variable, kind) is None:
            continue
        names = [kernel.fresh(f"{variable.name}_{f}", *taken) for f in _FIELDS[: kind.lanes]]
        taken += names
        yield _Vector(variable, kind, tuple(names))


def _target(expr: Expr) -> Variable | None:
    """The local of which a member, or all, is given a value."""
    if not isinstance(expr, Assign | Step):
        return None
    target = expr.target.base if isinstance(expr.target, Member) else expr.target
    return target.variable if isinstance(target, Name) else None


_MADE = frozenset({"float", "double", "int", "unsigned int", "long", "unsigned long"})


def _reached(kernel: Kernel, exprs: Sequence[Expr]) -> set[Variable | None]:
    """What is asked for by more than members and values: addresses, references, other fields."""
    found = set[Variable | None]()
    bodies = [s for s in walk(kernel.function.body) if isinstance(s, Declare)]
    for declared in (v for s in bodies for v in s.variables if v.type.reference or v.type.depth):
        given = [declared.value] if declared.value is not None else [*declared.initial]
        found |= {e.variable for top in given for e in every(top) if isinstance(e, Name)}
    for expr in exprs:
        match expr:
            case Unary(op="&", operand=operand):
                found |= {e.variable for e in every(operand) if isinstance(e, Name)}
            case Lambda() | Unread():
                found |= {e.variable for e in every(expr) if isinstance(e, Name)}
            case Member(base=Name(variable=own), field=field, arrow=arrow):
                if arrow or field not in _FIELDS or len(field) != 1:
                    found.add(own)
            case Step(target=Name(variable=own)):
                found.add(own)
            case Assign(op=op, target=Name(variable=own)) if op != "=":
                found.add(own)
            case Call(function=function, arguments=arguments):
                for called in kernel.unit.called(function, len(arguments)):
                    pairs = zip(called.parameters, arguments, strict=False)
                    found |= {
                        a.variable for p, a in pairs if p.type.reference and isinstance(a, Name)
                    }
    alone = {s.expression for s in walk(kernel.function.body) if isinstance(s, Evaluate)}
    for expr in exprs:
        if isinstance(expr, Assign) and isinstance(expr.target, Name) and expr not in alone:
            found.add(expr.target.variable)
    return found
