"""P14, single: a local that is given another value is another local from there on.

``rest = rest / n`` between two digits of an index becomes a local of its own, and so does a pointer
that goes to a thread's own part, ``out += row * n``. Each then keeps the value that it is declared
with, so that whoever asks what an index is made of finds one answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Expr,
    Index,
    Lambda,
    Name,
    Unary,
    Unread,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Statement,
    Variable,
    Verbatim,
    expressions,
    walk,
)

_N = TypeVar("_N", Expr, Statement)
_DIVIDES = frozenset({"/", "%"})


@primitive
def single(kernel: Kernel) -> Kernel:
    """Locals that take an index apart step by step, and pointers that go on, one for each step."""
    made = kernel
    while (more := _first(made)) is not None:
        made = more
    if made is kernel:
        raise NotLegal("no local takes an index apart step by step")
    return made


@primitive
def each_value(kernel: Kernel) -> Kernel:
    """All locals that are numbers and get their values one after the other, as one for each."""
    made = kernel
    while (more := _first(made, whatever=True)) is not None:
        made = more
    if made is kernel:
        raise NotLegal("no local gets its values one after the other")
    return made


def _first(kernel: Kernel, *, whatever: bool = False) -> Kernel | None:
    """The kernel with the first such variable as one for each of its values."""
    body, effects = kernel.function.body, Effects(kernel)
    for leaf in walk(body):
        if isinstance(leaf, Verbatim):
            raise NotLegal(f"{leaf.reason} is not read", leaf.line)
    found = [(variable, body.body) for variable in kernel.function.parameters]
    for block in (b for b in walk(body) if isinstance(b, Block)):
        for at, statement in enumerate(block.body):
            if isinstance(statement, Declare):
                found += [(v, block.body[at + 1 :]) for v in statement.variables]
    for variable, behind in found:
        suits = _is_number(variable) or _is_pointer(variable)
        rest = _changing(effects, variable, behind) if suits else ()
        if suits and (steps := _steps(kernel, effects, variable, rest, whatever=whatever)):
            return _made(kernel, variable, rest, steps)
    return None


def _changing(
    effects: Effects, variable: Variable, rest: Sequence[Statement]
) -> Sequence[Statement]:
    """Where a variable changes: in the last branch that asks for it, if nowhere else."""
    changed = [at for at, s in enumerate(rest) if variable in effects.changed(s)]
    branch = rest[changed[0]] if len(changed) == 1 else None
    if not isinstance(branch, If) or not isinstance(branch.then, Block):
        return rest
    others = [branch.before, branch.other, *rest[changed[0] + 1 :]]
    asked = [e for s in others if s is not None for e in expressions(s)]
    if variable in names(asked) or variable in effects.changed(Evaluate(None, 0, branch.test)):
        return rest
    return _changing(effects, variable, branch.then.body)


def _is_number(variable: Variable) -> bool:
    kind = variable.type
    plain = variable.storage == "local" and not variable.array and kind.base != "auto"
    return plain and not kind.depth and variable.value is not None


def _is_pointer(variable: Variable) -> bool:
    given = variable.storage == "parameter" or variable.value is not None
    return variable.type.depth == 1 and not variable.array and given


def _steps(
    kernel: Kernel,
    effects: Effects,
    variable: Variable,
    rest: Sequence[Statement],
    *,
    whatever: bool,
) -> dict[Statement, Expr]:
    """The statements beside its declaration that alone change a variable, and its new values.

    Empty where it changes in another way as well, or is a number that none of them divides, but
    for ``whatever`` numbers. A pointer may go on in another way behind them, from tile to tile.
    """
    kind, found = variable.type, dict[Statement, Expr]()
    if kind.reference or kind.volatile or _is_lent(effects, variable):
        return {}
    for statement in rest:
        changes = effects.changed(statement).get(variable, [])
        if changes:
            value = _value(kernel, statement, variable)
            if value is None or len(changes) > 1:
                if not kind.depth:
                    return {}
                break
            found[statement] = value
    divided = (e for v in found.values() for e in every(v) if isinstance(e, Binary))
    whole = all(_is_whole(kernel, e) for s in found for e in s.expressions)
    if whatever or (kind.depth and whole):
        return found
    return found if whole and any(e.op in _DIVIDES for e in divided) else {}


def _is_lent(effects: Effects, variable: Variable) -> bool:
    """Whether something leads to a variable; of ``&p[i]`` that is no pointer, but its element."""
    if variable not in effects.lent or not variable.type.depth:
        return variable in effects.lent
    declared = [v for s in walk(effects.kernel.function.body) if isinstance(s, Declare)
                for v in s.variables]  # fmt: skip
    bound = [v.value for v in declared if v.type.reference and v.value is not None]
    inside = effects.inside(effects.kernel.function.body)
    if variable in names([*bound, *(e for e in inside if isinstance(e, Lambda | Unread))]):
        return True
    return any(
        isinstance(e, Unary) and e.op == "&"
        and not (isinstance(e.operand, Index) and isinstance(e.operand.base, Name))
        and variable in names([e])
        for e in inside
    )  # fmt: skip


def _value(kernel: Kernel, statement: Statement, variable: Variable) -> Expr | None:
    """What a statement gives a variable that it alone is about."""
    match statement:
        case Evaluate(expression=Assign(op=op, target=Name(variable=v) as target, value=value)):
            kind = kernel.reading.types.get(target)
            number = kind is not None and (kind.kind in ("int", "float") or kind.depth)
            if v is variable and kind is not None and number and kind.lanes == 1:
                return value if op == "=" else Binary(None, op[:-1], target, value)
    return None


def _is_whole(kernel: Kernel, expr: Expr) -> bool:
    """Whether an assignment is of a whole number or of a pointer."""
    kind = kernel.reading.types.get(expr.target) if isinstance(expr, Assign) else None
    return kind is not None and bool(kind.integral or kind.depth)


def _made(
    kernel: Kernel, variable: Variable, rest: Sequence[Statement], steps: dict[Statement, Expr]
) -> Kernel:
    swaps: dict[Node, Node | None] = {}
    called, taken = variable.name, list[str]()
    for statement in rest:
        if statement not in steps:
            swaps[statement] = _renamed(statement, variable, called)
            continue
        value = _renamed(steps[statement], variable, called)
        called = kernel.fresh(variable.name, *taken)
        taken.append(called)
        own = replace(variable, name=called, span=None, value=value, initial=(), opening="=",
                      storage="local", restrict=False)  # fmt: skip
        words = f"{'const ' * variable.type.const}{variable.type.base} "
        swaps[statement] = Declare(None, statement.line, words, (own,), lead=statement.lead)
    return kernel.rewritten(edited(kernel.function.body, swaps), tidy=False)


def _renamed(node: _N, variable: Variable, called: str) -> _N:
    """What a node says with another name for a local."""
    own = every(node) if isinstance(node, Expr) else expressions(node)
    swaps: dict[Node, Node] = {
        e: Name(None, called, variable)
        for e in own
        if isinstance(e, Name) and e.variable is variable and called != variable.name
    }
    return edited(node, swaps) if swaps else node
