"""P8, rows at hand: a block brings the rows of its threads, each of which goes along its own.

Lanes that each read a row of their own ask for as many lines as there are lanes, one element of
each. The rows of a block lie one behind the other, so that its threads bring them together, lanes
side by side, and then read them in any order from shared memory, where rows begin an odd number of
words apart. A place that may lie outside of the row is looked at, and read where it was.
Source: CUDA C++ Programming Guide, "Shared Memory".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Binary, Choice, Expr, Index, Name, Unary
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_counted
from optiml_magic.kernels.primitives.items import element, is_plain
from optiml_magic.kernels.primitives.mapped import Mapped, mapped
from optiml_magic.kernels.primitives.naming import LocalSpeller
from optiml_magic.kernels.primitives.room import SHARED
from optiml_magic.kernels.primitives.row_places import clamped, is_first, is_inside, step
from optiml_magic.kernels.primitives.sizes import measured, rounds
from optiml_magic.kernels.primitives.tabled import passed
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.kernels.tree import Declare, Evaluate, Variable, expressions, walk
from optiml_magic.source.directives import RequireDirective, TuneDirective
from optiml_magic.source.expressions import parse_expression

BLOCKS = (32, 64, 128, 256)
_WORD, _VECTOR = 4, 16
_THREAD, _BLOCK = "threadIdx.x", "blockIdx.x"
_LONG = 8  # bytes


@dataclass(frozen=True, eq=False)
class Row:
    """What threads read of an array: of a row of ``length`` elements each, by these ``loads``.

    Where all of them are certainly in the row, locals that ``lead`` into it lead to what is at
    hand; other loads are exchanged one by one. ``clamped`` are indices that are held to the last
    of the row, with what they are before: they may reach the first of its pad.
    """

    array: str
    length: int
    kind: str
    size: int
    loads: tuple[Access, ...]
    lead: Mapping[Variable, Expr]
    clamped: Mapping[Expr, Expr]

    @property
    def line(self) -> int:
        return self.loads[0].line

    @property
    def pad(self) -> int:
        """Elements behind each row, so that rows begin an odd number of words apart."""
        whole = self.length * self.size
        if whole % _WORD:
            return 0
        step = max(self.size, _WORD)
        return 0 if whole // step % 2 else step // self.size

    @property
    def pitch(self) -> int:
        return self.length + self.pad

    def often(self, kernel: Kernel) -> float | None:
        """How many of its elements a thread reads, each as often as it does; None if unknown."""
        each = [
            [rounds(kernel, axis) for axis in kernel.reading.loops(load)] for load in self.loads
        ]
        if any(None in own for own in each):
            return None
        return sum(prod(n or 0 for n in own) for own in each) / self.length


def rows_of(kernel: Kernel) -> list[Row | Refused]:
    """The arrays of which each thread reads a row of its own, longer than a word."""
    effects = Effects(kernel)
    _check(kernel, effects)
    items = mapped(kernel, effects)
    asked: dict[str, list[Access]] = {}
    for access in kernel.reading.accesses:
        if access.space == "global":
            asked.setdefault(access.array, []).append(access)
    return [row for array, every in asked.items()
            if (row := _row(kernel, effects, items, array, every)) is not None]  # fmt: skip


@primitive
def rows_at_hand(kernel: Kernel, arrays: Sequence[str], block: int) -> Kernel:
    """The kernel whose blocks bring the rows of these arrays first; ``block`` threads to begin."""
    kernel = kernel.settled()
    found = [row for row in rows_of(kernel) if isinstance(row, Row) and row.array in arrays]
    if not found:
        raise NotLegal("no thread has a row of its own")
    return _Bringing(kernel, found).kernel(block)


def bytes_of(found: Sequence[Row]) -> int:
    """The bytes of a thread's rows."""
    return sum(row.pitch * row.size for row in found)


