"""P17, as many threads as work: ``if (i + window > n) return;`` in a launch of ``cdiv(n, 256)``.

The launch is made for the ``n - window + 1`` items that the guard lets through, so that rules find
in it how many there are. Where these are no fewer than the threads were, it stays.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.formulas import expression
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import every_place_read, without_warps
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.block_counts import rounded_up
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.grids import form_of, needed, said_alike
from optiml_magic.kernels.primitives.places import index
from optiml_magic.kernels.primitives.sizes import with_grid
from optiml_magic.kernels.symbols import Compare, Condition
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import Binary, Expression, Number, parse_expression

_ONE = Polynomial.constant(1)


def narrowed(kernel: Kernel) -> Kernel:
    """The kernel launched for the items that its guard lets through; else NotLegal."""
    if kernel.reading.barriers or kernel.launch.shared is not None:
        raise NotLegal("its threads wait for each other")
    axes = "xy"[: min(len(kernel.launch.grid), len(kernel.launch.block))]
    refused, before = NotLegal("its launch has no axis of threads"), kernel
    for axis in axes:
        try:
            kernel = _narrowed(kernel, axis)
        except NotLegal as reason:
            refused = reason if axis == "x" else refused
    if kernel is before:
        raise refused
    return kernel


def _narrowed(kernel: Kernel, axis: str) -> Kernel:
    """The same along one axis."""
    at = "xy".index(axis)
    width, size, own = kernel.block[at], kernel.launch.grid[at], kernel.launch.block[at]
    if width is None or width == 1 or size.tree is None or needed(kernel, axis) is not None:
        raise NotLegal("its launch has as many threads as work")
    tree = rounded_up(size.tree, own.tree, width)
    launched = form_of(tree, kernel.reading.symbols) if tree is not None else None
    if launched is None:  # in words that a kernel does not have, such as a part rounded up
        tree = Binary("*", size.tree, Number(width))
    assert tree is not None
    if not said_alike(kernel, Expression(tree, "").names):
        raise NotLegal("its launch does not say how many threads it has")
    guards = {a.guard for a in kernel.reading.accesses if a.mode != "load"}
    bounds = [_bounds(kernel, guard, axis, width) for guard in guards]
    items = [bound for bound in (bounds[0] if bounds else ()) if all(bound in b for b in bounds)]
    items = [bound for bound in items if bound != launched]
    if len(items) != 1:
        raise NotLegal("its guards do not say how many threads work")
    without_warps(kernel)
    every_place_read(kernel)
    names = [p.name for p in kernel.function.parameters]
    words = expression(items[0], kernel.reading.symbols, names)
    whole: Expression | None = Expression(tree, "")
    if launched is not None:
        whole = expression(launched, kernel.reading.symbols, names)
    if words is None or whole is None or not said_alike(kernel, words.names):
        raise NotLegal("its launch and its guards have other names")
    grid = [*kernel.launch.grid]
    grid[at] = parse_expression(f"cdiv({words}, {own})")
    asked = [f"{words} >= 1", f"{words} <= {whole}"]
    return with_grid(
        kernel.rewritten(
            kernel.function.body,
            launch=replace(kernel.launch, grid=tuple(grid)),
            directives=[RequireDirective(parse_expression(one)) for one in asked],
        )
    )


def _bounds(
    kernel: Kernel, guard: tuple[Condition, ...], axis: str, width: int
) -> list[Polynomial]:
    """What a guard keeps the index of a thread along an axis below, in the kernel's own numbers."""
    moved, table = Effects(kernel).moved, kernel.reading.symbols.table
    found = list[Polynomial]()
    for part in (p for condition in guard for p in condition.conjuncts()):
        if not isinstance(part, Compare) or part.op != ">=":
            continue
        form = index(part.form, axis, width)
        if form is None or form.coefficient(f"@{axis}") != -_ONE:
            continue
        rest = form.without([f"@{axis}"])
        known = [table.get(name) for name in rest.symbols - moved]
        if known and len(known) == len(rest.symbols):
            found += [rest + _ONE] * all(s is not None and s.kind == "scalar" for s in known)
    return found
