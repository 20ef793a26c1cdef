"""P25, places that data choose: an element of a local array is taken from all that there are.

A pivot is looked for, and its row exchanged, ``m[c][j] = m[p][j]``. What is indexed at run time
lies in memory, all of the array, once for each thread. Where loops of constant rounds say all other
places, a load is a choice among the rows and a store a test for each: once the loops are written
out, indices are constants and the array lies in registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Braces,
    Call,
    Cast,
    Expr,
    Index,
    Lambda,
    Literal,
    Name,
    Step,
    Unary,
    Unread,
    every,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import names
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.tree import Declare, Evaluate, Statement, Variable, expressions, walk
from optiml_magic.kernels.types import named

_ROWS = 16  # places that are chosen among: ours
_WORDS = 128  # of an array in registers, half of those of a thread: ours
_ROUNDS = 64  # of a loop that is written out: ours
_WORD = 4  # bytes


@dataclass(frozen=True)
class _Array:
    variable: Variable
    rows: int
    chosen: frozenset[Index]  # elements whose row data choose

    def row(self, place: Expr) -> Expr:
        """The index of the row of an element."""
        while isinstance(place, Index) and isinstance(place.base, Index):
            place = place.base
        assert isinstance(place, Index)
        return place.index


@primitive
def chosen_places(kernel: Kernel) -> Kernel:
    """The kernel where all local arrays that may be are indexed by constants; there must be one."""
    arrays = {a.variable: a for a in _arrays(kernel)}
    if not arrays:
        raise NotLegal("no local array is indexed by data alone among loops of constant rounds")
    body, taken = kernel.function.body, list[str]()
    stores = {s: place for s in walk(body) if (place := _stored(s, arrays)) is not None}
    targets = {*stores.values()}
    swaps: dict[Node, Node | tuple[Statement, ...]] = {}
    for expr in [*expressions(body)][::-1]:  # inner ones first
        own = _of(expr, arrays)
        if own is not None and expr not in targets and isinstance(expr, Index):
            swaps[expr] = text(_loaded(kernel, own, expr))
    shown = {n: s for n, s in swaps.items() if not isinstance(s, tuple)}
    for statement, place in stores.items():
        own = _of(place, arrays)
        assert own is not None
        row, value = kernel.fresh("row", *taken), kernel.fresh("value", *taken)
        taken += [row, value]
        made = ["{"]
        match statement:
            case Evaluate(expression=Assign(op=op, value=given)):
                made.append(f"const auto {value} = {kernel.spelled(given, shown)};")
                change = f" {op} {value}"
            case Evaluate(expression=Step(op=op)):
                change = op
        at, element = kernel.spelled(own.row(place)), _spelled(kernel, place, row)
        at = at if isinstance(own.row(place), Name) else f"({at})"
        head = f"for (int {row} = 0; {row} < {own.rows}; ++{row}) {{"
        made += ["#pragma unroll", head, f"if ({row} == {at}) {element}{change};", "}", "}"]
        swaps[statement] = (lines("\n".join(made)),)
    return kernel.rewritten(edited(body, swaps))


def _loaded(kernel: Kernel, own: _Array, place: Index) -> str:
    """The element as a choice among those of all rows."""
    at = kernel.spelled(own.row(place))
    at = at if isinstance(own.row(place), Name) else f"({at})"
    words = _spelled(kernel, place, str(own.rows - 1))
    for row in range(own.rows - 2, -1, -1):
        words = f"{at} == {row} ? {_spelled(kernel, place, str(row))} : {words}"
    return f"({words})"


def _spelled(kernel: Kernel, place: Expr, row: str) -> str:
    """The element of an array with another row."""
    behind = ""
    while isinstance(place, Index) and isinstance(place.base, Index):
        behind = f"[{kernel.spelled(place.index)}]{behind}"
        place = place.base
    assert isinstance(place, Index)
    return f"{kernel.spelled(place.base)}[{row}]{behind}"


def _stored(statement: Statement, arrays: Mapping[Variable, _Array]) -> Index | None:
    """The element at a chosen row that a statement of its own stores."""
    match statement:
        case Evaluate(expression=Assign(target=place) | Step(target=place)):
            return place if isinstance(place, Index) and _of(place, arrays) else None
    return None


def _of(expr: Expr, arrays: Mapping[Variable, _Array]) -> _Array | None:
    return next((a for a in arrays.values() if expr in a.chosen), None)


def _arrays(kernel: Kernel) -> Iterator[_Array]:
    """Local arrays of which nobody asks for more than elements, with rows that data choose."""
    declared = [v for s in walk(kernel.function.body) if isinstance(s, Declare)
                for v in s.variables]  # fmt: skip
    given = [v.name for v in declared] + [p.name for p in kernel.function.parameters]
    for variable in declared:
        if variable.storage != "local" or not variable.array or variable.type.volatile:
            continue
        known = kernel.reading.arrays.get(variable.name)
        kind = named(variable.type.base, kernel.unit.aliases)
        plain = kind.kind in ("int", "float") and kind.lanes == 1 and not variable.type.depth
        if known is None or given.count(variable.name) != 1 or not plain or variable.type.const:
            continue
        sizes = [e.value for e in known.extents if e is not None and e.value is not None]
        if len(sizes) != len(variable.extents) or not 1 < sizes[0] <= _ROWS:
            continue
        words = (kind.size or 0) // _WORD or 1
        for size in sizes:
            words *= int(size)
        chosen = _chosen(kernel, variable) if words <= _WORDS else None
        if chosen and _in_rows(kernel, variable, [int(size) for size in sizes]):
            yield _Array(variable, int(sizes[0]), chosen)


def _chosen(kernel: Kernel, variable: Variable) -> frozenset[Index] | None:
    """The elements whose rows data choose; None where more is asked of the array than elements."""
    body, count = kernel.function.body, len(variable.extents)
    counters = _counters(kernel)
    others_count = {axis.variable for axis in kernel.axes().values()} - counters
    whole = {s.expression for s in walk(body) if isinstance(s, Evaluate)}
    found, mentions, elements = set[Index](), 0, 0
    for expr in expressions(body):
        mentions += isinstance(expr, Name) and expr.variable is variable
        if isinstance(expr, Index) and _indices(expr, variable) == count:
            elements += 1
            row, others = _parts(expr)
            if not all(names([e]) <= counters for e in others) or names([row]) & others_count:
                return None
            if not all(map(_is_plain, (row, *others))) or not all(map(_stays, names([row]))):
                return None
            if names([row]) - counters:
                found.add(expr)
        match expr:
            case Unary(op="&" | "*") | Lambda() | Unread() if _mentions(expr, variable):
                return None
            case Assign(target=target, value=Braces()) if _indices(target, variable) == count:
                return None
            case Assign(target=target) | Step(target=target) if expr not in whole:
                if _indices(target, variable) == count and names([_parts(target)[0]]) - counters:
                    return None
    bound = [v for s in walk(body) if isinstance(s, Declare) for v in s.variables
             if v.type.reference or v.type.depth]  # fmt: skip
    begun = [e for v in bound for e in ([v.value] if v.value is not None else v.initial)]
    if mentions != elements or any(_mentions(e, variable) for e in begun):
        return None
    return frozenset(found) if not _handed(kernel, variable) else None


def _handed(kernel: Kernel, variable: Variable) -> bool:
    """Whether a function has a reference to an element."""
    return any(
        p.type.reference and _mentions(a, variable)
        for call, arguments in _calls(kernel)
        for called in kernel.unit.called(call, len(arguments))
        for p, a in zip(called.parameters, arguments, strict=False)
    )


def _calls(kernel: Kernel) -> Iterator[tuple[str, tuple[Expr, ...]]]:
    """What a kernel calls, and with what."""
    for expr in expressions(kernel.function.body):
        if isinstance(expr, Call):
            yield expr.function, expr.arguments


def _parts(place: Expr) -> tuple[Expr, list[Expr]]:
    """The index of the row of an element, and those within it."""
    found = list[Expr]()
    while isinstance(place, Index):
        found.append(place.index)
        place = place.base
    return found[-1], found[:-1]


def _counters(kernel: Kernel) -> set[Variable]:
    """The counters of loops that a compiler may write out, and constants made of them."""
    found, said = set[Variable](), set[str]()
    for axis in (a for a in kernel.axes().values() if a.exact):  # outer ones first
        ends = [end.symbols if end is not None else {""} for end in (axis.start, axis.stop)]
        few = 1 <= (axis.trips or 0) <= _ROUNDS or said >= {n for end in ends for n in end}
        if few and axis.variable is not None:
            found.add(axis.variable)
            said.add(axis.name)
    more = [
        v for s in walk(kernel.function.body) if isinstance(s, Declare) for v in s.variables
        if v.type.const and v.value is not None and not v.array and not v.type.reference
    ]  # fmt: skip
    for variable in more:
        if variable.value is not None and _is_plain(variable.value):
            found |= {variable} if names([variable.value]) <= found else set()
    return found


def _stays(variable: Variable) -> bool:
    """Whether nobody changes it while an element is chosen: a thread's own, by its own name."""
    kind = variable.type
    return variable.storage in ("local", "parameter") and not (kind.volatile or kind.reference)


def _is_plain(expr: Expr) -> bool:
    """Whether it may be found several times: whole numbers, nothing that is loaded."""
    return all(isinstance(e, Name | Literal | Binary | Unary | Cast) for e in every(expr))


def _in_rows(kernel: Kernel, variable: Variable, sizes: list[int]) -> bool:
    """Whether all but the first index are certain to be within their extents.

    So that who leaves the rows leaves the array, which no program may.
    """
    for access in kernel.reading.of(variable.name):
        if len(access.digits) != len(sizes):
            return len(sizes) == 1
        ranges = Ranges(access.guard, kernel.reading.symbols)
        inner = zip(access.digits[1:], sizes[1:], strict=True)
        if not all(ranges.within(digit, Polynomial.constant(size)) for digit, size in inner):
            return False
    return True


def _mentions(expr: Expr, variable: Variable) -> bool:
    return any(isinstance(e, Name) and e.variable is variable for e in every(expr))


def _indices(expr: Expr, variable: Variable) -> int:
    """How many indices of an array an expression has; 0 where it is of none."""
    count = 0
    while isinstance(expr, Index):
        expr, count = expr.base, count + 1
    return count if isinstance(expr, Name) and expr.variable is variable else 0
