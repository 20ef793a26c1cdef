"""Atomic operations on elements that one thread alone has, as plain ones.

``atomicAdd(&out[i], v)`` by the only thread that comes to ``out[i]`` is ``out[i] += v``, which a
compiler keeps in a register, and other steps take for what it is.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Assign, Call, Cast, Unary
from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.belonging import together
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.shuffles import alike
from optiml_magic.kernels.tree import Evaluate, Statement, walk
from optiml_magic.kernels.types import CType

_INFIX = {
    "atomicAdd": "+", "atomicSub": "-", "atomicAnd": "&", "atomicOr": "|", "atomicXor": "^",
}  # fmt: skip


@primitive
def unatomic(kernel: Kernel) -> Kernel:
    """The kernel that updates what a thread has for itself without an atomic operation."""
    effects = Effects(kernel)
    effects.straightforward()
    swaps: dict[Node, Node] = {}
    for statement in walk(kernel.function.body):
        match statement:
            case Evaluate(
                expression=Call(
                    function=name, arguments=(Unary(op="&", operand=place), value)
                ) as call
            ) if bare(name) in _INFIX and not kernel.unit.called(name, 2):
                kind = _own(kernel, effects, statement, call)
                if kind is not None:
                    given = kernel.reading.types.get(value)
                    same = given is not None and alike(kind, given)
                    shown = value if same else Cast(None, kind.name, value)
                    plain = Assign(None, f"{_INFIX[bare(name)]}=", place, shown)
                    swaps[statement] = Evaluate(None, statement.line, plain)
    if not swaps:
        raise NotLegal("no atomic operation is on an element of one thread alone")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _own(kernel: Kernel, effects: Effects, statement: Statement, call: Call) -> CType | None:
    """The type of the element that a call updates, where no other thread comes to it."""
    reading = kernel.reading
    own = [a for a in reading.accesses if a.own is call and a.mode == "atomic"]
    if len(own) != 1 or effects.changed(statement) or own[0].space != "global":
        return None
    (update,) = own
    same = [a for a in reading.accesses if effects.same(a.array, update.array)]
    alone = all(a.array == update.array and together(kernel, update, kernel, a) for a in same)
    return update.element if alone else None
