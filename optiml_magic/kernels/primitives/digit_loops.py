"""P3, digits as loops: rounds that take their number apart, as a loop for each of its digits.

``for (k = 0; k < n * w; ++k) ... x[(k / w * c + r) * w + k % w]`` becomes one loop over ``k / w``
and one over ``k % w``, inside of which neighbouring rounds load neighbouring elements and nothing
is divided. The rounds and their order stay. A number of rounds that is a product of sizes is taken
to be none below 0, as an extent of an array is.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_counted, loops_in
from optiml_magic.kernels.primitives.factors import Factored
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import Leave, walk

_ONE = Polynomial.constant(1)


@primitive
def digit_loops(kernel: Kernel) -> Kernel:
    """The kernel where every such loop is several."""
    made = _once(kernel)
    if made is None:
        raise NotLegal("no loop takes its counter apart")
    while (more := _once(made)) is not None:
        made = more
    return made


def _once(kernel: Kernel) -> Kernel | None:
    effects, known = Effects(kernel), kernel.axes()
    for loop in loops_in(kernel.function.body):
        axis = known.get(loop)
        if axis is not None and _counts_up(axis, effects) and _apart(kernel, axis):
            try:
                return _split(kernel, effects, axis)
            except NotLegal:
                continue
    return None


def _counts_up(axis: Axis, effects: Effects) -> bool:
    """Whether all rounds from 0 on are made, one after the other."""
    whole = axis.exact and is_counted(axis, effects) and axis.stop is not None
    leaves = any(isinstance(s, Leave) and s.kind == "break" for s in walk(axis.node.body))
    return whole and not leaves and axis.start == Polynomial() and axis.step == _ONE


def _apart(kernel: Kernel, axis: Axis) -> bool:
    """Whether an element is where digits say that do not make the number again."""
    symbols = kernel.reading.symbols
    for access in kernel.reading.accesses:
        form = access.index
        if form is None or axis.name not in access.loops:
            continue
        parts = [p for name in form.symbols if (p := symbols.table.get(name)) is not None]
        above = {p.arguments: p.name for p in parts if p.op == "/"}
        for part in (p for p in parts if p.op == "%"):
            inside = symbols.inside(Polynomial.symbol(part.name))
            by = form.coefficient(part.name)
            more = form.coefficient(above.get(part.arguments, ""))
            if axis.name in inside and (by is None or more != by * part.arguments[1]):
                return True
    return False


def _split(kernel: Kernel, effects: Effects, axis: Axis) -> Kernel:
    loop, counter = axis.node, axis.variable
    assert counter is not None
    assert axis.stop is not None
    whole = {e for e in effects.inside(loop.body) if isinstance(e, Name) and e.variable is counter}
    factored = Factored(kernel, effects, whole)
    factored.close(axis.stop)
    last = len(factored.chain) - 1
    names = list[str]()
    for _ in range(last):
        names.append(kernel.fresh(f"{counter.name}_digit", *names))
    held = [(name, at, at + 1) for at, name in enumerate(names)]
    kind = counter.type.base
    swaps: dict[Node, Node] = {e: text(factored.value(held, 0, last)) for e in whole}
    for expr, part in factored.cuts.items():
        low, high = factored.ends(part)
        words = factored.value(held, low, last if high is None else high)
        own = kernel.reading.types.get(expr)
        swaps[expr] = text(f"({own.name}){words}" if own and own.name != kind else words)
    heads = [
        f"for ({kind} {name} = 0; {name} < {factored.size(at, at + 1)}; ++{name})"
        for at, name in enumerate(names)
    ]
    inside = kernel.show_inside(loop.body, swaps)
    made = lines("\n".join([*reversed(heads), f"{{\n{inside}\n}}"]))
    return kernel.rewritten(edited(kernel.function.body, {loop: made}))