def _check(kernel: Kernel, effects: Effects) -> None:
    launch = kernel.launch
    if kernel.facts is None:
        raise NotLegal("how much its arrays hold is not known")
    alone = all(extent.tree == parse_expression("1").tree for extent in launch.grid[1:])
    if kernel.block[0] is None or kernel.block[1:] != (1, 1) or not alone:
        raise NotLegal("its threads have more than one index")
    if kernel.function.launch_bounds or launch.shared is not None:
        raise NotLegal("its launch says how many threads a block has")
    effects.straightforward()
    if any(access.space == "shared" for access in kernel.reading.accesses):
        raise NotLegal("its threads share memory")


def _row(
    kernel: Kernel, effects: Effects, items: Mapped, array: str, every: Sequence[Access]
) -> Row | Refused | None:
    loads = [a for a in every if step(items, a) is not None]
    steps = {step(items, a) for a in loads}
    length = next(iter(steps)) if len(steps) == 1 else None
    if length is None or length < 2 or not all(is_plain(kernel, a) for a in every):
        return None
    if any(effects.same(array, other) for other in kernel.reading.written):
        return None
    if array in effects.moved or passed(kernel, array) is None:
        return Refused(f"`{array}` does not stay what it is", loads[0].line)
    lead: Mapping[Variable, Expr] = {}
    if loads == [*every] and all(is_inside(kernel, items, length, a) for a in loads):
        lead = _leading(kernel, effects, array)
    taken = tuple(a for a in loads if lead or _words(effects, a) is not None)
    if not taken:
        return None
    kind = taken[0].element
    row = Row(array, length, kind.name, kind.size or 0, taken, lead, {})
    if not lead or not row.pad or row.size < _WORD:
        return row
    held = (clamped(kernel, effects, items, length, load) for load in taken)
    return replace(row, clamped=dict(found for found in held if found is not None))


def _leading(kernel: Kernel, effects: Effects, array: str) -> dict[Variable, Expr]:
    """The locals that lead into an array, with how far; none where something else asks for it."""
    body, found, known = kernel.function.body, dict[Variable, Expr](), set[Expr]()
    for statement in walk(body):
        for variable in statement.variables if isinstance(statement, Declare) else ():
            if variable not in effects.lasting or variable.type.depth != 1:
                continue
            match variable.value:
                case (
                    Binary(op="+", left=Name(name=name) as base, right=far)
                    | Binary(op="+", left=far, right=Name(name=name) as base)
                    | Unary(op="&", operand=Index(base=Name(name=name) as base, index=far))
                ) if name == array:
                    found[variable] = far
                    known.add(base)
    for expr in expressions(body):
        if isinstance(expr, Index) and isinstance(expr.base, Name):
            known.add(expr.base)
    named = [e for e in expressions(body) if isinstance(e, Name) and e.name == array]
    return found if all(e in known for e in named) else {}


def _words(effects: Effects, access: Access) -> Index | None:
    """The element in the text, of the array or of a local that leads into it."""
    node = element(effects, access)
    if not isinstance(node, Index) or access.call is not None or access.mode != "load":
        return None
    base = node.base
    if not isinstance(base, Name) or base.variable is None:
        return None
    if effects.changed(Evaluate(None, access.line, node.index)):
        return None  # the index is asked for more than once
    own = base.variable.storage == "parameter" and base.name == access.array
    leads = base.variable in effects.lasting and base.variable.type.depth == 1
    return node if own or leads else None


