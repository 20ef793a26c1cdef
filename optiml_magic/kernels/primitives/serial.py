"""P4 undone: a thread takes a row of items, one after the other, in the place of one item.

For launches that follow a reduction of rows: thread and row are then the same in both.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.editing import Node, lines, text
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.cutting import uses
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.grids import form_of, needed
from optiml_magic.kernels.primitives.mapped import Mapped, mapped
from optiml_magic.kernels.primitives.naming import LocalSpeller
from optiml_magic.kernels.primitives.places import as_wide
from optiml_magic.kernels.primitives.planes import Plane, ends
from optiml_magic.kernels.tree import Declare, Statement
from optiml_magic.source.expressions import Expression, parse_expression

_PLACE = "blockIdx.x * blockDim.x + threadIdx.x"


@primitive
def by_rows(kernel: Kernel, width: int) -> Kernel:
    """A thread for each row of the plane of items, in blocks of ``width``."""
    kernel = kernel.settled()
    if len(kernel.launch.grid) == 1:
        return _taken_apart(kernel, width)
    return _plane(kernel, width)


def _taken_apart(kernel: Kernel, width: int) -> Kernel:
    plane = Plane(kernel)
    words, rows = plane.items.words, plane.spelled(plane.rows)
    test = " && ".join([f"{plane.row} < {rows}", *plane.tests()])
    column = plane.column
    made = [
        f"{words} {plane.row} = {_PLACE};",
        f"if ({test}) {{",
        f"for ({words} {column} = 0; {column} < {plane.columns}; ++{column}) {{",
        *plane.inside(plane.row, column),
        "}",
        "}",
    ]
    body = (*plane.items.outside, lines("\n".join(made)))
    return _relaunched(kernel, body, parse_expression(rows), width)


def _plane(kernel: Kernel, width: int) -> Kernel:
    effects = Effects(kernel)
    items = mapped(kernel, effects)
    found, rows = uses(kernel, "y"), needed(kernel, "y", loads=True)
    if found.parts or found.strides or not found.whole:
        raise NotLegal("its launch has no rows")
    planes = uses(kernel, "z")
    if planes.parts or planes.strides or kernel.block[2] != 1:
        raise NotLegal("a thread asks for more than its index along z")
    whole = rows is None and kernel.block[1] == 1 and not items.tests
    rows = _all_blocks(kernel) if whole else rows
    if rows is None:
        raise NotLegal("how many rows there are its guards do not say")
    speller = LocalSpeller(kernel.reading.symbols, {}, moved=effects.moved)
    speller.kernel = kernel
    swaps: dict[Node, Node] = {**items.swaps, **ends(items)}
    swaps |= {e: text(as_wide(kernel, e, f"({_PLACE})")) for e in found.whole}
    swaps |= {e: text("blockIdx.y") for e in planes.whole}
    tests = [kernel.spelled(t, swaps) for t in items.tests]
    name, within = items.name, _within(items)
    made = [
        f"for ({items.words} {name} = 0; {name} < {items.limit(speller)}; ++{name}) {{",
        *(kernel.show(s, swaps) for s in items.inside),
        "}",
    ]
    outside = [kernel.show(s, swaps) for s in items.outside]
    made = [*outside[within:], *made]
    if tests:
        made = [f"if ({' && '.join(f'({t})' for t in tests)}) {{", *made, "}"]
    made = [*outside[:within], *made]
    if whole:  # every block along y is a row, and what it loads is there for these alone
        made = [f"if (({_PLACE}) < {rows}) {{", *made, "}"]
    return _relaunched(kernel, (lines("\n".join(made)),), rows, width)


def _within(items: Mapped) -> int:
    """How many statements outside of the items stand before their tests: what these ask for."""
    asked = names(items.tests)
    found = 0
    for at in reversed(range(len(items.outside))):
        statement = items.outside[at]
        if not isinstance(statement, Declare) or asked & {*statement.variables}:
            found = max(found, at + 1)
            asked |= names(statement.expressions)
    return found


def _all_blocks(kernel: Kernel) -> Expression | None:
    """How many blocks there are along y, where the kernel is given the sizes that say so."""
    found = form_of(kernel.launch.grid[1].tree)
    given = {v.name for v in kernel.function.parameters if not v.type.depth}
    return kernel.launch.grid[1] if found is not None and found.symbols <= given else None


def _relaunched(
    kernel: Kernel, body: tuple[Statement, ...], rows: Expression, width: int
) -> Kernel:
    launch = replace(
        kernel.launch,
        grid=(parse_expression(f"cdiv({rows}, {width})"), *kernel.launch.grid[2:]),
        block=(parse_expression(str(width)),),
    )
    made = kernel.rewritten(replace(kernel.function.body, body=body), launch=launch)
    return replace(made, facts=None)
