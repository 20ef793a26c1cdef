"""P13, flags in a word: a local array of flags that data index, as bits of one number.

``bool seen[24]`` with an index that is no constant lies in local memory, a load and a store of
which each is a sector for a thread. Bits of a register are tested and set by a shift and an
operation, whatever the index.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Braces,
    Call,
    Cast,
    Expr,
    Index,
    Lambda,
    Literal,
    Name,
    Step,
    Unary,
    Unread,
    every,
    is_logical,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.places import functions_of
from optiml_magic.kernels.primitives.sizes import whole_number
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Function,
    Statement,
    Variable,
    Verbatim,
    expressions,
    walk,
)
from optiml_magic.kernels.types import named

_MOST = 64  # flags of one number
_TRUTHS = ("true", "false", "0", "1")


@primitive
def flags_in_words(kernel: Kernel) -> Kernel:
    """The kernel, and the functions that it calls, with their flags as bits; it has some."""
    bodies: dict[Function, Block] = {}
    for function in functions_of(kernel):
        swaps = _swaps(kernel, function)
        if swaps:
            bodies[function] = edited(function.body, swaps)
    if not bodies:
        raise NotLegal("no local array holds flags alone")
    return kernel.with_bodies(bodies)


def flagged(kernel: Kernel, function: Function) -> Iterator[Variable]:
    """The local arrays of a function that hold flags, at places that are no constants."""
    body = function.body
    leaves = [s for s in walk(body) if isinstance(s, Declare)]
    for variable in (v for s in leaves for v in s.variables):
        count = whole_number(kernel, variable.extents[0]) if len(variable.extents) == 1 else None
        kind = named(variable.type.base, kernel.unit.aliases)
        if variable.storage != "local" or not count or count > _MOST or variable.type.depth:
            continue
        if not kind.integral or not _begins_low(variable):
            continue
        if _is_flags(body, variable):
            yield variable


def _begins_low(variable: Variable) -> bool:
    given = [*variable.initial, *([variable.value] if variable.value is not None else [])]
    members = [m for e in given for m in (e.members if isinstance(e, Braces) else (e,))]
    return all(isinstance(m, Literal) and m.text in ("0", "false") for m in members)


def _is_flags(body: Block, variable: Variable) -> bool:
    """Whether all that is done to an array is to ask for one flag, or to set it."""
    if _is_elsewhere(body, variable):
        return False
    elements = {e.base: e for e in expressions(body) if isinstance(e, Index)}
    names = [e for e in expressions(body) if isinstance(e, Name) and e.variable is variable]
    stores = {e.target: e for e in expressions(body) if isinstance(e, Assign)}
    places = {s.expression for s in _stores(body)}
    anywhere = False
    for name in names:
        element = elements.get(name)
        if element is None or not _is_still(element.index):
            return False
        anywhere |= not isinstance(element.index, Literal)
        store = stores.get(element)
        plain = store is None or (store.op == "=" and store in places and _is_truth(store.value))
        if not plain:
            return False
        changed = (e for e in expressions(body) if isinstance(e, Step | Unary))
        if any(isinstance(e, Step) or e.op == "&" for e in changed if element in e.parts):
            return False
    return anywhere and bool(stores.keys() & {*elements.values()})


def _is_elsewhere(body: Block, variable: Variable) -> bool:
    """Whether a flag may be changed by another name, or is asked for where none is declared yet."""
    for statement in walk(body):
        if isinstance(statement, Verbatim):
            return True
        for other in statement.variables if isinstance(statement, Declare) else ():
            given = [*other.initial, *([other.value] if other.value is not None else [])]
            asked = any(
                isinstance(e, Name) and e.variable is variable for g in given for e in every(g)
            )
            if asked and (other.type.reference or variable in _declared(statement)):
                return True
    calls = (e for e in expressions(body) if isinstance(e, Call | Lambda | Unread))
    return any(_is_of(part, variable) for call in calls for part in call.parts)


def _is_of(element: Expr, variable: Variable) -> bool:
    base = element.base if isinstance(element, Index) else None
    return isinstance(base, Name) and base.variable is variable


def _is_still(index: Expr) -> bool:
    return not any(isinstance(e, Assign | Step | Call) for e in every(index))


@dataclass(frozen=True)
class _Store:
    """A statement that is an assignment."""

    statement: Evaluate
    expression: Assign


def _stores(body: Block) -> Iterator[_Store]:
    for statement in walk(body):
        if isinstance(statement, Evaluate) and isinstance(statement.expression, Assign):
            yield _Store(statement, statement.expression)


def _is_truth(value: Expr) -> bool:
    """Whether a value is 0 or 1, and changes nothing as it is found."""
    if not _is_still(value):
        return False
    if isinstance(value, Literal):
        return value.text in _TRUTHS
    if isinstance(value, Cast):
        return value.type == "bool" or _is_truth(value.operand)
    return (
        is_logical(value)
        or (isinstance(value, Unary) and value.op == "!")
        or (isinstance(value, Binary) and value.op in ("<", ">", "<=", ">=", "==", "!="))
    )


def _swaps(kernel: Kernel, function: Function) -> dict[Node, Node | tuple[Statement, ...] | None]:
    """What stands for the arrays of flags of a function, those inside of others first."""
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    words = dict[Variable, str]()
    for flags in flagged(kernel, function):
        words[flags] = kernel.fresh(f"{flags.name}_bits", *words.values())
    for statement in walk(function.body):
        own = [v for v in _declared(statement) if v in words]
        if own and isinstance(statement, Declare):
            left = tuple(v for v in statement.variables if v not in own)
            made: list[Statement] = [replace(statement, variables=left, span=None)] if left else []
            made += [lines(f"{_kind(kernel, v)} {words[v]} = 0;") for v in own]
            swaps[statement] = tuple(made)
    stores = {s.expression.target: s for s in _stores(function.body)}
    for element in [*expressions(function.body)][::-1]:
        base = element.base if isinstance(element, Index) else None
        array = base.variable if isinstance(base, Name) else None
        if not isinstance(element, Index) or array is None or array not in words:
            continue
        bits, kind = words[array], _kind(kernel, array)
        one = "1u" if kind == "unsigned int" else "1ull"
        at, store = kernel.spelled(element.index, swaps), stores.get(element)
        at = at if at.isalnum() else f"({at})"
        if store is None:
            swaps[element] = text(f"({array.type.base})({bits} >> {at} & {one})")
            continue
        value = kernel.spelled(store.expression.value, swaps)
        flag = f"({kind})(bool)({value}) << {at}"
        if value in ("1", "true"):
            swaps[store.statement] = lines(f"{bits} |= {one} << {at};")
        elif value in ("0", "false"):
            swaps[store.statement] = lines(f"{bits} &= ~({one} << {at});")
        else:
            swaps[store.statement] = lines(f"{bits} = ({bits} & ~({one} << {at})) | {flag};")
    return swaps


def _declared(statement: Statement) -> tuple[Variable, ...]:
    return statement.variables if isinstance(statement, Declare) else ()


def _kind(kernel: Kernel, flags: Variable) -> str:
    count = whole_number(kernel, flags.extents[0]) or 0
    return "unsigned int" if count <= _MOST // 2 else "unsigned long long"
