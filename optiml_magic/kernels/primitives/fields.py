"""Normal form: a local vector or structure that changes becomes a local for each of its members.

``float3 a = make_float3(0, 0, 0); ... a.x += d.x * w;`` becomes ``float a_x = 0, ...; a_x += ...``,
so that each sum is seen to be one. What only holds what it was given stays as it is, but where
such a local is given it as a whole, ``best = cand``, which then is seen member by member.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Braces,
    Call,
    Choice,
    Expr,
    Lambda,
    Literal,
    Member,
    Name,
    Step,
    Unary,
    Unread,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.tree import Block, Declare, Evaluate, Leave, Statement, Variable, walk
from optiml_magic.kernels.types import CType, named

_LANES = "xyzw"


@dataclass(frozen=True)
class Apart:
    """A variable that is taken apart: its members, their types, and the names that these get."""

    variable: Variable
    type: CType
    members: tuple[str, ...]
    kinds: tuple[str, ...]
    names: tuple[str, ...]

    def name(self, member: str) -> str:
        return self.names[self.members.index(member)]

    def whole(self, at: str = "") -> str:
        """The value that its members make; of an array, that of the element ``at`` a place."""
        own = ", ".join(f"{name}{at}" for name in self.names)
        return (
            f"make_{self.type.name}({own})"
            if self.type.kind == "vector"
            else f"{self.type.name}{{{own}}}"
        )

    def begun(self, values: Iterable[str]) -> str:
        """Declarations of the members, those of one type together."""
        each = [f"{name} = {value}" for name, value in zip(self.names, values, strict=True)]
        return self._declared(each)

    def open(self) -> str:
        """Declarations of members that have no value yet."""
        return self._declared(self.names)

    def _declared(self, each: Sequence[str]) -> str:
        made = [
            (kind, [*(w for _, w in own)])
            for kind, own in groupby(zip(self.kinds, each, strict=True), key=lambda one: one[0])
        ]
        return "\n".join(f"{kind} {', '.join(words)};" for kind, words in made)


@primitive
def fields(kernel: Kernel) -> Kernel:
    """The kernel with such locals taken apart; there must be one."""
    found = {local.variable: local for local in _locals(kernel)}
    if not found:
        raise NotLegal("no member of a local changes")
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
            swaps[expr] = text(found[expr.variable].whole())
    changes: dict[Node, Node | tuple[Statement, ...]] = {**swaps}
    for statement in walk(body):
        made = _written(kernel, statement, found, swaps)
        if made:
            changes[statement] = tuple(map(lines, made))
    return kernel.rewritten(edited(body, changes))


def _written(
    kernel: Kernel, statement: Statement, found: dict[Variable, Apart], swaps: dict[Node, Node]
) -> list[str]:
    """The statements that one becomes which declares or gives whole values; else none."""

    def shown(expr: Expr) -> str:
        return kernel.spelled(expr, swaps)

    match statement:
        case Declare(variables=(variable,)) if variable in found:
            local = found[variable]
            given = _parts(kernel, variable, local)
            if given is not None:
                return [local.begun(map(shown, given))]
            other = _taken(variable.value, local, found)
            if other is not None:
                return [local.begun(other.names)]
            if variable.value is None:  # nor anything in braces, which would be its parts
                return [local.open()]
            whole = kernel.fresh(f"{variable.name}_whole")
            begun = f"const {local.type.name} {whole} = {shown(variable.value)};"
            return [begun, local.begun(f"{whole}.{member}" for member in local.members)]
        case Evaluate(expression=Assign(op="=", target=Name(variable=own), value=value)):
            if own is None or own not in found:
                return []
            local = found[own]
            more = _added(kernel, value, own)
            if more is not None:
                return _grown(kernel, local, more[0], shown(more[1]))
            made = _given(kernel, value, local, found, shown)
            if made is not None:
                return made
            whole = kernel.fresh(f"{own.name}_next")
            begun = f"const {local.type.name} {whole} = {shown(value)};"
            pairs = zip(local.names, local.members, strict=True)
            return ["\n".join(["{", begun, *(f"{n} = {whole}.{m};" for n, m in pairs), "}"])]
        case Evaluate(expression=Assign(op=op, target=Name(variable=own), value=value)):
            if own is not None and own in found:
                return _grown(kernel, found[own], op[0], shown(value))
    return []


def _given(
    kernel: Kernel, value: Expr, local: Apart, found: dict[Variable, Apart],
    shown: Callable[[Expr], str],
) -> list[str] | None:  # fmt: skip
    """The statements that give each member its value, where a value has parts for them."""
    if isinstance(value, Choice):
        sides = [_given(kernel, side, local, found, shown) for side in (value.then, value.other)]
        then, other = (None if side is None else "\n".join(side) for side in sides)
        if then is None or other is None:
            return None
        test = shown(value.test)
        if not then:
            return [f"if (!({test})) {{\n{other}\n}}"] if other else []
        return [f"if ({test}) {{\n{then}\n}}" + (f" else {{\n{other}\n}}" if other else "")]
    taken = _taken(value, local, found)
    if taken is not None:
        pairs = zip(local.names, taken.names, strict=True)
        return [f"{name} = {its};" for name, its in pairs] if taken is not local else []
    made = _made(kernel, value, local)
    if made is None or not _in_turn(local, made):
        return None
    return [f"{n} = {v};" for n, v in zip(local.names, map(shown, made), strict=True)]


def _taken(value: Expr | None, local: Apart, found: dict[Variable, Apart]) -> Apart | None:
    """The local of the same type that a value is, where that is taken apart as well."""
    match value:
        case Name(variable=Variable() as own) if own in found:
            return found[own] if found[own].members == local.members else None
    return None


def _grown(kernel: Kernel, local: Apart, op: str, value: str) -> list[str]:
    """Each member and the same one of a value put together."""
    whole = kernel.fresh(f"{local.variable.name}_more")
    pairs = zip(local.names, local.members, strict=True)
    parts = [f"{name} {op}= {whole}.{member};" for name, member in pairs]
    return ["\n".join(["{", f"const {local.type.name} {whole} = {value};", *parts, "}"])]


def _added(kernel: Kernel, value: Expr, own: Variable) -> tuple[str, Expr] | None:
    """What is put together with a local, member by member, by an operator of the program."""
    match value:
        case Binary(op="+" | "-" as op, left=Name(variable=left), right=right) if left is own:
            mentioned = any(isinstance(e, Name) and e.variable is own for e in every(right))
            if not mentioned and _by_members(kernel, op, own):
                return op, right
    return None


def _by_members(kernel: Kernel, op: str, variable: Variable) -> bool:
    """Whether the program's own operator does the same to each member of both sides."""
    kind = kernel.unit.structs.type(variable.type.base, kernel.unit.aliases)
    members = [member for member, _ in members_of(kernel, kind)]
    called = [
        f for f in kernel.unit.called(f"operator{op}", 2)
        if all(named(p.type.base, kernel.unit.aliases).name == kind.name for p in f.parameters)
    ]  # fmt: skip
    if len(called) != 1 or not members:
        return False
    one, other = called[0].parameters
    done = list[tuple[Expr, Expr]]()
    match called[0].body.body:
        case (Leave(kind="return", value=Call(function=make, arguments=given)),) if (
            make == f"make_{kind.name}" and len(given) == len(members)
        ):
            parts = [e for e in given if isinstance(e, Binary) and e.op == op]
            done = [(part.left, part.right) for part in parts]
        case body if op.endswith("="):
            whole = [s.expression for s in body if isinstance(s, Evaluate)]
            sums = [e for e in whole if isinstance(e, Assign) and e.op == op]
            done = [(e.target, e.value) for e in sums] if len(sums) == len(body) else []
    return len(done) == len(members) and all(
        _is_member(left, one, member) and _is_member(right, other, member)
        for member, (left, right) in zip(members, done, strict=True)
    )


