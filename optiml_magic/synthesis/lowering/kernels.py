"""The writes of a plan as kernels with their launches: one program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.expressions import Expr, Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.printing import Printer
from optiml_magic.kernels.tree import Statement, expressions
from optiml_magic.kernels.unit import lift
from optiml_magic.synthesis.graph import Constant, Node
from optiml_magic.synthesis.lowering import indices
from optiml_magic.synthesis.lowering import spelling as c
from optiml_magic.synthesis.lowering.body import At, Body, Choices
from optiml_magic.synthesis.lowering.plan import Stored
from optiml_magic.synthesis.lowering.writing import Write
from optiml_magic.synthesis.sizes import Extents, Quotient, constant

_NAMES = ("z", "y", "x", "t", "h", "i", "j")  # of a thread's indices, those for x last
_LINE = 256  # threads of a block along one axis; ours
_SIDE = 16  # and along each of two
_MOST_Y = 65535  # blocks along y and z: the CUDA programming guide, compute capabilities
_FACTOR = 64  # below that most by which sizes may grow before an axis no longer fits; ours


@dataclass(frozen=True)
class Array:
    """A buffer as kernels know it."""

    name: str
    node: Node


@dataclass(frozen=True)
class Kernel:
    """A launch directive and the function that it names."""

    directive: str
    text: str
    functions: tuple[str, ...]
    tables: Mapping[Constant, str]


@dataclass(frozen=True)
class Group:
    """Writes of one launch, each with the array that it fills."""

    writes: tuple[tuple[Write, str], ...]
    reads: frozenset[Node]


def grouped(
    stored: Sequence[Stored], names: Mapping[Node, str], copies: Sequence[tuple[Node, str]]
) -> list[Group]:
    """Launches in order: what reads nothing of each other and has the same threads is one.

    ``copies`` are arrays that hold what another holds as well.
    """
    level: dict[Node, int] = {}
    found: dict[tuple[int, Extents], Group] = {}
    for one in stored:
        depth = max((level[read] + 1 for read in one.reads), default=0)
        for write in one.writes:
            key = (depth, write.domain)
            before = found.get(key, Group((), frozenset()))
            own = [names[one.node], *(n for node, n in copies if node is one.node)]
            filled = (*before.writes, *((write, array) for array in own))
            found[key] = Group(filled, before.reads.union(one.reads))
            depth += 1
        level[one.node] = depth - 1
    return [found[key] for key in sorted(found, key=lambda key: key[0])]


def kernel_of(name: str, group: Group, choices: Choices, arrays: Mapping[str, Array]) -> Kernel:
    """The kernel of a launch; over a line of threads where that costs no division."""
    domain = group.writes[0][0].domain
    names = [n for n in _NAMES if n not in choices.taken][-3:]
    shape = _line(domain, names)
    flat = _written(group, choices, shape)
    plane = _plane(domain, choices, names)
    if flat.divisions and plane is not None:
        flat, shape = _written(group, choices, plane), plane
    return _printed(name, group, flat, shape, arrays)


@dataclass(frozen=True)
class _Shape:
    """The axes of a launch from x on, and where in the domain a thread is."""

    axes: tuple[tuple[str, Polynomial], ...]
    at: At
    block: tuple[int, ...]


def _line(domain: Extents, names: Sequence[str]) -> _Shape:
    total = indices.product(domain)
    at = indices.digits(Polynomial.symbol(names[1]), domain)
    if not domain:
        return _Shape(((names[1], constant(1)),), (), (1,))
    return _Shape(((names[1], total),), at, (_LINE,))


def _plane(domain: Extents, choices: Choices, names: Sequence[str]) -> _Shape | None:
    """The last axes along x and y, and all others along z; None where that does not fit."""
    if len(domain) < 2:
        return None
    sizes = Body(choices, {})
    *outer, rows, cols = domain
    depth = indices.product(tuple(outer))
    fits = sizes.extent(rows) <= _MOST_Y * _SIDE / _FACTOR and sizes.extent(cols) >= _SIDE / 2
    if not fits or sizes.extent(depth) > _MOST_Y / _FACTOR:
        return None
    h, i, j = names
    x, y = Polynomial.symbol(j), Polynomial.symbol(i)
    if not outer:
        return _Shape(((j, cols), (i, rows)), (y, x), (_SIDE, _SIDE))
    first = indices.digits(Polynomial.symbol(h), tuple(outer))
    axes = ((j, cols), (i, rows), (h, depth))
    return _Shape(axes, (*first, y, x), (_SIDE, _SIDE))


def _written(group: Group, choices: Choices, shape: _Shape) -> Body:
    """Written down twice: what the first asks for several times has a name in the second."""
    counts: Mapping[object, int] = {}
    for _ in range(2):
        body = Body(replace(choices, counts=counts), dict(reversed(shape.axes)))
        for write, array in group.writes:
            write.work(body, shape.at, array)
        counts = dict(body.asked)
    return body


def _printed(
    name: str, group: Group, body: Body, shape: _Shape, arrays: Mapping[str, Array]
) -> Kernel:
    where = dict(zip(("x", "y", "z"), shape.axes, strict=False))
    guard: Expr | None = None
    for symbol, extent in reversed(shape.axes):
        test = c.binary("<", c.name(symbol), plain(extent))
        guard = test if guard is None else c.binary("&&", guard, test)
    statements: list[Statement] = list(body.statements)
    if guard is not None and shape.block != (1,):
        own = [c.declare("int", symbol, _thread(along)) for along, (symbol, _) in where.items()]
        statements = [*own, c.branch(guard, statements)]
    mentioned = _names(statements)
    written = {array for _, array in group.writes}
    parameters = [
        _parameter(array, array.name in written)
        for array in arrays.values()
        if array.name in mentioned
    ]
    parameters += [f"{kind} {n}" for n, kind in body.choices.scalars.items() if n in mentioned]
    parameters += [f"int {size}" for size in body.choices.sizes if size in mentioned]
    printer = Printer(lift(""))
    text = (
        f"__global__ void {name}({', '.join(parameters)}) {printer.statement(c.block(statements))}"
    )
    blocks = (*shape.block, *[1] * (len(shape.axes) - len(shape.block)))
    sides = zip((extent for _, extent in shape.axes), blocks, strict=True)
    grid = ", ".join(_directive(extent, size) for extent, size in sides)
    block = ", ".join(map(str, shape.block))
    directive = f"#pragma optiml launch {name} grid({grid}) block({block})"
    return Kernel(directive, text, tuple(body.functions), dict(body.tables))


def _thread(along: str) -> Expr:
    block = c.binary("*", c.builtin("blockIdx", along), c.builtin("blockDim", along))
    return c.binary("+", block, c.builtin("threadIdx", along))


def plain(extent: Polynomial) -> Expr:
    """An extent of sizes alone; its quotients are divisions of what is not negative."""
    return indices.spelled(extent, _divided)


def _divided(quotient: Quotient) -> Expr:
    return c.binary("/", plain(quotient.dividend), plain(quotient.divisor))


def _directive(extent: Polynomial, block: int) -> str:
    text = Printer(lift("")).expression(plain(extent))
    return text if block == 1 else f"cdiv({text}, {block})"


def _names(statements: Sequence[Statement]) -> set[str]:
    """All names in the text."""
    every = (e for statement in statements for e in expressions(statement))
    return {e.name for e in every if isinstance(e, Name)}


def _parameter(array: Array, written: bool) -> str:
    kind = c.type_of(array.node.dtype)
    return f"{kind}* {array.name}" if written else f"const {kind}* {array.name}"
