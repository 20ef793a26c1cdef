"""P5, P8, P9 and P17 in one: a block computes a tile of outputs, a thread TM x TN of them.

Tiles of the operands lie in shared memory, two of each: while one is computed with, the next comes
through registers. Threads beyond the edges stay, so that every thread meets every barrier; they
load zeros. The rest of the kernel runs once for each output. Source of the shape: Volkov and
Demmel, "Benchmarking GPUs to Tune Dense Linear Algebra", SC 2008; Boehm, "How to Optimize a CUDA
Matmul Kernel for cuBLAS-like Performance" (2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import Node, lines, text
from optiml_magic.kernels.expressions import Name
from optiml_magic.kernels.formulas import expression
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.limits import at_least, with_limits
from optiml_magic.kernels.primitives.operands import COLUMN, ROW, Contraction
from optiml_magic.kernels.primitives.room import SHARED
from optiml_magic.kernels.primitives.steady import steadied
from optiml_magic.kernels.primitives.tile_bytes import Bytes
from optiml_magic.kernels.primitives.tile_layout import Layout, Tile
from optiml_magic.kernels.primitives.tile_margins import Margins
from optiml_magic.kernels.primitives.tile_mirror import partners
from optiml_magic.kernels.primitives.tile_outputs import outputs
from optiml_magic.kernels.primitives.tile_outside import Outside
from optiml_magic.kernels.primitives.tile_planes import TilePlanes, Words
from optiml_magic.kernels.primitives.tile_rounds import TileRounds
from optiml_magic.kernels.primitives.tile_sums import once, unasked
from optiml_magic.kernels.primitives.tiles import Tiles
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import Block, Statement
from optiml_magic.source.directives import LaunchDirective, TuneDirective
from optiml_magic.source.expressions import parse_expression

_ONE = Polynomial.constant(1)
DEEP = (8, 16, 32)  # rounds that a tile may have
_TILES, _OWN = (16, 32, 64, 128, 256), (2, 4, 8, 16)
BLOCKS = (1, 2, 3, 4, 6, 8)
TALL = 32  # rows of a block from which no tile needs to have fewer
_OF_THREAD, REGISTERS = 255, 65536  # CUDA C++ Programming Guide, "Compute Capabilities"
_LEAST_BESIDE = 20  # registers for indices and addresses, below which they spill: measured


@primitive
def block_outputs(
    kernel: Kernel, at: int, tile: Tile, *, mirrored: bool = False, words: Words | None = None
) -> Kernel:
    """The loop with this number becomes a product of tiles.

    One that is the same on both sides of the diagonal is computed once if it is ``mirrored``.
    Rounds that are planes of bits are those of ``words``.
    """
    kernel = kernel.settled()
    loop = loops_in(kernel.function.body)[at]
    product = Blocking(Contraction(kernel, loop), tile, mirrored=mirrored, words=words)
    return where_legal(steadied, product.kernel())


class Blocking:
    """A product by tiles; raises NotLegal where a round asks for what a tile cannot have."""

    def __init__(
        self, parts: Contraction, tile: Tile | None = None, *, mirrored: bool = False,
        words: Words | None = None,
    ) -> None:  # fmt: skip
        self.parts = parts
        self.partners = partners(parts) if mirrored else {}
        self.old = parts.kernel
        self.tile = tile or Tile()
        self.layout = Layout(parts)
        self.tiles = Tiles(self.layout, self._depth())
        self.inside: dict[Node, Node | None] = {}
        for operand in parts.operands:
            now, own = self.layout.names[operand][2], self.layout.side(operand).at
            self.inside |= {access.own: text(f"{now}[{own}]") for access in operand.accesses}
        self.inside |= dict.fromkeys(unasked(parts.loop.body, self.inside))
        self.turns = TileRounds(parts, self.layout, mirrored=mirrored)
        self.outside = Outside(self.layout, self.tiles.rounds, self.inside)
        self.sums = {v: self.old.fresh(f"{v}_tile") for v in parts.variables()}
        turns = self.turns
        some = turns.any and not mirrored
        if turns.begin or turns.end or turns.whole or some:  # a row's rounds are not all
            self.layout.margins = frozenset()
        self.margins = Margins(self.layout, self.tiles, self.sums)
        self.bytes = Bytes(self.layout, self.tiles, self.sums)
        self.planes = TilePlanes(parts, self.tiles, self.sums, words) if words else None

    def kernel(self) -> Kernel:
        written = outputs(self.parts, self.layout, self.sums, self.partners)
        body = Block(None, 0, (lines(self._opening()), lines(self._main()), written))
        launch = self._launch()
        directives = [*with_limits(self.old, launch, self._tunes), *self.parts.asked]
        bounds = f"{self.layout.count}, {self.layout.blocks}"
        return self.old.rewritten(body, launch=launch, directives=directives, bounds=bounds)

    def fits(self, tile: Tile) -> bool:
        """Whether a block has room for a tile, and its threads whole shares of it."""
        values = self.layout.values(tile)
        return all(
            tune.condition is None or tune.condition.evaluate(values) for tune in self._tunes(1)
        )

    @property
    def least_deep(self) -> int:
        """No tile has fewer rounds: a word has all of its planes in one."""
        return self.planes.words.most if self.planes else 0

    def _opening(self) -> str:
        triangle = self.turns.triangle
        places = triangle.opening() if triangle is not None else ""
        made = [*self.layout.opening(places), *self.tiles.declared()]
        made += self.margins.declared()
        for reduction in self.parts.reductions:
            if reduction.place in self.layout.margins:
                continue
            sums, first = self.sums[reduction.place], combine.nothing(reduction)
            whole = self.layout.sum_of(reduction.place, sums, whole=True)
            declared = f"{reduction.type.name} {whole}"
            if first in ("0", "0.0f", "0.0"):
                made.append(f"{declared} = {{}};")
            else:
                begun = f"{self.layout.sum_of(reduction.place, sums)} = {first};"
                made += [f"{declared};", self.layout.each(begun)]
        made += self.outside.before()
        made += self.planes.declared() if self.planes else []
        made += self.tiles.looking()
        return "\n".join([*made, self.tiles.fetching(), self.tiles.putting()])

    def _depth(self) -> Polynomial:
        axis, symbols = self.parts.axis, self.old.reading.symbols
        parts = [*axis.test.conjuncts()]
        test = parts[0] if len(parts) == 1 else None
        form = test.form if isinstance(test, Compare) and test.op == ">=" else None
        by = form.coefficient(axis.name) if form is not None else None
        if form is None or by is None or by.value != -1:
            raise NotLegal("the number of rounds is not known", self.parts.loop.line)
        rounds = form.without([axis.name]) + _ONE
        if {f"{of}.{at}" for of in ("threadIdx", "blockIdx") for at in "xy"} & symbols.inside(
            rounds
        ):
            raise NotLegal("not all outputs have the same rounds", self.parts.loop.line)
        return rounds

    def _main(self) -> str:
        layout, tiles, turns = self.layout, self.tiles, self.turns
        from_, half = layout.from_, layout.half
        deep = self.planes.step if self.planes else layout.deep
        first, last, opening = "0", tiles.rounds, list[str]()
        if turns.begin:
            first = self.old.fresh("first_round")
            opening.append(f"const int {first} = {turns.begin};")
        if turns.end:
            last = self.old.fresh("last_round")
            opening.append(f"const int {last} = min((int){tiles.rounds}, {turns.end});")
        more = f"{from_} + {deep} < {last}"
        second = deep if first == "0" else f"{first} + {deep}"
        begun, next_ = tiles.looked(first), tiles.looked(f"{from_} + 2 * {deep}")
        opening += [
            f"{begun} __syncthreads();" if begun else "", f"{tiles.fetch}({first});",
            f"{tiles.put}(0);", tiles.looked(second), "__syncthreads();",
        ]  # fmt: skip
        rounds = f"""\
