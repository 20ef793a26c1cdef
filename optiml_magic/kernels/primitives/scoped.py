"""A local that is declared ahead of its use is declared where it gets its first value.

``int k; float d; for (k = 0; k < n; k++) { d = x[k]; ... }``: what belongs to one round of a loop
then stands in it, so that steps need not ask whether it goes from one round to the next. Loops that
use one counter after the other get one each, beside those that go on with another's. An array is
declared in front of what fills it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Expr,
    Index,
    Name,
    Step,
    Unary,
    every,
)
from optiml_magic.kernels.functions import bare, pure
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, lent_in, names
from optiml_magic.kernels.primitives.shaped import fixed_numbers, number_of
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.primitives.type_names import names_between, names_in
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
    Verbatim,
    expressions,
    walk,
)
from optiml_magic.kernels.types import named

_Swaps = dict[Node, Node | tuple[Statement, ...]]
#: Where a local is declared: in the place of what gives it a value, without one in front of that.
_Places = dict[Statement, Declare]
_PLAIN = frozenset({"int", "float", "bool", "vector"})
_GIVES = frozenset({"sincos", "sincosf", "sincospi", "sincospif"})  # by the addresses they take


@primitive
def scoped(kernel: Kernel) -> Kernel:
    """The kernel with such locals in the blocks and heads of loops that alone ask for them."""
    body, effects, swaps = kernel.function.body, Effects(kernel), _Swaps()
    ahead: dict[Statement, list[Statement]] = {}
    if any(isinstance(s, Verbatim) for s in walk(body)):
        raise NotLegal("what a statement of it does is not read")
    lent, named_here = _lent(body), names_in(kernel, body)
    held = lent_in(body)
    for scope in (s for s in walk(body) if isinstance(s, Block)):
        for at, statement in enumerate(scope.body):
            if not isinstance(statement, Declare):
                continue
            if named_here and names_between(kernel, scope, at, len(scope.body)):
                continue  # its type may be another one further below
            moved = set[Variable]()
            for variable in statement.variables:
                if variable in lent or not _is_plain(kernel, variable, statement):
                    continue
                words = f"{statement.words.rstrip()} "
                alone = Declare(None, statement.line, words, (variable,))
                behind = scope.body[at + 1 :]
                found = _first(effects, behind, variable, alone)
                if found:
                    moved.add(variable)
                elif found is None and variable not in held:
                    found = _apart(effects, behind, variable, alone)
                for place, made in (found or {}).items():
                    if made.variables[0].value is None:
                        above = hints_of(kernel, place) if isinstance(place, Loop) else ()
                        ahead.setdefault((*above, place)[0], []).append(made)
                    else:
                        swaps[place] = made
            if moved:
                left = tuple(v for v in statement.variables if v not in moved)
                swaps[statement] = (replace(statement, variables=left, span=None),) if left else ()
    if not swaps:
        raise NotLegal("no local is declared ahead of its use")
    # The innermost first: an edit does not look into what it puts in.
    for place in reversed([s for s in walk(body) if s in ahead]):
        swaps[place] = (*ahead[place], edited(place, swaps))
    return kernel.rewritten(edited(body, swaps))


def _lent(body: Statement) -> frozenset[Variable]:
    """Locals whose address may outlast the statement that takes it."""
    given = {
        argument
        for e in expressions(body)
        if isinstance(e, Call) and e.function in _GIVES
        for argument in e.arguments[1:]
    }
    own = [*expressions(body)]
    taken = (e.operand for e in own if isinstance(e, Unary) and e.op == "&" and e not in given)
    elements = {e.base for e in own if isinstance(e, Index)}
    rows = (e for e in own if isinstance(e, Name) and e.variable and e.variable.array)
    return names((*taken, *(e for e in rows if e not in elements)))


def _is_plain(kernel: Kernel, variable: Variable, statement: Declare) -> bool:
    """Whether a declaration does nothing but to name it; a value that nobody asks for may go."""
    kind = named(variable.type.base, kernel.unit.aliases)
    own = variable.storage == "local" and not variable.initial
    bare = not variable.type.reference and not variable.type.volatile
    value = variable.value is None or quiet(variable.value)
    later = statement.variables[statement.variables.index(variable) + 1 :]
    asked = names(replace(statement, variables=later).expressions)
    return own and bare and value and variable not in asked and (
        kind.kind in _PLAIN or variable.type.depth > 0
    )  # fmt: skip


def quiet(expr: Expr, *, inner: bool = False) -> bool:
    """Whether an expression changes nothing; of an assignment what is ``inner`` is asked."""
    parts = [*every(expr)][1 if inner else 0 :]
    calls = [e for e in parts if isinstance(e, Call)]
    pure_calls = all(pure(bare(c.function)) and c.callee is None for c in calls)
    return pure_calls and not any(isinstance(e, Assign | Step) for e in parts)


def _first(
    effects: Effects, statements: Sequence[Statement], variable: Variable, alone: Declare
) -> _Places | None:
    """Declarations where a local gets a value before anything asks for it; None without."""
    found = _Places()
    for statement in statements:
        if variable not in effects.mentions(statement):
            continue
        match statement:
            case Evaluate(expression=Assign() | Call() as made) if _gives(made, variable):
                return found | {statement: _declared(made, variable, alone)}
            case Loop() if variable.array and fills_whole(effects, statement, variable):
                return found | {statement: _declared(None, variable, alone)}
            case Block(body=inner):
                more = _first(effects, inner, variable, alone)
            case If(before=None, test=test) if variable not in names([test]):
                ways = [w for w in (statement.then, statement.other) if w is not None]
                more = _each(effects, ways, variable, alone)
            case Loop(before=Evaluate(expression=Assign() as made) as head) if _gives(
                made, variable
            ):
                more = {head: _declared(made, variable, alone)}
            case Loop(before=before, test=test, update=update, body=body):
                asked = names(e for e in (test, update) if e is not None)
                if variable in asked or (before and variable in effects.mentions(before)):
                    return None
                more = _each(effects, [body], variable, alone)
            case _:
                return None
        if more is None:
            return None
        found |= more
    return found


def _apart(
    effects: Effects, statements: Sequence[Statement], variable: Variable, alone: Declare
) -> _Places:
    """Declarations in what gives a local a value of its own, which nobody asks for behind it.

    Others share the local as it is declared: ``for (i = 0; ...) ...; for (; i < n; i++) ...``.
    """
    about, found = [s for s in statements if variable in effects.mentions(s)], _Places()
    for statement, behind in zip(about, (*about[1:], None), strict=True):
        within = isinstance(statement, Loop | Block | If) and not variable.array
        if within and (behind is None or _begins(behind, variable)):
            found |= _first(effects, [statement], variable, alone) or {}
    return found


def _begins(statement: Statement, variable: Variable) -> bool:
    """Whether a statement gives a local a value before all else."""
    match statement:
        case Evaluate(expression=made) | Loop(before=Evaluate(expression=made)):
            while isinstance(made, Binary) and made.op == ",":
                made = made.left
            return _gives(made, variable)
    return False


def _each(
    effects: Effects, ways: Sequence[Statement], variable: Variable, alone: Declare
) -> _Places | None:
    """What ``_first`` finds in each of these; a lone statement has no room for a declaration."""
    found = _Places()
    for way in ways:
        cramped = isinstance(way, Evaluate) or (isinstance(way, Loop) and variable.array)
        if cramped and variable in effects.mentions(way):
            return None
        more = _first(effects, [way], variable, alone)
        if more is None:
            return None
        found |= more
    return found


def _gives(made: Expr, variable: Variable) -> bool:
    """Whether an expression gives a local a value, and does not ask for the one it had."""
    match made:
        case Assign(op="=", target=Name(variable=v), value=value):
            return v is variable and variable not in names([value])
        case Call(function=function, arguments=(given, *addresses)) if function in _GIVES:
            own = [e.operand for e in addresses if isinstance(e, Unary) and e.op == "&"]
            plain = any(isinstance(e, Name) and e.variable is variable for e in own)
            return plain and variable not in names([given])
    return False


def fills_whole(effects: Effects, loop: Loop, variable: Variable) -> bool:
    """Whether each element of a local array gets a value in a loop that asks for none of them."""
    axis = effects.kernel.axes().get(loop)
    if axis is None or axis.start is None or axis.step is None or len(variable.extents) != 1:
        return False
    (extent,) = variable.extents
    size = number_of(extent, fixed_numbers(effects.kernel)) if extent is not None else None
    whole = size is not None and axis.trips == size
    if not whole or axis.start.value != 0 or axis.step.value != 1:
        return False
    body = loop.body.body if isinstance(loop.body, Block) else (loop.body,)
    about = [s for s in body if variable in effects.mentions(s)]
    if len(about) != 1 or any(isinstance(s, Leave) for s in walk(loop.body)):
        return False
    match about[0]:
        case Evaluate(expression=Assign(op="=", target=Index(base=base, index=index), value=value)):
            asked = names([index, value])
            counted = isinstance(index, Name) and index.variable is axis.variable
            own = isinstance(base, Name) and base.variable is variable
            return own and counted and variable not in asked
    return False


def _declared(made: Expr | None, variable: Variable, alone: Declare) -> Declare:
    value = made.value if isinstance(made, Assign) else None
    return replace(alone, variables=(replace(variable, value=value, span=None),))
