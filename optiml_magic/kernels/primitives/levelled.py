"""P1, levelled: a loop that ends where its thread stands ends where the last of its block does.

``for (k = 0; k <= q; ++k) f(k)``, the causal loop of attention and all loops over a triangle,
becomes ``for (k = 0; k < min(first + 128, n); ++k) if (k <= q) f(k)``: all threads of a block make
the same rounds, so that it may bring what they read. Each round is made by some thread
(``by_some``), and half a block of rounds more is little beside those that there are.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_counted, outermost
from optiml_magic.kernels.primitives.naming import declared_type, speller_before
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.kernels.symbols import Compare, Condition
from optiml_magic.kernels.tree import Leave, Loop, Statement, walk

_ONE = Polynomial.constant(1)
_THREAD = Polynomial.symbol("threadIdx.x")


@primitive
def levelled(kernel: Kernel) -> Kernel:
    """The kernel with all such loops that are in no other; it has some."""
    effects, swaps = Effects(kernel), dict[Node, Node | tuple[Statement, ...] | None]()
    for loop in outermost(kernel.function.body):
        axis = kernel.axes().get(loop)
        words = _ends(kernel, axis, effects) if axis is not None else ""
        if axis is None or axis.variable is None or loop.test is None or not words:
            continue
        begun = kernel.show(loop.before).strip().removesuffix(";") if loop.before else ""
        test = kernel.spelled(loop.test)
        name = axis.variable.name
        head = f"for ({begun}; {name} < {words}; ++{name}) {{\nif ({test}) "
        swaps[loop] = lines(f"{head}{kernel.show(loop.body)}\n}}")
    if not swaps:
        raise NotLegal("no loop ends where its thread stands")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def by_some(kernel: Kernel, axis: Axis) -> frozenset[Condition]:
    """Tests of a levelled loop that hold in each of its rounds for a thread of the block."""
    if axis.stop is None or len(axis.stop.symbols) != 1:
        return frozenset()
    (name,) = axis.stop.symbols
    symbol = kernel.reading.symbols[name]
    if symbol.op != "min" or axis.stop != Polynomial.symbol(name):
        return frozenset()
    inside = (s.guard for s in kernel.reading.accesses if axis.name in s.loops)
    parts = {part for guard in inside for c in guard for part in c.conjuncts()}
    found = set[Condition]()
    for part in parts:
        if isinstance(part, Compare) and part.op == ">=":
            own = part.form + Polynomial.symbol(axis.name) + _ONE
            last, size = _last(kernel, own), _bound(kernel, axis, own)
            if last in symbol.arguments and size in symbol.arguments:
                found.add(part)
    return frozenset(found)


def _ends(kernel: Kernel, axis: Axis, effects: Effects) -> str:
    """Where the last thread of a block ends, or the last one that there is; else nothing."""
    loop: Loop = axis.node
    uniform = kernel.reading.uniform
    if axis.step != _ONE or axis.start is None or axis.stop is None or not axis.exact:
        return ""
    if not is_counted(axis, effects) or not uniform(axis.start) or uniform(axis.stop):
        return ""
    if any(isinstance(s, Leave) for s in walk(loop.body)):
        return ""
    last, size = _last(kernel, axis.stop), _bound(kernel, axis, axis.stop)
    if last is None or size is None or axis.variable is None:
        return ""
    kind = declared_type(kernel, axis.variable)
    speller = speller_before(kernel, effects, loop)
    try:
        ends = [speller.form(form) for form in (last, size)]
    except Unspelled:
        return ""
    plain = kind == "int" and all(
        p.type.base == "int" for p in kernel.function.parameters if not p.type.depth
    )
    return f"min({', '.join(words if plain else f'({kind})({words})' for words in ends)})"


def _last(kernel: Kernel, stop: Polynomial) -> Polynomial | None:
    """Where the last thread of a block ends, which follows each other's by one."""
    width, *beside = kernel.block
    if width is None or beside != [1, 1] or stop.coefficient("threadIdx.x") != _ONE:
        return None
    last = stop - _THREAD + Polynomial.constant(width - 1)
    return last if kernel.reading.uniform(last) else None


def _bound(kernel: Kernel, axis: Axis, stop: Polynomial) -> Polynomial | None:
    """What the guard, which asks for nothing else of a thread, says that all threads end before."""
    uniform = kernel.reading.uniform
    parts = {p for c in axis.guard for p in c.conjuncts() if not uniform(p)}
    sizes = {stop + p.form if isinstance(p, Compare) and p.op == ">=" else None for p in parts}
    (size,) = sizes if len(sizes) == 1 else (None,)
    return size if size is not None and size.terms and uniform(size) else None
