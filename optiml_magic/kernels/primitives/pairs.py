"""P12, items in pairs: what a thread computes of narrow numbers it computes for two at once.

A loop over items of one thread, whose numbers are in local arrays already, takes two items a round:
each value is a word of two halves. Where a chip takes extremes of integers in halves at once, these
are of bytes or 16 bits, of either sign, or of vectors of such (``pair_extremes``); else of bytes,
which are added and multiplied as well (``pair_lines``). Words of results are put together behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Binary, Expr, Literal, Name, Step
from optiml_magic.kernels.primitives import pair_extremes, pair_lines
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.pair_extremes import ExtremeLines, has_integer_pairs
from optiml_magic.kernels.primitives.pair_items import Items, Stored
from optiml_magic.kernels.primitives.pair_lines import Lines, PairLines
from optiml_magic.kernels.primitives.pair_values import Element, Value
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

_WORD = 4  # bytes, whose results are put together
_WIDEST = 2  # bytes of a number that a half holds
_LANES = (1, 2, 4)  # of vectors, of which two are whole words or half of one
_ALIGNED = "alignas(16)"  # as wide as any vector of them
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
        shown = kernel.show(arrays[variable]).strip().removeprefix(_ALIGNED).removesuffix(";")
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
            _is_narrow(kind) and length is not None and _is_whole(kernel, length, _in_a_word(kind))
            and variable.storage == "local"
            and not variable.type.depth and variable.value is None and not variable.initial
        ):  # fmt: skip
            found[variable] = statement
    return found


def _is_narrow(kind: CType) -> bool:
    lane = kind.lane
    plain = not kind.depth and kind.kind in ("int", "vector") and lane.kind == "int"
    return plain and 0 < (lane.size or 0) <= _WIDEST and kind.lanes in _LANES


def _in_a_word(kind: CType) -> int:
    """How many elements of a type fill words."""
    return max(1, _WORD // (kind.size or _WORD))


def _is_whole(kernel: Kernel, length: Expr, of: int) -> bool:
    """Whether a number is divided by another, whatever tuned names are."""
    match length:
        case Literal(value=int() as value):
            return value % of == 0
        case Name(name=name):
            tuned = [t for t in kernel.program.tunes if t.name == name]
            return bool(tuned) and all(v % of == 0 for t in tuned for v in t.values)
        case Binary(op="+", left=left, right=right):
            return _is_whole(kernel, left, of) and _is_whole(kernel, right, of)
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
        raise NotLegal("an item does not make narrow numbers of such", loop.line)
    if all(isinstance(value, Element) for value in items.stored.values()):
        raise NotLegal("an item computes nothing", loop.line)
    if items.loaded & {place.variable for place in items.stored}:
        raise NotLegal("an item loads what another stores", loop.line)
    stores = _stores(kernel, loop, items)
    item, values = items.counter.name, [*items.stored.values()]
    if has_integer_pairs(kernel):
        try:
            extremes = ExtremeLines(item, kernel.fresh("pair"), values)
            return _written(kernel, loop, stores, extremes), pair_extremes.HELPERS
        except NotLegal:
            if any(store.kind.size != 1 for store in stores):
                raise
    halves = PairLines(item, kernel.fresh("pair"), values)
    return _written(kernel, loop, stores, halves), pair_lines.HELPERS


@dataclass(frozen=True)
class _Store:
    """What an item leaves in a row: its lanes, and the element as text."""

    kind: CType
    place: Stored
    lanes: tuple[Value, ...]

    def words(self, item: str) -> str:
        """Where the words of two items begin, or of four where it takes as many to fill one."""
        at = f"{item} + {self.place.at}" if self.place.at else item
        return f"reinterpret_cast<unsigned*>(&{self.place.variable.name}{self.place.row}[{at}])"


def _stores(kernel: Kernel, loop: Loop, items: Items) -> list[_Store]:
    """What items store, of vectors all lanes together."""
    assert isinstance(loop.test, Binary)
    found, done = list[_Store](), 0
    for place in items.stored:
        kind = named(place.variable.type.base, kernel.unit.aliases)
        if place.part:
            continue
        parts = [items.stored.get(replace(place, part=part)) for part in range(kind.lanes)]
        lanes = tuple(value for value in parts if value is not None)
        if place.at % _in_a_word(kind) or not _is_whole(kernel, loop.test.right, _in_a_word(kind)):
            raise NotLegal("what items store does not fill words", loop.line)
        found.append(_Store(kind, place, lanes))
        done += len(lanes) if len(lanes) == kind.lanes else 0
    if done != len(items.stored):
        raise NotLegal("an item stores parts of a vector alone", loop.line)
    return found


def _written(kernel: Kernel, loop: Loop, stores: Sequence[_Store], pairs: Lines) -> str:
    """The loop over pairs, and behind it that over words where two results do not fill one."""
    item = pairs.item
    assert isinstance(loop.test, Binary)
    count = kernel.spelled(loop.test.right)
    held: list[tuple[str, str]] = []
    words, packed = list[str](), list[str]()
    for store in stores:
        halves = [pairs.stored(value, store.kind) for value in store.lanes]
        at = store.words(item)
        if store.kind.size == 1:
            name = kernel.fresh(f"{store.place.variable.name}_pairs", *(n for n, _ in held))
            held.append((name, halves[0]))
            both = f"{name}[{item} / 2], {name}[{item} / 2 + 1]"
            packed.append(f"*{at} = __byte_perm({both}, {pairs.bytes});")
        else:
            assert isinstance(pairs, ExtremeLines)
            made = pairs.words(halves, store.kind)
            words += [f"{at}[{n}] = {word};" for n, word in enumerate(made)]
    heads = [f"#pragma unroll\nfor (int {item} = 0; {item} < {count}; {item} += {by}) {{"
             for by in (2, _WORD)]  # fmt: skip
    return "\n".join([
        *(f"unsigned {name}[{count} / 2];" for name, _ in held),
        heads[0], *pairs.lines, *(f"{name}[{item} / 2] = {made};" for name, made in held),
        *words, "}", *((heads[1], *packed, "}") if packed else ()),
    ])  # fmt: skip
