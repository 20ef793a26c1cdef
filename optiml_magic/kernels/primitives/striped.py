"""Normal form: the items of a thread, a block's width apart, by a loop in steps of that width.

``for (j = 0; j < 4; ++j) { i = first + j * 256 + threadIdx.x; ... }`` in a block of 256 threads is
``for (item = threadIdx.x; item < 1024; item += 256) { i = first + item; ... }``: so the block's
items are one row, whichever thread takes which, where the rounds written out would each be another
part of what a thread has. So is ``for (j = 0; j < n; j += 256) { i = j + threadIdx.x; ... }``, up
to the end of the last round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Binary, Expr, Name, builtin, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.block_rounds import row_of_threads
from optiml_magic.kernels.primitives.effects import Effects, is_counted, loops_in
from optiml_magic.kernels.primitives.sizes import whole_number
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import Loop, Statement, expressions
from optiml_magic.kernels.types import named
from optiml_magic.source.expressions import Number

_MOST = 1 << 16  # items of a block: ours
_THREAD = "threadIdx.x"
_INT, _ADDRESS = 4, 8  # bytes


@primitive
def striped(kernel: Kernel) -> Kernel:
    """The kernel whose loops over a thread's items go from its number in steps of the block."""
    width = row_of_threads(kernel)
    if not all(isinstance(size.tree, Number) for size in kernel.launch.block):
        raise NotLegal("how many threads its blocks have is not a number")
    effects, swaps = Effects(kernel), dict[Node, Node | tuple[Statement, ...] | None]()
    taken = list[str]()
    for loop in loops_in(kernel.function.body):
        axis = kernel.axes().get(loop)
        if axis is None or not is_counted(axis, effects) or loop in swaps:
            continue
        name, end = kernel.fresh("item", *taken), _end(kernel, axis, width)
        sums = _sums(kernel, effects, axis, width, name) if end else {}
        if sums:
            taken.append(name)
            body = kernel.show(edited(loop.body, sums))
            head = f"{_kind(kernel, axis)} {name} = {_THREAD}; {name} {end}; {name} += {width}"
            swaps |= dict.fromkeys(hints_of(kernel, loop))
            swaps[loop] = (lines(f"for ({head}) {body}"),)
    if not swaps:
        raise NotLegal("no loop goes over a thread's items a block's width apart")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _end(kernel: Kernel, axis: Axis, width: int) -> str:
    """Where the items of the block end; nothing where its rounds are not a thread's items.

    No number is computed that rounds did not come to, so that none is greater than it can be.
    """
    start, trips, own = axis.start, axis.trips, _kind(kernel, axis)
    if start is None or start.value != 0:
        return ""
    if _by_one(axis) and trips is not None:
        return f"< {trips * width}" if own == "int" and 2 <= trips <= _MOST // width else ""
    if axis.step is None or axis.step.value not in (1, width) or not axis.exact:
        return ""
    match axis.node.test:
        case Binary(op="<", left=Name(variable=counter), right=last) if counter is axis.variable:
            kind, words = kernel.reading.types.get(last), kernel.spelled(last)
            if kind is None or kind.name != own or kind.size not in (_INT, _ADDRESS):
                return ""
            if not _by_one(axis):
                return f"< ({words} + {width - 1}) / {width} * {width}"
            if kind.size == _ADDRESS:
                return f"< ({words}) * {width}"
            return f"<= ({words} - 1) * {width} + {width - 1}" if kind.signed else ""
    return ""


def _kind(kernel: Kernel, axis: Axis) -> str:
    """The type of a counter."""
    base = axis.variable.type.base if axis.variable is not None else ""
    return named(base, kernel.unit.aliases).name if base else ""


def _by_one(axis: Axis) -> bool:
    return axis.step is not None and axis.step.value == 1


def _sums(
    kernel: Kernel, effects: Effects, axis: Axis, width: int, name: str
) -> Mapping[Node, Node]:
    """The sums that say which item it is, by its ``name``; none where a round asks for more."""
    body = axis.node.body
    around = _parents(axis.node)
    swaps = dict[Node, Node]()
    for use in expressions(body):
        if not isinstance(use, Name) or use.variable is not axis.variable:
            continue
        place = _first_item(kernel, around, use, width) if _by_one(axis) else use
        thread = _beside(effects, place, around) if place is not None else None
        if place is None or thread is None:
            return {}
        kinds = {k.name if (k := kernel.reading.types.get(e)) else "" for e in (thread, place)}
        own = _kind(kernel, axis)  # of 64 bits, or an ``int``
        known = own in kinds if own != "int" else kinds <= {"int", "unsigned int"}
        if not known or not _of_one_width(kernel, place, thread, around):
            return {}
        item = text(name if own != "int" or kinds == {"int"} else f"(unsigned int){name}")
        outer = around[thread]
        assert isinstance(outer, Binary)
        rest = outer.left if outer.right is thread else outer.right
        if place in {*every(rest)}:
            swaps[outer] = item if rest is place else edited(rest, {place: item})
        else:
            swaps |= {outer: rest, place: item}
    return swaps


def _first_item(kernel: Kernel, around: Mapping[Expr, Expr], use: Expr, width: int) -> Expr | None:
    """The product of a round's number and the width of a block."""
    place = around.get(use)
    if not isinstance(place, Binary) or place.op != "*":
        return None
    by = place.right if place.left is use else place.left
    whole = width if builtin(by) == "blockDim.x" else whole_number(kernel, by)
    return place if whole == width else None


def _beside(effects: Effects, place: Expr, around: Mapping[Expr, Expr]) -> Expr | None:
    """What a thread's number is called in the sum that a product is a part of."""
    top = place
    while isinstance(outer := around.get(top), Binary) and outer.op == "+":
        top = outer
    todo, found = [top], list[Expr]()
    while todo:
        part = todo.pop()
        if isinstance(part, Binary) and part.op == "+":
            todo += [part.left, part.right]
        elif _numbers(effects, part):
            found.append(part)
    return found[0] if len(found) == 1 else None


def _numbers(effects: Effects, part: Expr) -> bool:
    """Whether it is the number of a thread, by itself or by the name of a local."""
    local = part.variable if isinstance(part, Name) else None
    if local is not None and local in effects.lasting and not local.type.reference:
        part = local.value if local.value is not None else part
    return builtin(part) == _THREAD


def _of_one_width(kernel: Kernel, place: Expr, thread: Expr, around: Mapping[Expr, Expr]) -> bool:
    """Whether the sums from both to where they meet are whole numbers or pointers of one width.

    A sum of 32 bits wraps around before it is converted for one of 64, or for a float.
    """
    first, second = ([*_sums_around(e, around)] for e in (place, thread))
    widths = set[int | None]()
    for own, other in ((first, second), (second, first)):
        meet = next(at for at, e in enumerate(own) if e in other)
        for kind in map(kernel.reading.types.get, own[: meet + 1]):
            if kind is None or not (kind.integral or kind.depth):
                return False
            widths.add(_ADDRESS if kind.depth else kind.size)
    return len(widths) == 1 and None not in widths


def _sums_around(part: Expr, around: Mapping[Expr, Expr]) -> Iterator[Expr]:
    """The sums that an expression is a part of, from the innermost."""
    while isinstance(outer := around.get(part), Binary) and outer.op == "+":
        yield outer
        part = outer


def _parents(loop: Loop) -> dict[Expr, Expr]:
    return {p: e for e in expressions(loop.body) for p in e.parts}