for (int {from_} = {first}, {half} = 0; {from_} < {last}; {from_} += {deep}, {half} ^= 1) {{
if ({more}) {tiles.fetch}({from_} + {deep});
{next_}
{self._rounds()}
if ({more}) {tiles.put}({half} ^ 1);
__syncthreads();
}}"""
        made = "\n".join([*filter(None, opening), rounds, *self.margins.finished()])
        test = " && ".join(turns.any)
        if self.partners:  # a tile without an output of its own is done
            return f"if (!({test})) return;\n{made}"
        return f"if ({test}) {{\n{made}\n}}" if test else made

    def _rounds(self) -> str:
        """The rounds of one tile, with tests where not all of them count for all of its outputs."""
        layout, tiles, turns = self.layout, self.tiles, self.turns
        if self.planes:
            return self.planes.rounds(self._now(), {**self.inside, **self.outside.swaps})
        deep, depth, beyond = layout.round, tiles.rounds, not self.parts.zero_beyond
        each = f"for (int {deep} = 0; {deep} < {layout.deep}; ++{deep}) {{"
        whole = self._all(f"#pragma unroll\n{each}\n", *turns.body)
        tests = [f"{layout.from_} + {layout.deep} <= {depth}"] * beyond + turns.whole
        if not tests:
            return whole
        if beyond:
            each = f"for (int {deep} = 0; {layout.from_} + {deep} < {depth}; ++{deep}) {{"
            each = each.replace("; ++", f" && {deep} < {layout.deep}; ++") if turns.whole else each
        rest = self._each(f"#pragma unroll 1\n{each}\n", self.parts.loop.body)
        return f"if ({' && '.join(tests)}) {{\n{whole}\n}} else {{\n{rest}\n}}"

    def _all(self, head: str, *body: Statement) -> str:
        """All rounds of a tile, of bytes four at once."""
        at_once = self.bytes.rounds(body)
        return (
            "\n".join([at_once, *self.margins.rounds(head)]) if at_once else self._each(head, *body)
        )

    def _each(self, head: str, *body: Statement) -> str:
        """The rounds that a loop's head says, and what they add to the sums of a side."""
        return "\n".join([f"{head}{self._inside(*body)}\n}}", *self.margins.rounds(head)])

    def _inside(self, *body: Statement) -> str:
        """A round of a tile: what a thread takes from shared memory, and what it does with that."""
        taken = [*self._now(), *self.outside.first()]
        # Compilers keep the order of the products; by columns was the faster one on an H200.
        return "\n".join([*taken, self.layout.each(self._round(body), by_columns=True)])

    def _now(self) -> list[str]:
        """What a thread takes from shared memory in a round."""
        layout, at, made = self.layout, self.layout.at, list[str]()
        for operand in self.parts.operands:
            side, now = layout.side(operand), layout.names[operand][2]
            made.append(
                f"{operand.kind} {now}[{side.own}];\n#pragma unroll\n"
                f"for (int {at} = 0; {at} < {side.own}; ++{at}) "
                f"{now}[{at}] = {self.tiles.taken(operand, at)};"
            )
        return made

    def _round(self, body: Sequence[Statement]) -> str:
        """What the loop does on what a thread has in registers."""
        swaps = {**self.inside, **self.outside.swaps}
        swaps |= dict.fromkeys(self.margins.statements)
        m, n = self.layout.sides[ROW], self.layout.sides[COLUMN]
        variables = self.parts.variables()
        for expr in self.parts.effects.inside(self.parts.loop.body):
            if (
                isinstance(expr, Name)
                and expr.name in self.sums
                and expr.variable is variables.get(expr.name)
            ):
                swaps[expr] = text(self.layout.sum_of(expr.name, self.sums[expr.name]))
        whole = Block(None, 0, tuple(body))
        swaps |= dict.fromkeys(unasked(whole, swaps))
        for side, other in ((ROW, n), (COLUMN, m)):
            places = [place for place, own in self.layout.sums.items()
                      if own == side and place not in self.layout.margins]  # fmt: skip
            swaps |= once(self.parts, places, f"{other.at} == 0", swaps)
        shown = self.old.show(whole, swaps)[1:-1].strip()
        return shown[1:-1].strip() if len(body) == 1 and isinstance(body[0], Block) else shown

    # -- the launch

    def _launch(self) -> LaunchDirective:
        out, launch = self.parts.outputs, self.old.launch
        m, n = self.layout.sides[ROW], self.layout.sides[COLUMN]
        if self.turns.triangle is not None:
            every = self.turns.triangle.blocks(self._extent(out.rows))
            blocks = (every, parse_expression("1"))[: max(1, len(launch.grid) - 1)]
        else:
            each = (out.columns, n.whole), (out.rows, m.whole)
            blocks = tuple(parse_expression(f"cdiv({self._extent(f)}, {by})") for f, by in each)
        grid = (*blocks, *launch.grid[2:])
        return replace(launch, grid=grid, block=(parse_expression(self.layout.count),))

    def _extent(self, form: Polynomial) -> str:
        names = [p.name for p in self.old.function.parameters]
        found = expression(form, self.old.reading.symbols, names)
        if found is None:
            raise NotLegal("how many outputs there are is not said by sizes alone")
        return str(found)

    def _tunes(self, least: int) -> list[TuneDirective]:
        """Tiles of at least so many rows, where that leaves the one that comes with it."""
        tile, layout = self.tile, self.layout
        m, n = layout.sides[ROW], layout.sides[COLUMN]
        fits = [
            layout.fits(), f"{layout.registers} + {_LEAST_BESIDE} <= {_OF_THREAD}",
            *self.tiles.fits(), *self.bytes.fits,
            f"{self.tiles.shared()}{self.margins.shared()} <= {SHARED}",
        ]  # fmt: skip
        needed = f"({layout.registers} + {_LEAST_BESIDE}) * ({layout.count})"
        resident = f"{needed} * {layout.blocks} <= {REGISTERS}"
        return [
            TuneDirective(m.whole, at_least(_TILES, min(least, TALL)), tile.rows),
            TuneDirective(n.whole, _TILES, tile.columns),
            TuneDirective(layout.deep, at_least(DEEP, self.least_deep), tile.deep),
            TuneDirective(m.own, _OWN, tile.own_rows),
            TuneDirective(
                n.own, _OWN, tile.own_columns, parse_expression(" && ".join(fits))
            ),
            TuneDirective(layout.blocks, BLOCKS, tile.blocks, parse_expression(resident)),
        ]  # fmt: skip
