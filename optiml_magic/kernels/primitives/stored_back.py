"""P19, stored back: a thread that would store what it has loaded from there stores nothing.

``next = s[t]; if (t < left) next = f(s[t], s[t + 1]);``, a barrier and ``s[t] = next;`` is what
``if (t < left)`` around both says more plainly, and so does a choice, ``t < left ? ... : s[t]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Assign, Choice, Expr, Index, Literal, Name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in, names
from optiml_magic.kernels.primitives.tabulated import is_value
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    If,
    Statement,
    Variable,
    expressions,
)


@dataclass(frozen=True, eq=False)
class _Begun:
    """A local of a round that is given one value where ``test`` holds, and ``other`` elsewhere.

    The one is ``given`` by a choice where it begins, or by a ``branch`` behind.
    """

    variable: Variable
    test: Expr
    other: Expr
    given: Expr | None = None
    branch: If | None = None


@primitive
def stored_back(kernel: Kernel) -> Kernel:
    """The kernel with a branch for such a choice, and for a store that may leave all as it was."""
    effects = Effects(kernel)
    effects.straightforward(alone=False)
    for loop in loops_in(kernel.function.body):
        steps = loop.body.body if isinstance(loop.body, Block) else ()
        for at, step in enumerate(steps):
            begun = _begun(effects, steps, at)
            store = _store(effects, steps, at, begun) if begun is not None else None
            if begun is not None and (store is not None or begun.given is not None):
                swaps = _swaps(kernel, step, begun, store)
                return kernel.rewritten(edited(kernel.function.body, swaps))
    raise NotLegal("no round stores what it has loaded from there")


def _swaps(
    kernel: Kernel, step: Statement, begun: _Begun, store: Evaluate | None
) -> dict[Node, Node | tuple[Statement, ...] | None]:
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    test, other = _shown(kernel, begun.test), _shown(kernel, begun.other)
    if begun.given is not None:
        name, value = begun.variable.name, _shown(kernel, begun.given)
        first = lines(f"{begun.variable.type.base} {name} = {other};")
        swaps[step] = (first, lines(f"if ({test}) {name} = {value};"))
    if store is not None:
        swaps[store] = lines(f"if ({test}) {_shown(kernel, store.expression)};")
    return swaps


def _shown(kernel: Kernel, expr: Expr) -> str:
    return kernel.spelled(expr)


def _begun(effects: Effects, steps: Sequence[Statement], at: int) -> _Begun | None:
    """What the statement there declares, if a test says which of two values it gets."""
    step = steps[at]
    if not isinstance(step, Declare) or len(step.variables) != 1:
        return None
    (variable,) = step.variables
    kind = variable.type
    if kind.depth or kind.reference or kind.const or kind.volatile or variable.array:
        return None
    if kind.base == "auto" or variable.storage != "local" or variable in effects.lent:
        return None
    match variable.value:
        case Choice(test=test, then=then, other=Index() | Literal() as other):
            begun = _Begun(variable, test, other, given=then)
        case Index() as other:
            match [s for s in steps[at + 1 :] if variable in effects.changed(s)]:
                case [If(other=None, before=None, constant=False, test=test) as branch]:
                    begun = _Begun(variable, test, other, branch=branch)
                case _:
                    return None
        case _:
            return None
    touching = {access.own for access in effects.reading.accesses}
    return begun if is_value(effects.kernel, begun.test, touching) else None


def _store(effects: Effects, steps: Sequence[Statement], at: int, begun: _Begun) -> Evaluate | None:
    """The statement that stores the local where its other value is from; None without one."""
    kernel, asking = effects.kernel, [s for s in steps if begun.variable in effects.mentions(s)]
    match [s for s in asking if s is not begun.branch]:
        case [
            Evaluate(expression=Assign(op="=", target=Index() as target, value=Name() as v)) as s
        ] if v.variable is begun.variable and isinstance(begun.other, Index):
            end = steps.index(s)
        case _:
            return None
    if begun.branch is not None and steps.index(begun.branch) > end:
        return None
    accesses = effects.reading.accesses
    arrays = {a.array for a in accesses if a.own in (s.expression, begun.other)}
    if _shown(kernel, target) != _shown(kernel, begun.other) or len(arrays) != 1:
        return None
    (array,) = arrays
    between = {e for step in steps[at:end] for e in expressions(step)}
    stored = any(
        a.own in between and a.mode != "load" and effects.same(a.array, array) for a in accesses
    )
    asked = names([begun.test, target])
    moved = any(asked & effects.changed(step).keys() for step in steps[at : end + 1])
    kind, element = begun.variable.type, effects.reading.arrays[array].element
    exact = kind.base == element.name  # and so what is stored is what was loaded
    return s if exact and not stored and not moved and begun.variable not in asked else None
