"""How a block's tile of outputs lies on its threads: the names and indices of all its parts."""

from __future__ import annotations

from dataclasses import dataclass

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.operands import (
    COLUMN,
    ROW,
    Contraction,
    Operand,
    symbols_inside,
)
from optiml_magic.kernels.primitives.places import Place
from optiml_magic.kernels.primitives.tile_sums import margins, sum_sides
from optiml_magic.kernels.spelling import Speller

RUN = 4  # outputs of a thread that lie together, 16 bytes of floats


@dataclass(frozen=True)
class Tile:
    """``rows`` x ``columns`` outputs a block and ``own_rows`` x ``own_columns`` a thread.

    ``blocks`` of them shall fit on a multiprocessor, as far as registers go.
    """

    rows: int = 64
    columns: int = 64
    deep: int = 16
    own_rows: int = 4
    own_columns: int = 4
    blocks: int = 1

    @property
    def threads(self) -> int:
        return self.rows // self.own_rows * (self.columns // self.own_columns)


@dataclass(frozen=True)
class Side:
    """What belongs to the rows of a tile, or to its columns, by name.

    Attributes:
        whole: how many the tile has, a tuned name, and ``own`` how many of them a thread.
        first: the first of the block.
        run: how many of a thread's lie together, and ``start`` where in the tile the first does.
        at: the counter of a thread's own.
    """

    whole: str
    own: str
    first: str
    run: str
    start: str
    at: str


