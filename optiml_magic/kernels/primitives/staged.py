"""P1 and P8: the rounds of a loop in tiles, and what all threads read in them in shared memory.

The threads of a block bring the elements of the next rounds together, lanes side by side, wait,
compute from shared memory, and wait again before the next tile comes. Both waits stand where all
threads of the block come. What is brought is what the rounds read in any case: where a
flag keeps some threads from them, one vote says whether there is anybody to read it.
Source of the shape: Nyland, Harris and Prins, "Fast N-Body Simulation with CUDA", 2007.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Expr, Index, Member, Name, Unary
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_simple, loops_in
from optiml_magic.kernels.primitives.flow import Flow
from optiml_magic.kernels.primitives.heads import count_of
from optiml_magic.kernels.primitives.levelled import by_some
from optiml_magic.kernels.primitives.naming import LocalSpeller, speller_before
from optiml_magic.kernels.primitives.room import SHARED
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.symbols import Condition
from optiml_magic.kernels.tree import Blank, Block, If, Loop, Statement, Variable, walk
from optiml_magic.kernels.types import CType, named
from optiml_magic.source.directives import TuneDirective
from optiml_magic.source.expressions import parse_expression

_MOST_APART = 8  # elements from one round's to the next one's
_WORD = 4  # bytes
_UNROLL = "#pragma unroll 4\n"  # so that 16 bytes of floats of neighbouring rounds come at once
ROUNDS = (32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class Slice:
    """Loads of ``array`` that lie together in each round, each with how far from the first.

    That is at ``base + step * k`` in round ``k``, the last of them ``span`` further; ``base`` is
    the same for all threads of a block. How far may depend on the rounds of short loops within.
    """

    array: str
    element: CType
    step: int
    base: Polynomial
    span: int
    loads: tuple[tuple[Access, Polynomial], ...]


def most_rounds_staged(found: Iterable[Slice]) -> int:
    """For how many rounds at a time a block has room; 0 where not even for the fewest."""
    each = [(s.step, max(0, s.span + 1 - s.step), s.element.size or 0) for s in found]
    return max(
        (n for n in ROUNDS if sum((n * step + more) * size for step, more, size in each) <= SHARED),
        default=0,
    )


def slices(
    kernel: Kernel, axis: Axis, effects: Effects, *, always: bool = True
) -> tuple[Slice, ...]:
    """What the rounds of a loop read, all threads of a block alike, and nobody writes.

    Not ``always``: also what is read in some of the rounds only.
    """
    reading = kernel.reading
    known = axis.held | by_some(kernel, axis)
    groups: dict[tuple[str, int, Polynomial], list[_Load]] = {}
    for access in effects.accesses(axis.node.body):
        array = reading.arrays.get(access.array)
        if access.call is not None:
            continue
        if access.mode != "load" or array is None or access.offset is None or access.verbatim:
            continue
        if any(effects.same(access.array, other) for other in reading.written):
            continue
        size = array.element.size
        form = _elements(access.offset, size) if size else None
        by = form.coefficient(axis.name) if form is not None else None
        if form is None or by is None or by.value is None or by.value < 1:
            continue
        rest = form.without([axis.name])
        within = _within(kernel, axis, access, rest, effects)
        rest -= within.form
        if not reading.uniform(rest) or axis.name in reading.symbols.inside(rest):
            continue
        inner = {a.name for a in reading.axes if a.node in set(loops_in(axis.node.body))}
        if inner & reading.symbols.inside(rest) or _place(kernel, access) is None:
            continue
        if by.value > max(_MOST_APART, within.span + 1):
            continue
        apart = Polynomial.constant(dict(rest.terms).get((), 0))
        guard = {part for c in access.guard for part in c.conjuncts()}
        sure = not always or (within.loops == access.loops[-1:] and guard <= known | within.guard)
        load = _Load(access, apart + within.form, apart.value or 0, within.span, sure)
        groups.setdefault((access.array, by.value, rest - apart), []).append(load)
    return tuple(_slices(kernel, groups))


@dataclass(frozen=True)
class _Load:
    """A load ``apart`` from the base: ``first``, up to ``span`` further; ``sure`` to be made."""

    access: Access
    apart: Polynomial
    first: int
    span: int
    sure: bool


@dataclass(frozen=True)
class _Within:
    """What an index has of loops in a round whose numbers of rounds are constants.

    ``loops`` are the innermost of them, or that of the round where there are none, if each is all
    that says whether something is loaded.
    """

    form: Polynomial
    span: int
    loops: tuple[str, ...]
    guard: frozenset[Condition]


def _within(
    kernel: Kernel, axis: Axis, access: Access, rest: Polynomial, effects: Effects
) -> _Within:
    form, span, guard = Polynomial(), 0, set[Condition]()
    by_name = {found.name: found for found in kernel.axes().values()}
    below = [*access.loops[access.loops.index(axis.name) + 1 :]]
    last = (axis.name,)
    for name in below:
        inner, by = by_name.get(name), rest.coefficient(name)
        if inner is None or not is_simple(inner, effects) or not inner.exact or not inner.trips:
            break
        if by is None or (by.value or 0) < 0 or by.value is None:
            break
        form += by * Polynomial.symbol(name)
        span += by.value * (inner.trips - 1)
        guard |= {*inner.test.conjuncts(), inner.test}
        last = (name,)
    return _Within(form, span, last, frozenset(guard))


def _slices(
    kernel: Kernel, groups: dict[tuple[str, int, Polynomial], list[_Load]]
) -> Iterator[Slice]:
    for (array, step, base), found in groups.items():
        sure = [load for load in found if load.sure]
        if not sure:
            continue
        low, high = min(one.first for one in sure), max(one.first + one.span for one in sure)
        first = Polynomial.constant(low)
        loads = tuple((one.access, one.apart - first) for one in found
                      if low <= one.first and one.first + one.span <= high)  # fmt: skip
        element = kernel.reading.arrays[array].element
        yield Slice(array, element, step, base + first, high - low, loads)


def _elements(offset: Polynomial, size: int) -> Polynomial | None:
    """Elements of ``size`` bytes to what holds an offset."""
    inside = dict(offset.terms).get((), 0) % size
    return (offset - Polynomial.constant(inside)).divided(size)


def _place(kernel: Kernel, access: Access) -> Expr | None:
    """The whole element of its array that an access takes, or a part of."""
    array = kernel.reading.arrays[access.array]
    place = access.node
    if access.element == array.element:
        return place
    while isinstance(place, Member) and not place.arrow:
        place = place.base
    whole = isinstance(place, Index) or (isinstance(place, Unary) and place.op == "*")
    part = place is not access.node and (access.element.size or 0) < (array.element.size or 0)
    return place if whole and part else None


@primitive
def stage(kernel: Kernel, at: int, rounds: int, left: int = 0) -> Kernel:
    """The loop with this number, counted from 0 by 1, reads tiles of ``rounds`` rounds.

    It leaves room for ``left`` other loops.
    """
    loop = loops_in(kernel.function.body)[at]
    effects, flow = Effects(kernel), Flow(kernel)
    flag = flow.flag(loop)
    axis = flow.axes[loop]
    if not is_simple(axis, effects):
        raise NotLegal("the loop does not count from 0 by 1", loop.line)
    found = slices(kernel, axis, effects)
    if not found:
        raise NotLegal("its rounds read nothing that is the same for all threads", loop.line)
    moved = effects.moved & {one.array for one in found}
    if moved:
        raise NotLegal(f"`{min(moved)}` is another one in the loop", loop.line)
    return _Staging(kernel, axis, found, rounds, left).kernel(flag, flow)


def _beside(kernel: Kernel) -> Polynomial:
    """The bytes of the shared arrays that there are, as far as their extents are known."""
    total = Polynomial()
    for array in kernel.reading.arrays.values():
        if array.space == "shared" and not array.dynamic and None not in array.extents:
            size = Polynomial.constant(array.element.size or 0)
            for extent in array.extents:
                size *= extent if extent is not None else Polynomial()
            total += size
    return total


def block_rounds(kernel: Kernel) -> int:
    """As many rounds as a block has threads: each brings one element."""
    count = 1
    for width in kernel.block:
        count *= width or 1
    return max((n for n in ROUNDS if n <= count), default=ROUNDS[0])


def hints_before(around: Statement, loop: Loop) -> tuple[Statement, ...]:
    """The directive to the compiler that belongs to a loop: it has to stay in front of it."""
    before: Statement | None = None
    for statement in around.statements:
        if statement is loop and isinstance(before, Blank) and before.hints:
            return (before,)
        before = statement
    return ()


def hints_of(kernel: Kernel, loop: Loop) -> tuple[Statement, ...]:
    """The directive to the compiler that belongs to a loop, wherever the loop stands."""
    blocks = (s for s in walk(kernel.function.body) if isinstance(s, Block) and loop in s.body)
    return next((hints_before(block, loop) for block in blocks), ())


def _counting(kernel: Kernel, counter: Variable) -> str:
    """The type of what counts tiles: a smaller one than a word may not hold where one ends."""
    size = named(counter.type.base, kernel.unit.aliases).size or _WORD
    return counter.type.base if size >= _WORD else "int"


class _Staging:
    def __init__(
        self, kernel: Kernel, axis: Axis, found: tuple[Slice, ...], rounds: int, left: int
    ) -> None:
        self.old = kernel
        self.axis = axis
        self.found = found
        self.effects = Effects(kernel)
        fresh = kernel.fresh
        assert axis.variable is not None
        self.counter = axis.variable
        self.kind = _counting(kernel, self.counter)
        self.tile, self.slot = fresh("TILE"), fresh("slot")
        self.start, self.end = fresh("tile_start"), fresh("tile_end")
        self.turn = fresh("turn")
        arrays = [s.array.replace(".", "_").replace(":", "_") for s in found]
        self.names = [
            fresh(f"{a}_tile{at if arrays.count(a) > 1 else ''}") for at, a in enumerate(arrays)
        ]
        own = " + ".join(f"({self._length(s)}) * {s.element.size}" for s in found)
        beside = _beside(kernel)
        more = f" + {self._speller().form(beside)}" if beside.terms else ""
        self.room = parse_expression(f"{own}{more} <= {SHARED}")
        equal = parse_expression(f"({own}) * {left + 1}{more} <= {SHARED}")
        values = kernel.program.values
        fit = [n for n in ROUNDS if n <= rounds and equal.evaluate({**values, self.tile: n})]
        if not fit:
            raise NotLegal(f"a block has no room for {ROUNDS[0]} rounds", axis.node.line)
        self.rounds = fit[-1]

    def kernel(self, flag: If | None, flow: Flow) -> Kernel:
        loop, body = self.axis.node, self.old.function.body
        whole = flag if flag is not None else loop
        words = flag.test.name if flag is not None and isinstance(flag.test, Name) else ""
        hints = hints_before(flow.around(loop)[-2], loop)
        shown = "".join(f"{self.old.show(hint).strip()}\n" for hint in hints)
        shown = shown or ("" if self._rows else _UNROLL)
        swaps: dict[Node, Node | None] = {whole: lines(self._tiles(words, shown))}
        swaps |= dict.fromkeys(hints)
        return self.old.rewritten(edited(body, swaps), directives=[self._tune()])

    def _tiles(self, flag: str, hints: str) -> str:
        rounds = count_of(self.axis, self._speller(), self.effects)
        declared = [
            f"__shared__ __align__(16) {s.element.name} {name}[{self._length(s)}];"
            for s, name in zip(self.found, self.names, strict=True)
        ]
        filled = [self._fill(s, name) for s, name in zip(self.found, self.names, strict=True)]
        vote = f"if (__syncthreads_or({flag})) " if flag else ""
        more = f"{self.start} < {rounds}; {self.start} += {self.tile}"
        last = f"{rounds} - {self.start} < {self.tile} ? {rounds} : {self.start} + {self.tile}"
        made = [
            "// The block reads the elements of the next rounds once, for all its threads.",
            *declared,
            f"{vote}for ({self.kind} {self.start} = 0; {more}) {{",
            f"const {self.kind} {self.end} = {last};",
            *filled,
            "__syncthreads();",
            f"if ({flag}) {{\n{hints}{self._loop()}\n}}" if flag else hints + self._loop(),
            "__syncthreads();",
            "}",
        ]
        return "\n".join(made)

    def _loop(self) -> str:
        """The rounds of a tile, counted from 0: so a compiler sees which of them are aligned."""
        name, turn, swaps = self.counter.name, self.turn, dict[Node, Node]()
        for found, tile in zip(self.found, self.names, strict=True):
            for access, apart in found.loads:
                place = _place(self.old, access)
                assert place is not None
                at = turn if found.step == 1 else f"{turn} * {found.step}"
                more = self._within(apart)
                swaps[place] = text(f"{tile}[{at}{f' + {more}' if more else ''}]")
        body = self.old.show(self.axis.node.body, swaps).strip()
        head = f"for ({self.kind} {turn} = 0; {turn} < {self.end} - {self.start}; ++{turn}) {{\n"
        if re.search(rf"\b{name}\b", body):
            head += f"const {self.counter.type.base} {name} = {self.start} + {turn};\n"
        own = body[1:].lstrip() if body.startswith("{") else f"{body}\n}}"
        return head + own

    @property
    def _rows(self) -> bool:
        """Whether a round walks along what is brought for it, in a loop that is written out."""
        return any(apart.value is None for s in self.found for _, apart in s.loads)

    def _within(self, apart: Polynomial) -> str:
        """How far a load is from the first of its round; empty where it is that."""
        own = {a.name: a.variable.name for a in self.old.reading.axes if a.variable is not None}
        speller = LocalSpeller(self.old.reading.symbols, own)
        speller.kernel = self.old
        return speller.form(apart) if apart.terms else ""

    def _length(self, found: Slice) -> str:
        more = max(0, found.span + 1 - found.step)
        tile = self.tile if found.step == 1 else f"{self.tile} * {found.step}"
        return f"{tile} + {more}" if more else tile

    def _fill(self, found: Slice, tile: str) -> str:
        rounds = f"{self.end} - {self.start}"
        more = found.span + 1 - found.step
        count = rounds if found.step == 1 else f"({rounds}) * {found.step}"
        count += f" {'+' if more > 0 else '-'} {abs(more)}" if more else ""
        step = Polynomial.constant(found.step)
        first = self._speller().address(found.base + Polynomial.symbol(self.axis.name) * step)
        thread, threads = self._threads()
        return (
            f"for (int {self.slot} = {thread}; {self.slot} < {count}; {self.slot} += {threads}) "
            f"{tile}[{self.slot}] = {found.array}[{first} + {self.slot}];"
        )

    def _threads(self) -> tuple[str, str]:
        """The number of a thread in its block, and how many there are."""
        used = [a for a, w in zip("xyz", self.old.block, strict=True) if w != 1] or ["x"]
        thread, threads = "", ""
        for axis in reversed(used):
            wide = f"{thread} * blockDim.{axis} + " if " " not in thread else (
                f"({thread}) * blockDim.{axis} + "
            )  # fmt: skip
            thread = f"{wide if thread else ''}threadIdx.{axis}"
        threads = " * ".join(f"blockDim.{axis}" for axis in used)
        return thread, threads

    def _speller(self) -> LocalSpeller:
        speller = speller_before(self.old, self.effects, self.axis.node)
        speller.names[self.axis.name] = self.start
        return speller

    def _tune(self) -> TuneDirective:
        return TuneDirective(self.tile, ROUNDS, self.rounds, self.room)