class _Bringing:
    def __init__(self, kernel: Kernel, found: Sequence[Row]) -> None:
        self.old, self.found = kernel, found
        self.effects = Effects(kernel)
        self.items = mapped(kernel, self.effects)
        self.taken: list[str] = []
        self.block = self._fresh("BLOCK")
        places = (place for place in self.items.swaps if isinstance(place, Expr))
        self.places: dict[Node, Node] = {place: text(self._index(place)) for place in places}

    def _index(self, place: Expr | None = None) -> str:
        """A thread's index, of the type that it has in a place; how wide blocks were goes."""
        kind = self.old.reading.types.get(place) if place is not None else None
        if kind is not None and kind.integral and kind.size == _LONG:
            return f"(({kind.name})blockIdx.x * {self.block} + threadIdx.x)"
        signed = "(int)" if kind is not None and kind.integral and kind.signed else ""
        return f"{signed}(blockIdx.x * {self.block} + threadIdx.x)"

    def _fresh(self, name: str) -> str:
        self.taken.append(self.old.fresh(name, *self.taken))
        return self.taken[-1]

    def kernel(self, block: int) -> Kernel:
        old = self.old
        opening, asked = list[str](), list[RequireDirective]()
        swaps: dict[Node, Node] = dict(self.places)
        first, many = self._fresh("first_row"), self._fresh("rows_here")
        reading = old.reading
        speller = LocalSpeller(
            reading.symbols, {}, steady=frozenset(reading.arrays) - reading.written,
            moved=self.effects.moved,
        )  # fmt: skip
        speller.kernel = old
        limit = self.items.limit(speller)
        opening += [
            f"const size_t {first} = (size_t)blockIdx.x * {self.block};",
            (
                f"const int {many} = (int)min((long long){self.block}, "
                f"(long long)({limit}) - (long long){first});"
            ),
        ]
        for row in self.found:
            own = self._fresh(f"{row.array}_rows")
            opening += self._brought(row, own, first, many)
            known = old.facts.arrays.get(row.array) if old.facts is not None else None
            if known is not None and known.role == "scratch":
                raise NotLegal(f"`{row.array}` is scratch: its size cannot be asked for", row.line)
            size = f"size({passed(old, row.array)})"
            condition = parse_expression(f"{size} >= ({self.items.count}) * {row.length}")
            if not measured(old, condition):
                raise NotLegal(f"`{row.array}` has less than a row for each thread", row.line)
            asked.append(RequireDirective(condition))
            for variable, far in row.lead.items():
                assert variable.value is not None
                there = f"{own} + threadIdx.x * {row.pitch}"
                if not is_first(self.items, row.length, far):
                    there = f"{there} + {self._behind(row, far)}"
                swaps[variable.value] = text(there)
            swaps |= dict(row.clamped.items())
            for load in row.loads:
                node = _words(self.effects, load)
                if node is not None and not (
                    isinstance(node.base, Name) and node.base.variable in row.lead
                ):
                    swaps[node] = self._place(row, own, load, node, speller)
        opening.append("__syncthreads();")
        body = old.function.body
        inside = edited(body, swaps).body
        launch = replace(
            old.launch,
            grid=(parse_expression(f"cdiv({self.items.count}, {self.block})"),
                  *old.launch.grid[1:]),
            block=(parse_expression(self.block), *old.launch.block[1:]),
        )  # fmt: skip
        fits = parse_expression(f"{self.block} * {bytes_of(self.found)} <= {SHARED}")
        return old.rewritten(
            replace(body, body=(*map(lines, opening), *inside)),
            launch=launch,
            directives=[*asked, TuneDirective(self.block, BLOCKS, block, fits)],
        )

    def _brought(self, row: Row, own: str, first: str, many: str) -> Iterator[str]:
        """The rows of the block, copied by the widest words that do not cross from row to row."""
        at, whole = self._fresh("place"), row.length * row.size
        yield f"__shared__ __align__(16) {row.kind} {own}[{self.block} * {row.pitch}];"
        if not row.pad:
            yield from self._in_a_piece(row, own, first, many, at)
            return
        unit = max(row.size, _WORD)
        there = f"&{row.array}[{first} * {row.length}]"
        kind = row.kind if unit == row.size else "unsigned int"
        words = whole // unit
        target = f"{own}[{at} / {words} * {row.pitch} + {at} % {words}]"
        source = f"{row.array}[{first} * {row.length} + {at}]"
        if unit != row.size:
            target = (
                f"reinterpret_cast<unsigned int*>({own})[{at} / {words} * "
                f"{row.pitch * row.size // unit} + {at} % {words}]"
            )
            source = f"reinterpret_cast<const unsigned int*>({there})[{at}]"
        copy = f"for (int {at} = threadIdx.x; {at} < {many} * {words}; {at} += {self.block}) "
        if kind == row.kind:
            again = f"{own}[{at} / {words} * {row.pitch} + {words}] = "
            twice = f" if ({at} % {words} == {words - 1}) {again}{source};" if row.clamped else ""
            yield (
                f"{copy}{{ {target} = {source};{twice} }}"
                if twice
                else f"{copy}{target} = {source};"
            )
            return
        yield f"if ((size_t)({there}) % {unit} == 0) {{"
        yield f"{copy}{target} = {source};"
        yield "} else {"
        yield (
            f"for (int {at} = threadIdx.x; {at} < {many} * {row.length}; {at} += {self.block}) "
            f"{own}[{at} / {row.length} * {row.pitch} + {at} % {row.length}] = "
            f"{row.array}[{first} * {row.length} + {at}];"
        )
        yield "}"

    def _in_a_piece(self, row: Row, own: str, first: str, many: str, at: str) -> Iterator[str]:
        """Rows without a gap, by vectors where these are aligned; the rest by elements."""
        there, each = f"&{row.array}[{first} * {row.length}]", _VECTOR // row.size
        begun = self._fresh("copied")
        yield (
            f"const int {begun} = (size_t)({there}) % {_VECTOR} == 0 "
            f"? {many} * {row.length} / {each} : 0;"
        )
        yield (
            f"for (int {at} = threadIdx.x; {at} < {begun}; {at} += {self.block}) "
            f"reinterpret_cast<uint4*>({own})[{at}] = "
            f"reinterpret_cast<const uint4*>({there})[{at}];"
        )
        yield (
            f"for (int {at} = {begun} * {each} + threadIdx.x; {at} < {many} * {row.length}; "
            f"{at} += {self.block}) {own}[{at}] = {row.array}[{first} * {row.length} + {at}];"
        )

    def _place(self, row: Row, own: str, load: Access, node: Index, speller: LocalSpeller) -> Expr:
        """The element in the thread's row; where it may lie outside, that is looked at."""
        assert load.index is not None
        rest = load.index - Polynomial.constant(row.length) * self.items.index
        within, around = "", self.old.reading.loops(load)
        if all(is_counted(axis, self.effects) for axis in around):  # and names say which round
            try:
                speller.around = around
                within = speller.form(speller.local(rest))
            except Unspelled:
                pass
        if not within or "blockIdx" in within or "threadIdx" in within:  # of other blocks
            within = self._from_text(row, node)
        within = f"({within})" if " " in within else within
        there = f"{own}[threadIdx.x * {row.pitch} + {within}]"
        if is_inside(self.old, self.items, row.length, load):
            return text(there)
        checked = text(f"(unsigned int)({within}) < {row.length}u")
        return Choice(None, checked, text(there), edited(node, self.places))

    def _from_text(self, row: Row, node: Index) -> str:
        """How far an element lies behind the first of the row, by what the text says."""
        base = node.base
        assert isinstance(base, Name)
        if isinstance(base.variable, Variable) and base.variable.storage != "parameter":
            words = self.old.spelled(node.index, self.places)
            return self._less_row(row, f"({base.name} - {row.array}) + ({words})")
        return self._behind(row, node.index)

    def _behind(self, row: Row, index: Expr) -> str:
        return self._less_row(row, self.old.spelled(index, self.places))

    def _less_row(self, row: Row, words: str) -> str:
        item = self.items.name if self.items.holding else self._index()
        return f"(int)(({words}) - (long long){item} * {row.length})"
