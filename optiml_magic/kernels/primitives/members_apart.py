"""Shared memory of vectors or small structures, ``s[t].x``, as an array for each of their members.

A block that brings two numbers to a sum, or the best value and its place to an extreme, often keeps
them together. Who follows what threads put into an array then finds one number of each thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Braces,
    Call,
    Expr,
    Index,
    Lambda,
    Member,
    Name,
    Step,
    Unary,
    Unread,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import names
from optiml_magic.kernels.primitives.fields import Apart, members_of
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Statement,
    Variable,
    Verbatim,
    expressions,
    walk,
)
from optiml_magic.kernels.types import CType


@dataclass(frozen=True)
class _Array(Apart):
    """A shared array, of which each member becomes one of its own."""

    def declared(self, kernel: Kernel, words: str) -> str:
        sizes = "".join(f"[{kernel.spelled(e)}]" for e in self.variable.extents if e is not None)
        pairs = zip(self.kinds, self.names, strict=True)
        return "\n".join(f"{words} {kind} {name}{sizes};" for kind, name in pairs)


@primitive
def members_apart(kernel: Kernel) -> Kernel:
    """The kernel with an array for each member of those of which nobody has an address."""
    body = kernel.function.body
    arrays = {a.variable: a for a in _arrays(kernel)}
    if not arrays:
        raise NotLegal("it has no shared array of vectors or structures that may be taken apart")
    held = _held(kernel, arrays)
    swaps: dict[Node, Node | tuple[Statement, ...]] = {}
    inside = set[Expr]()  # of a member
    for expr in expressions(body):
        match expr:
            case Member(base=Index() as place, field=field) if own := _of(place, arrays):
                name = own.name(field)
                swaps[expr] = _element(name, place)
                inside.add(place)
            case Member(base=Name(variable=Variable() as local), field=field) if local in held:
                swaps[expr] = Name(None, held[local][field])
    for expr in expressions(body):
        own = _of(expr, arrays)
        if own is not None and expr not in inside:
            swaps[expr] = text(own.whole(_at(kernel, expr, swaps)))
    for statement in walk(body):
        match statement:
            case Declare(variables=variables) if (arrays.keys() | held.keys()) & {*variables}:
                swaps[statement] = tuple(_declared(kernel, statement, arrays, held, swaps))
            case Evaluate(expression=Assign(op="=", target=to, value=value)) if (
                own := _of(to, arrays)
            ):  # fmt: skip
                words = _stored(kernel, own, _at(kernel, to, swaps), value, arrays, swaps)
                swaps[statement] = (lines(words),)
    return kernel.rewritten(edited(body, swaps), tidy=False)


def _declared(
    kernel: Kernel, statement: Declare, arrays: dict[Variable, _Array],
    held: dict[Variable, dict[str, str]], swaps: dict[Node, Node | tuple[Statement, ...]],
) -> Iterator[Statement]:  # fmt: skip
    """What the variables of a declaration become, each in its turn."""
    for variable in statement.variables:
        value = variable.value
        if variable in arrays:
            yield lines(arrays[variable].declared(kernel, "__shared__"))
        elif variable in held and value is not None and (own := _of(value, arrays)):
            at = _at(kernel, value, swaps)
            each = zip(own.kinds, held[variable].values(), own.names, strict=True)
            yield lines("\n".join(f"{kind} {to} = {name}{at};" for kind, to, name in each))
        else:
            alone = Declare(None, statement.line, statement.words, (variable,))
            yield edited(alone, {n: s for n, s in swaps.items() if not isinstance(s, tuple)})


def _held(kernel: Kernel, arrays: dict[Variable, _Array]) -> dict[Variable, dict[str, str]]:
    """Locals that are an element as it was, of which members alone are asked: these by name."""
    body, taken = kernel.function.body, [n for a in arrays.values() for n in a.names]
    found = dict[Variable, dict[str, str]]()
    everything = [*expressions(body)]
    members = {e.base for e in everything if isinstance(e, Member) and not e.arrow}
    changed = {
        e.target.base for e in everything
        if isinstance(e, Assign | Step) and isinstance(e.target, Member)
    }  # fmt: skip
    led = {e for one in everything if isinstance(one, Unary | Lambda | Unread)
           and (not isinstance(one, Unary) or one.op == "&") for e in every(one)}  # fmt: skip
    blocks = (block for block in walk(body) if isinstance(block, Block))
    inside = (s for block in blocks for s in block.body if isinstance(s, Declare))
    for variable in (v for s in inside for v in s.variables):
        own = _of(variable.value, arrays) if variable.value is not None else None
        if own is None or variable.storage != "local" or variable.type.reference:
            continue
        kind = kernel.unit.structs.type(variable.type.base, kernel.unit.aliases)
        mentions = {e for e in everything if isinstance(e, Name) and e.variable is variable}
        if kind.name == own.type.name and mentions <= members - changed - led:
            names = [kernel.fresh(f"{variable.name}_{member}", *taken) for member in own.members]
            taken += names
            found[variable] = dict(zip(own.members, names, strict=True))
    return found


def _stored(
    kernel: Kernel, own: _Array, at: str, value: Expr, arrays: dict[Variable, _Array],
    swaps: dict[Node, Node | tuple[Statement, ...]],
) -> str:  # fmt: skip
    """Statements that store the members of a value one by one."""
    shown = {n: s for n, s in swaps.items() if not isinstance(s, tuple)}
    other = _of(value, arrays)
    if other is not None and other.type.name == own.type.name:
        given = [f"{name}{_at(kernel, value, swaps)}" for name in other.names]
    elif isinstance(value, Name) and _is_of(kernel, value, own.type):
        given = [f"{value.name}.{member}" for member in own.members]
    else:
        given = [kernel.spelled(e, shown) for e in _parts(kernel, own, value, arrays)]
    if given:
        pairs = zip(own.names, given, strict=True)
        return "\n".join(f"{name}{at} = {part};" for name, part in pairs)
    whole = kernel.fresh(f"{own.variable.name}_whole")
    pairs = zip(own.names, own.members, strict=True)
    begun = f"const {own.type.name} {whole} = {kernel.spelled(value, shown)};"
    return "\n".join(["{", begun, *(f"{name}{at} = {whole}.{m};" for name, m in pairs), "}"])


def _is_of(kernel: Kernel, value: Name, kind: CType) -> bool:
    variable = value.variable
    if variable is None or variable.type.depth or variable.array:
        return False
    return kernel.unit.structs.type(variable.type.base, kernel.unit.aliases).name == kind.name


def _parts(
    kernel: Kernel, own: _Array, value: Expr, arrays: dict[Variable, _Array]
) -> Sequence[Expr]:
    """The members of a value that may be found one after the other, each stored at once."""
    match value:
        case Call(function=function, arguments=given) if function == f"make_{own.type.name}":
            parts = given if not kernel.unit.called(function, len(given)) else ()
        case Braces(members=given):
            parts = given
        case _:
            return ()
    if len(parts) != len(own.members):
        return ()
    for expr in chain.from_iterable(map(every, parts)):
        match expr:
            case Assign() | Step() | Lambda() | Unread():
                return ()
            case Name(variable=Variable() as named) if named in arrays:
                return ()
            case Call(function=called, arguments=arguments) if kernel.unit.called(
                called, len(arguments)
            ):
                return ()
    return parts


def _arrays(kernel: Kernel) -> Iterator[_Array]:
    body, taken = kernel.function.body, list[str]()
    inside = [s for s in walk(body) if isinstance(s, Declare)]
    for variable in (v for s in inside for v in s.variables):
        if variable.storage != "shared" or not variable.array or None in variable.extents:
            continue
        kind = kernel.unit.structs.type(variable.type.base, kernel.unit.aliases)
        held = variable.type.depth or variable.type.volatile
        members = () if held or variable.initial else members_of(kernel, kind)
        if not members or not _alone(kernel, variable, [name for name, _ in members]):
            continue
        names = [kernel.fresh(f"{variable.name}_{member}", *taken) for member, _ in members]
        taken += names
        own, kinds = zip(*members, strict=True)
        yield _Array(variable, kind, own, kinds, tuple(names))


def _alone(kernel: Kernel, variable: Variable, members: Sequence[str]) -> bool:
    """Whether nobody asks for more than its elements, and their members, at plain places."""
    body, count = kernel.function.body, len(variable.extents)
    if any(variable in names(s.mentions) for s in walk(body) if isinstance(s, Verbatim)):
        return False
    mentions = elements = 0
    whole = {s.expression for s in walk(body) if isinstance(s, Evaluate)}
    for expr in expressions(body):
        mentions += isinstance(expr, Name) and expr.variable is variable
        if _indices(expr, variable) == count:
            elements += 1
            if not _still(expr):
                return False
        match expr:
            case Unary(op="&" | "*") | Lambda() | Unread() if _named(expr, variable):
                return False
            case Assign(op=op, target=target) if _indices(target, variable):
                if op != "=" or expr not in whole:
                    return False
            case Step(target=target) if _indices(target, variable):
                return False
            case Member(base=base, field=field, arrow=arrow) if _indices(base, variable):
                if arrow or field not in members:
                    return False
            case Call(function=function, arguments=given, receiver=receiver):
                if receiver is not None and _named(receiver, variable):
                    return False
                for called in kernel.unit.called(function, len(given)):
                    pairs = zip(called.parameters, given, strict=False)
                    if any(p.type.reference and _named(a, variable) for p, a in pairs):
                        return False
    bound = [v for s in walk(body) if isinstance(s, Declare) for v in s.variables
             if v.type.reference or v.type.depth]  # fmt: skip
    begun = [e for v in bound for e in ([v.value] if v.value is not None else v.initial)]
    return mentions == elements and not any(_named(e, variable) for e in begun)


def _still(place: Expr) -> bool:
    """Whether where an element is may be found several times, and asks for no shared memory."""
    found = list[Expr]()
    while isinstance(place, Index):
        found += every(place.index)
        place = place.base
    return not any(
        isinstance(e, Assign | Step | Call | Lambda | Unread)
        or (isinstance(e, Name) and e.variable is not None and e.variable.storage == "shared")
        for e in found
    )


def _named(expr: Expr, variable: Variable) -> bool:
    return any(isinstance(e, Name) and e.variable is variable for e in every(expr))


def _of(expr: Expr, arrays: dict[Variable, _Array]) -> _Array | None:
    """The array that an expression is an element of."""
    base = expr
    while isinstance(base, Index):
        base = base.base
    if not isinstance(base, Name) or base.variable not in arrays:
        return None
    own = arrays[base.variable]
    return own if _indices(expr, own.variable) == len(own.variable.extents) else None


def _indices(expr: Expr, variable: Variable) -> int:
    """How many indices of an array an expression has; 0 where it is of none."""
    count = 0
    while isinstance(expr, Index):
        expr, count = expr.base, count + 1
    return count if isinstance(expr, Name) and expr.variable is variable else 0


def _at(
    kernel: Kernel, place: Expr, swaps: dict[Node, Node | tuple[Statement, ...]]
) -> str:  # fmt: skip
    """The indices of an element as they are written."""
    shown = {n: s for n, s in swaps.items() if not isinstance(s, tuple)}
    words = ""
    while isinstance(place, Index):
        words = f"[{kernel.spelled(place.index, shown)}]{words}"
        place = place.base
    return words


def _element(name: str, place: Expr) -> Expr:
    """The element of another array at the same indices."""
    assert isinstance(place, Index)
    base = _element(name, place.base) if isinstance(place.base, Index) else Name(None, name)
    return Index(None, base, place.index)
