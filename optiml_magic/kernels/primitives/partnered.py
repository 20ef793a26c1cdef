"""P17, partners: ``p = i ^ j; if (p > i)`` in a launch of all items, as of a step of a sort.

Half of the threads do nothing, of each two partners the second. Where ``j`` is a power of two the
first ones are the items without its bit, or those with it where a test asks for these: the items of
half as many threads, in the numbers of which there is a place for that bit.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.cutting import uses
from optiml_magic.kernels.primitives.effects import Effects, declared_in
from optiml_magic.kernels.primitives.grids import said_alike
from optiml_magic.kernels.primitives.mapped import check_own_work
from optiml_magic.kernels.primitives.sizes import with_grid
from optiml_magic.kernels.symbols import Compare, Condition, Symbol
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import parse_expression

_MOST = 1 << 30  # threads of a launch, whose numbers then are the same in all types: ours
_BITS = 32
_ONE, _ZERO = Polynomial.constant(1), Polynomial()


@primitive
def partnered(kernel: Kernel) -> Kernel:
    """The kernel with a thread along x for two partners, of which one alone does anything."""
    kernel = kernel.settled()
    check_own_work(kernel, Effects(kernel))
    width, places = kernel.block[0], uses(kernel, "x").whole
    if width is None or not places:
        raise NotLegal("how many threads there are along x is not a number of blocks")
    apart, second = _partner(kernel, width)
    hidden = any(v.name == apart for v in declared_in(kernel.function.body))
    if hidden or not (apart.isdecimal() or said_alike(kernel, {apart})):
        raise NotLegal(f"the launch does not say what `{apart}` is, or a local hides it")
    blocks, block = kernel.launch.grid[0], kernel.launch.block[0]
    both = f"({blocks}) * ({block})"
    asked = (
        f"{apart} >= 1 && ({apart} & ({apart} - 1)) == 0 && ({blocks}) % 2 == 0"
        f" && {both} <= {_MOST} && {both} % (2 * {apart}) == 0"
    )
    swaps = dict[Node, Node]()
    for place in places:
        own = f"({kernel.spelled(place)})"
        first = f"2 * {own} - ({own} & ({apart} - 1))"
        swaps[place] = text(f"({first} + {apart})" if second else f"({first})")
    grid = parse_expression(f"({blocks}) / 2")
    made = kernel.rewritten(
        edited(kernel.function.body, swaps),
        launch=replace(kernel.launch, grid=(grid, *kernel.launch.grid[1:])),
        directives=[RequireDirective(parse_expression(asked))],
    )
    return with_grid(made)


def _partner(kernel: Kernel, width: int) -> tuple[str, bool]:
    """How far partners are apart, and whether it is the second of them that works.

    Raises NotLegal where no test of all that is written says so.
    """
    guards = {a.guard for a in kernel.reading.accesses if a.mode != "load"}
    held = [{part for c in guard for part in c.conjuncts()} for guard in guards]
    item = Polynomial.of({("blockIdx.x",): width, ("threadIdx.x",): 1})
    for condition in sorted(held[0], key=str) if held else ():
        if all(condition in parts for parts in held):
            found = _asked(kernel, condition, item)
            if found is not None:
                return found
    raise NotLegal("no test picks one of two partners")


def _asked(kernel: Kernel, condition: Condition, item: Polynomial) -> tuple[str, bool] | None:
    """The same, of one condition: by comparing partners, or by the bit that tells them apart."""
    if not isinstance(condition, Compare):
        return None
    for name in sorted(condition.form.symbols):
        symbol, own = kernel.reading.symbols[name], Polynomial.symbol(name)
        bits = _whole(kernel, symbol)
        if item not in bits.arguments:
            continue
        others = [form for form in bits.arguments if form != item]
        apart = _size(kernel, others[0]) if others else ""
        if apart and bits.op == "^" and condition.op == ">=":
            for second, between in enumerate((own - item, item - own)):
                if condition.form == between - _ONE:
                    return apart, bool(second)
        if apart and bits.op == "&" and condition.form in (own, -own) and condition.op != ">=":
            return apart, condition.op == "!="
    return None


def _whole(kernel: Kernel, symbol: Symbol) -> Symbol:
    """The number of which one has some bits, enough of them for all threads of a launch."""
    inner = symbol.arguments[0] if symbol.op == "wrap" else _ZERO
    name = next(iter(sorted(inner.symbols)), "")
    alone = name and inner == Polynomial.symbol(name)
    kept = symbol.arguments[1].value if alone else None
    return kernel.reading.symbols[name] if kept is not None and kept >= _BITS else symbol


def _size(kernel: Kernel, form: Polynomial) -> str:
    """The number or the parameter that a form is; empty where it is anything else."""
    if form.value is not None:
        return str(form.value)
    (name, *others) = sorted(form.symbols)
    given = {p.name for p in kernel.function.parameters}
    alone = not others and form == Polynomial.symbol(name) and name in given
    return name if alone and kernel.reading.symbols[name].kind == "scalar" else ""
