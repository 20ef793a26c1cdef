"""P9, windows that slide: what neighbouring items combine alike is combined once for all of them.

The threads of a block compute what their windows are made of, each place once, and keep it in
shared memory, whose size the launch says by the width of the window. Then a thread combines the
windows of ``ITEMS`` neighbours: the places that lie in all of them once, those before them from the
last to the first and those behind from the first to the last, each of which one item more has.
Nothing is taken out of a sum again, so no digits are lost that the loop did not lose.
Source of the shape: van Herk, "A fast algorithm for local minimum and maximum filters on
rectangular and octagonal kernels", 1992; odd numbers of items meet in no bank of shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from optiml_magic.errors import SourceError
from optiml_magic.kernels.editing import Node, lines
from optiml_magic.kernels.expressions import Expr, builtin, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.cutting import uses
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.grids import needed, said_alike
from optiml_magic.kernels.primitives.inner_places import InnerPlaces
from optiml_magic.kernels.primitives.limits import limits
from optiml_magic.kernels.primitives.margins import Margin, within
from optiml_magic.kernels.primitives.naming import LocalSpeller
from optiml_magic.kernels.primitives.room import SHARED
from optiml_magic.kernels.primitives.slides import Window, window
from optiml_magic.kernels.reading import Axis, Reduction
from optiml_magic.kernels.tree import Leave, Statement, walk
from optiml_magic.source.directives import (
    Directive,
    LaunchDirective,
    RequireDirective,
    TuneDirective,
)
from optiml_magic.source.expressions import Expression, parse_expression

ITEMS = (5, 7, 9, 11, 15, 21, 31)
BLOCKS = (32, 64, 128, 256)
ROWS = (1, 2, 4, 8)
_WARP = 32


@dataclass(frozen=True)
class Tile:
    """What is kept of a reduction: in ``name``, found for an item in ``found``."""

    reduction: Reduction
    name: str
    found: str
    core: str

    @property
    def kind(self) -> str:
        return self.reduction.type.name

    @property
    def size(self) -> int:
        return self.reduction.type.size or 4


@primitive
def slid(kernel: Kernel, at: int) -> Kernel:
    """The loop with this number, which counts from 0 by 1, as a window that slides along x."""
    kernel = kernel.settled()
    return Sliding(kernel, window(kernel, at)).kernel()


def extent_name(kernel: Kernel) -> str:
    """What is tuned of a block beside its items: its rows, each of them a warp, or its threads."""
    return kernel.fresh("ROWS" if down(kernel) is not None else "BLOCK")


def down(kernel: Kernel) -> Expression | None:
    """How many rows of items there are, where a block may have any number of them."""
    places = uses(kernel, "y").whole
    free = all(any(builtin(e) == "blockDim.y" for e in every(place)) for place in places)
    return needed(kernel, "y", loads=True) if free and places else None


class Sliding:
    def __init__(self, kernel: Kernel, found: Window) -> None:
        if kernel.block[2] != 1 or (down(kernel) is None and kernel.block[1] != 1):
            raise NotLegal("its blocks have more than one row", kernel.function.line)
        if kernel.function.launch_bounds:
            raise NotLegal("its launch bounds say how many threads a block has")
        self.old, self.window, self.items = kernel, found, found.items
        self.tests: Sequence[Expr] = found.items.tests
        self.effects, self.swaps = Effects(kernel), dict[Node, Node](found.items.swaps)
        self.taken = list[str]()
        self.down = down(kernel)
        self.rows = self.down is not None
        self.count, self.extent = kernel.fresh("ITEMS"), extent_name(kernel)
        fresh = self._fresh
        self.bytes, self.slot, self.rounds = fresh("window_bytes"), fresh("slot"), fresh("rounds")
        self.span, self.first, self.own = fresh("span"), fresh("first"), fresh("own_items")
        self.start, self.item, self.turn = fresh("start"), fresh("item"), fresh("turn")
        ordered = sorted(found.reductions, key=lambda r: -(r.type.size or 0))
        self.tiles = [
            Tile(r, fresh(f"{r.place}_tile"), fresh(f"{r.place}_found"), fresh(f"{r.place}_core"))
            for r in ordered
        ]
        self.inner = InnerPlaces(kernel, self.effects, found.margins)
        self.inner_first, self.inner_end = fresh("inner_first"), fresh("inner_end")
        #: Whether some of a thread's items have windows and others have not, but do something.
        self.clamps = not self.inner.alone
        for statement in found.statements:
            for inner in walk(statement):
                if isinstance(inner, Leave) and inner.kind == "return":
                    raise NotLegal("an item leaves the kernel by itself", inner.line)

    def _fresh(self, name: str) -> str:
        self.taken.append(self.old.fresh(name, *self.taken))
        return self.taken[-1]

    def kernel(self) -> Kernel:
        words = self._said(self.window.rounds)
        made = [*self._sizes(words), *self._filling(), *self._combining(), *self._ending()]
        if self.tests:
            shown = " && ".join(f"({self._expression(test)})" for test in self.tests)
            made = [f"if ({shown}) {{", *made, "}"]
        body = replace(
            self.old.function.body, body=(*self._outside(), lines("\n".join(made)))
        )  # fmt: skip
        launch, tunes = self._launch(words), self._tunes()
        room = RequireDirective(parse_expression(f"{launch.shared} <= {SHARED}"))
        asked: list[Directive] = [*tunes, room, *limits(self.old, launch, tunes)]
        return self.old.rewritten(body, launch=launch, directives=asked)

    def _said(self, form: Polynomial) -> str:
        """How many rounds there are, in words that kernel and launch both understand."""
        kernel = self.old
        if not said_alike(kernel, sorted(kernel.reading.symbols.made_of(form))):
            raise NotLegal("how many rounds there are has another name in the launch")
        speller = LocalSpeller(kernel.reading.symbols, {}, moved=self.effects.moved)
        speller.kernel = kernel
        words = speller.form(form)
        try:
            parse_expression(words)
        except SourceError:
            raise NotLegal("how many rounds there are a launch cannot say") from None
        return words

    # The text.

    def _outside(self) -> Sequence[Statement]:
        """What is done before, and says nothing of the items."""
        return self.items.outside

    @property
    def _lane(self) -> str:
        return "threadIdx.x"

    @property
    def _lanes(self) -> str:
        return str(_WARP) if self.rows else self.extent

    @property
    def _wait(self) -> str:
        return "__syncwarp();" if self.rows else "__syncthreads();"

    @property
    def _all_rows(self) -> str:
        """The rows of a block."""
        return self.extent

    @property
    def _rows_before(self) -> str:
        """Those before the ones of a warp."""
        return "threadIdx.y"

    def _first_of(self, tile: Tile) -> str:
        return tile.name

    def _sizes(self, words: str) -> Iterator[str]:
        limit = LocalSpeller(self.old.reading.symbols, {}, moved=self.effects.moved)
        limit.kernel = self.old
        yield "// What windows are made of, each place once; neighbours share what lies in both."
        yield f"extern __shared__ __align__(16) unsigned char {self.bytes}[];"
        yield f"const int {self.rounds} = {words};"
        yield (f"const int {self.span} = {self._lanes} * {self.count} + "
               f"max({self.rounds}, 1) - 1;")  # fmt: skip
        kind = self.items.words
        items = self.items.limit(limit)
        begun = f"({kind})blockIdx.x * ({self._lanes} * {self.count})"
        yield from self._first_inside("x", kind, self.first, begun, items)
        left, most = f"{items} - {self.first}", f"{self._lanes} * {self.count}"
        if not self.clamps:
            most = self.inner.end("x", self.first, most, self.items.bound)
            most = f"({most})" if "?" in most else most
        yield f"const int {self.own} = {left} < {most} ? (int)({left}) : {most};"
        yield from self._ends_inside()
        before = 0
        for tile in self.tiles:
            rows = f"{self._all_rows} * " if self.rows else ""
            place = f"{self.bytes} + {rows}{self.span} * {before}" if before else self.bytes
            cast = f"reinterpret_cast<{tile.kind}*>({place})"
            row = f" + {self._rows_before} * {self.span}" if self.rows else ""
            yield f"{tile.kind}* {self._first_of(tile)} = {cast}{row};"
            before += tile.size

    def _first_inside(
        self, axis: str, kind: str, name: str, begun: str, items: str
    ) -> Iterator[str]:
        """The first place of a block or a warp: behind those that have no window, if it may be."""
        least = "" if self.clamps else self.inner.least(axis)
        if least:
            yield f"if ({least} >= {items} || {begun} >= {items} - {least}) return;"
            begun = f"{least} + {begun}"
        yield f"const {kind} {name} = {begun};"

    def _ends_inside(self) -> Iterator[str]:
        """Which of the items have windows, counted as rounds go; nobody stays who has none."""
        own = self.own
        if self.clamps:
            start = self.inner.start("x", self.first, own)
            end = self.inner.end("x", self.first, own, self.items.bound)
            if self.window.sign < 0:
                start, end = f"{own} - ({end})", f"{own} - ({start})"
            yield f"const int {self.inner_first} = {start}, {self.inner_end} = {end};"
        elif self.window.margins:
            outside = [f"{own} <= 0", *(f"!({test})" for test in self._row_inside())]
            yield f"if ({' || '.join(outside)}) return;"

    def _filling(self) -> Iterator[str]:
        """Each place once, as a round of an item that there is, and what adds nothing beyond."""
        slot = self.slot
        yield f"for (int {slot} = {self._lane}; {slot} < {self.span}; {slot} += {self._lanes}) {{"
        for tile in self.tiles:
            yield f"{tile.kind} {tile.found} = {combine.nothing(tile.reduction)};"
        yield from self._where_places()
        if not self.clamps:
            yield from self._nearest()
        yield from self._begun(self.start)
        yield from self._prepared()
        for tile in self.tiles:
            yield f"{tile.reduction.place} = {tile.found};"
        yield self._round()
        for tile in self.tiles:
            yield f"{tile.found} = {tile.reduction.place};"
        yield "}"
        for tile in self.tiles:
            yield f"{tile.name}[{slot}] = {tile.found};"
        yield "}"
        yield self._wait

    def _where_places(self) -> Iterator[str]:
        """The head of a branch: something has a window, in which the place of a slot lies."""
        if not self.clamps:
            yield f"if ({self.rounds} > 0 && {self.slot} < {self.own} + {self.rounds} - 1) {{"
            return
        yield from self._nearest()
        inside = [f"{self.inner_first} < {self.inner_end}", *self._row_inside()]
        inside += [f"{self.turn} >= 0", f"{self.turn} < {self.rounds}"]
        yield f"if ({' && '.join(inside)}) {{"

    def _row_inside(self) -> list[str]:
        """What holds of a row that has windows."""
        return self.inner.holds("y", "(int)(blockIdx.y * blockDim.y + threadIdx.y)")

    def _nearest(self) -> Iterator[str]:
        """The item in whose window a place lies, and the round in which it does."""
        item = f"min({self.slot}, {self.own} - 1)"
        if self.clamps:
            item = f"max(min({self.slot}, {self.inner_end} - 1), {self.inner_first})"
        yield f"const int {self.start} = {item};"
        yield f"const int {self.turn} = {self.slot} - {self.start};"

    def _prepared(self) -> Iterator[str]:
        """What an item with a window does behind the tests of its margins."""
        for margin in self.window.margins:
            for statement in margin.before:
                yield self._shown(statement)

    def _begun(self, item: str) -> Iterator[str]:
        """What an item does before the loop, and where it stands."""
        place = f"{self.first} + {item}"
        if self.window.sign < 0:
            place = f"{self.first} + ({self.own} - 1 - {item})"
        yield f"const {self.items.words} {self.items.name} = {place};"
        for statement in self.window.before:
            yield self._shown(statement)

    def _round(self) -> str:
        """The nest with one round of the loop."""
        return self._rounds_of([(self.window.axis, self.turn)])

    def _rounds_of(self, turns: Sequence[tuple[Axis, str]]) -> str:
        """The nest with one round each of some loops, inner ones first."""
        window, made = self.window, ""
        swaps: dict[Node, Node] = dict(self.swaps)
        for axis, turn in turns:
            assert axis.variable is not None
            loop, variable = axis.node, axis.variable
            body = self.old.show(loop.body, swaps).strip()
            inner = body[1:].lstrip() if body.startswith("{") else f"{body}\n}}"
            kind, name = variable.type.base, variable.name
            made = f"{{\nconst {kind} {name} = {turn};\n{inner}"
            if any(isinstance(s, Leave) for s in walk(loop.body)):
                made = f"for ({kind} {name} = {turn}; {name} <= {turn}; ++{name}) {{\n{inner}"
            swaps[loop] = lines(made)
        loops = [axis.node for axis, _ in turns]
        return made if window.nest is loops[-1] else self.old.show(window.nest, swaps)

    def _combining(self) -> Iterator[str]:
        """The windows of a thread's items: what all share, what lies before it and behind it."""
        count, slot, rounds, start = self.count, self.slot, self.rounds, self.start
        item = self.item
        join = combine.joining
        yield f"const int {start} = {self._lane} * {count};"
        for tile in self.tiles:
            yield f"{tile.kind} {tile.found}[{count}];"
        yield f"if ({start} < {self.own} && {rounds} >= {count}) {{"
        for tile in self.tiles:
            r, name, found, core = tile.reduction, tile.name, tile.found, tile.core
            yield f"{tile.kind} {core} = {name}[{start} + {count} - 1];"
            yield "#pragma unroll 8"
            yield f"for (int {slot} = {start} + {count}; {slot} < {start} + {rounds}; ++{slot}) {{"
            yield join(r, core, f"{name}[{slot}]")
            yield "}"
            yield f"{found}[{count} - 1] = {core};"
            yield "#pragma unroll"
            yield f"for (int {item} = {count} - 2; {item} >= 0; --{item}) {{"
            yield f"{found}[{item}] = {name}[{start} + {item}];"
            yield join(r, f"{found}[{item}]", f"{found}[{item} + 1]")
            yield "}"
            yield f"{core} = {name}[{start} + {rounds}];"
            yield join(r, f"{found}[1]", core)
            yield "#pragma unroll"
            yield f"for (int {item} = 2; {item} < {count}; ++{item}) {{"
            yield join(r, core, f"{name}[{start} + {rounds} + {item} - 1]")
            yield join(r, f"{found}[{item}]", core)
            yield "}"
        yield f"}} else if ({start} < {self.own}) {{"
        for tile in self.tiles:
            yield "#pragma unroll"
            yield f"for (int {item} = 0; {item} < {count}; ++{item}) {{"
            yield f"{tile.found}[{item}] = {combine.nothing(tile.reduction)};"
            end = f"{start} + {item} + {rounds}"
            yield f"for (int {slot} = {start} + {item}; {slot} < {end}; ++{slot}) {{"
            yield join(tile.reduction, f"{tile.found}[{item}]", f"{tile.name}[{slot}]")
            yield "}"
            yield "}"
        yield "}"
        yield self._wait
        yield "#pragma unroll"
        yield f"for (int {item} = 0; {item} < {count}; ++{item}) {{"
        yield f"if ({start} + {item} < {self.own}) {{"
        for tile in self.tiles:
            yield f"{tile.name}[{start} + {item}] = {tile.found}[{item}];"
        yield "}"
        yield "}"
        yield self._wait

    def _ending(self) -> Iterator[str]:
        """What items do behind the loop, neighbours by neighbouring threads."""
        slot = self.slot
        yield f"for (int {slot} = {self._lane}; {slot} < {self.own}; {slot} += {self._lanes}) {{"
        yield from self._begun(slot)
        found = (combine.joining(tile.reduction, tile.reduction.place, f"{tile.name}[{slot}]")
                 for tile in self.tiles)  # fmt: skip
        inner = [*found, *map(self._shown, self.window.after)]
        yield from within(self.window.margins, self._asked, self._shown, inner)
        yield "}"

    def _asked(self, margin: Margin) -> str:
        """What opens the part of the items with a window; only these are there without clamps."""
        test = self.old.spelled(margin.test, self.swaps)
        test = f"!({test})" if margin.leaves else test
        return f"if ({test}) {{" if self.clamps else "{"

    def _shown(self, statement: Statement) -> str:
        return self.old.show(statement, self.swaps)

    def _expression(self, expr: Expr) -> str:
        return self.old.spelled(expr)

    # The launch.

    def _launch(self, words: str) -> LaunchDirective:
        launch = self.old.launch
        grid = parse_expression(f"cdiv({self.items.count}, {self._lanes} * {self.count})")
        size = sum(tile.size for tile in self.tiles)
        room = f"({self._lanes} * {self.count} + max({words}, 1) - 1) * {size}"
        if not self.rows:
            alone, shared = (parse_expression(self.extent),), parse_expression(room)
            return replace(launch, grid=(grid, *launch.grid[1:]), block=alone, shared=shared)
        rows = parse_expression(f"cdiv({self.down}, {self.extent})")
        block = (parse_expression(str(_WARP)), parse_expression(self.extent))
        shared = parse_expression(f"{room} * {self.extent}")
        return replace(launch, grid=(grid, rows, *launch.grid[2:]), block=block, shared=shared)

    def _tunes(self) -> list[TuneDirective]:
        values = ROWS if self.rows else BLOCKS
        return [TuneDirective(self.count, ITEMS, 9), TuneDirective(self.extent, values, values[-1])]
