"""A block's loop over its row counted from where the row begins.

``for (i = start + threadIdx.x; i < start + n; i += blockDim.x)`` counts places in the array, so
that the rounds of one block are others than those of the next. Counted from the beginning of the
row they are the same, as steps that look for a block's row expect.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Binary, Name, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, declared_in, is_counted, names
from optiml_magic.kernels.primitives.naming import LocalSpeller, speller_before
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.kernels.tree import Declare, Loop, Variable, Written, walk

_THREAD = Polynomial.symbol("threadIdx.x")


@primitive
def rebased(kernel: Kernel) -> Kernel:
    """The kernel whose loops of that kind count from the beginning of their rows."""
    effects, swaps = Effects(kernel), dict[Node, Node]()
    inside = set[Loop]()
    for loop, axis in kernel.axes().items():
        made = _from_row(kernel, effects, axis) if loop not in inside else None
        if made is not None:
            swaps[loop] = made
            inside |= {s for s in walk(loop.body) if isinstance(s, Loop)}
    if not swaps:
        raise NotLegal("no loop begins where the row of its block does")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _from_row(kernel: Kernel, effects: Effects, axis: Axis) -> Written | None:
    """The loop with another counter; None where it is none of that kind."""
    loop, counter = axis.node, axis.variable
    match loop:
        case Loop(
            kind="for",
            before=Declare(variables=(Variable() as own,)),
            test=Binary(op="<", left=Name(variable=tested)),
        ) if own is counter is tested:
            pass
        case _:
            return None
    plain = own.type.base == "int" and not own.type.depth and not own.type.reference
    if not plain or axis.start is None or axis.stop is None or not is_counted(axis, effects):
        return None
    if loop.test is None or {*names([loop.test])} & effects.changed(loop.body).keys():
        return None
    row = _of_block(kernel, axis.start)
    if not row.terms or axis.start - row != _THREAD or _of_block(kernel, axis.stop - row).terms:
        return None
    return _written(
        kernel, loop, own, (row, axis.stop - row), speller_before(kernel, effects, loop)
    )


def _of_block(kernel: Kernel, form: Polynomial) -> Polynomial:
    """The terms of a form that are others for another block."""
    inside = kernel.reading.symbols.inside
    return Polynomial.of({
        monomial: by for monomial, by in form.terms
        if any(n.startswith("blockIdx.") for n in inside(Polynomial.of({monomial: 1})))
    })  # fmt: skip


def _written(
    kernel: Kernel, loop: Loop, own: Variable, ends: tuple[Polynomial, Polynomial],
    speller: LocalSpeller,
) -> Written | None:  # fmt: skip
    name = kernel.fresh(f"{own.name}_row")
    try:
        row, count = (speller.factor(form) for form in ends)
    except Unspelled:
        return None
    hidden = {v.name for v in declared_in(loop.body)}
    if own.name in hidden or loop.update is None:
        return None
    again: dict[Node, Node] = {
        e: text(name) for e in every(loop.update) if isinstance(e, Name) and e.variable is own
    }
    update, body = kernel.spelled(loop.update, again), kernel.show_inside(loop.body)
    return lines(
        f"for (int {name} = threadIdx.x; {name} < {count}; {update}) {{\n"
        f"int {own.name} = {row} + {name};\n{body}\n}}"
    )
