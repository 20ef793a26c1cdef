"""Normal form: an element of a local array that the data choose is stored to by a loop over all.

``probs[best] = 0`` becomes ``for (e = 0; e < 64; ++e) if (e == best) probs[e] = 0``, where all else
that is done with the array is done by such loops, so that lanes may divide it among them
(``divided``).
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Expr, Index, Name, Step, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.divided import divisible, extent_of, plain_arrays
from optiml_magic.kernels.primitives.effects import names
from optiml_magic.kernels.tree import Evaluate, Statement, Variable, walk

_LONGEST = 256  # elements; ours


@primitive
def chosen(kernel: Kernel) -> Kernel:
    """The kernel with such loops, where lanes may then divide the array."""
    arrays = {array: extent_of(kernel, array) or 0 for array in plain_arrays(kernel)}
    counters = {axis.variable for axis in kernel.axes().values()}
    swaps, found = dict[Node, Node | tuple[Statement, ...] | None](), set[Variable]()
    taken = list[str]()
    for statement in walk(kernel.function.body):
        if not isinstance(statement, Evaluate):
            continue
        place = _stored(statement.expression)
        array = place.base.variable if place and isinstance(place.base, Name) else None
        if place is None or array is None or not 1 < arrays.get(array, 0) <= _LONGEST:
            continue
        if names([place.index]) & counters or not names([place.index]):
            continue
        parts = [e for e in every(statement.expression) if e is not statement.expression]
        if any(isinstance(e, Assign | Step) for e in parts):
            continue
        element = kernel.fresh("element", *taken)
        taken.append(element)
        at = kernel.spelled(place.index)
        at = at if isinstance(place.index, Name) else f"({at})"
        whole = kernel.show(statement, {place.index: text(element)}).strip()
        head = f"for (int {element} = 0; {element} < {arrays[array]}; ++{element})"
        swaps[statement] = lines(f"{head} {{\nif ({element} == {at}) {whole}\n}}")
        found.add(array)
    if not swaps:
        raise NotLegal("no element of a local array is chosen by the data")
    made = kernel.rewritten(edited(kernel.function.body, swaps))
    divided = {array.name for array in divisible(made).arrays}
    if not {array.name for array in found} <= divided:
        raise NotLegal("what else is done with the array asks for elements as well")
    return made


def _stored(expr: Expr) -> Index | None:
    """The element that an assignment or a step of one changes."""
    target = expr.target if isinstance(expr, Assign | Step) else None
    return target if isinstance(target, Index) else None
