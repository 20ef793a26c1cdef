"""P9, windows that slide in two directions: a warp takes several rows, which share theirs.

What windows are made of in a column is combined for all rows of a warp, in registers: the places
that lie in the windows of all rows once, those before and behind these for each row that has them.
So a place is computed once for all of these rows, and along them windows slide as in ``slid``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import text
from optiml_magic.kernels.expressions import Expr, Name, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.cutting import uses
from optiml_magic.kernels.primitives.effects import Effects, is_simple, loops_in
from optiml_magic.kernels.primitives.grids import form_of, raised
from optiml_magic.kernels.primitives.mapped import joined_test, split_test
from optiml_magic.kernels.primitives.moves import Along, Following
from optiml_magic.kernels.primitives.naming import LocalSpeller
from optiml_magic.kernels.primitives.places import as_wide
from optiml_magic.kernels.primitives.slid import Sliding, Tile, down
from optiml_magic.kernels.primitives.slides import Window, window
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import Declare, If, Statement, Variable
from optiml_magic.source.directives import LaunchDirective, TuneDirective
from optiml_magic.source.expressions import parse_expression

TALL = (2, 3, 4, 6, 8)
_ROW = {"threadIdx.y", "blockIdx.y"}


@dataclass(frozen=True, eq=False)
class Column:
    """The other loop of a window, which slides along the rows of the launch.

    Attributes:
        axis: the loop.
        rounds: how many rounds it has, the same for all rows.
        sign: 1 where a later round stands where a later row does, else -1.
        kept: what is done before the items, and says nothing of the row.
        own: what is done before the items for each row, but for the guard that bounds the rows.
        tests: of those around the items the ones that say nothing of the row.
    """

    axis: Axis
    rounds: Polynomial
    sign: int
    kept: tuple[Statement, ...]
    own: tuple[Statement, ...]
    tests: tuple[Expr, ...]


@primitive
def slid_planes(kernel: Kernel, at: int, other: int) -> Kernel:
    """The loop with number ``at`` slides along x, the ``other`` along y; both count from 0 by 1."""
    kernel = kernel.settled()
    found = window(kernel, at)
    return _Planes(kernel, found, column(kernel, found, other)).kernel()


def tall_name(kernel: Kernel) -> str:
    """How the rows of a warp are called."""
    return kernel.fresh("TALL")


def column(kernel: Kernel, found: Window, at: int) -> Column:
    """The loop with this number as the column of a window. Raises NotLegal where it is none."""
    loop, effects, symbols = (
        loops_in(kernel.function.body)[at],
        Effects(kernel),
        kernel.reading.symbols,
    )
    axis = kernel.axes().get(loop)
    if axis is not None and not axis.exact:
        raise NotLegal(f"the loop has another way out: {axis.reason}", loop.line)
    if axis is None or not is_simple(axis, effects) or axis.stop is None:
        raise NotLegal("the loop does not count from 0 by 1", loop.line)
    if any(symbols[name].kind != "scalar" for name in symbols.made_of(axis.stop)):
        raise NotLegal("each row may have another number of rounds", loop.line)
    nested = loop in loops_in(found.nest) and loop is not found.axis.node
    inside = found.axis.node in loops_in(loop) or loop in loops_in(found.axis.node)
    if not nested or not inside or any(axis.name not in r.axes for r in found.reductions):
        raise NotLegal("the loop does not run along the window", loop.line)
    inner = effects.inside(loop.body)
    for place in {r.place for r in found.reductions}:
        if any(isinstance(e, Name) and e.name == place for e in effects.inside(found.nest) - inner):
            raise NotLegal(f"`{place}` is asked for around the loop", loop.line)
    places = uses(kernel, "y").whole
    before = (*found.items.outside, *found.begun)
    sign = Following(kernel, effects, Along("y", places), axis, found.nest, before).sign()
    kept, own, tests = _parted(kernel, effects, found, places)
    return Column(axis, axis.stop, sign, kept, own, tests)


def _parted(
    kernel: Kernel, effects: Effects, found: Window, places: Sequence[Expr]
) -> tuple[tuple[Statement, ...], tuple[Statement, ...], tuple[Expr, ...]]:
    """What stands before the items, by whether it says something of the row."""
    kept, own, tests, of_row = list[Statement](), list[Statement](), list[Expr](), set[Variable]()

    def varies(exprs: Sequence[Expr]) -> bool:
        parts = [e for expr in exprs for e in every(expr)]
        return any(e in places or (isinstance(e, Name) and e.variable in of_row) for e in parts)

    for statement in found.items.outside:
        if not varies(statement.expressions):
            kept.append(statement)
        elif isinstance(statement, Declare):
            of_row |= {*statement.variables}
            own.append(statement)
        elif isinstance(statement, If):
            parts = [*split_test(statement.test, "||")]
            others = [part for part in parts if not varies([part])]
            if not all(_bounds(kernel, part) for part in parts if part not in others):
                raise NotLegal("a guard says more of a row than that it is there", statement.line)
            if others:
                test = joined_test(others, "||")
                kept.append(replace(statement, test=test, span=None, head=None))
        else:
            raise NotLegal("a row does more before its items than to begin", statement.line)
    for test in found.items.tests:
        if not varies([test]):
            tests.append(test)
        elif not _bounds(kernel, test):
            raise NotLegal("a guard says more of a row than that it is there")
    for access in (a for s in own for a in effects.accesses(s)):
        if any(effects.same(access.array, other) for other in kernel.reading.written):
            raise NotLegal(f"`{access.array}` is written as well", access.line)
    return tuple(kept), tuple(own), tuple(tests)


def _bounds(kernel: Kernel, test: Expr) -> bool:
    """Whether a part of a test says just that a row is there."""
    symbols, left, own = kernel.reading.symbols, _left(kernel), {*every(test)}
    for guard in kernel.reading.guards:
        if not own <= {*every(guard.test)}:
            continue
        for condition in (guard.condition, ~guard.condition):
            parts = [p for p in condition.conjuncts() if _ROW & p.depends]
            forms = [p.form for p in parts if isinstance(p, Compare) and p.op == ">="]
            if len(parts) == 1 and any(left in (f, raised(f, symbols)) for f in forms):
                return True
    return False


def _left(kernel: Kernel) -> Polynomial:
    """How many rows come behind that of a thread."""
    index = Polynomial.symbol("threadIdx.y") + Polynomial.constant(
        kernel.block[1] or 1
    ) * Polynomial.symbol("blockIdx.y")
    return _count(kernel) - index - Polynomial.constant(1)


def _count(kernel: Kernel) -> Polynomial:
    words = down(kernel)
    form = form_of(words.tree, kernel.reading.symbols) if words is not None else None
    if form is None:
        raise NotLegal("how many rows there are its guards do not say")
    return form


class _Planes(Sliding):
    def __init__(self, kernel: Kernel, found: Window, column: Column) -> None:
        super().__init__(kernel, found)
        self.column, self.tests = column, column.tests
        self.tall, fresh = tall_name(kernel), self._fresh
        self.top, self.here, self.row = fresh("first_row"), fresh("own_rows"), fresh("row")
        self.deep, self.near, self.turn_y = fresh("deep"), fresh("near"), fresh("turn_y")
        self.top_first, self.top_end = fresh("inner_row"), fresh("inner_row_end")
        self.at = fresh("at")
        self.lines = [fresh(f"{tile.name}s") for tile in self.tiles]
        self.parts = [fresh(f"{tile.reduction.place}_part") for tile in self.tiles]
        self.swaps |= {
            place: text(as_wide(kernel, place, f"({self.top} + {self.row})"))
            for place in uses(kernel, "y").whole
        }  # fmt: skip

    def _outside(self) -> Sequence[Statement]:
        return self.column.kept

    def _sizes(self, words: str) -> Iterator[str]:
        speller = LocalSpeller(self.old.reading.symbols, {}, moved=self.effects.moved)
        speller.kernel = self.old
        yield f"const int {self.deep} = {self._said(self.column.rounds)};"
        index = "(int)(blockIdx.y * blockDim.y + threadIdx.y)"
        count = _count(self.old)
        rows, tall = speller.count(count), self.tall
        yield from self._first_inside("y", "int", self.top, f"{index} * {tall}", rows)
        left = f"{rows} - {self.top}"
        if not self.clamps:
            tall = self.inner.end("y", self.top, tall, count)
            tall = f"({tall})" if "?" in tall else tall
        here = f"min({left}, {tall})"
        if self.old.wide:  # of numbers of two lengths there is no least
            here = f"{left} < {tall} ? (int)({left}) : {tall}"
        yield f"const int {self.here} = {here};"
        yield f"if ({self.here} <= 0) return;"
        yield from super()._sizes(words)

    def _row_inside(self) -> list[str]:
        return [f"{self.top_first} < {self.top_end}"] if self.clamps else []

    def _ends_inside(self) -> Iterator[str]:
        if self.clamps:
            here = self.here
            start = self.inner.start("y", self.top, here)
            end = self.inner.end("y", self.top, here, _count(self.old))
            if self.column.sign < 0:
                start, end = f"{here} - ({end})", f"{here} - ({start})"
            yield f"const int {self.top_first} = {start}, {self.top_end} = {end};"
        yield from super()._ends_inside()

    @property
    def _all_rows(self) -> str:
        return f"{self.extent} * {self.tall}"

    @property
    def _rows_before(self) -> str:
        return f"threadIdx.y * {self.tall}"

    def _first_of(self, tile: Tile) -> str:
        return self.lines[self.tiles.index(tile)]

    def _begun(self, item: str) -> Iterator[str]:
        for statement in self.column.own:
            yield self._shown(statement)
        yield from super()._begun(item)

    def _filling(self) -> Iterator[str]:
        """Each place once, for all rows of a warp in whose windows it lies."""
        slot, tall, deep, at, row = self.slot, self.tall, self.deep, self.at, self.row
        yield f"for (int {slot} = {self._lane}; {slot} < {self.span}; {slot} += {self._lanes}) {{"
        for tile in self.tiles:
            nothing = combine.nothing(tile.reduction)
            yield f"{tile.kind} {tile.core} = {nothing}, {tile.found}[{tall}];"
        yield from self._each_row()
        for tile in self.tiles:
            yield f"{tile.found}[{row}] = {combine.nothing(tile.reduction)};"
        yield "}"
        yield from self._where_places()
        yield f"if ({deep} >= {tall}) {{"
        yield "#pragma unroll"
        yield f"for (int {at} = 0; {at} < {tall} - 1; ++{at}) {{"
        yield from self._places(f"{row} <= {at}", sure=True)
        yield "}"
        yield "#pragma unroll 4"
        yield f"for (int {at} = {tall} - 1; {at} < {deep}; ++{at}) {{"
        yield from self._places("", sure=True)
        yield "}"
        yield "#pragma unroll"
        yield f"for (int {self.item} = 0; {self.item} < {tall} - 1; ++{self.item}) {{"
        yield f"const int {at} = {deep} + {self.item};"
        yield from self._places(f"{row} > {self.item}", sure=False)
        yield "}"
        yield "} else {"
        yield f"for (int {at} = 0; {at} < {deep} + {tall} - 1; ++{at}) {{"
        yield from self._places(f"{at} >= {row} && {at} < {row} + {deep}", sure=False)
        yield "}"
        yield "}"
        yield "}"
        yield from self._each_row()
        # Rows are counted from the last one there is where rounds go against them.
        own = row if self.column.sign > 0 else f"({self.here} - 1 - {row})"
        yield "{" if self.column.sign > 0 else f"if ({row} < {self.here}) {{"
        for tile, line in zip(self.tiles, self.lines, strict=True):
            yield combine.joining(tile.reduction, f"{tile.found}[{row}]", tile.core)
            yield f"{line}[{own} * {self.span} + {slot}] = {tile.found}[{row}];"
        yield "}"
        yield "}"
        yield "}"
        yield self._wait

    def _each_row(self) -> Iterator[str]:
        yield "#pragma unroll"
        yield f"for (int {self.row} = 0; {self.row} < {self.tall}; ++{self.row}) {{"

    def _places(self, rows: str, *, sure: bool) -> Iterator[str]:
        """One place, as a round of an item and a row that there are, for the ``rows`` that ask.

        For all of them where nothing is said. Where it is not ``sure`` that it is in the window of
        a row that there is, nothing stands there.
        """
        at, here, deep, near = self.at, self.here, self.deep, self.near
        tiles = [*zip(self.tiles, self.parts, strict=True)]
        for tile, part in tiles:
            yield f"{tile.kind} {part} = {combine.nothing(tile.reduction)};"
        end = self.top_end if self.clamps else here
        nearest = f"min({at}, {end} - 1)"
        inside = "" if sure else f"if ({at} < {end} + {deep} - 1) "
        if self.clamps and (rows or not sure):
            nearest = f"max({nearest}, {self.top_first})"
            beyond = "" if sure else f" && {at} < {end} + {deep} - 1"
            inside = f"if ({at} >= {self.top_first}{beyond}) "
        yield f"{inside}{{"
        if not self.clamps:
            yield from self._nearest()
        yield f"const int {near} = {nearest}, {self.turn_y} = {at} - {near};"
        yield f"const int {self.row} = {near if self.column.sign > 0 else f'{here} - 1 - {near}'};"
        yield from self._begun(self.start)
        yield from self._prepared()
        for tile, part in tiles:
            yield f"{tile.reduction.place} = {part};"
        turns = [(self.window.axis, self.turn), (self.column.axis, self.turn_y)]
        if self.column.axis.node in loops_in(self.window.axis.node):
            turns.reverse()
        yield self._rounds_of(turns)
        for tile, part in tiles:
            yield f"{part} = {tile.reduction.place};"
        yield "}"
        if not rows:
            for tile, part in tiles:
                yield combine.joining(tile.reduction, tile.core, part)
            return
        yield from self._each_row()
        yield f"if ({rows}) {{"
        for tile, part in tiles:
            yield combine.joining(tile.reduction, f"{tile.found}[{self.row}]", part)
        yield "}"
        yield "}"

    def _combining(self) -> Iterator[str]:
        yield f"for (int {self.row} = 0; {self.row} < {self.here}; ++{self.row}) {{"
        for tile, line in zip(self.tiles, self.lines, strict=True):
            yield f"{tile.kind}* {tile.name} = {line} + {self.row} * {self.span};"
        yield from super()._combining()
        yield from super()._ending()
        yield "}"

    def _ending(self) -> Iterator[str]:
        return iter(())

    def _launch(self, words: str) -> LaunchDirective:
        made = super()._launch(words)
        rows = parse_expression(f"cdiv({self.down}, {self.extent} * {self.tall})")
        shared = parse_expression(f"{made.shared} * {self.tall}")
        return replace(made, grid=(made.grid[0], rows, *made.grid[2:]), shared=shared)

    def _tunes(self) -> list[TuneDirective]:
        return [*super()._tunes(), TuneDirective(self.tall, TALL, 4)]
