"""Tables in local memory of which each round of a loop fills a row from the one before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from optiml_magic.kernels.expressions import Assign, Call, Expr, Index, Name, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.covering import cover, ways
from optiml_magic.kernels.primitives.effects import (
    Effects,
    counts_up,
    declared_in,
    loops_in,
    names,
)
from optiml_magic.kernels.primitives.sweeps import named_at
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Leave,
    Loop,
    Statement,
    Variable,
    body_of,
    expressions,
    walk,
)

_ONE, _TWO = Polynomial.constant(1), Polynomial.constant(2)


@dataclass(frozen=True, eq=False)
class Column:
    """``for (i) d[i][0] = value``, a ``statement`` of a loop in front, for each row.

    The row that the first round finds gets one as well where that is in ``begin``.
    """

    loop: Loop
    statement: Evaluate
    value: Expr
    counter: Variable
    begin: bool


@dataclass(frozen=True, eq=False)
class Table:
    """``outer`` fills a row of the ``arrays`` by ``inner`` from the one before.

    Round ``r`` of ``inner`` stores element ``first + r`` of its row, by ``stores``. Of the row
    before it asks for ``old`` elements, so far from that one each; ``others`` are all elements that
    are named besides, ``ahead`` those that begin a row. The first round finds row ``begin``; a
    ``copy`` makes the row that was filled the one before.
    """

    outer: Axis
    inner: Axis
    arrays: tuple[Variable, ...]
    first: Polynomial
    stores: tuple[Index, ...]
    old: dict[Index, int]
    others: tuple[Index, ...]
    ahead: tuple[Index, ...]
    column: Column | None
    begin: Polynomial
    copy: Loop | None


def tables(kernel: Kernel) -> Iterator[Table]:
    """Those of a kernel."""
    local = {a.array for a in kernel.reading.accesses if a.space == "local" and a.mode == "store"}
    declared = [s for s in walk(kernel.function.body) if isinstance(s, Declare)]
    arrays = [v for s in declared for v in s.variables if v.name in local and v.array]
    for outer in loops_in(kernel.function.body) if arrays else ():
        inner = [s for s in body_of(outer.body) if isinstance(s, Loop)]
        flat = [v for v in arrays if len(v.extents) == 1]
        found: list[tuple[Variable, ...]] = []
        if len(inner) == 1:
            found += [(v,) for v in arrays if len(v.extents) == 2]
        elif len(inner) == 2:
            found += [(before, now) for before in flat for now in flat if before is not now]
        for several in found:
            try:
                search = _Table if len(several) == 1 else _Copied
                yield search(kernel, outer, inner, several).found()
            except NotLegal:
                continue


class _Table:
    """An array of two dimensions."""

    def __init__(
        self, kernel: Kernel, outer: Loop, inner: Sequence[Loop], arrays: tuple[Variable, ...]
    ) -> None:
        self.kernel, self.effects, self.arrays = kernel, Effects(kernel), arrays
        self.symbols = kernel.reading.symbols
        self.outer, self.inner = self._axis(outer), self._axis(inner[0])
        self.copy = inner[1] if len(inner) > 1 else None
        blocks = (s for s in walk(kernel.function.body) if isinstance(s, Block))
        self.block = next(block.body for block in blocks if outer in block.body)
        own = {v for s in self.block if isinstance(s, Declare) for v in s.variables}
        if not {*arrays} <= own:
            raise NotLegal("the array outlasts the loop around it", outer.line)
        named = {v.name for v in arrays}
        self.accesses = [a for a in kernel.reading.accesses if a.array in named]
        for array in arrays:
            held = array.storage != "local" or array.value or array.initial or array.type.volatile
            if held or array in self.effects.lent or array.type.base != arrays[0].type.base:
                raise NotLegal("something else leads to the array as well", array.line)

    def found(self) -> Table:
        before, ahead, within, after = self._parts()
        stores = [a for a in within if a.mode == "store"]
        old = {a: self._far(a) for a in (*ahead, *within) if not self._is_new(a)}
        self._rounds(within, stores)
        left = self._ahead(ahead)
        column = None
        for access in before:
            if self._apart(access, self._begin) != 0:
                column = self._column(access, column)
        asks = [self._far(a) for a in within]
        if min(*asks, *old.values(), 0) < -1:
            raise NotLegal("a round asks for elements far back", self.inner.line)
        if (min(*asks, 0) < 0 or ahead) and not left and column is None:
            raise NotLegal("the first element of a row is not given", self.inner.line)
        if any(a.mode != "load" for a in old):
            raise NotLegal("a round changes the row before", self.inner.line)
        self._covered(max(old.values(), default=0), after, bool(left or column))
        everyone = [*before, *ahead, *within, *after]
        told = None if column is None else column.statement.expression
        others = [a for a in everyone if a not in old and a.own is not told]
        return Table(
            self.outer, self.inner, self.arrays, self.first, tuple(map(named_at, stores)),
            {named_at(a): far for a, far in old.items()}, tuple(map(named_at, others)),
            tuple(named_at(a) for a in left), column, self._begin, self.copy,
        )  # fmt: skip

    def _axis(self, loop: Loop) -> Axis:
        axis = self.kernel.axes().get(loop)
        if axis is None or not counts_up(axis, self.effects):
            raise NotLegal("the loop does not count up one by one in its head alone", loop.line)
        return axis

    def _parts(self) -> tuple[list[Access], list[Access], list[Access], list[Access]]:
        """The accesses before the loop, ahead of a row, in it, and after the loop."""
        body, inner, at = body_of(self.outer.node.body), self.inner.node, self.block.index(
            self.outer.node
        )  # fmt: skip
        ahead, behind = body[: body.index(inner)], body[body.index(inner) + 1 :]
        parts = (self.block[:at], ahead, (inner,), self.block[at + 1 :])
        found = [self._of(part) for part in parts]
        copied = self._of(behind)
        if sum(map(len, (*found, copied))) != len(self.accesses) or (copied and not self.copy):
            raise NotLegal("the array is asked for elsewhere too", self.outer.line)
        for part in (*ahead, *body_of(inner.body), *behind):
            left = any(isinstance(s, Leave) for s in walk(part))
            if left or (loops_in(part) and part is not self.copy):
                raise NotLegal("its rounds go on in several ways", part.line)
        named = [e for e in expressions(self.kernel.function.body)
                 if isinstance(e, Name) and e.variable in self.arrays]  # fmt: skip
        if any(a.call is not None for a in self.accesses) or len(named) != len(
            {named_at(a) for a in self.accesses}
        ):
            raise NotLegal("something else leads to the array as well", self.outer.line)
        (before, first, within, after) = found
        return before, first, within, after

    def _of(self, statements: Sequence[Statement]) -> list[Access]:
        inside = frozenset[Expr]().union(*(self.effects.inside(s) for s in statements))
        return [a for a in self.accesses if a.own in inside]

    def _row(self, access: Access) -> Polynomial:
        """The row of an access, as it is counted: that of ``d[i & 1]`` is ``i``."""
        if len(access.digits) != 2:
            raise NotLegal("the row of an element is not followed", access.line)
        turned = self._turned(access.digits[0])
        return access.digits[0] if turned is None else turned

    def _turned(self, form: Polynomial) -> Polynomial | None:
        for name in form.symbols:
            symbol = self.symbols.table[name]
            asked = symbol.arguments
            if symbol.op == "%" and asked[1:] == (_TWO,):
                counted = asked[0]
            elif symbol.op == "&" and len(asked) == 2 and _ONE in asked:
                counted = asked[asked[0] == _ONE]
            else:
                continue
            if form == Polynomial.symbol(name):
                return counted
        return None

    @cached_property
    def _in_turn(self) -> bool:
        """Whether there are two rows, which are the one before and the one that is filled."""
        return any(self._turned(d) is not None for a in self.accesses for d in a.digits[:1])

    def _apart(self, access: Access, row: Polynomial) -> int | None:
        """How many rows the one of an access is away; 0 of those in turn where they are one."""
        apart = (row - self._row(access)).value
        return apart % 2 if apart is not None and self._in_turn else apart

    def _place(self, access: Access) -> Polynomial:
        """The column of an access."""
        form = access.digits[-1] if access.digits else access.index
        array = self.kernel.reading.arrays.get(access.array)
        if form is None or array is None or array.element != access.element:
            raise NotLegal("the column of an element is not followed", access.line)
        return form

    @cached_property
    def _new(self) -> Polynomial:
        """The row that a round fills."""
        rows = {self._row(a) for a in self._of([self.inner.node]) if a.mode == "store"}
        own = Polynomial.symbol(self.outer.name)
        if len(rows) != 1 or any((row - own).value is None for row in rows):
            raise NotLegal("not each round fills the next row", self.inner.line)
        (row,) = rows
        return row

    @property
    def _begin(self) -> Polynomial:
        """The row that the first round finds."""
        return self._new.without([self.outer.name]) - _ONE

    def _is_new(self, access: Access) -> bool:
        """Whether an access in the loop is to the row that it fills; else to the one before."""
        apart = self._apart(access, self._new)
        if apart not in (0, 1):
            raise NotLegal("a round asks for rows further back", access.line)
        return apart == 0

    @cached_property
    def first(self) -> Polynomial:
        store = next(a for a in self._of([self.inner.node]) if a.mode == "store")
        form = self._place(store).without([self.inner.name])
        if {self.outer.name, self.inner.name} & self.symbols.inside(form):
            raise NotLegal("rows begin in several places", self.inner.line)
        return form

    def _far(self, access: Access) -> int:
        """How far an element is from the one that its round stores, or from a row's first."""
        far = (self._place(access).without([self.inner.name]) - self.first).value
        if far is None:
            raise NotLegal("a round asks for elements far away", access.line)
        return far

    def _rounds(self, within: list[Access], stores: list[Access]) -> None:
        """Raise NotLegal where a round asks for what is not there in one row."""
        if any(self._place(a).coefficient(self.inner.name) != _ONE for a in within):
            raise NotLegal("a round asks for elements far away", self.inner.line)
        told = [way for a in stores for way in ways(a.guard, self.inner.held)]
        if any(self._far(a) for a in stores) or not cover(told):
            raise NotLegal("not each round stores one element", self.inner.line)
        own = declared_in(self.inner.node.body)
        if any(names([named_at(a)]) & own for a in stores):
            raise NotLegal("where a round stores is found in it", self.inner.line)
        body = body_of(self.inner.node.body)
        last = max(n for n, s in enumerate(body) if {*self._of([s])} & {*stores})
        later = self._of(body[last + 1 :])
        for access in within:
            far = self._far(access)
            early = far > 0 or (far == 0 and access not in later)
            if early and access not in stores and self._is_new(access):
                raise NotLegal("a round asks for what is not there yet", access.line)

    def _ahead(self, ahead: list[Access]) -> list[Access]:
        """What gives each row its first element, in front of those that the rounds store."""
        given = list[Access]()
        rounds = self._length(self.inner)
        some = Compare(">=", rounds, self.symbols.depends(rounds))  # else nobody asks for a row
        for access in ahead:
            if self._far(access) != -1 or access.loops != (self.outer.name,):
                raise NotLegal("what comes ahead of a row asks for another element", access.line)
            every_round = all(
                p in self.outer.held or p == some for c in access.guard for p in c.conjuncts()
            )
            if every_round and self._is_new(access) and access.mode == "store":
                given.append(access)
        return given

    def _length(self, axis: Axis) -> Polynomial:
        assert axis.start is not None
        assert axis.stop is not None
        return axis.stop - axis.start

    def _covered(self, forth: int, after: list[Access], left: bool) -> None:
        """Raise NotLegal where anybody asks for more of a row than was stored there."""
        rounds, name = self._length(self.inner), self.outer.name
        by, rest = rounds.coefficient(name), rounds.without([name])
        if by is None or by.value is None or name in self.symbols.inside(rest):
            raise NotLegal("how long rows are is not followed", self.inner.line)
        if by.value + forth > 0:
            raise NotLegal("a row may ask for more than the one before has", self.inner.line)
        count = self._length(self.outer)
        last = rest + by * (count - _ONE)
        zero, operations = Polynomial.constant(0), self.kernel.reading_operations()
        ends = [self._begin + n for n in
                (count, operations.extreme("max", count, zero, self.outer.guard))]  # fmt: skip
        for access in after:
            at, ranges = self._place(access) - self.first, Ranges(access.guard, self.symbols)
            low = self.first - _ONE if left else self.first
            begins = low.value == 0 or ranges.nonnegative(self._place(access) - low)
            inside = begins and ranges.nonnegative(last - _ONE - at)
            if access.mode != "load" or all(self._apart(access, end) != 0 for end in ends):
                raise NotLegal("other rows than the last are asked for", access.line)
            if not inside:
                raise NotLegal("more is asked of the last row than it has", access.line)

    def _column(self, access: Access, known: Column | None) -> Column:
        """What a loop in front stores to the first element of each row."""
        wrong = NotLegal("other rows begin with values too", access.line)
        loop = next(
            (s for s in self.block if isinstance(s, Loop) and access in self._of([s])), None
        )
        if self._in_turn or known is not None or loop is None:
            raise wrong
        axis, statement = self._axis(loop), body_of(loop.body)[0]
        assign = statement.expression if isinstance(statement, Evaluate) else None
        if not isinstance(statement, Evaluate) or not isinstance(assign, Assign):
            raise wrong
        assert axis.start is not None
        assert axis.variable is not None
        row = axis.start + Polynomial.symbol(axis.name)
        last, rows = (
            axis.start + self._length(axis),
            self.kernel.reading.arrays[access.array].extents,
        )
        ends = last - self._begin - _ONE - self._length(self.outer)
        begins = axis.start - self._begin
        steady = {*self.effects.lasting, *self.kernel.function.parameters}
        steady = steady - self.effects.changing | {axis.variable}
        if (
            assign.op != "=" or access.own is not assign or self._row(access) != row
            or self._far(access) != -1 or access.loops != (axis.name,)
            or not all(p in axis.held for c in access.guard for p in c.conjuncts())
            or any(isinstance(e, Index | Call) for e in every(assign.value))
            or not names([assign.value]) <= steady or begins.value not in (0, 1)
            or (last != rows[0] and not Ranges(axis.guard, self.symbols).nonnegative(ends))
        ):  # fmt: skip
            raise wrong
        return Column(loop, statement, assign.value, axis.variable, begins.value == 0)


