"""P7, known offsets: loops over a table of neighbours, written out with the numbers of the table.

``const int dx[8] = {-1, 0, 1, ...}; for (k) ... a[(y + dy[k]) * w + x + dx[k]]`` asks for the eight
neighbours of an item, as two loops over -1, 0 and 1 do. With numbers in the place of the table's
elements it is seen where they lie, so that items that are neighbours may share them.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Binary,
    Braces,
    Expr,
    Index,
    Literal,
    Name,
    Unary,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.effects import Effects, is_counted, loops_in
from optiml_magic.kernels.primitives.enclosed import enclosed
from optiml_magic.kernels.primitives.naming import declared_type
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import Block, Declare, Leave, Statement, expressions, walk
from optiml_magic.kernels.types import named
from optiml_magic.kernels.variables import device_variables

_INT = 4  # bytes
_MOST = 32  # rounds of a loop that is written out: ours
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NUMBERS = re.compile(r"=?\s*(\{[-\d,{}\s]*\})")
_Numbers = list["int | _Numbers"]


@primitive
def known_offsets(kernel: Kernel) -> Kernel:
    """The kernel whose short loops over tables say which neighbours their items ask for."""
    tables = dict(_tables(kernel))
    made = where_legal(enclosed, kernel) if tables else kernel
    found = _once(made, tables) if tables else None
    if found is None:
        raise NotLegal("no short loop takes neighbours of its items by a table")
    while (more := _once(found, tables)) is not None:
        found = more
    return found


def _once(kernel: Kernel, tables: dict[str, _Numbers]) -> Kernel | None:
    """The kernel with one more such loop written out, where it is known then what it takes."""
    unknown = _unknown(kernel, tables)
    for loop in loops_in(kernel.function.body) if unknown else ():
        axis, inside = kernel.axes().get(loop), Effects(kernel).inside(loop)
        if axis is None or not 0 < (axis.trips or 0) <= _MOST or not _is_plain(kernel, axis):
            continue
        rounds = _rounds(axis, tables)
        if rounds and any(one in inside for one in unknown):
            hints: dict[Node, Node | tuple[Statement, ...] | None]
            hints = dict.fromkeys(hints_of(kernel, loop))
            swaps = {**hints, loop: _written(kernel, axis, rounds)}
            made = kernel.rewritten(edited(kernel.function.body, swaps))
            if len(_unknown(made, tables)) < len(unknown):
                return made
    return None


def _tables(kernel: Kernel) -> Iterator[tuple[str, _Numbers]]:
    """The arrays of whole numbers that nobody writes, with what these are."""
    reading, body = kernel.reading, kernel.function.body
    inside = [*expressions(body)]
    bases = {e.base for e in inside if isinstance(e, Index)}
    asked = {e.name for e in inside if isinstance(e, Name) and e not in bases}  # as a whole
    asked |= {_name(e.operand) for e in inside if isinstance(e, Unary) and e.op == "&"}
    asked |= {n for n in reading.arrays if any(a.mode != "load" for a in reading.of(n))}
    own = [v for s in walk(body) if isinstance(s, Declare) for v in s.variables]
    names = Counter(variable.name for variable in (*own, *kernel.function.parameters))
    for variable in own:
        kind = named(variable.type.base, kernel.unit.aliases)
        plain = variable.array and variable.storage == "local" and not variable.type.depth
        if plain and kind.kind == "int" and names[variable.name] == 1:
            numbers = _values(variable.initial)
            if variable.name not in asked and _fit(numbers, kind.size or 0, signed=kind.signed):
                yield variable.name, numbers
    for held in device_variables(kernel.unit):
        given = _NUMBERS.fullmatch(_COMMENTS.sub("", held.initialiser))
        kind = named(held.ctype, kernel.unit.aliases)
        plain = held.const and held.lanes == 1 and kind.kind == "int" and not kind.depth
        if plain and given and not names[held.name] and held.name not in asked:
            try:
                numbers = ast.literal_eval(given[1].replace("{", "[").replace("}", "]"))
            except (SyntaxError, ValueError):  # such as 010, which is eight
                continue
            if _fit(numbers, kind.size or 0, signed=kind.signed):
                yield held.name, numbers


def _fit(numbers: _Numbers, size: int, *, signed: bool) -> bool:
    """Whether a type holds these numbers, and becomes an int where one is asked for."""
    if not numbers or size > _INT or (size == _INT and not signed):
        return False
    bits = 8 * size - signed
    return all(
        _fit(one, size, signed=signed) if isinstance(one, list)
        else (-(1 << bits) if signed else 0) <= one < 1 << bits
        for one in numbers
    )  # fmt: skip


def _values(members: Sequence[Expr]) -> _Numbers:
    """The numbers of a list in braces; none where one of them is something else."""
    found: _Numbers = []
    for member in members:
        match member:
            case Braces(type="", members=inner) if numbers := _values(inner):
                found.append(numbers)
            case Literal(value=int() as value) if not isinstance(value, bool):
                found.append(value)
            case Unary(op="-", operand=Literal(value=int() as value)):
                found.append(-value)
            case _:
                return []
    return found


def _is_plain(kernel: Kernel, axis: Axis) -> bool:
    """Whether every round is made, whole, and the counter is a number in each."""
    return (
        is_counted(axis, Effects(kernel))
        and axis.start is not None
        and axis.start.value is not None
        and not any(isinstance(s, Leave) for s in walk(axis.node.body))
    )


def _rounds(axis: Axis, tables: dict[str, _Numbers]) -> list[tuple[int, dict[Node, Node]]]:
    """The counter of each round, and what the table's elements are in it, where these are known."""
    assert axis.start is not None
    assert axis.step is not None
    inside = [*expressions(axis.node.body)]
    within = {e.base for e in inside if isinstance(e, Index)}
    places = [e for e in inside if isinstance(e, Index) and e not in within and _name(e) in tables]
    made = []
    for at in range(axis.trips or 0):
        counter = (axis.start.value or 0) + at * (axis.step.value or 0)
        swaps: dict[Node, Node] = {}
        for place in places:
            value = _element(tables, place, axis, counter)
            if isinstance(value, int):
                swaps[place] = text(str(value) if value >= 0 else f"({value})")
        if not swaps:
            return []
        made.append((counter, swaps))
    return made