def _is_member(expr: Expr, of: Variable, member: str) -> bool:
    match expr:
        case Member(base=Name(variable=own), field=field, arrow=False):
            return own is of and field == member
    return False


def _parts(kernel: Kernel, variable: Variable, local: Apart) -> Sequence[Expr] | None:
    """What the members of a local begin with, where its declaration says so one by one."""
    given = variable.initial
    if variable.value is not None:
        kind = kernel.reading.types.get(variable.value)
        if variable.opening != "{" or kind is None or kind.kind in ("vector", "record"):
            return _made(kernel, variable.value, local)
        given = (variable.value,)
    elif variable.opening != "{":
        return None
    left = len(local.members) - len(given)
    return [*given, *[Literal(None, "0", 0)] * left] if left >= 0 else None


def _made(kernel: Kernel, value: Expr, local: Apart) -> Sequence[Expr] | None:
    """The members of a value that is made of them."""
    match value:
        case Call(function=function, arguments=given) if function == f"make_{local.type.name}":
            members = () if kernel.unit.called(function, len(given)) else given
        case Braces(members=members):
            pass
        case _:
            return None
    return members if len(members) == len(local.members) else None


def _in_turn(local: Apart, values: Sequence[Expr]) -> bool:
    """Whether no member is made of those that are given a value before it."""
    before = set[str]()
    for member, value in zip(local.members, values, strict=True):
        bases = {e.base for e in every(value) if isinstance(e, Member)}
        for expr in every(value):
            match expr:
                case Member(base=Name(variable=own), field=other) if own is local.variable:
                    if other in before:
                        return False
                case Name(variable=own) if own is local.variable and expr not in bases:
                    return False
        before.add(member)
    return True


