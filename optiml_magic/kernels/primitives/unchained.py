"""``a[t] = b[t] = 0;`` as ``b[t] = 0; a[t] = 0;``: an assignment is a statement of its own.

Steps that ask what a place begins with then find it. An outer place is given the number itself, or
what the local within has become: in both cases the number is converted to the inner type first.
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Cast,
    Choice,
    Expr,
    Index,
    Literal,
    Member,
    Name,
    Unary,
    builtin,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.tree import Block, Evaluate, If, Loop, Statement, Variable, walk
from optiml_magic.kernels.types import CType, named

_NUMBERS = frozenset({"int", "float", "bool"})
_HELD = 127  # whole numbers up to this one are the same in every type of numbers but bool


@primitive
def unchained(kernel: Kernel) -> Kernel:
    """The kernel without assignments whose value another one takes at once."""
    effects = Effects(kernel)
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {
        s: made for s in _statements(kernel.function.body) if (made := _apart(effects, s))
    }
    if not swaps:
        raise NotLegal("no assignment takes the value of another")
    return kernel.rewritten(edited(kernel.function.body, swaps), tidy=False)


def _statements(body: Statement) -> Iterator[Evaluate]:
    """What stands where several statements may, which the head of a loop is not."""
    for around in walk(body):
        match around:
            case Block(body=inner):
                yield from (s for s in inner if isinstance(s, Evaluate))
            case If(then=then, other=other):
                yield from (s for s in (then, other) if isinstance(s, Evaluate))
            case Loop(body=Evaluate() as inner):
                yield inner


def _apart(effects: Effects, statement: Evaluate) -> tuple[Statement, ...]:
    """The assignments of a chain, the innermost first; empty where they may mean something else."""
    chain = [statement.expression]
    while isinstance(last := chain[-1], Assign):
        chain.append(last.value)
    value, taken = chain.pop(), [e for e in reversed(chain) if isinstance(e, Assign)]
    kinds = [effects.kernel.reading.types.get(e.target) for e in taken]
    if len(taken) < 2 or not all(_stays(effects, e.target) for e in taken):
        return ()
    found, changed = list[Statement](), set[Variable]()
    for at, (one, kind) in enumerate(zip(taken, kinds, strict=True)):
        place = one.target
        if not isinstance(place, Name) and names([place]) & changed:
            return ()  # before C++17 nothing says which of the two is first
        lead = None if found else statement.lead
        made = Assign(None, one.op, place, value)
        found.append(Evaluate(None, statement.line, made, lead=lead))
        if isinstance(place, Name) and place.variable is not None:
            changed.add(place.variable)
        if one is taken[-1]:
            break
        plain = one.op == taken[at + 1].op == "=" and (
            _is_zero(value) or not _packs(effects, place)
        )
        if plain and _same(value, kind, kinds[at + 1]):
            continue
        if not isinstance(place, Name) or not _copied(kind):
            return ()
        value = place
    return tuple(found)


def _stays(effects: Effects, target: Expr) -> bool:
    """Whether nothing in a chain can change which place this is."""
    match target:
        case Name(variable=Variable() as variable):
            return not variable.type.volatile
        case Index(base=base, index=index):
            return _stays(effects, base) and _computed(effects, index)
        case Member(base=base, arrow=arrow):
            return (not arrow or isinstance(base, Name)) and _stays(effects, base)
        case Unary(op="*", operand=Name() as pointer):
            return _stays(effects, pointer)
    return False


def _computed(effects: Effects, index: Expr) -> bool:
    """Whether an index comes from locals alone that nothing else leads to."""
    if builtin(index):
        return True
    match index:
        case Literal():
            return True
        case Name(variable=Variable() as variable):
            kind = variable.type
            return not kind.reference and not kind.volatile and variable not in effects.lent
        case Binary() | Cast() | Choice():
            return all(_computed(effects, part) for part in index.parts)
        case Unary(op=op):
            return op not in "*&" and _computed(effects, index.operand)
    return False


def _same(value: Expr, inner: CType | None, outer: CType | None) -> bool:
    """Whether a number comes out the same, be it converted to the inner type first or not."""
    if inner is None or outer is None or {inner.kind, outer.kind} - _NUMBERS:
        return False
    if inner.depth or outer.depth or inner.size == 2 or outer.size == 2:
        return False  # of two bytes are floats of two kinds, some of which take no numbers
    if not all(isinstance(e, Literal | Unary) for e in every(value)):
        return False
    alike = (inner.kind, inner.size, inner.signed) == (outer.kind, outer.size, outer.signed)
    number = value.value if isinstance(value, Literal) else None
    most = 1 if inner.kind == "bool" else _HELD
    return alike or (isinstance(number, int | float) and number in range(most + 1))


def _is_zero(value: Expr) -> bool:
    return isinstance(value, Literal) and value.value == 0


def _packs(effects: Effects, place: Expr) -> bool:
    """Whether this may be a member of fewer bits than its type has: one of no vector of CUDA's."""
    match place:
        case Member(base=Name(variable=Variable() as variable)):
            return named(variable.type.base, effects.kernel.unit.aliases).kind != "vector"
    return isinstance(place, Member)


def _copied(kind: CType | None) -> bool:
    """Whether a local that is asked for again is a number, or numbers, and no more."""
    return kind is not None and (kind.kind in _NUMBERS | {"vector"} or kind.depth > 0)
