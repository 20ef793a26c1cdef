"""Local arrays at places that data choose, as columns of shared memory, one a thread.

What is indexed at run time lies in local memory. Lanes that stand at different places of theirs ask
for as many lines of it, each of which holds an element of all lanes. In shared memory a lane's
elements lie in a bank of its own, whatever their places are, and no thread asks for another's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Expr, Index, Literal, Name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, lent_in
from optiml_magic.kernels.primitives.room import SHARED
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.symbols import UNKNOWN
from optiml_magic.kernels.tree import Declare, Statement, Variable, expressions, walk
from optiml_magic.kernels.types import named

MOST = 512  # bytes of a thread, with which 448 threads have room on a multiprocessor: ours
_BY_DATA = frozenset({"[]", UNKNOWN})


@dataclass(frozen=True)
class Column:
    """A local array of numbers, its ``extents`` and the ``bytes`` of all its elements."""

    variable: Variable
    extents: tuple[int, ...]
    bytes: int


@primitive
def own_columns(kernel: Kernel) -> Kernel:
    """The kernel with such arrays in shared memory; the extents of its block are numbers."""
    Effects(kernel).straightforward(lanes=True, alone=False)
    kernel = kernel.settled()
    if None in kernel.block:
        raise NotLegal("how many threads its block has is not a number")
    threads = math.prod(extent or 1 for extent in kernel.block)
    found = {column.variable: column for column in columns(kernel)}
    if not found:
        raise NotLegal("data choose no place in a local array of numbers")
    if sum(column.bytes for column in found.values()) * threads > SHARED:
        raise NotLegal(f"what {threads} threads hold does not fit shared memory")
    body, told = kernel.function.body, _thread(kernel)
    lane = kernel.fresh("column") if " " in told else told
    places = dict[Node, Node]()
    for expr in [*expressions(body)][::-1]:  # inner ones first
        variable, depth = _led(expr)
        if variable in found and depth == len(found[variable].extents):
            places[expr] = Name(None, f"{kernel.spelled(expr, places)}[{lane}]")
    swaps: dict[Node, Node | tuple[Statement, ...]] = {**places}
    for statement in walk(body):
        if isinstance(statement, Declare) and found.keys() & {*statement.variables}:
            swaps[statement] = tuple(_declared(kernel, statement, found, (threads, lane), places))
    made = edited(body, swaps)
    if lane != told:
        made = replace(made, body=(lines(f"const int {lane} = {told};"), *made.body))
    return kernel.rewritten(made, tidy=False)


def columns(kernel: Kernel) -> list[Column]:
    """The arrays that may be columns, where the kernel has no shared memory as yet."""
    reading, body = kernel.reading, kernel.function.body
    if kernel.launch.shared is not None or any(a.space == "shared" for a in reading.accesses):
        return []
    chosen = {a.array for a in reading.accesses if a.space == "local" and _by_data(kernel, a)}
    declared = [v for s in walk(body) if isinstance(s, Declare) for v in s.variables]
    given = [v.name for v in declared] + [p.name for p in kernel.function.parameters]
    lent, found = lent_in(body), list[Column]()
    for variable in declared:
        if variable.name in chosen and given.count(variable.name) == 1 and variable not in lent:
            column = _column(kernel, variable)
            if column is not None and column.bytes <= MOST:
                found.append(column)
    return found


def _by_data(kernel: Kernel, access: Access) -> bool:
    """Whether an element lies where the data say, or where nobody knows."""
    if access.index is None:
        return True
    return bool(kernel.reading.symbols.depends(access.index) & _BY_DATA)


def _column(kernel: Kernel, variable: Variable) -> Column | None:
    """What is known of an array of numbers of which single elements alone are asked for."""
    kind = named(variable.type.base, kernel.unit.aliases)
    known = kernel.reading.arrays.get(variable.name)
    extents = [e.value for e in known.extents if e is not None] if known is not None else []
    plain = kind.kind in ("int", "float") and kind.lanes == 1 and not variable.type.depth
    if not plain or not kind.size or variable.storage != "local" or variable.type.reference:
        return None
    if variable.type.volatile or variable.type.const or len(extents) != len(variable.extents):
        return None
    numbers = tuple(extent for extent in extents if extent is not None)
    begun = [*variable.initial] if variable.value is None else [variable.value]
    zeros = variable.opening == "{" and all(isinstance(e, Literal) and e.value == 0 for e in begun)
    if not numbers or len(numbers) != len(extents) or not (zeros or not begun):
        return None
    body = kernel.function.body
    mentions = sum(isinstance(e, Name) and e.variable is variable for e in expressions(body))
    elements = sum(_led(e) == (variable, len(numbers)) for e in expressions(body))
    if mentions != elements:
        return None
    return Column(variable, numbers, math.prod(numbers) * kind.size)


def _led(expr: Expr) -> tuple[Variable | None, int]:
    """The array that indices lead to, and how many they are."""
    depth = 0
    while isinstance(expr, Index):
        expr, depth = expr.base, depth + 1
    return (expr.variable, depth) if isinstance(expr, Name) else (None, 0)


def _thread(kernel: Kernel) -> str:
    """The number of a thread in its block."""
    wide, high, deep = (extent or 1 for extent in kernel.block)
    words = "threadIdx.x"
    if high > 1 or deep > 1:
        words = f"threadIdx.y * {wide} + {words}"
    return f"threadIdx.z * {wide * high} + {words}" if deep > 1 else words


def _declared(
    kernel: Kernel,
    statement: Declare,
    found: dict[Variable, Column],
    of: tuple[int, str],
    places: dict[Node, Node],
) -> Iterator[Statement]:
    """Each variable of a declaration by itself; what begins with zeros gets them there.

    Columns are ``of`` so many threads, of which each has this number.
    """
    (threads, lane), words = of, statement.words.strip()
    for variable in statement.variables:
        column = found.get(variable)
        if column is None:
            alone = Declare(None, statement.line, f"{words} ", (variable,))
            yield lines(kernel.show(alone, places))
            continue
        extents = "".join(f"[{extent}]" for extent in (*column.extents, threads))
        yield lines(f"__shared__ {words} {variable.name}{extents};")
        if variable.opening == "{":
            names = [kernel.fresh(f"at_{axis}") for axis in range(len(column.extents))]
            heads = "".join(
                f"for (int {name} = 0; {name} < {extent}; ++{name}) "
                for name, extent in zip(names, column.extents, strict=True)
            )
            element = variable.name + "".join(f"[{name}]" for name in names)
            yield lines(f"{heads}{element}[{lane}] = 0;")
