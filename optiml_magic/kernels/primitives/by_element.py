"""P9, scalarise: short local arrays become a local for each element, and loops over them are gone.

``for (s = 0; s < 2; s++) { y = c[s] * x + z[s]; ... }`` is written out for each ``s``, so that what
goes from round to round of a loop around it is plain numbers, as in a chain of filters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import add, mul, sub

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Binary,
    Cast,
    Expr,
    Index,
    Literal,
    Name,
    Unary,
    Unread,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in, names
from optiml_magic.kernels.primitives.naming import numeral, type_of
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Leave,
    Loop,
    Statement,
    Variable,
    Verbatim,
    expressions,
    walk,
)

_MOST = 8  # elements of an array, and rounds of a loop: ours
_BY: Mapping[str, Callable[[int, int], int]] = {"+": add, "-": sub, "*": mul}
_STATEMENTS = 128  # that are written out: ours


@primitive
def by_element(kernel: Kernel) -> Kernel:
    """The kernel whose short local arrays, all of which it asks for by numbers, are locals."""
    arrays = _arrays(kernel)
    if not arrays:
        raise NotLegal("no short local array is asked for by its elements alone")
    wanted = {v.name for v in arrays}
    while True:
        loop = next((loop for loop in loops_in(kernel.function.body)[::-1]
                     if _goes_over(kernel, loop, wanted)), None)  # fmt: skip
        if loop is None:
            break
        kernel = _written_out(kernel, loop)
    return _apart(kernel, [v for v in _arrays(kernel) if v.name in wanted])


def _arrays(kernel: Kernel) -> list[Variable]:
    """Plain local arrays of one extent, of which nothing but elements is asked for."""
    body = kernel.function.body
    based = {e.base for e in expressions(body) if isinstance(e, Index)}
    lost = {e.variable for e in expressions(body) if isinstance(e, Name) and e not in based}
    lost |= {v for s in walk(body) if isinstance(s, Verbatim) for v in names(s.mentions)}
    for expr in expressions(body):  # an address leads to the others as well
        if isinstance(expr, Unread) or (isinstance(expr, Unary) and expr.op == "&"):
            lost |= names([expr])
    found = (v for s in walk(body) if isinstance(s, Declare) for v in s.variables)
    return [
        v for v in found
        if v.storage == "local" and len(v.extents) == 1 and v not in lost and not v.type.depth
        and not v.type.volatile and 0 < (_length(v) or 0) <= _MOST
    ]  # fmt: skip


def _length(array: Variable) -> int | None:
    (extent,) = array.extents
    return _number(extent) if extent is not None else None


def _number(expr: Expr) -> int | None:
    """The value of an expression of whole numbers alone, macros among them."""
    match expr:
        case Literal(value=int(value)):
            return value
        case Cast(operand=operand):
            return _number(operand)
        case Unary(op="-", operand=operand):
            number = _number(operand)
            return None if number is None else -number
        case Binary(op="+" | "-" | "*" as op, left=left, right=right):
            sides = _number(left), _number(right)
            if sides[0] is None or sides[1] is None:
                return None
            return _BY[op](sides[0], sides[1])
    return None


def _goes_over(kernel: Kernel, loop: Loop, wanted: set[str]) -> bool:
    """Whether a loop of few rounds asks for elements by its counter, and may be written out."""
    axis = kernel.axes().get(loop)
    if axis is None or axis.variable is None or axis.broken or not 0 < (axis.trips or 0) <= _MOST:
        return False
    head = loop.before.variables if isinstance(loop.before, Declare) else ()
    start, step = axis.start, axis.step
    whole = start is not None and start.value is not None and step is not None
    if head != (axis.variable,) or not whole or step is None or step.value is None:
        return False
    asked = any(
        isinstance(e, Index) and isinstance(e.base, Name) and e.base.name in wanted
        and axis.variable in names([e.index]) for e in expressions(loop.body)
    )  # fmt: skip
    inside = [*walk(loop.body)]
    plain = not any(isinstance(s, Leave | Verbatim) for s in inside)
    moved = axis.variable in Effects(kernel).changed(loop.body)
    return asked and plain and not moved and len(inside) * (axis.trips or 0) <= _STATEMENTS


def _written_out(kernel: Kernel, loop: Loop) -> Kernel:
    axis = kernel.axes()[loop]
    assert axis.start is not None
    assert axis.step is not None
    assert axis.variable is not None
    first, step = int(axis.start.value or 0), int(axis.step.value or 0)
    counters = [e for e in expressions(loop.body)
                if isinstance(e, Name) and e.variable is axis.variable]  # fmt: skip
    made, kind = list[Statement](), type_of(kernel, axis.variable)
    for turn in range(axis.trips or 0):
        number = numeral(first + turn * step, kind)
        inner = kernel.show_inside(loop.body, dict.fromkeys(counters, number))
        made.append(lines(f"{{\n{inner}\n}}"))
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {loop: tuple(made)}
    for block in walk(kernel.function.body):
        if isinstance(block, Block) and loop in block.body:
            at = block.body.index(loop)
            before = block.body[at - 1] if at else None
            if isinstance(before, Blank) and before.hints:
                swaps[before] = None
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _apart(kernel: Kernel, arrays: list[Variable]) -> Kernel:
    body, places = kernel.function.body, dict[Node, Node]()
    own = dict[Variable, list[str]]()
    for array in arrays:
        length = _length(array) or 0
        asked = [e for e in expressions(body) if isinstance(e, Index)
                 and isinstance(e.base, Name) and e.base.variable is array]  # fmt: skip
        numbers = [_number(e.index) for e in asked]
        known = all(at is not None and 0 <= at < length for at in numbers)
        if not known or _values(array, length) is None:
            continue
        taken, own[array] = [name for names_ in own.values() for name in names_], []
        for at in range(length):
            own[array].append(kernel.fresh(f"{array.name}_{at}", *taken, *own[array]))
        places |= {e: text(own[array][at]) for e, at in zip(asked, numbers, strict=True)
                   if at is not None}  # fmt: skip
    if not own:
        raise NotLegal("which elements it asks for is not known")
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {**places}
    for home in walk(body):
        if isinstance(home, Declare) and own.keys() & {*home.variables}:
            swaps[home] = tuple(_declared(kernel, home, own, places))
    return kernel.rewritten(edited(body, swaps))


def _declared(
    kernel: Kernel, home: Declare, own: Mapping[Variable, list[str]], places: dict[Node, Node]
) -> Iterator[Statement]:
    """Each variable of a declaration by itself, an array as a local for each element."""
    words = home.words.strip()
    for variable in home.variables:
        if variable not in own:
            alone = Declare(None, home.line, f"{words} ", (variable,))
            yield lines(kernel.show(alone, places))
            continue
        values = _values(variable, len(own[variable])) or ()
        shown = (f"{name}{f' = {kernel.spelled(v, places)}' if v is not None else ''}"
                 for name, v in zip(own[variable], values, strict=True))  # fmt: skip
        yield lines(f"{words} {', '.join(shown)};")


def _values(array: Variable, length: int) -> list[Expr | None] | None:
    """What its elements begin with; None where that is not said so."""
    zero = Literal(None, "0", 0)
    if array.value is None and not array.initial:
        return [None] * length
    if array.opening != "{" or len(array.initial) > length:
        return None
    begun = array.initial or ([array.value] if array.value is not None else [])  # {1} is one value
    return [*begun, *[zero] * (length - len(begun))]
