"""A block's loop that begins with each thread's second element, begun at the first.

``float m = t < n ? x[t] : 0; for (i = t + 256; i < n; i += 256) m = max(m, x[i]);`` takes the first
element by itself, as a block's reductions in a course often do. Before ``raised``, which puts the
parts of all threads together: what threads without an element begin with counts where the block
has such threads alone, so all of them begin with that there, and with nothing elsewhere.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import Assign, Binary, Choice, Expr, Name, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, names, parted
from optiml_magic.kernels.primitives.naming import type_of
from optiml_magic.kernels.primitives.passes_values import is_greatest
from optiml_magic.kernels.primitives.roles import key_of
from optiml_magic.kernels.primitives.striding import bound
from optiml_magic.kernels.reading import Reduction
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Evaluate,
    Loop,
    Statement,
    Variable,
    walk,
)

FIRST = "what an extreme is where a first element is NaN"
_NOTHING = {"max": "-INFINITY", ">": "-INFINITY", "min": "INFINITY", "<": "INFINITY"}


@primitive
def first_rounds(kernel: Kernel) -> Kernel:
    """The kernel whose loops of that kind take in their first elements."""
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    for block in (s for s in walk(kernel.function.body) if isinstance(s, Block)):
        steps = [s for s in block.body if not isinstance(s, Blank)]
        for declared, loop in pairwise(steps):
            match declared, loop:
                case Declare(variables=(Variable(value=Choice()) as variable,)), Loop():
                    swaps |= _begun(kernel, declared, variable, loop)
    if not swaps:
        raise NotLegal("no loop begins with the second element of each thread")
    made = kernel.rewritten(edited(kernel.function.body, swaps))
    extremes = any(one.op != "+" for one in kernel.reading.reductions)
    return replace(made, arithmetic=(*made.arithmetic, *(FIRST,) * extremes))


def _begun(
    kernel: Kernel, declared: Declare, variable: Variable, loop: Loop
) -> dict[Node, Node | tuple[Statement, ...] | None]:
    """The two statements with the first element in the loop; nothing where that is not certain."""
    effects, axis, choice, head = (
        Effects(kernel),
        kernel.axes().get(loop),
        variable.value,
        loop.before,
    )
    width = kernel.block[0]
    thread = Polynomial.symbol("threadIdx.x")
    if axis is None or axis.variable is None or kernel.block[1:] != (1, 1) or width is None:
        return {}
    whole = Polynomial.constant(width)
    if not axis.exact or axis.start != thread + whole or axis.step != whole:
        return {}
    match choice, head:
        case (
            Choice(test=Binary(op="<", left=first, right=end), then=then, other=other),
            Declare(variables=(Variable(value=Binary(op="+", left=again)) as counter,)),
        ):
            pass
        case _:
            return {}
    same, last = kernel.spelled, bound(loop, counter)
    found = [r for r in kernel.reading.reductions
             if r.place == variable.name and r.axes[:1] == (axis.name,)]  # fmt: skip
    if last is None or same(last) != same(end) or same(first) != same(again) or len(found) != 1:
        return {}
    if {*effects.changed(loop)} != {variable} or not _plain(kernel, loop, variable, found[0]):
        return {}
    moved: dict[Node, Node] = {e: first for e in every(found[0].values[0])
                               if isinstance(e, Name) and e.variable is counter}  # fmt: skip
    if same(found[0].values[0], moved) != same(then) or not _steady(effects, loop, end):
        return {}
    begin = _nothing(kernel, variable, found[0].op, other)
    if begin is None:
        return {}
    nothing = (
        begin if begin is other else text(f"{same(end)} < {width} ? {same(other)} : {same(begin)}")
    )
    body = replace(head, variables=(replace(counter, value=first, span=None),), span=None)
    start = replace(variable, value=nothing, span=None)
    return {
        declared: replace(declared, variables=(start,), span=None),
        loop: replace(loop, before=body, span=None, head=None),
    }


def _plain(kernel: Kernel, loop: Loop, variable: Variable, found: Reduction) -> bool:
    """Whether all that a loop does is to combine one value a round, whatever that is."""
    steps = [*parted(loop.body)]
    strict = isinstance(loop.test, Binary) and loop.test.op == "<"
    if len(steps) != 1 or len(found.values) != 1 or found.carried or not strict:
        return False
    (step,), (value,) = steps, found.values
    if found.op != "+":
        return is_greatest(kernel, step, variable, value, least=found.op in ("min", "<"))
    match step:
        case Evaluate(expression=Assign(op="+=" | "=", target=Name(variable=own), value=given)):
            return own is variable and (given is value or isinstance(given, Binary))
    return False


def _nothing(kernel: Kernel, variable: Variable, op: str, other: Expr) -> Expr | None:
    """What adds nothing to what is combined, where that is known."""
    if type_of(kernel, variable).name not in ("float", "double"):
        return None
    if op == "+":
        return other if key_of(other) == "0" else None
    words = _NOTHING.get(op)
    if words is None or not key_of(other):
        return None
    return other if key_of(other) == words else text(words)


def _steady(effects: Effects, loop: Loop, end: Expr) -> bool:
    """Whether a loop changes nothing that it is begun and ended by, nor memory."""
    changed = {*effects.changed(loop.body)}
    return not changed & names([end]) and all(a.mode == "load" for a in effects.accesses(loop))
