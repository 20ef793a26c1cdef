"""The writes of a plan as kernels with their launches: one program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.expressions import Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.printing import Printer
from optiml_magic.kernels.tree import Statement, expressions
from optiml_magic.kernels.unit import lift
from optiml_magic.synthesis.graph import Constant, Node
from optiml_magic.synthesis.lowering import spelling as c
from optiml_magic.synthesis.lowering import threads
from optiml_magic.synthesis.lowering.body import Body
from optiml_magic.synthesis.lowering.choices import Choices
from optiml_magic.synthesis.lowering.plan import Stored
from optiml_magic.synthesis.lowering.threads import Threads
from optiml_magic.synthesis.lowering.writing import Write
from optiml_magic.synthesis.sizes import Extents, symbols_of


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
    shape = threads.line(domain, choices.taken, apart=False)
    body = _written(group, choices, shape)
    if body.divisions and len(domain) > 1:
        plane = threads.plane(domain, choices.sizes, choices.taken)
        shape = plane or threads.line(domain, choices.taken, apart=True)
        body = _written(group, choices, shape)
    return _printed(name, group, body, shape, arrays)


def _written(group: Group, choices: Choices, shape: Threads) -> Body:
    """Written down twice: what the first asks for several times has a name in the second."""
    counts: Mapping[object, int] = {}
    for _ in range(2):
        body = Body(replace(choices, counts=counts), shape.ranges, shape.wholes)
        for write, array in group.writes:
            write.work(body, shape.at, array)
        counts = dict(body.asked)
    return body


def _printed(
    name: str, group: Group, body: Body, shape: Threads, arrays: Mapping[str, Array]
) -> Kernel:
    statements: list[Statement] = list(body.statements)
    asked = _names(statements)
    digits = [statement for digit, statement in shape.digits if digit in asked]
    guard = shape.guard
    if guard is not None and shape.block != (1,):
        statements = [*shape.begun, c.branch(guard, [*digits, *statements])]
    mentioned = _names(statements)
    written = {array for _, array in group.writes}
    parameters = [
        _parameter(array, array.name in written)
        for array in arrays.values()
        if array.name in mentioned
    ]
    parameters += [f"{kind} {n}" for n, kind in body.choices.scalars.items() if n in mentioned]
    launched = {s for extent, _ in threads.grid(shape) for s in symbols_of(extent)}
    sizes = [size for size in body.choices.sizes if size in mentioned | launched]
    parameters += [f"int {size}" for size in sizes]
    head = f"__global__ void {name}({', '.join(parameters)})"
    text = f"{head} {Printer(lift('')).statement(c.block(statements))}"
    grid = ", ".join(_directive(extent, size) for extent, size in threads.grid(shape))
    block = ", ".join(map(str, shape.block))
    directive = f"#pragma optiml launch {name} grid({grid}) block({block})"
    return Kernel(directive, text, tuple(body.functions), dict(body.tables))


def _directive(extent: Polynomial, block: int) -> str:
    text = Printer(lift("")).expression(threads.plain(extent))
    return text if block == 1 else f"cdiv({text}, {block})"


def _names(statements: Sequence[Statement]) -> set[str]:
    """All names in the text."""
    every = (e for statement in statements for e in expressions(statement))
    return {e.name for e in every if isinstance(e, Name)}


def _parameter(array: Array, written: bool) -> str:
    kind = c.type_of(array.node.dtype)
    return f"{kind}* {array.name}" if written else f"const {kind}* {array.name}"
