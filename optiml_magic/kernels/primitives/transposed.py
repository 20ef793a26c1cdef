"""P8 and P20, a tile that turns: loaded along one index of the launch, read along another.

A block does the work of a thread for each element of the tile. At first neighbouring lanes load
neighbouring elements; after the wait the kernel runs as it was, its lanes along the other index,
with elements of the tile in the place of these loads. On either side a thread takes as many
elements at once as ``turned_sides`` finds. Padding keeps the columns of a tile in different banks.
Source: Ruetsch and Micikevicius, "Optimizing Matrix Transpose in CUDA" (2009).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, lines, text
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.decoded import Decoded
from optiml_magic.kernels.primitives.grids import most_threads
from optiml_magic.kernels.primitives.items import element, moved, word
from optiml_magic.kernels.primitives.limits import at_least, with_limits
from optiml_magic.kernels.primitives.places import Place, placed
from optiml_magic.kernels.primitives.room import SHARED
from optiml_magic.kernels.primitives.turned_blocks import Blocks
from optiml_magic.kernels.primitives.turned_sides import Side, Sides, backward
from optiml_magic.kernels.primitives.turns import Turn, Turned
from optiml_magic.kernels.symbols import Condition, Some
from optiml_magic.kernels.tree import Block, Leave, walk
from optiml_magic.source.directives import LaunchDirective, TuneDirective
from optiml_magic.source.expressions import parse_expression

_ITEM = "@item"  # which of the elements that a thread takes at once
_SIDES, _THREADS, _PADS = (4, 8, 16, 32, 64, 128, 256), (32, 64, 128, 256, 512), (0, 1, 2, 4)
_TOLD = "// Loaded along one side of a tile and read along the other: whole sectors on both."
_USUAL = 16, 64  # extents of a side: ours
_MOST = 32  # elements of a thread, which are written out: ours


@dataclass(frozen=True)
class Tile:
    """Of ``columns`` neighbours where it is loaded; rows are ``pad`` elements longer than these."""

    rows: int = 32
    columns: int = 32
    threads: int = 256
    pad: int = 1

    def half(self) -> Tile:
        """The tile with its longer side cut in two."""
        if self.rows < self.columns:
            return replace(self, columns=self.columns // 2)
        return replace(self, rows=self.rows // 2)


@primitive
def turn(kernel: Kernel, tile: Tile) -> Kernel:
    """Every load along another index than the stores', through tiles."""
    parts = Turn(kernel.settled())
    if not parts.turned:
        raise NotLegal("nothing is loaded along another index than it is stored")
    parts.check()
    return _Turning(parts, tile).kernel()