class _Copied(_Table):
    """Two arrays, of which the second is copied to the first at the end of each round."""

    def found(self) -> Table:
        copy = self.copy
        assert copy is not None
        body = body_of(self.outer.node.body)
        if body[-1] is not copy or body[-2] is not self.inner.node:
            raise NotLegal("a round does more than to fill a row and to copy it", copy.line)
        made = super().found()
        axis, name = self._axis(copy), self.arrays[1].name
        match body_of(copy.body):
            case (Evaluate(expression=Assign(op="=") as only),):
                own = {a.mode: a for a in self._of([copy])}
            case _:
                raise NotLegal("more is done than to copy", copy.line)
        whole = own.keys() == {"load", "store"} and own["load"].node is only.value
        if not whole or own["store"].node is not only or own["load"].array != name:
            raise NotLegal("more is done than to copy", copy.line)
        place = self._place(own["store"])
        start = place.without([axis.name])
        same = place == self._place(own["load"]) and place.coefficient(axis.name) == _ONE
        begin = self.first - _ONE if made.ahead else self.first
        end = self.first + self._length(self.inner)
        if not same or start != begin or start + self._length(axis) != end:
            raise NotLegal("other elements are copied than were stored", copy.line)
        return made

    def _row(self, access: Access) -> Polynomial:
        now, own = access.array == self.arrays[1].name, Polynomial.symbol(self.outer.name)
        inside = self._of([self.outer.node])
        if access in inside:
            return own if now else own - _ONE
        if now:
            raise NotLegal("the row that is filled is asked for elsewhere", access.line)
        after = access in self._of(self.block[self.block.index(self.outer.node) + 1 :])
        return self._length(self.outer) - _ONE if after else -_ONE

    @cached_property
    def _in_turn(self) -> bool:
        return False
