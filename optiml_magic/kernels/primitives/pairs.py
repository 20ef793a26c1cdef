"""P12, items in pairs: what a thread computes of narrow numbers it computes for two at once.

A loop over items of one thread, whose numbers are in local arrays already, takes two items a round:
each value is a word of two halves. Where a chip takes extremes of integers in halves at once, these
are of bytes or 16 bits, of either sign, or of vectors of such (``pair_extremes``); else of bytes,
which are added and multiplied as well (``pair_lines``). Words of results are put together behind.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from math import gcd

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Binary, Expr, Literal, Name, Step
from optiml_magic.kernels.primitives import pair_extremes, pair_lines
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.pair_extremes import ExtremeLines, has_integer_pairs
from optiml_magic.kernels.primitives.pair_items import Items
from optiml_magic.kernels.primitives.pair_lines import Lines, PairLines
from optiml_magic.kernels.primitives.pair_stores import WORD, rows
from optiml_magic.kernels.primitives.pair_values import Element
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Loop,
    Statement,
    Variable,
    walk,
)
from optiml_magic.kernels.types import CType, named
from optiml_magic.source.program import parse_program

_WIDEST = 2  # bytes of a number that a half holds
_ALIGNED = "alignas(16)"  # as wide as any vector of them
_ANY = re.compile(r"^alignas\(\d+\)")
_INCLUDE = "#include <cuda_fp16.h>"
_OURS = (*pair_lines.HELPERS, *pair_extremes.HELPERS)
_NAMES = pair_lines.NAMES | pair_extremes.NAMES


@primitive
def in_pairs(kernel: Kernel) -> Kernel:
    """The kernel that computes two neighbouring items at once."""
    text = kernel.program.text
    ours = {name for helper in _OURS if helper.strip() in text for name in _NAMES if name in helper}
    if kernel.words & _NAMES - ours:
        raise NotLegal("names of pairs are others' already")
    arrays = _arrays(kernel)
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    reason: NotLegal | None = None
    loaded, touched, helpers = set[Variable](), set[Variable](), list[str]()
    for block in walk(kernel.function.body):
        for place, loop in enumerate(block.body if isinstance(block, Block) else ()):
            counter = _counter(kernel, loop) if isinstance(loop, Loop) else None
            if counter is None or not isinstance(loop, Loop):
                continue
            items = Items(kernel, counter, frozenset(arrays))
            try:
                made, asked = _pair(kernel, loop, items)
            except NotLegal as why:
                reason = reason or why
                continue
            assert isinstance(block, Block)
            before = block.body[place - 1] if place else None
            if isinstance(before, Blank) and "unroll" in kernel.show(before):
                swaps[before] = None
            swaps[loop] = lines(made)
            helpers += asked
            loaded |= items.loaded
            touched |= items.loaded | {stored.variable for stored in items.stored}
    if not loaded:
        raise reason or NotLegal("no loop over items computes of narrow numbers alone")
    for variable in touched:
        shown = _ANY.sub("", kernel.show(arrays[variable]).strip()).removesuffix(";")
        empty = " = {}" if variable in loaded else ""  # a word may hold bytes that nobody brings
        swaps[arrays[variable]] = lines(f"{_ALIGNED} {shown}{empty};")
    made_kernel = kernel.rewritten(
        edited(kernel.function.body, swaps), helpers=dict.fromkeys(helpers)
    )
    if pair_lines.HELPERS[0] not in helpers or "cuda_fp16.h" in text:
        return made_kernel
    program = parse_program(f"{_INCLUDE}\n{made_kernel.program.text}")
    launch = next(d for d in program.launches if str(d) == str(made_kernel.launch))
    return replace(made_kernel, program=program, launch=launch)


def may_be_integers(kernel: Kernel) -> bool:
    """Whether all that threads leave in memory is narrow, and not only bytes side by side."""
    stored = [a for a in kernel.reading.accesses if a.mode == "store" and a.space == "global"]
    narrow = has_integer_pairs(kernel) and all(_is_narrow(access.element) for access in stored)
    return narrow and not all(map(_are_beside, stored))


def _are_beside(access: Access) -> bool:
    """Whether neighbouring threads store neighbouring bytes, of which halves are made."""
    kind, index = access.element, access.index
    by = index.coefficient("threadIdx.x") if index is not None else None
    return kind.size == 1 and not kind.signed and by is not None and by.value == 1


def are_integers(kernel: Kernel) -> bool:
    """Whether a kernel takes integers in pairs."""
    return not pair_extremes.NAMES.isdisjoint(kernel.words)


def _arrays(kernel: Kernel) -> dict[Variable, Declare]:
    """Local arrays of narrow numbers whose rows are whole words, each with its declaration."""
    found = {}
    for statement in walk(kernel.function.body):
        if not isinstance(statement, Declare) or len(statement.variables) != 1:
            continue
        (variable,) = statement.variables
        kind = named(variable.type.base, kernel.unit.aliases)
        length = variable.extents[-1] if variable.extents else None
        if (
            _is_narrow(kind) and length is not None
            and _is_whole(kernel, length, WORD // gcd(WORD, kind.size or WORD))
            and variable.storage == "local"
            and not variable.type.depth and variable.value is None and not variable.initial
        ):  # fmt: skip
            found[variable] = statement
    return found


def _is_narrow(kind: CType) -> bool:
    lane = kind.lane
    plain = not kind.depth and kind.kind in ("int", "vector") and lane.kind == "int"
    return plain and 0 < (lane.size or 0) <= _WIDEST


def _is_whole(kernel: Kernel, length: Expr, of: int) -> bool:
    """Whether a number divides a length, whatever tuned names are."""
    match length:
        case Literal(value=int() as value):
            return value % of == 0
        case Name(name=name):
            tuned = [t for t in kernel.program.tunes if t.name == name]
            return bool(tuned) and all(v % of == 0 for t in tuned for v in t.values)
        case Binary(op="+" | "*" as op, left=left, right=right):
            sides = (_is_whole(kernel, left, of), _is_whole(kernel, right, of))
            return all(sides) if op == "+" else any(sides)
    return False


def _counter(kernel: Kernel, loop: Loop) -> Variable | None:
    """What counts the items of a loop over pairs of them."""
    match loop:
        case Loop(
            kind="for",
            before=Declare(variables=(Variable(value=Literal(value=0)) as counter,)),
            test=Binary(op="<", left=Name(variable=tested), right=count),
            update=Step(op="++", target=Name(variable=stepped)),
        ) if tested is counter and stepped is counter:
            return counter if _is_whole(kernel, count, 2) else None
    return None


def _pair(kernel: Kernel, loop: Loop, items: Items) -> tuple[str, tuple[str, ...]]:
    """A loop over pairs of items, and the helpers that it calls."""
    items.run(loop.body)
    if not items.stored or not items.loaded:
        raise NotLegal("an item does not make narrow numbers of narrow ones", loop.line)
    if all(isinstance(value, Element) for value in items.stored.values()):
        raise NotLegal("an item computes nothing", loop.line)
    if items.loaded & {place.variable for place in items.stored}:
        raise NotLegal("an item loads what another stores", loop.line)
    item, values = items.counter.name, [*items.stored.values()]
    try:
        halves = PairLines(item, kernel.fresh("pair"), values)
        return _written(kernel, loop, items, halves), pair_lines.HELPERS
    except NotLegal:
        if not has_integer_pairs(kernel):
            raise
    extremes = ExtremeLines(item, kernel.fresh("pair"), values)
    return _written(kernel, loop, items, extremes), pair_extremes.HELPERS


def _written(kernel: Kernel, loop: Loop, items: Items, pairs: Lines) -> str:
    """The loop over pairs, and behind it one over fours where results of two do not fill words."""
    item = pairs.item
    assert isinstance(loop.test, Binary)
    count = loop.test.right
    held, filled, stores = dict[str, str](), list[str](), list[str]()
    for row in rows(items, partial(_is_whole, kernel, count)):
        halves = [pairs.stored(value, row.kind) for value in row.numbers]
        if row.together == 2:
            stores.append(row.stored(item, [halves], pairs.ends))
            continue
        own = list[str]()
        for made in halves:
            own.append(kernel.fresh(f"{row.places[0].variable.name}_pairs", *held))
            held[own[-1]] = made
        both = [[f"{name}[{item} / 2{more}]" for name in own] for more in ("", " + 1")]
        filled.append(row.stored(item, both, pairs.ends))
    rounds = kernel.spelled(count)
    rounds = rounds if rounds.isidentifier() else f"({rounds})"
    by_two, by_four = (
        f"#pragma unroll\nfor (int {item} = 0; {item} < {rounds}; {item} += {by}) {{"
        for by in (2, 4)
    )
    return "\n".join([
        *(f"unsigned {name}[{rounds} / 2];" for name in held), by_two, *pairs.lines,
        *(f"{name}[{item} / 2] = {made};" for name, made in held.items()), *stores, "}",
        *((by_four, *filled, "}") if filled else ()),
    ])  # fmt: skip