class _Turning:
    def __init__(self, parts: Turn, tile: Tile) -> None:
        self.parts = parts
        self.old = parts.kernel
        self.sides = Sides(parts)
        self.tile = self._fitting(tile)
        fresh = self.old.fresh
        self.rows, self.columns = fresh("TILE_ROWS"), fresh("TILE_COLS")
        self.threads, self.pad = fresh("THREADS"), fresh("PAD")
        self.extents = {parts.load: self.columns, parts.store: self.rows}
        self.row, self.column, self.down = fresh("tile_row"), fresh("tile_col"), fresh("tile_down")
        self.first, self.item = fresh("tile_first"), fresh("tile_item")
        self.blocks = Blocks(parts, self.extents)
        self.names = self.blocks.names
        self.names[_ITEM] = self.item
        self.tiles = self._named(parts.turned, "tile")
        self.own = self._named([*self.sides.load.runs, *self.sides.store.runs], "items")
        self.wide = self.old.wide

    def _fitting(self, tile: Tile) -> Tile:
        """The tile with no more threads than there are vectors, and than a block may have."""
        wide = self.sides.store.width, self.sides.load.width
        found = replace(tile, rows=max(tile.rows, wide[0]), columns=max(tile.columns, wide[1]))
        while True:
            cells = found.rows * found.columns
            most = min(tile.threads, cells // self.sides.widest, most_threads(self.old))
            threads = max((count for count in _THREADS if count <= most), default=0)
            if not threads:
                raise NotLegal("its blocks have too few threads for a tile")
            rows, columns = (threads * s.width for s in (self.sides.store, self.sides.load))
            if cells <= _MOST * threads and not (rows % found.rows or columns % found.columns):
                return replace(found, threads=threads)
            found = found.half()

    def _named(self, runs: Sequence[Turned], what: str) -> dict[Turned, str]:
        arrays, found = [run.array.replace(".", "_") for run in runs], dict[Turned, str]()
        for at, (run, name) in enumerate(zip(runs, arrays, strict=True)):
            found[run] = self.old.fresh(f"{name}_{what}{at if arrays.count(name) > 1 else ''}")
        return found

    def kernel(self) -> Kernel:
        made = "\n".join(
            [
                _TOLD,
                *(
                    f"__shared__ {t.kind} {name}[{self.rows}][{self.columns} + {self.pad}];"
                    for t, name in self.tiles.items()
                ),
                *self.blocks.decoded,
                *self._loading(),
                "__syncthreads();",
                *self._storing(),
            ]
        )
        launch = self._launch()
        directives = with_limits(self.old, launch, self._tunes)
        body = Block(None, 0, (lines(made),))
        return self.old.rewritten(body, launch=launch, directives=directives)

    # -- where a block and a thread are

    def _each(self, side: Side, row: str, column: str, inside: Iterable[str]) -> list[str]:
        """``inside`` for what a thread takes of a tile, each time so many rows further."""
        own, across = (column, row) if side.digit == self.parts.load else (row, column)
        along = self.extents[side.digit]
        over = self.rows if side.digit == self.parts.load else self.columns
        taken, lanes, at_once = self.threads, along, ""
        if side.width > 1:
            at_once = f" * {side.width}"
            taken, lanes = f"{taken}{at_once}", f"({along} / {side.width})"
        down = self.down
        return [
            "#pragma unroll",
            f"for (int {down} = 0; {down} < {over}; {down} += {taken} / {along}) {{",
            f"const int {across} = {down} + threadIdx.x / {lanes};",
            f"const int {own} = threadIdx.x % {lanes}{at_once};",
            *inside,
            "}",
        ]

    # -- the two halves

    def _loading(self) -> Iterator[str]:
        """The tiles from memory: where by vectors, all of a thread's before the first is kept."""
        side, every = self.sides.load, self.parts.digits.every
        placed = [*self.blocks.placed(every, self.row, self.column)]
        if side.width == 1:
            loads = (
                f"if ({self._all(self.sides.tests(t))}) "
                f"{name}[{self.row}][{self.column}] = {t.array}[{self._index(t.form)}];"
                for t, name in self.tiles.items()
            )
            yield from self._each(side, self.row, self.column, [*placed, *loads])
            return
        aligned = self.old.fresh("aligned_loads")
        yield self._aligned(side, aligned)
        for run in side.runs:  # what no element is loaded for is kept as well, and never asked for
            count = f"{self.rows} * {self.columns} / {self.threads}"
            yield f"alignas({run.size * side.width}) {run.kind} {self.own[run]}[{count}] = {{}};"
        moves = (move for run in side.runs for move in self._loaded(run, side, aligned))
        yield from self._each(side, self.row, self.column, [*placed, *moves])
        cells = (
            f"{name}[{self.row}][{self.column} + {self.item}] = {self._cell(t, side)};"
            for t, name in self.tiles.items()
        )
        yield from self._each(side, self.row, self.column, self._items(side, cells))

    def _loaded(self, run: Turned, side: Side, aligned: str) -> list[str]:
        """A vector of a tile to registers, or as much as there is of it."""
        by = run.form.coefficient(side.digit.name)
        assert by is not None
        item = Polynomial.symbol(_ITEM)
        each = self._all(self.sides.each(run, side, item))
        one = f"{run.array}[{self._index(run.form + by * item)}]"
        return [
            f"if ({aligned} && {self._all(self.sides.whole(run, side))}) {{",
            self._vector(run, side),
            "} else {",
            *self._items(side, [f"if ({each}) {self._cell(run, side)} = {one};"]),
            "}",
        ]

    def _aligned(self, side: Side, name: str) -> str:
        """Whether vectors begin at multiples of their size: sizes and pointers decide on it."""
        tests = [f"(size_t){run.array} % {run.size * side.width} == 0" for run in side.runs]
        speller = self.blocks.speller(wide=self.wide)
        tests += [f"{speller.factor(form)} % {side.width} == 0" for form in side.apart]
        return f"const bool {name} = {' && '.join(dict.fromkeys(tests))};"

    def _vector(self, run: Turned, side: Side, *, out: bool = False) -> str:
        """A vector from memory to registers, or ``out``."""
        low = run.form - Polynomial.constant(side.width - 1 if backward(run, side.digit) else 0)
        there, start = f"&{run.array}[{self._index(low)}]", self._start(side)
        own = f"{self.own[run]} + {start}" if start else self.own[run]
        return moved(
            word(run.kind, run.size * side.width), *((there, own) if out else (own, there))
        )

    def _cell(self, run: Turned, side: Side) -> str:
        """The register that has the present item."""
        item = f"{side.width - 1} - {self.item}" if backward(run, side.digit) else self.item
        start = self._start(side)
        return f"{self.own[run]}[{f'{start} + {item}' if start else item}]"

    def _start(self, side: Side) -> str:
        """Where a thread's registers for the present vector begin."""
        loads = side.digit == self.parts.load
        return f"{self.down} * {self.columns} / {self.threads}" if loads else ""

    def _items(self, side: Side, inside: Iterable[str]) -> list[str]:
        head = f"for (int {self.item} = 0; {self.item} < {side.width}; ++{self.item}) {{"
        return ["#pragma unroll", head, *inside, "}"]

    def _all(self, tests: Iterable[Condition]) -> str:
        speller = self.blocks.speller()
        words = dict.fromkeys(
            f"({speller.condition(test)})" if isinstance(test, Some) else speller.condition(test)
            for test in tests
        )
        return " && ".join(words) or "true"

    def _index(self, form: Polynomial) -> str:
        return self.blocks.speller(wide=self.wide).form(form)

    def _storing(self) -> Iterator[str]:
        """The kernel for each element; where vectors are whole its stores stay in registers."""
        side, every = self.sides.store, self.parts.digits.every
        if side.width == 1:
            inside = [*self.blocks.placed(every, self.row, self.column), self._rest()]
            yield from self._each(side, self.row, self.column, inside)
            return
        aligned = self.old.fresh("aligned_stores")
        yield self._aligned(side, aligned)
        others = [digit for digit in every if digit != side.digit]
        before = [*self.blocks.placed(others, self.first, self.column)]
        item = [
            f"const int {self.row} = {self.first} + {self.item};",
            *self.blocks.placed([side.digit], self.row, self.column),
        ]
        by_element = self._items(side, [*item, self._rest()])
        by_vector = self._items(side, [*item, self._rest(vector=True)])
        # From here on a place along the digit is that of the first of a vector.
        self.names[side.digit.name] = self.old.fresh(f"{self.names[side.digit.name]}_first")
        before += self.blocks.placed([side.digit], self.first, self.column)
        tests = self._all(t for run in side.runs for t in self.sides.whole(run, side))
        own = [
            f"alignas({run.size * side.width}) {run.kind} {self.own[run]}[{side.width}];"
            for run in side.runs
        ]
        modes = {run: {access.mode for access in run.accesses} for run in side.runs}
        own += [self._vector(run, side) for run in side.runs if "load" in modes[run]]
        out = [self._vector(run, side, out=True) for run in side.runs if "store" in modes[run]]
        inside = [
            *before, f"if ({aligned} && {tests}) {{", *own, *by_vector, *out,
            "} else {", *by_element, "}",
        ]  # fmt: skip
        yield from self._each(side, self.first, self.column, inside)

    def _rest(self, *, vector: bool = False) -> str:
        """The kernel as it was, with the tile in the place of what was loaded.

        Of a whole ``vector`` registers are loaded and stored in the place of memory.
        """
        digits, places = self.parts.digits, dict[str, Place]()
        for axis, own in digits.axes.items():
            width = digits.widths[axis]
            whole = self.blocks.speller(wide=self.wide).form(digits.whole(axis))
            if len(own) == 1 or not self.wide:
                whole = f"((unsigned){whole if len(own) == 1 else f'({whole})'})"
            else:
                whole = f"({whole})"
            places[axis] = Place(whole, width, *(("0", whole) if width == 1 else ()))
        swaps: dict[Node, Node] = placed(self.old, places)
        speller = self.blocks.speller(wide=self.wide)
        for expr, kind, form in Decoded(digits, self.parts.effects).found():
            swaps[expr] = text(f"({kind})({speller.form(form)})")
        for turned, name in self.tiles.items():
            for access in turned.accesses:
                taken = self.parts.effects.taken(access)
                assert taken is not None
                swaps[taken] = text(f"{name}[{self.row}][{self.column}]")
        for statement in walk(self.old.function.body):
            if isinstance(statement, Leave) and statement.kind == "return":
                swaps[statement] = replace(statement, kind="continue", span=None)
        if vector:
            return self._registers(swaps)
        shown = self.old.show(self.old.function.body, swaps)[1:-1].strip("\n")
        beyond = [
            self.blocks.speller().condition(~bound)
            for bound in self.parts.within(a for a in digits.axes if a not in self.parts.kept)
        ]
        return (f"if ({' || '.join(beyond)}) continue;\n" if beyond else "") + shown

    def _registers(self, swaps: dict[Node, Node]) -> str:
        for run in self.sides.store.runs:
            for access in run.accesses:
                place = element(self.parts.effects, access)
                assert place is not None
                swaps[place] = text(self._cell(run, self.sides.store))
        settled = self.sides.settled(swaps)
        return self.old.show(self.old.function.body, settled)[1:-1].strip("\n")

    # -- the launch

    def _launch(self) -> LaunchDirective:
        launch = self.old.launch
        grid = list(launch.grid)
        for at, axis in enumerate("xyz"[: len(grid)]):
            if axis in self.parts.digits.axes:
                grid[at] = self.blocks.grid(axis)
        return replace(launch, grid=tuple(grid), block=(parse_expression(self.threads),))

    def _tunes(self, least: int) -> list[TuneDirective]:
        """Tiles of at least so many rows, where that leaves the one that comes with it."""
        tile, cells = self.tile, f"{self.rows} * {self.columns}"
        bytes_ = sum(t.size for t in self.parts.turned)
        tests = [
            f"{self.rows} * ({self.columns} + {self.pad}) * {bytes_} <= {SHARED}",
            f"{self.threads} <= {most_threads(self.old)}",
            f"{cells} <= {_MOST} * {self.threads}",
        ]
        for side in (self.sides.load, self.sides.store):
            taken = f"{self.threads} * {side.width}" if side.width > 1 else self.threads
            along = self.extents[side.digit]
            tests += [f"{taken} % {along} == 0", f"{cells} % ({taken}) == 0"]
            tests += [f"{along} % {side.width} == 0"] if side.width > _SIDES[0] else []
        fits = " && ".join(dict.fromkeys(tests))
        rows, columns = (self._choices(side, least) for side in (tile.rows, tile.columns))
        return [
            TuneDirective(self.rows, rows, tile.rows),
            TuneDirective(self.columns, columns, tile.columns),
            TuneDirective(self.threads, _THREADS, tile.threads),
            TuneDirective(self.pad, _PADS, tile.pad, parse_expression(fits)),
        ]

    def _choices(self, side: int, least: int) -> tuple[int, ...]:
        """Other extents along a side: narrower and longer than usual where it is."""
        few, most = min(_USUAL[0], side), max(_USUAL[1], side)
        return tuple(s for s in at_least(_SIDES, min(least, side)) if few <= s <= most)
