"""What forms are at the sizes that are measured: for choosing numbers, never for what is legal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from optiml_magic.kernels.expressions import Expr, Literal, Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.grids import needed
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.symbols import Compare, Symbol
from optiml_magic.kernels.tree import walk
from optiml_magic.source.expressions import Expression

_WORD = 4  # bytes
_BITS = 64
_NOWHERE: Mapping[str, int] = {}
#: The first thread of the first block.
FIRST = {f"{kind}Idx.{axis}": 0 for kind in ("block", "thread") for axis in "xyz"}


def value(kernel: Kernel, form: Polynomial, at: Mapping[str, int] = _NOWHERE) -> int | None:
    """A form at the measured sizes; None where it depends on more than these and ``at``.

    ``at`` has built-in variables of a thread and rounds of loops, by the names of their symbols.
    """
    total = 0
    for monomial, factor in form.terms:
        product = factor
        for name in monomial:
            known = at.get(name)
            if known is None:
                known = _symbol(kernel, kernel.reading.symbols.table.get(name), name, at)
            if known is None:
                return None
            product *= known
        total += product
    return total


def rounds(kernel: Kernel, axis: Axis, at: Mapping[str, int] = _NOWHERE) -> int | None:
    """How many rounds a loop has there; None where each thread may have its own number.

    ``at`` is as for ``value``: the built-in variables of one of the threads.
    """
    parts = [*axis.test.conjuncts()]
    if len(parts) != 1 or not isinstance(parts[0], Compare):
        return None
    by = parts[0].form.coefficient(axis.name)
    step = value(kernel, by) if by is not None else None
    if step is None or step >= 0:
        return None
    rest = value(kernel, parts[0].form.without([axis.name]), at)
    return None if rest is None else max(0, rest // -step + 1)


def most_rounds(kernel: Kernel, axis: Axis) -> int | None:
    """The rounds of the first thread or of the last, whichever has more of them."""
    facts = kernel.facts
    if facts is None:
        return rounds(kernel, axis)
    last = {name: size - 1 for name, size in zip(FIRST, (*facts.grid, *facts.block), strict=True)}
    found = [rounds(kernel, axis, at) for at in (FIRST, last)]
    return None if None in found else max(n for n in found if n is not None)


def words_taken(kernel: Kernel, axis: Axis) -> float:
    """Words of global memory that a thread takes in all rounds of a loop."""
    found = 0.0
    for access in kernel.reading.accesses:
        if access.space == "global" and axis.name in access.loops:
            inner = kernel.reading.loops(access)[access.loops.index(axis.name) :]
            counts = (rounds(kernel, loop) or 1 for loop in inner)
            found += math.prod(counts) * (access.element.size or _WORD) / _WORD
    return found


def middle(kernel: Kernel) -> dict[str, int]:
    """The built-in variables of the thread in the middle of the launch, as ``at`` of ``value``."""
    facts = kernel.facts
    if facts is None:
        return {}
    return {n: size // 2 for n, size in zip(FIRST, (*facts.grid, *facts.block), strict=True)}


def mean_rounds(kernel: Kernel, axis: Axis) -> int | None:
    """As many as ``rounds``; of a loop that memory says more of, each thread's in the mean.

    One that begins where memory says walks through an array that all threads share out among them.
    One that ends there alone has half of what is between the least and the greatest number of it.
    """
    known = rounds(kernel, axis)
    count, facts, symbols = threads(kernel), kernel.facts, kernel.reading.symbols
    if known is not None or not count or facts is None or axis.start is None:
        return known
    if not any(symbols[name].kind == "load" for name in axis.start.symbols):
        return _rounds_told(kernel, axis)
    walked = [
        facts.arrays[access.array].nbytes // (access.element.size or 1)
        for access in kernel.reading.accesses
        if axis.name in access.loops and access.array in facts.arrays and access.index is not None
        and access.index.coefficient(axis.name) == Polynomial.constant(1)
    ]  # fmt: skip
    return max(1, min(walked) // count) if walked else None


def usual_rounds(kernel: Kernel, axis: Axis) -> int | None:
    """The rounds of a loop in the mean, or else those of the thread in the middle.

    Of a loop whose ends move with those around it, as `k < i`, as many as half way through these.
    """
    known = mean_rounds(kernel, axis)
    at = middle(kernel)
    known = rounds(kernel, axis, at) if known is None else known
    outer = around(kernel, axis) if known is None else ()
    half = {one.name: n // 2 for one in outer if (n := usual_rounds(kernel, one)) is not None}
    return rounds(kernel, axis, {**at, **half}) if half else known


def around(kernel: Kernel, axis: Axis) -> tuple[Axis, ...]:
    """The loops that a loop is in, as far as they are read."""
    axes = kernel.axes()
    return tuple(a for loop, a in axes.items() if any(s is axis.node for s in walk(loop.body)))


def _rounds_told(kernel: Kernel, axis: Axis) -> int | None:
    """The rounds of a loop that ends where an input says, by the middle of what that holds."""
    symbols, arrays = kernel.reading.symbols, kernel.facts.arrays if kernel.facts else {}
    known = middle(kernel)
    for name in symbols.inside(axis.stop) if axis.stop is not None else ():
        told = arrays.get(symbols[name].array) if symbols[name].kind == "load" else None
        if told is None or told.least is None or told.greatest is None:
            continue
        mean = (told.least + told.greatest) / 2
        if math.isfinite(mean):
            known[name] = int(mean)
    return rounds(kernel, axis, known) if known.keys() - FIRST.keys() else None


def alike_rounds(kernel: Kernel, axis: Axis) -> int | None:
    """As many as ``rounds``; where memory says it alike to all threads, as many as there may be.

    These are the elements for each thread of an array that the rounds walk through, and no more
    than the greatest number in the arrays that say it.
    """
    known, facts, symbols = rounds(kernel, axis), kernel.facts, kernel.reading.symbols
    if known is not None or facts is None or axis.start is None or axis.stop is None:
        return known
    table = [symbols[name] for form in (axis.start, axis.stop) for name in symbols.inside(form)]
    if any(s.kind not in ("load", "scalar", "operation") for s in table):
        return None
    saying = [facts.arrays.get(s.array) for s in table if s.kind == "load"]
    most = [a.greatest if a is not None else None for a in saying]
    walked = [
        facts.arrays[access.array].nbytes // (access.element.size or 1)
        for access in kernel.reading.accesses
        if axis.name in access.loops and access.array in facts.arrays and access.index is not None
        and axis.name in symbols.inside(access.index)
    ]  # fmt: skip
    if not walked or not saying:
        return None
    each = max(walked) // (working(kernel) or 1)
    return max(1, min((each, *(int(n) for n in most if n is not None))))


def threads(kernel: Kernel) -> int | None:
    """The threads of the launch, in all."""
    facts = kernel.facts
    return None if facts is None else math.prod(facts.grid) * math.prod(facts.block)


def working(kernel: Kernel) -> int | None:
    """The threads of the launch that its guards let work, as far as these say."""
    facts, found = kernel.facts, 1
    if facts is None:
        return None
    for at, axis in enumerate("xyz"):
        count = needed(kernel, axis)
        launched = facts.grid[at] * facts.block[at]
        found *= launched if count is None else min(launched, measured(kernel, count))
    return found


def measured(kernel: Kernel, size: Expression) -> int:
    """What a size in a directive is where the kernel is measured; its facts are known."""
    facts = kernel.facts
    assert facts is not None
    known = {n: v for n, v in facts.scalars.items() if isinstance(v, int)}
    shapes = {n: a.shape for n, a in facts.arrays.items()}
    shapes |= {a.buffer: a.shape for a in facts.arrays.values()}
    known |= {**facts.inputs, **kernel.program.values}
    return size.evaluate(known, shapes)


def whole_number(kernel: Kernel, expr: Expr | None) -> int | None:
    """The whole number that an expression is by itself: a literal, or a macro of one."""
    match expr:
        case Literal(value=int() as number):
            return number
        case Name(name=name, variable=None):
            return kernel.program.macros.get(name)
    return None


def with_grid(kernel: Kernel) -> Kernel:
    """A kernel whose facts have the grid and the block that its launch has by now."""
    facts = kernel.facts
    if facts is None:
        return kernel
    sizes = [
        [*(measured(kernel, part) for part in parts), 1, 1][:3]
        for parts in (kernel.launch.grid, kernel.launch.block)
    ]
    grid, block = ((a, b, c) for a, b, c in sizes)
    return replace(kernel, facts=replace(facts, grid=grid, block=block))


def _symbol(kernel: Kernel, symbol: Symbol | None, name: str, at: Mapping[str, int]) -> int | None:
    facts = kernel.facts
    if name in kernel.program.values:
        return kernel.program.values[name]
    if facts is not None and name in facts.scalars:
        return int(facts.scalars[name])
    if facts is not None and name in facts.members:
        return facts.members[name]
    if facts is not None and name in facts.fixed:
        return facts.fixed[name]
    if symbol is None or symbol.kind not in ("operation", "select") or len(symbol.arguments) != 2:
        return None
    left, right = (value(kernel, argument, at) for argument in symbol.arguments)
    if left is None or right is None:
        return None
    if symbol.op in ("/", "%") and right > 0:
        return left // right if symbol.op == "/" else left % right
    if symbol.op == ">>" and 0 <= right < _BITS:
        return left >> right
    if symbol.kind == "select":
        return max(left, right)
    return {"min": min, "max": max}[symbol.op](left, right) if symbol.op in ("min", "max") else None