def _locals(kernel: Kernel) -> Iterator[Apart]:
    """Locals that change in a loop, and that nobody else may reach."""
    body, taken = kernel.function.body, list[str]()
    exprs = [e for s in walk(body) for top in s.expressions for e in every(top)]
    looped = {e for loop in loops_in(body) for s in walk(loop) for top in s.expressions
              for e in every(top)}  # fmt: skip
    changed = {_target(e) for e in exprs if e in looped}
    handed = [*_handed(body, exprs)]
    for _ in handed:  # what is handed on through several locals, one more with each turn
        changed |= {own for to, own in handed if to in changed}
    reached = _reached(kernel, exprs)
    inside = [s for block in walk(body) if isinstance(block, Block) for s in block.body]
    for statement in (s for s in inside if isinstance(s, Declare) and len(s.variables) == 1):
        (variable,) = statement.variables
        kind = kernel.unit.structs.type(variable.type.base, kernel.unit.aliases)
        plain = variable.storage == "local" and not variable.array and not variable.type.depth
        members = members_of(kernel, kind) if plain and not variable.type.reference else ()
        if not members or variable not in changed or variable in reached:
            continue
        if any(e.field not in dict(members) for e in exprs if isinstance(e, Member)
               and isinstance(e.base, Name) and e.base.variable is variable):  # fmt: skip
            continue
        names = [kernel.fresh(f"{variable.name}_{member}", *taken) for member, _ in members]
        taken += names
        own, kinds = zip(*members, strict=True)
        local = Apart(variable, kind, own, kinds, tuple(names))
        if not variable.initial or _parts(kernel, variable, local) is not None:
            yield local


def _handed(
    body: Statement, exprs: Iterable[Expr]
) -> Iterator[tuple[Variable | None, Variable | None]]:
    """The locals that are given another one as a whole, and that one."""
    given = [(e.target.variable, e.value) for e in exprs
             if isinstance(e, Assign) and e.op == "=" and isinstance(e.target, Name)]  # fmt: skip
    given += [(v, v.value) for s in walk(body) if isinstance(s, Declare)
              for v in s.variables if v.value is not None]  # fmt: skip
    while given:
        to, value = given.pop()
        match value:
            case Name(variable=own):
                yield to, own
            case Choice(then=then, other=other):
                given += [(to, then), (to, other)]


def members_of(kernel: Kernel, kind: CType) -> tuple[tuple[str, str], ...]:
    """The members of a type and the types of these; none of a type that has more to it."""
    if kind.kind == "vector":
        return (
            tuple((m, kind.lane.name) for m in _LANES[: kind.lanes])
            if kind.lane.name in _MADE
            else ()
        )
    known = kernel.unit.structs.of(kind.name)
    if kind.kind != "record" or known is None or not kernel.unit.structs.is_plain(kind.name):
        return ()
    plain = all(f.rank == 0 and f.type.name in _MADE and not f.type.depth for f in known.fields)
    return tuple((f.name, f.type.name) for f in known.fields) if plain else ()


def _target(expr: Expr) -> Variable | None:
    """The local of which a member, or all, is given a value."""
    if not isinstance(expr, Assign | Step):
        return None
    target = expr.target.base if isinstance(expr.target, Member) else expr.target
    return target.variable if isinstance(target, Name) else None


_MADE = frozenset(
    {
        "float", "double", "int", "unsigned int", "long", "unsigned long", "bool",
        "short", "unsigned short", "signed char", "unsigned char",
    }
)  # fmt: skip


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
            case Member(base=Name(variable=own), arrow=arrow):
                if arrow:
                    found.add(own)
            case Step(target=Name(variable=own)):
                found.add(own)
            case Assign(op=op, target=Name(variable=own)) if op != "=" and own is not None:
                if op not in ("+=", "-=") or not _by_members(kernel, op, own):
                    found.add(own)
            case Call(function=function, arguments=arguments, receiver=receiver):
                if receiver is not None:
                    found |= {e.variable for e in every(receiver) if isinstance(e, Name)}
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
