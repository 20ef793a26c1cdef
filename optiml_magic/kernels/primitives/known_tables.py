"""Tables of numbers that say where in a local array threads go: constants of each function.

``v[table[i]]`` is at a place that no compiler knows where ``table`` is in constant memory, however
far the loop over ``i`` is written out, so that ``v`` lies in local memory: permutations of ciphers
and hashes, orders of a scan, directions of a lattice. Of a table with an initialiser, which nothing
writes, each function that asks gets a constant copy, and its short loops are written out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Index, Literal, Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, once, primitive
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.owned import unrolled
from optiml_magic.kernels.primitives.places import functions_of
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import Blank, Block, Function, Loop, Statement, expressions, walk
from optiml_magic.kernels.types import CType
from optiml_magic.kernels.variables import device_variables

_LITERALS = re.compile(r"=?\s*(\{(?:\s|[-+*/(){},]|\b\d[\w.]*|\.\d\w*)*\})")
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_UNROLL = "#pragma unroll"
_ELEMENTS = 1024  # of a table: ours
_ROUNDS = 1024  # of a loop with those in it that are written out: ours
_FLOAT = 4  # bytes
_BYTES = 512  # of a local array that registers hold: ours


@once
def known_tables(kernel: Kernel) -> dict[str, tuple[str, ...]]:
    """The local arrays that lie in registers once tables are known, each with those tables."""
    given, short = _literal(kernel), {*_short_counters(kernel)}
    found = dict[str, tuple[str, ...]]()
    for array in dict.fromkeys(a.array for a in kernel.reading.accesses if a.space == "local"):
        asked = set[str]()
        if (
            not 0
            < _count(kernel, array) * (kernel.reading.arrays[array].element.size or 0)
            <= _BYTES
        ):
            continue
        if all(_told(kernel, a.index, given, short, asked) for a in kernel.reading.of(array)):
            found[array] = tuple(sorted(asked))
    return {array: tables for array, tables in found.items() if tables}


@primitive
def tables_known(kernel: Kernel) -> Kernel:
    """The functions of a kernel with constant copies of its tables, their short loops unrolled."""
    placing = known_tables(kernel)
    if not placing:
        raise NotLegal("no table of numbers says where in a local array its threads go")
    given, short = _literal(kernel), {*_short_counters(kernel)}
    nodes = dict[Node, str]()
    for access in kernel.reading.accesses:
        if access.array in given and _told(kernel, access.index, given, short, set()):
            nodes |= dict.fromkeys(_named(access), access.array)
    bodies = dict[Function, Block]()
    for function in functions_of(kernel):
        own = {e: nodes[e] for e in expressions(function.body) if e in nodes}
        names = {table: kernel.fresh(f"{table}_known") for table in dict.fromkeys(own.values())}
        swaps: dict[Node, Node] = {e: text(names[table]) for e, table in own.items()}
        changes: dict[Node, Node | tuple[Statement, ...] | None] = {**swaps}
        said = _said(kernel, function)
        for loop in _outermost(kernel, function):
            made = unrolled(loop, swaps)
            changes[loop] = made[1:] if loop in said else made
        if changes:
            copies = [_copy(kernel, table, name, given[table]) for table, name in names.items()]
            body = edited(function.body, changes)
            bodies[function] = replace(body, body=(*map(lines, copies), *body.body))
    if bodies.keys() == {kernel.function}:
        return kernel.rewritten(bodies[kernel.function])
    return kernel.with_bodies(bodies)


def _literal(kernel: Kernel) -> dict[str, str]:
    """Tables in constant memory that numbers initialise, each with these as they are written."""
    found = dict[str, str]()
    for variable in device_variables(kernel.unit):
        held = kernel.reading.arrays.get(variable.name)
        numbers = _LITERALS.fullmatch(_COMMENTS.sub("", variable.initialiser))
        if variable.space != "constant" or variable.lanes != 1 or not variable.dtype:
            continue
        if held is None or numbers is None or not _plain(held.element):
            continue
        count = _count(kernel, variable.name) or numbers[1].count(",") + 1  # of ``order[] = {...}``
        if count > _ELEMENTS:
            continue
        if all(a.mode == "load" and any(_named(a)) for a in kernel.reading.of(variable.name)):
            found[variable.name] = numbers[1]
    return found


def _plain(element: CType) -> bool:
    """Whether numbers become elements as they stand, which those of halves do not everywhere."""
    return element.integral or (element.floating and (element.size or 0) >= _FLOAT)


def _count(kernel: Kernel, array: str) -> int:
    """The elements of an array, 0 where their number is not known."""
    extents = kernel.reading.arrays[array].extents
    return prod((e.value or 0) if e is not None else 0 for e in extents) if extents else 0


def _copy(kernel: Kernel, table: str, name: str, numbers: str) -> str:
    held = kernel.reading.arrays[table]
    extents = "".join(f"[{e.value if e is not None else ''}]" for e in held.extents or (None,))
    return f"const {held.element.name} {name}{extents} = {numbers};"


def _told(
    kernel: Kernel, form: Polynomial | None, given: Collection[str], short: Collection[str],
    asked: set[str],
) -> bool:  # fmt: skip
    """Whether a place is a number in each round written out; ``asked`` are the tables it asks."""
    if form is None:
        return False
    for name in form.symbols:
        symbol = kernel.reading.symbols.table.get(name)
        if symbol is None or symbol.condition is not None:
            return False
        if symbol.kind == "load" and symbol.array in given:
            asked.add(symbol.array)
        elif symbol.kind == "counter":
            if name not in short:
                return False
            continue
        elif symbol.kind != "operation":
            return False
        if not all(_told(kernel, a, given, short, asked) for a in symbol.arguments):
            return False
    return True


def _named(access: Access) -> Iterator[Node]:
    """The name of the table in what loads an element of it."""
    place = access.node
    while isinstance(place, Index):
        place = place.base
    if isinstance(place, Name) and place.variable is None:
        yield place


def _short_counters(kernel: Kernel) -> Iterator[str]:
    """The counters of the loops that are written out."""
    loops = {
        inner for function in functions_of(kernel) for loop in _outermost(kernel, function)
        for inner in loops_in(loop)
    }  # fmt: skip
    yield from (axis.name for axis in kernel.reading.axes if axis.node in loops)


def _outermost(kernel: Kernel, function: Function) -> Sequence[Loop]:
    """The short loops of a function that are in no other short one."""
    said, loops = _said(kernel, function), loops_in(function.body)
    short = [loop for loop in loops if 0 < _rounds(kernel, loop, said) <= _ROUNDS]
    inner = {one for loop in short for one in loops_in(loop.body)}
    return [loop for loop in short if loop not in inner]


def _rounds(kernel: Kernel, loop: Loop, said: Mapping[Loop, str]) -> int:
    """The rounds of a loop with those in it, 0 where they are not numbers, always the same."""
    if said.get(loop, _UNROLL) != _UNROLL:
        return 0
    trips = {axis.trips for axis in kernel.reading.axes if axis.node is loop} or {_once(loop)}
    count = trips.pop() if len(trips) == 1 else None
    within = loops_in(loop.body)
    direct = [one for one in within if not any(one in loops_in(other.body) for other in within)]
    own = [_rounds(kernel, one, said) for one in direct]
    return count * max(1, sum(own)) if count and all(own) else 0


def _once(loop: Loop) -> int:
    """1 for what macros are in, ``do { } while (0)``, else 0."""
    test = loop.test
    return int(loop.kind == "do" and isinstance(test, Literal) and test.text in ("0", "false"))


def _said(kernel: Kernel, function: Function) -> dict[Loop, str]:
    """What stands in front of loops, which says how they are unrolled."""
    return {
        after: kernel.show(before).strip()
        for block in walk(function.body) if isinstance(block, Block)
        for before, after in zip(block.body, block.body[1:], strict=False)
        if isinstance(before, Blank) and isinstance(after, Loop)
    }  # fmt: skip
