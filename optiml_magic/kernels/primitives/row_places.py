"""Where loads lie in the rows of their threads."""

from __future__ import annotations

from optiml_magic.kernels.expressions import Binary, Call, Expr, Index, Literal, Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.items import element
from optiml_magic.kernels.primitives.mapped import Mapped
from optiml_magic.kernels.primitives.nonnegative import is_nonnegative, never_negative
from optiml_magic.kernels.primitives.places import bare
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import Variable

_THREAD, _BLOCK = "threadIdx.x", "blockIdx.x"


def step(items: Mapped, access: Access) -> int | None:
    """How many elements the next item's is further, where that is a number for all threads."""
    by = access.index.coefficient(_THREAD) if access.index is not None else None
    if access.index is None or by is None or by.value is None:
        return None
    rest = access.index - by * items.index
    return None if {_THREAD, _BLOCK} & rest.symbols else by.value


def is_inside(kernel: Kernel, items: Mapped, length: int, load: Access) -> bool:
    """Whether a load is certainly in the row of its thread."""
    assert load.index is not None
    rest = load.index - Polynomial.constant(length) * items.index
    ranges = Ranges(load.guard, kernel.reading.symbols)
    if not ranges.nonnegative(Polynomial.constant(length - 1) - rest):
        return False
    return ranges.nonnegative(rest) or _is_onward(kernel, items, length, load)


def _is_onward(kernel: Kernel, items: Mapped, length: int, load: Access) -> bool:
    """Whether the text asks for what lies behind the first of the row by nothing or more."""
    node = element(Effects(kernel), load)
    if not isinstance(node, Index) or not isinstance(node.base, Name):
        return False
    match node.base.variable:
        case Variable(value=Binary(op="+", left=Name(name=name), right=far)) as variable:
            leads = variable in Effects(kernel).lasting and variable.type.depth == 1
            first = leads and name == load.array and is_first(items, length, far)
            return first and is_nonnegative(kernel, node.index, never_negative(kernel))
    return False


def is_first(items: Mapped, length: int, index: Expr) -> bool:
    """Whether an index is in plain words that of a row's first element."""
    match index:
        case Binary(op="*", left=left, right=right):
            sides = [bare(left), bare(right)]
            item = any(isinstance(e, Name) and e.variable is items.holding for e in sides)
            return item and any(isinstance(e, Literal) and e.value == length for e in sides)
    return False


def clamped(
    kernel: Kernel, effects: Effects, items: Mapped, length: int, load: Access
) -> tuple[Expr, Expr] | None:
    """The index of a load that is held to the last of its row, and what it is before."""
    node = element(effects, load)
    assert load.index is not None
    rest = load.index - Polynomial.constant(length) * items.index
    names = [name for name in rest.symbols if rest == Polynomial.symbol(name)]
    symbol = kernel.reading.symbols[names[0]] if names else None
    if not isinstance(node, Index) or symbol is None or symbol.op != "min":
        return None
    match bare(node.index):
        case Call(function="min", arguments=(far, Literal(value=last))) if last == length - 1:
            most = Polynomial.constant(length)
            ranges = Ranges(load.guard, kernel.reading.symbols)
            within = all(ranges.nonnegative(most - one) for one in symbol.arguments)
            return (node.index, far) if within else None
    return None
