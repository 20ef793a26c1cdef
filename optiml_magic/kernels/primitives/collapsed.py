"""P3, collapse: loops in each other become one, whose counter is taken apart into theirs.

The rounds and their order stay. What is inside of another loop counts to a number, so that what the
one loop counts to is a product of sizes.
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.editing import edited, lines
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_simple, loops_in
from optiml_magic.kernels.primitives.naming import speller_before
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import Blank, Block, Loop, Statement


@primitive
def collapse(kernel: Kernel, at: int) -> Kernel:
    """The loop with this number and those that alone are inside of it, as one."""
    outer = loops_in(kernel.function.body)[at]
    effects, known = Effects(kernel), kernel.axes()
    loops = [outer, *nested(outer)]
    axes = [known.get(loop) for loop in loops]
    if len(loops) < 2:
        raise NotLegal("no loop alone is inside of it", outer.line)
    sizes, first, *_ = _sizes(axes, effects), axes[0]
    assert first is not None
    assert first.variable is not None
    assert first.stop is not None
    rounds = speller_before(kernel, effects, outer).factor(first.stop)
    name, below = kernel.fresh("round"), 1
    lets: list[str] = []
    for axis, size in reversed([*zip(axes[1:], sizes, strict=True)]):
        assert axis is not None
        assert axis.variable is not None
        whole = name if below == 1 else f"{name} / {below}"
        lets.insert(0, f"const {axis.variable.type.base} {axis.variable.name} = {whole} % {size};")
        below *= size
    lets.insert(0, f"const {first.variable.type.base} {first.variable.name} = {name} / {below};")
    inside = kernel.show_inside(loops[-1].body)
    made = lines(
        f"for (int {name} = 0; {name} < {rounds} * {below}; ++{name}) {{\n"
        + "\n".join([*lets, inside]) + "\n}"
    )  # fmt: skip
    return kernel.rewritten(edited(kernel.function.body, {outer: made}))


def nested(loop: Loop) -> Iterator[Loop]:
    """The loops in a loop, each of which is all that the one around it does."""
    inside: tuple[Statement, ...] = (loop.body,)
    while len(inside) == 1 and isinstance(inside[0], Block):
        inside = tuple(s for s in inside[0].body if not (isinstance(s, Blank) and s.hints))
    if len(inside) == 1 and isinstance(inside[0], Loop):
        yield inside[0]
        yield from nested(inside[0])


def _sizes(axes: list[Axis | None], effects: Effects) -> list[int]:
    """How many rounds the inner ones have; raises NotLegal where one does not count so."""
    found = []
    for depth, axis in enumerate(axes):
        if axis is None or not axis.exact or not is_simple(axis, effects) or axis.stop is None:
            raise NotLegal("a loop does not count from 0 in its head", axis.line if axis else 0)
        assert axis.variable is not None
        if axis.variable.type.base not in ("int", "unsigned", "unsigned int"):
            raise NotLegal("its counter is not a plain integer", axis.line)
        if depth and (axis.stop.value is None or axis.stop.value < 1):
            raise NotLegal("the number of rounds of an inner loop is not a constant", axis.line)
        found.append(axis.stop.value or 0)
    return found[1:]


def rejoined(kernel: Kernel, form: Polynomial, counter: str) -> Polynomial:
    """A form whose parts of a counter make the counter again: ``k / 3 * 3 + k % 3`` is ``k``.

    As it was where they do not.
    """
    table, found = kernel.reading.symbols, form
    whole = Polynomial.symbol(counter)
    for name in form.symbols - {counter}:
        symbol = table.table.get(name)
        if symbol is None or symbol.op != "%" or symbol.arguments[1].value is None:
            continue
        of, by = symbol.arguments[0], symbol.arguments[1].value
        below = _below(kernel, of, counter)
        times = found.coefficient(name)
        if below is None or times is None or by < 1:
            continue
        sides = whole, Polynomial.constant(below * by)
        above = kernel.reading_operations().operation("/", sides, low=0)
        rest = of - Polynomial.constant(by) * above
        found = found.without([name]) + times * rest
    apart = {Polynomial.symbol(name) for name in found.symbols - {counter} if name in table.table}
    whole_again = counter in found.symbols and not any(counter in table.inside(s) for s in apart)
    return found if whole_again else form


def rejoined_digits(kernel: Kernel, form: Polynomial) -> Polynomial:
    """A form whose quotients and rests make an index again: ``x / n * n + x % n`` is ``x``."""
    table = kernel.reading.symbols.table
    for name in sorted(form.symbols):
        symbol, times = table.get(name), form.coefficient(name)
        if symbol is None or symbol.op != "%" or len(symbol.arguments) != 2 or times is None:
            continue
        of, by = symbol.arguments
        quotients = [n for n, s in table.items() if s.op == "/" and s.arguments == (of, by)]
        above = next((n for n in quotients if n in form.symbols), None)
        if above is None:
            continue
        found = form.without([name]) + times * (of - by * Polynomial.symbol(above))
        if above not in found.symbols:
            return rejoined_digits(kernel, found)
    return form


def _below(kernel: Kernel, form: Polynomial, counter: str) -> int | None:
    """By what the counter is divided in this form, 1 if by nothing."""
    if form == Polynomial.symbol(counter):
        return 1
    ((only, factor), *more) = form.terms or (((), 0),)
    if more or factor != 1 or len(only) != 1:
        return None
    symbol = kernel.reading.symbols.table.get(only[0])
    if symbol is None or symbol.op != "/" or symbol.arguments[0] != Polynomial.symbol(counter):
        return None
    return symbol.arguments[1].value