def _name(place: Expr) -> str:
    while isinstance(place, Index):
        place = place.base
    return place.name if isinstance(place, Name) else ""


def _element(
    tables: dict[str, _Numbers], place: Expr, axis: Axis, counter: int
) -> int | _Numbers | None:
    """What an element of a table is in a round, or a row of these."""
    if not isinstance(place, Index):
        return tables.get(_name(place))
    row, at = _element(tables, place.base, axis, counter), _number(place.index, axis, counter)
    known = isinstance(row, list) and at is not None and 0 <= at < len(row)
    return row[at] if known and isinstance(row, list) and at is not None else None


def _number(expr: Expr, axis: Axis, counter: int) -> int | None:
    match expr:
        case Literal(value=int() as value):
            return value
        case Name(variable=own) if own is not None and own is axis.variable:
            return counter
        case Binary(op=op, left=left, right=right):
            one, other = _number(left, axis, counter), _number(right, axis, counter)
            if one is None or other is None or min(one, other) < 0:
                return None
            known = {"+": one + other, "-": one - other, "*": one * other, "&": one & other}
            if other and op in "/%":
                return one // other if op == "/" else one % other
            return known.get(op)
    return None


def _unknown(kernel: Kernel, tables: dict[str, _Numbers]) -> list[Expr]:
    """What takes elements of global memory at places that the tables say, or nobody."""
    symbols, found = kernel.reading.symbols, list[Expr]()
    for access in kernel.reading.accesses:
        form = access.offset
        if access.space != "global" or access.array in tables:
            continue
        if (
            form is None
            or not symbols.known(form)
            or any(symbols.table[name].array in tables for name in symbols.inside(form))
        ):
            found.append(access.own)
    return found


def _written(
    kernel: Kernel, axis: Axis, rounds: list[tuple[int, dict[Node, Node]]]
) -> Node | tuple[Statement, ...]:
    """The rounds of a loop, one behind the other."""
    assert axis.variable is not None
    loop, kind, name = axis.node, declared_type(kernel, axis.variable), axis.variable.name
    made = []
    for counter, swaps in rounds:
        body, count = kernel.show_inside(loop.body, swaps), f"const {kind} {name} = {counter};"
        asked = any(
            isinstance(e, Name) and e.variable is axis.variable
            for e in expressions(edited(loop.body, swaps))
        )
        made.append(f"{{\n{count if asked else ''}\n{body}\n}}")
    if any(isinstance(s, Block) and loop in s.body for s in walk(kernel.function.body)):
        return tuple(map(lines, made))
    return lines("\n".join(["{", *made, "}"]))
