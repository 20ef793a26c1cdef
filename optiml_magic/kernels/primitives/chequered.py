"""P17, fields of one colour: ``if ((x + y) % 2 == color)`` in a launch of all fields.

Every other thread of a row does nothing, and a warp has sixteen that do. Half as many threads take
the items ``2 * t`` or ``2 * t + 1`` of their rows, by what the others would have been asked for.
Each item for which the test holds has one of these parities, whatever signs there are, so that it
has one thread; the test stays for the others.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.cutting import uses
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.grids import needed
from optiml_magic.kernels.primitives.mapped import check_own_work
from optiml_magic.kernels.primitives.naming import LocalSpeller
from optiml_magic.kernels.primitives.places import index
from optiml_magic.kernels.primitives.sizes import with_grid
from optiml_magic.kernels.symbols import Compare, Condition
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import parse_expression

_MOST = 1 << 30  # items of a row whose double an int holds with those of a block beyond: ours
_TWO = Polynomial.constant(2)


@primitive
def chequered(kernel: Kernel) -> Kernel:
    """The kernel with threads along x for the fields of one colour alone; it has such a test."""
    kernel = kernel.settled()
    effects = Effects(kernel)
    check_own_work(kernel, effects)
    count, found = needed(kernel, "x", loads=True), uses(kernel, "x")
    width, rows = kernel.block[0], uses(kernel, "y").whole
    if count is None or width is None or not found.whole:
        raise NotLegal("how many items there are its guards do not say")
    parity = _parity(kernel)
    names = {"@y": f"({kernel.spelled(rows[0])})"} if rows else {}
    form = index(parity, "y", kernel.block[1] or 1) if rows else parity
    symbols = kernel.reading.symbols
    if form is not None:
        form = Polynomial.of({monomial: 1 for monomial, times in form.terms if times % 2})
    if form is None or any(
        name != "@y" and (symbols[name].kind != "scalar" or name in effects.moved)
        for name in form.symbols
    ):
        raise NotLegal("which colour an item has depends on more than where it stands")
    speller = LocalSpeller(symbols, names, moved=effects.moved)
    speller.kernel = kernel
    words = speller.form(form)
    swaps: dict[Node, Node] = {
        place: text(f"(2 * ({kernel.spelled(place)}) + (({words}) & 1))") for place in found.whole
    }
    grid = parse_expression(f"cdiv({count}, 2 * {kernel.launch.block[0]})")
    made = kernel.rewritten(
        edited(kernel.function.body, swaps),
        launch=replace(kernel.launch, grid=(grid, *kernel.launch.grid[1:])),
        directives=[RequireDirective(parse_expression(f"{count} <= {_MOST}"))],
    )
    return with_grid(made)


def _parity(kernel: Kernel) -> Polynomial:
    """What is odd where the items of a row that work are odd. Raises NotLegal where none is."""
    guards = {a.guard for a in kernel.reading.accesses if a.mode != "load"}
    held = [{part for c in guard for part in c.conjuncts()} for guard in guards]
    for condition in held[0] if held else ():
        even = _even(kernel, condition)
        form = index(even, "x", kernel.block[0] or 1) if even is not None else None
        by = form.coefficient("@x") if form is not None else None
        if form is None or by is None or by.value is None or by.value % 2 == 0:
            continue
        if all(condition in parts for parts in held):
            return form.without(["@x"])
    raise NotLegal("no test asks for the colour of an item")


def _even(kernel: Kernel, condition: Condition) -> Polynomial | None:
    """A form that is even where a condition on rests by two holds.

    Such a rest is as odd as what it is the rest of, below zero too.
    """
    if not isinstance(condition, Compare):
        return None
    symbols, even = kernel.reading.symbols, condition.form
    rests = [n for n in sorted(even.symbols) if symbols[n].op == "%"
             and symbols[n].arguments[1] == _TWO]  # fmt: skip
    for name in rests:
        by = even.coefficient(name)
        if by is None or by.value is None:
            return None
        even += by * (symbols[name].arguments[0] - Polynomial.symbol(name))
    if condition.op == "==" and rests:
        return even
    alone = [Polynomial.symbol(name) for name in rests]
    odd = condition.op == "!=" and len(alone) == 1 and condition.form in (alone[0], -alone[0])
    return even + Polynomial.constant(1) if odd else None
