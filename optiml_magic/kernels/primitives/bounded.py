"""P17, bounds said: a launch of ``n / 16`` blocks of 16 threads has as many threads as items.

A kernel that is launched so needs no guard, and has none; one that is launched by ``cdiv(n, 16)``
or a number of blocks, and has none either, has items for all of their threads; one by ``w / 16 *
(h / 16)`` blocks of 256 has those of a plane whose sides are whole. With one that never
turns a thread away, and blocks that are counted like those of any other launch, the rules need not
know the difference.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from math import prod

from optiml_magic.kernels.editing import lines
from optiml_magic.kernels.expressions import builtin
from optiml_magic.kernels.primitives.axes import every_place_read, without_warps
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.block_counts import rounded_up
from optiml_magic.kernels.primitives.grids import needed, said_alike
from optiml_magic.kernels.primitives.narrowed import narrowed
from optiml_magic.kernels.tree import expressions
from optiml_magic.source.directives import Directive, RequireDirective
from optiml_magic.source.expressions import Binary, Expression, Name, Node, Number, parse_expression

_SUMS = "+-*/"


@primitive
def bounded(kernel: Kernel) -> Kernel:
    """The kernel with a guard along each axis whose launch has whole blocks of items.

    Where guards let fewer through than there are threads, it is launched for these.
    """
    if kernel.reading.barriers or kernel.launch.shared is not None:
        raise NotLegal("its threads wait for each other")
    with suppress(NotLegal):
        return narrowed(kernel)
    grid, tests, asked = list(kernel.launch.grid), list[str](), list[Directive | str]()
    for at, (axis, size) in enumerate(zip("xyz", kernel.launch.grid, strict=False)):
        width = kernel.block[at]
        if width is None or width == 1 or needed(kernel, axis) is not None:
            continue
        words = _words(kernel, size, at, width)
        if words is None and (sides := _sides(kernel, size, width)) is not None:
            words = " * ".join(side for side, _ in sides)
            asked += [RequireDirective(parse_expression(f"{s} % {by} == 0")) for s, by in sides]
        if words is None:
            continue
        grid[at] = parse_expression(f"cdiv({words}, {width})")
        tests.append(f"blockIdx.{axis} * {width} + threadIdx.{axis} >= {words}")
    if not tests:
        raise NotLegal("its launch does not say that its blocks are whole")
    without_warps(kernel)
    every_place_read(kernel)
    body = kernel.function.body
    guard = lines(f"if ({' || '.join(tests)}) return;")
    return kernel.rewritten(
        replace(body, body=(guard, *body.body)), launch=replace(kernel.launch, grid=tuple(grid)),
        directives=asked,
    )  # fmt: skip


def _words(kernel: Kernel, size: Expression, at: int, width: int) -> str | None:
    """How many threads the launch has along an axis, as its directive and the kernel can say it."""
    if not size.names and not size.arrays:
        blocks = size.evaluate({})
        return None if _asks_for_blocks(kernel) else str(blocks * width)
    whole, more = _divided(size.tree, kernel, at), ""
    if whole is None and not _asks_for_blocks(kernel):
        whole, more = rounded_up(size.tree, kernel.launch.block[at].tree, width), f" + {width - 1}"
    if whole is None or not _scalars(kernel, whole):
        return None
    words = str(Expression(whole, ""))
    if not said_alike(kernel, Expression(whole, "").names):
        return None
    if _multiple(kernel, words, width):
        return words
    top = f"({words}{more})" if more else _factor(whole, words)
    return f"{top} / {width} * {width}"


def _sides(kernel: Kernel, size: Expression, width: int) -> list[tuple[str, int]] | None:
    """The sides of a plane in ``w / 16 * (h / 16)`` blocks of 256, and what each is divided by."""
    over, under = list[str](), list[int]()
    stack: list[tuple[Node, bool]] = [(size.tree, True)]
    while stack:
        node, above = stack.pop()
        match node:
            case Binary("*" | "/" as op, left, right):
                if not above:
                    return None
                stack += [(right, op == "*"), (left, True)]
            case Name(name=name) if above and _scalars(kernel, node):
                over.append(name)
            case Number() | Name() if not above:
                known = Expression(node, "")
                if not known.names <= kernel.program.values.keys() or len(under) == len(over):
                    return None
                under.append(known.evaluate(kernel.program.values))
            case _:
                return None
    whole = len(over) == len(under) > 1 and prod(under) == width and len({*over}) == len(over)
    if not whole or _asks_for_blocks(kernel) or not said_alike(kernel, over):
        return None
    return [*zip(over, under, strict=True)]


def _asks_for_blocks(kernel: Kernel) -> bool:
    """Whether a kernel asks how many blocks there are, as one does that steps by the grid."""
    inside = expressions(kernel.function.body)
    return any(builtin(e).startswith("gridDim") for e in inside)


def _divided(tree: Node | None, kernel: Kernel, at: int) -> Node | None:
    """``n`` of ``n / 16`` blocks of 16 threads."""
    said = [size.tree for size in kernel.launch.block[at : at + 1]]
    match tree:
        case Binary("/", whole, by) if by in (*said, Number(kernel.block[at] or 0)):
            return whole
    return None


def _scalars(kernel: Kernel, node: Node) -> bool:
    """Whether a size is a sum of products of numbers that the kernel is given."""
    given = {p.name for p in kernel.function.parameters if not p.type.depth}
    match node:
        case Number():
            return True
        case Name(name=name):
            return name in given
        case Binary(op=op, left=left, right=right):
            return op in _SUMS and _scalars(kernel, left) and _scalars(kernel, right)
    return False


def _multiple(kernel: Kernel, words: str, width: int) -> bool:
    """Whether the program asks for a size that is a multiple of the width."""
    asked = str(parse_expression(f"({words}) % {width} == 0"))
    parts = [str(r.condition) for r in kernel.program.requires]
    return any(asked in part.split(" && ") for part in parts)


def _factor(node: Node, words: str) -> str:
    return words if isinstance(node, Name | Number) else f"({words})"