class Layout:
    """A tile on the threads of a block: 4 x 8 lanes a warp, and each has runs of 4 outputs.

    Lanes that are neighbours lie below each other in pairs, so that what a warp reads of a tile in
    shared memory, 16 bytes a lane, meets no bank twice: NVIDIA/cutlass, ``RowMajorInterleaved`` in
    gemm/warp/mma_simt_policy.h.
    """

    def __init__(self, parts: Contraction) -> None:
        self.parts = parts
        self.old = parts.kernel
        self.sums = sum_sides(parts)
        self.margins = margins(parts, self.sums)
        fresh = self.old.fresh
        self.wide = self.old.wide
        self.deep, self.blocks = fresh("BK"), fresh("BLOCKS")
        self.threads = fresh("THREADS")
        self.lane, self.warp = fresh("lane"), fresh("warp")
        self.sides = {
            ROW: Side(fresh("BM"), fresh("TM"), fresh("tile_row"), fresh("RUN_M"),
                      fresh("run_row"), fresh("own_row")),
            COLUMN: Side(fresh("BN"), fresh("TN"), fresh("tile_col"), fresh("RUN_N"),
                         fresh("run_col"), fresh("own_col")),
        }  # fmt: skip
        self.from_, self.half, self.round = fresh("tile_from"), fresh("half"), fresh("deep")
        self.at, self.at_side = fresh("at"), fresh("own")
        arrays = [operand.array for operand in parts.operands]
        self.names, self.called = {}, dict[Operand, str]()
        for number, operand in enumerate(parts.operands):
            several = str(number) if arrays.count(operand.array) > 1 else ""
            name = f"{operand.array.replace('.', '_')}{several}"
            self.called[operand] = name
            self.names[operand] = tuple(
                fresh(f"{name}_{what}") for what in ("tile", "next", "now", "whole")
            )

    def side(self, operand: Operand) -> Side:
        return self.sides[operand.side]

    @property
    def count(self) -> str:
        """The threads of a block, over tuned names."""
        m, n = self.sides[ROW], self.sides[COLUMN]
        return f"({m.whole} / {m.own}) * ({n.whole} / {n.own})"

    def fits(self) -> str:
        """The condition on tuned names under which warps can be laid out so."""
        m, n = self.sides[ROW], self.sides[COLUMN]
        return f"{m.whole} / {m.own} >= 4 && {n.whole} / {n.own} >= 8 && {self.count} <= 1024"

    @property
    def words(self) -> int:
        """How many words of 4 bytes the sums of one output have."""
        own = (r for r in self.parts.reductions if r.place not in self.margins)
        return sum(_words(r.type.size) for r in own if not self.sums[r.place])

    @property
    def registers(self) -> str:
        """How many a thread needs for what it holds at once, in words of 4 bytes.

        These are its sums, a round's elements, and its share of the next tiles.
        """
        parts, m, n = self.parts, self.sides[ROW], self.sides[COLUMN]
        sums, few = dict.fromkeys(("", *self.sides), 0), 0
        for reduction in parts.reductions:
            words = _words(reduction.type.size)
            if reduction.place in self.margins:
                few += words
            else:
                sums[self.sums[reduction.place]] += words
        found = f"{self.words} * {m.own} * {n.own}" + (f" + {few}" if few else "")
        for name, side in self.sides.items():
            held = [o for o in (*parts.operands, *parts.others) if o.side == name]
            found += f" + {sum(_words(o.size) for o in held) + sums[name]} * {side.own}"
        coming = " + ".join(f"{o.size} * {self.side(o).whole}" for o in parts.operands)
        return f"{found} + ({coming}) * {self.deep} / 4 / ({self.count})"

    def values(self, tile: Tile) -> dict[str, int]:
        """A tile by the names of its numbers."""
        m, n = self.sides[ROW], self.sides[COLUMN]
        return {
            m.whole: tile.rows, n.whole: tile.columns, self.deep: tile.deep,
            m.own: tile.own_rows, n.own: tile.own_columns, self.blocks: tile.blocks,
        }  # fmt: skip

    def opening(self, places: str = "") -> list[str]:
        """The lines that say where a thread is; ``places`` where its tile is, if not as usual."""
        m, n = self.sides[ROW], self.sides[COLUMN]
        across = f"({n.whole} / {n.own} / 8)"
        lane, warp = self.lane, self.warp
        return [
            f"constexpr int {self.threads} = {self.count};",
            *(f"constexpr int {s.run} = {s.own} < {RUN} ? {s.own} : {RUN};" for s in (m, n)),
            places
            or f"const int {m.first} = blockIdx.y * {m.whole}, {n.first} = blockIdx.x * {n.whole};",
            f"const int {lane} = threadIdx.x % 32, {warp} = threadIdx.x / 32;",
            (
                f"const int {m.start} = "
                f"({warp} / {across} * 4 + {lane} / 16 * 2 + {lane} % 2) * {m.run};"
            ),
            f"const int {n.start} = ({warp} % {across} * 8 + {lane} / 2 % 8) * {n.run};",
        ]

    def owned(self, side: Side, at: str, start: str = "") -> str:
        """Where in a tile a thread's own are: in runs, which are one load each."""
        apart = f"({side.whole} / ({side.own} / {side.run}))"
        return f"{at} / {side.run} * {apart} + {start or side.start} + {at} % {side.run}"

    def turned(self, deep: str) -> str:
        """By which bits the columns of a tile change places in a round.

        A warp brings ``32 / (BK / 4)`` rows of ``BK`` rounds, four at a time, and lays them into
        as many rows of the tile, 4 banks apart: so those 8 rows apart, which would meet, do not.
        """
        return f"({deep} / 8 * (128 / {self.deep}))"

    def speller(self, names: dict[str, str], *, wide: bool = False) -> Speller:
        """What forms are called inside of the kernel; ``wide`` ones have products of 64 bits."""
        written = self.old.reading.written
        steady = frozenset(a for a in self.old.reading.arrays if a not in written)
        moved = self.parts.effects.moved
        return Speller(self.old.reading.symbols, names, wide=wide, steady=steady, moved=moved)

    def index(self, form: Polynomial, names: dict[str, str]) -> str:
        """An index, in 64 bits where the kernel computes in these."""
        return self.speller(names, wide=self.wide).form(form)

    def tests(
        self,
        array: str,
        form: Polynomial,
        along: tuple[str, str],
        bound: Polynomial,
        width: int,
        size: int,
    ) -> tuple[str, ...] | None:
        """When groups of ``width`` neighbours are aligned, and none is beyond ``bound`` in part.

        Neighbours lie along the first of ``along``; the other one takes steps. None where that
        cannot be.
        """
        first, other = along
        rest = form - Polynomial.symbol(first)
        names = {Polynomial.symbol(name) for name in rest.symbols - {other}}
        if first in rest.symbols or any(
            {first, other} & symbols_inside(self.parts, n) for n in names
        ):
            return None
        step = rest.coefficient(other)
        at = self.index(rest.without([other]), {})
        place = array if at == "0" else f"&{array}[{at}]"
        tests = [f"(size_t){place} % {width * size} == 0"]
        for part in (step, bound):
            if part is None or other in part.symbols:
                return None
            if part.value is None:
                tests.append(f"{self.speller({}).factor(part)} % {width} == 0")
            elif part.value % width:
                return None
        return tuple(dict.fromkeys(tests))

    def places(self, row: str, column: str) -> dict[str, Place]:
        """What stands for the indices of a thread, given those of its output."""
        across, down = self.old.block[0] or 1, self.old.block[1] or 1
        out = self.parts.outputs
        if out.flat is not None:
            whole = f"({row} * {self.speller({}).factor(out.flat)} + {column})"
            return {"x": Place(whole, across)}
        x, y = (row, column) if out.swapped else (column, row)
        return {"x": _place(x, across), "y": _place(y, down)}

    def sum_of(self, place: str, name: str, whole: bool = False) -> str:
        """A sum of a thread, whose place has this name: of an output, a row or a column.

        With how many there are where it is the ``whole`` of them.
        """
        sides = (ROW, COLUMN) if not self.sums[place] else (self.sums[place],)
        counts = [self.sides[s].own if whole else self.sides[s].at for s in sides]
        return name + "".join(f"[{count}]" for count in counts)

    def each(self, inside: str, *, by_columns: bool = False) -> str:
        """For all outputs of a thread, row by row or column by column."""
        m, n = (self.sides[s] for s in ((COLUMN, ROW) if by_columns else (ROW, COLUMN)))
        return (
            f"#pragma unroll\nfor (int {m.at} = 0; {m.at} < {m.own}; ++{m.at}) {{\n"
            f"#pragma unroll\nfor (int {n.at} = 0; {n.at} < {n.own}; ++{n.at}) {{\n"
            f"{inside}\n}}\n}}"
        )


def _place(name: str, width: int) -> Place:
    return Place(name, width, "0", name) if width == 1 else Place(name, width)


def _words(size: int | None) -> int:
    return -(-(size or 4) // 4)
