"""P8 and P20, a tile that turns: loaded along one index of the launch, read along another.

A block does the work of ``side`` x ``side`` threads. At first neighbouring lanes load neighbouring
elements; after the wait the kernel runs as it was, its lanes along the other index, with elements
of the tile in the place of these loads. Padding keeps the columns of a tile in different banks.
Source: Ruetsch and Micikevicius, "Optimizing Matrix Transpose in CUDA" (2009).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, lines, text
from optiml_magic.kernels.formulas import expression
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.decoded import Decoded
from optiml_magic.kernels.primitives.digits import Digit
from optiml_magic.kernels.primitives.grids import most_threads
from optiml_magic.kernels.primitives.limits import at_least, with_limits
from optiml_magic.kernels.primitives.places import Place, placed
from optiml_magic.kernels.primitives.room import SHARED
from optiml_magic.kernels.primitives.turns import Turn, Turned
from optiml_magic.kernels.spelling import Speller
from optiml_magic.kernels.symbols import Compare, Condition
from optiml_magic.kernels.tree import Block, Leave, walk
from optiml_magic.source.directives import LaunchDirective, TuneDirective
from optiml_magic.source.expressions import Expression, parse_expression

_ONE = Polynomial.constant(1)
_SIDES, _ROWS, _PADS = (16, 32, 64), (2, 4, 8, 16), (0, 1, 2, 4)


@dataclass(frozen=True)
class Tile:
    """``rows`` of a tile at a time; rows are ``pad`` elements longer than they need to be."""

    side: int = 32
    rows: int = 8
    pad: int = 1


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
        self.tile = tile
        fresh = self.old.fresh
        self.side, self.rows, self.pad = fresh("TILE"), fresh("ROWS"), fresh("PAD")
        self.row, self.down = fresh("tile_row"), fresh("tile_down")
        self.names: dict[str, str] = {}
        for axis, digits in parts.digits.axes.items():
            for at, digit in enumerate(digits):
                self.names[digit.name] = fresh(f"tile_{axis}{at if len(digits) > 1 else ''}")
        arrays = [t.array.replace(".", "_") for t in parts.turned]
        self.tiles = [
            fresh(f"{a}_tile{at if arrays.count(a) > 1 else ''}") for at, a in enumerate(arrays)
        ]
        self.wide = self.old.wide

    def kernel(self) -> Kernel:
        decoded = self._decoded()
        loads = [self._load(t, name) for t, name in zip(self.parts.turned, self.tiles, strict=True)]
        opening = [
            "// Loaded along one side of a tile and read along the other: whole sectors on both.",
            *(
                f"__shared__ {t.kind} {name}[{self.side}][{self.side} + {self.pad}];"
                for t, name in zip(self.parts.turned, self.tiles, strict=True)
            ),
        ]
        first = self._each("int", "threadIdx.x", self.row, "\n".join(loads))
        second = self._each("int", self.row, "threadIdx.x", self._rest())
        made = "\n".join([*opening, *decoded, first, "__syncthreads();", second])
        launch = self._launch()
        directives = with_limits(self.old, launch, self._tunes)
        body = Block(None, 0, (lines(made),))
        return self.old.rewritten(body, launch=launch, directives=directives)

    # -- where a block and a thread are

    def _each(self, kind: str, along: str, across: str, inside: str) -> str:
        """``inside`` for each row of a tile; ``along`` is where a thread is on the loads' side."""
        row, side = self.row, self.side
        made = [
            "#pragma unroll",
            f"for (int {self.down} = 0; {self.down} < {side}; {self.down} += {self.rows}) {{",
            f"const int {row} = {self.down} + threadIdx.y;",
        ]
        for digit in self.parts.digits.every:
            block = self._block(digit)
            if digit in (self.parts.load, self.parts.store):
                own = along if digit is self.parts.load else across
                block = f"{block} * {side} + {own}"
            made.append(f"const {kind} {self.names[digit.name]} = {block};")
        return "\n".join([*made, inside, "}"])

    def _block(self, digit: Digit) -> str:
        """Which block, or which single place, of a digit this is."""
        return self.blocks.get(digit.name, f"blockIdx.{digit.axis}")

    def _decoded(self) -> list[str]:
        """The blocks of an axis that is cut: several numbers in one."""
        self.blocks: dict[str, str] = {}
        made = []
        for axis, digits in self.parts.digits.axes.items():
            first = int(self._count(axis, digits[0]) == "1")  # of which there is nothing to tell
            self.blocks |= {digit.name: "0" for digit in digits[:first] if len(digits) > 1}
            for at, digit in enumerate(digits if len(digits) > 1 else ()):
                if at < first:
                    continue
                below = " * ".join(self._parts(d) for d in digits[at + 1 :])
                found = f"blockIdx.{axis}"
                if below:
                    found += f" / {below}" if at + 2 == len(digits) else f" / ({below})"
                if at > first:
                    found += f" % {self._parts(digit)}"
                name = self.old.fresh(f"block_{axis}{at}")
                self.blocks[digit.name] = name
                made.append(f"const int {name} = {found};")
        return made

    def _parts(self, digit: Digit) -> str:
        """How many blocks or places of a digit there are, as the kernel counts them."""
        count = digit.count
        assert count is not None  # only the first digit has none, and nobody divides by that
        spelled = self._speller().form(count)
        if digit in (self.parts.load, self.parts.store):
            return f"(({spelled} + {self.side} - 1) / {self.side})"
        return f"({spelled})" if " " in spelled else spelled

    def _speller(self, *, wide: bool = False) -> Speller:
        reading = self.old.reading
        steady = frozenset(a for a in reading.arrays if a not in reading.written)
        named = {p.name: p.name for p in self.old.function.parameters}
        named |= {name: name for name in self.old.program.values}
        return Speller(reading.symbols, {**named, **self.names}, wide=wide, steady=steady)

    # -- the two halves

    def _bounds(self, axes: Iterable[str]) -> list[Condition]:
        """What keeps a thread within digits that a tile goes beyond, and within these axes."""
        sides = (self.parts.load, self.parts.store)
        found = [d.count - d.form for d in sides if d.count is not None]
        for axis in axes:
            first, *others = self.parts.digits.axes[axis]
            whole, bound = self.parts.digits.whole(axis), self.parts.bounds[axis]
            count = bound.over(first.weight)
            if not others or count is None:
                found.append(bound - whole)
            elif first in sides:
                found.append(count - first.form)
        return [Compare(">=", form - _ONE, frozenset()) for form in found]

    def _load(self, turned: Turned, name: str) -> str:
        speller = self._speller()
        tests = [*self._bounds(self.parts.digits.axes), *turned.guard]
        words = dict.fromkeys(speller.condition(test) for test in tests)
        there = f"{turned.array}[{self._speller(wide=self.wide).form(turned.form)}]"
        cell = f"{name}[{self.row}][threadIdx.x]"
        return f"if ({' && '.join(words)}) {cell} = {there};"

    def _rest(self) -> str:
        """The kernel as it was, with the tile in the place of what was loaded."""
        digits, places = self.parts.digits, dict[str, Place]()
        for axis, own in digits.axes.items():
            width = digits.widths[axis]
            whole = self._speller(wide=self.wide).form(digits.whole(axis))
            if len(own) == 1 or not self.wide:
                whole = f"((unsigned){whole if len(own) == 1 else f'({whole})'})"
            else:
                whole = f"({whole})"
            places[axis] = Place(whole, width, *(("0", whole) if width == 1 else ()))
        swaps: dict[Node, Node] = placed(self.old, places)
        speller = self._speller(wide=self.wide)
        for expr, kind, form in Decoded(digits, self.parts.effects).found():
            swaps[expr] = text(f"({kind})({speller.form(form)})")
        for turned, name in zip(self.parts.turned, self.tiles, strict=True):
            for access in turned.accesses:
                taken = self.parts.effects.taken(access)
                assert taken is not None
                swaps[taken] = text(f"{name}[threadIdx.x][{self.row}]")
        for statement in walk(self.old.function.body):
            if isinstance(statement, Leave) and statement.kind == "return":
                swaps[statement] = replace(statement, kind="continue", span=None)
        shown = self.old.show(self.old.function.body, swaps)[1:-1].strip("\n")
        beyond = [
            self._speller().condition(~bound)
            for bound in self._bounds(a for a in digits.axes if a not in self.parts.kept)
        ]
        return (f"if ({' || '.join(beyond)}) continue;\n" if beyond else "") + shown

    # -- the launch

    def _launch(self) -> LaunchDirective:
        launch = self.old.launch
        grid = list(launch.grid)
        for at, axis in enumerate("xyz"[: len(grid)]):
            if axis in self.parts.digits.axes:
                grid[at] = self._grid(axis)
        block = (parse_expression(self.side), parse_expression(self.rows))
        return replace(launch, grid=tuple(grid), block=block)

    def _grid(self, axis: str) -> Expression:
        made = []
        for digit in self.parts.digits.axes[axis]:
            made.append(self._count(axis, digit))
            if digit in (self.parts.load, self.parts.store):
                made[-1] = f"cdiv({made[-1]}, {self.side})"
        return parse_expression(made[0] if len(made) == 1 else " * ".join(map(_factor, made)))

    def _count(self, axis: str, digit: Digit) -> str:
        bound = self.parts.bounds[axis]
        if digit.count is not None:
            return self._spelled(digit.count)
        exact = bound.over(digit.weight)
        if exact is not None:
            return self._spelled(exact)
        return f"cdiv({self._spelled(bound)}, {self._spelled(digit.weight)})"

    def _spelled(self, form: Polynomial) -> str:
        names = [p.name for p in self.old.function.parameters] + [*self.old.program.values]
        found = expression(form, self.old.reading.symbols, names)
        if found is None:
            raise NotLegal("how many there are of what it copies is not said by sizes alone")
        return str(found)

    def _tunes(self, least: int) -> list[TuneDirective]:
        """Tiles of at least so many rows, where that leaves the one that comes with it."""
        tile = self.tile
        bytes_ = sum(t.size for t in self.parts.turned)
        threads = most_threads(self.old)
        fits = (
            f"{self.side} * ({self.side} + {self.pad}) * {bytes_} <= {SHARED}"
            f" && {self.side} * {self.rows} <= {threads} && {self.side} % {self.rows} == 0"
        )
        return [
            TuneDirective(self.side, at_least(_SIDES, min(least, tile.side)), tile.side),
            TuneDirective(self.rows, _ROWS, tile.rows),
            TuneDirective(self.pad, _PADS, tile.pad, parse_expression(fits)),
        ]


def _factor(words: str) -> str:
    return f"({words})" if " " in words and not words.startswith("cdiv(") else words
