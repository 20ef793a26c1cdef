"""What must hold of the sizes so that a launch has no more blocks than a grid may have.

Along x there may be 2^31 - 1 of them, along y and z far fewer: CUDA C++ Programming Guide, "Compute
Capabilities".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.block_counts import rounded_up
from optiml_magic.kernels.primitives.grids import said_alike
from optiml_magic.kernels.types import named
from optiml_magic.source.directives import (
    Directive,
    LaunchDirective,
    RequireDirective,
    TuneDirective,
)
from optiml_magic.source.expressions import (
    Binary,
    Call,
    Expression,
    Name,
    Node,
    Number,
    parse_expression,
)
from optiml_magic.source.operators import apply_binary, apply_function

MOST_BLOCKS = 65535
_Range = tuple[int, int]  # the least and the greatest value


def limits(
    kernel: Kernel, launch: LaunchDirective, tunes: Sequence[TuneDirective] = ()
) -> list[RequireDirective]:
    """What the new ``launch`` of a kernel asks of the sizes, and its own launch does not.

    ``tunes`` are names that the new one brings along. Nothing is asked where the types of the
    sizes, the values of tuned names or what the program asks for anyway say that it holds.
    """
    ranges = {t.name: (min(t.values), max(t.values)) for t in (*kernel.program.tunes, *tunes)}
    for parameter in kernel.function.parameters:
        kind = named(parameter.type.base, kernel.unit.aliases)
        if parameter.type.depth == 0 and kind.integral and kind.size and kind.lanes == 1:
            bits = 8 * kind.size - kind.signed
            known = -(1 << bits) if kind.signed else 0, (1 << bits) - 1
            if said_alike(kernel, [parameter.name]):
                ranges.setdefault(parameter.name, known)
    asked = set(_asked(kernel))
    for tree in asked:
        _narrow(tree, ranges)
    found = []
    for size in launch.grid[1:]:
        bound, most = limit(size), _range(size.tree, ranges)
        held = bound.tree in asked or (most is not None and most[1] <= MOST_BLOCKS)
        if not held and not _fitted(kernel, size.tree, ranges):
            found.append(RequireDirective(bound))
    return list(dict.fromkeys(found))


def limit(size: Expression) -> Expression:
    """That there are no more blocks along an axis of such a size than along y and z may be."""
    return parse_expression(f"{size} <= {MOST_BLOCKS}")


def some(sizes: Iterable[Expression]) -> list[RequireDirective]:
    """That scratch of such sizes has an element, where these may be less than all that they name.

    There are `k / group` parts of a row, and none of one that is shorter than a part.
    """
    one = (parse_expression(f"{size} >= 1") for size in sizes if _takes_away(size.tree))
    return [RequireDirective(condition) for condition in one]


def _takes_away(node: Node) -> bool:
    match node:
        case Binary(op, left, right):
            return op in ("-", "/", "%") or _takes_away(left) or _takes_away(right)
        case Call(arguments=arguments):
            return any(map(_takes_away, arguments))
        case Number(value):
            return value < 1
    return not isinstance(node, Name)


def with_limits(
    kernel: Kernel, launch: LaunchDirective, tunes: Callable[[int], list[TuneDirective]]
) -> list[Directive]:
    """Tuned names with what their launch asks of the sizes, if possible nothing.

    ``tunes`` makes the names, with no block of fewer rows than it is given.
    """
    tall = tunes(kernel.block[1] or 1)
    if not limits(kernel, launch, tall):
        return [*tall]
    every = tunes(1)
    return [*every, *limits(kernel, launch, every)]


def at_least(values: Iterable[int], least: int) -> tuple[int, ...]:
    """Those of the values that are no smaller."""
    return tuple(value for value in values if value >= least)


def _asked(kernel: Kernel) -> Iterator[Node]:
    """The conditions that hold wherever the kernel runs."""
    conditions = [r.condition for r in kernel.program.requires]
    if kernel.launch.condition is not None:
        conditions.append(kernel.launch.condition)
    stack = [condition.tree for condition in conditions]
    while stack:
        tree = stack.pop()
        yield tree
        if isinstance(tree, Binary) and tree.op == "&&":
            stack += [tree.left, tree.right]


def _narrow(condition: Node, ranges: dict[str, _Range]) -> None:
    """Take ``n <= 100`` and ``n < 100`` into account."""
    match condition:
        case Binary("<=" | "<" as op, Name(name), Number(value)) if name in ranges:
            low, high = ranges[name]
            ranges[name] = low, min(high, value - (op == "<"))


def _fitted(kernel: Kernel, size: Node, ranges: Mapping[str, _Range]) -> bool:
    """Whether the kernel's own launch has no fewer blocks along y or z."""
    launch = kernel.launch
    for at, old in [*enumerate(launch.grid)][1:]:
        if old.tree == size:
            return True
        width = kernel.block[at]
        if width is None or not isinstance(size, Call) or size.function != "cdiv":
            continue
        own = launch.block[at].tree if at < len(launch.block) else Number(1)
        count = old.tree if width == 1 else rounded_up(old.tree, own, width)
        by = _range(size.arguments[1], ranges)
        if count == size.arguments[0] and by is not None and by[0] >= width:
            return True
    return False


def _range(node: Node, ranges: Mapping[str, _Range]) -> _Range | None:
    """Between which values an expression is; None where that is not known."""
    match node:
        case Number(value):
            return value, value
        case Name(name):
            return ranges.get(name)
        case Binary("+" | "-" | "*" | "/" as op, left, right):
            combine = partial(apply_binary, op)
        case Call("cdiv" | "min" | "max" as op, (left, right)):
            combine = partial(_applied, op)
        case _:
            return None
    first, second = _range(left, ranges), _range(right, ranges)
    if first is None or second is None or (op in ("/", "cdiv") and second[0] < 1):
        return None
    corners = [combine(a, b) for a, b in product(first, second)]
    return min(corners), max(corners)


def _applied(function: str, left: int, right: int) -> int:
    return apply_function(function, (left, right))
