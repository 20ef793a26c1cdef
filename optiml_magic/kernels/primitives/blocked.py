"""P5, P8, P9 and P17 in one: a block computes a tile of outputs, a thread TM x TN of them.

Tiles of the operands lie in shared memory, two of each: while one is computed with, the next comes
through registers. Threads beyond the edges stay, so that every thread meets every barrier; they
load zeros. The rest of the kernel runs once for each output. Source of the shape: Volkov and
Demmel, "Benchmarking GPUs to Tune Dense Linear Algebra", SC 2008; Boehm, "How to Optimize a CUDA
Matmul Kernel for cuBLAS-like Performance" (2022).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Call, Expr, Name, Step, Unread, every
from optiml_magic.kernels.extents import expression
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.limits import at_least, with_limits
from optiml_magic.kernels.primitives.operands import COLUMN, ROW, Contraction, Operand
from optiml_magic.kernels.primitives.places import Place, placed
from optiml_magic.kernels.spelling import Speller
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import Block, Declare, Leave, Statement, expressions, walk
from optiml_magic.source.directives import LaunchDirective, TuneDirective
from optiml_magic.source.expressions import Expression, parse_expression

_ONE = Polynomial.constant(1)
_SHARED = 48 * 1024  # bytes of a block that needs no leave
_TILES, _DEEP, _OWN = (16, 32, 64, 128), (8, 16, 32), (2, 4, 8)


@dataclass(frozen=True)
class Tile:
    """``rows`` x ``columns`` outputs a block and ``own_rows`` x ``own_columns`` a thread."""

    rows: int = 64
    columns: int = 64
    deep: int = 16
    own_rows: int = 4
    own_columns: int = 4

    @property
    def threads(self) -> int:
        return self.rows // self.own_rows * (self.columns // self.own_columns)


@primitive
def block_outputs(kernel: Kernel, at: int, tile: Tile) -> Kernel:
    """The loop with this number becomes a product of tiles."""
    kernel = kernel.settled()
    loop = loops_in(kernel.function.body)[at]
    return _Blocking(Contraction(kernel, loop), tile).kernel()


class _Blocking:
    def __init__(self, parts: Contraction, tile: Tile) -> None:
        self.parts = parts
        self.old = parts.kernel
        self.tile = tile
        fresh = self.old.fresh
        self.bm, self.bn, self.bk = fresh("BM"), fresh("BN"), fresh("BK")
        self.tm, self.tn = fresh("TM"), fresh("TN")
        self.row, self.column, self.m, self.n = (
            fresh(name) for name in ("tile_row", "tile_col", "own_row", "own_col")
        )
        self.runs = {own: fresh(f"RUN_{own[-1]}") for own in (self.tm, self.tn)}
        self.from_, self.half, self.deep = fresh("tile_from"), fresh("half"), fresh("deep")
        self.at = fresh("at")
        self.names = {
            o: tuple(fresh(f"{o.array.replace('.', '_')}{number}_{what}")
                     for what in ("tile", "next", "now"))
            for number, o in zip(self._numbers(), parts.operands, strict=True)
        }  # fmt: skip
        self.sums = {v: fresh(f"{v}_tile") for v in parts.variables()}

    def _numbers(self) -> list[str]:
        arrays = [o.array for o in self.parts.operands]
        return [str(at) if arrays.count(a) > 1 else "" for at, a in enumerate(arrays)]

    def kernel(self) -> Kernel:
        body = Block(None, 0, (lines(self._opening()), lines(self._main()), self._outputs()))
        launch = self._launch()
        directives = with_limits(self.old, launch, self._tunes)
        return self.old.rewritten(body, launch=launch, directives=directives)

    # -- parts

    @property
    def threads(self) -> str:
        return f"({self.bm} / {self.tm}) * ({self.bn} / {self.tn})"

    def _side(self, operand: Operand) -> tuple[str, str, str, str]:
        """The names of a side: its tile, what a thread owns, where the block and it begin."""
        if operand.side == ROW:
            return self.bm, self.tm, self.row, f"threadIdx.x / ({self.bn} / {self.tn})"
        return self.bn, self.tn, self.column, f"threadIdx.x % ({self.bn} / {self.tn})"

    def _opening(self) -> str:
        made = [
            *(f"constexpr int {run} = {own} < 4 ? {own} : 4;" for own, run in self.runs.items()),
            f"const int {self.row} = blockIdx.y * {self.bm};",
            f"const int {self.column} = blockIdx.x * {self.bn};",
        ]
        for operand in self.parts.operands:
            whole, *_ = self._side(operand)
            tile, following, _ = self.names[operand]
            made.append(
                f"__shared__ __align__(16) {operand.kind} {tile}[2][{self.bk}][{whole} + 4];"
            )
            made.append(f"{operand.kind} {following}[({whole} * {self.bk}) / ({self.threads})];")
        for reduction in self.parts.reductions:
            sums = self.sums[reduction.place]
            made.append(f"{reduction.type.name} {sums}[{self.tm}][{self.tn}] = {{}};")
        return "\n".join([*made, self._fetch(), self._put()])

    def _along_depth(self, operand: Operand) -> bool:
        """Whether neighbouring elements belong to neighbouring rounds."""
        by = operand.form.coefficient(self.parts.axis.name)
        return by is not None and by.value in (1, -1)

    def _placing(self, operand: Operand) -> tuple[str, str]:
        """Round and row of the element that a thread brings in its turn."""
        whole, *_ = self._side(operand)
        if self._along_depth(operand):
            return f"{self.at} % {self.bk}", f"{self.at} / {self.bk}"
        return f"{self.at} / {whole}", f"{self.at} % {whole}"

    def _turns(self, operand: Operand, inside: str) -> str:
        whole, *_ = self._side(operand)
        turn = self.old.fresh("turn")
        most = f"{whole} * {self.bk} / ({self.threads})"
        return (
            f"#pragma unroll\nfor (int {turn} = 0; {turn} < {most}; ++{turn}) {{\n"
            f"const int {self.at} = threadIdx.x + {turn} * ({self.threads});\n"
            + inside.replace("@turn", turn) + "\n}"
        )  # fmt: skip

    def _fetch(self) -> str:
        """Brings the tiles of some rounds into registers; zeros where there are no elements."""
        made = []
        for operand in self.parts.operands:
            _, _, first, _ = self._side(operand)
            _, following, _ = self.names[operand]
            deep, own = self._placing(operand)
            k, i = self.deep, self.m
            speller = self._speller({self.parts.axis.name: k, operand.side: i})
            tests = [f"{k} < {self._depth()}"]
            tests += [speller.condition(c) for c in self.parts.guards(operand)]
            there = f"{operand.array}[{speller.form(operand.form)}]"
            zero = f"{operand.kind}(0)"
            inside = (
                f"const int {k} = {self.from_} + {deep}, {i} = {first} + {own};\n"
                f"{following}[@turn] = {' && '.join(dict.fromkeys(tests))} ? {there} : {zero};"
            )
            made.append(self._turns(operand, inside))
        self.fetch = self.old.fresh("fetch")
        return f"const auto {self.fetch} = [&](int {self.from_}) {{\n" + "\n".join(made) + "\n};"

    def _put(self) -> str:
        """What came through registers, laid into one of the two tiles of each operand."""
        made = []
        for operand in self.parts.operands:
            tile, following, _ = self.names[operand]
            deep, own = self._placing(operand)
            inside = f"{tile}[{self.half}][{deep}][{own}] = {following}[@turn];"
            made.append(self._turns(operand, inside))
        self.put = self.old.fresh("put")
        return f"const auto {self.put} = [&](int {self.half}) {{\n" + "\n".join(made) + "\n};"

    def _depth(self) -> str:
        parts = [*self.parts.axis.test.conjuncts()]
        test = parts[0] if len(parts) == 1 else None
        form = test.form if isinstance(test, Compare) and test.op == ">=" else None
        by = form.coefficient(self.parts.axis.name) if form is not None else None
        if form is None or by is None or by.value != -1:
            raise NotLegal("the number of rounds is not known", self.parts.loop.line)
        return self._speller({}).factor(form.without([self.parts.axis.name]) + _ONE)

    def _main(self) -> str:
        depth, more = self._depth(), f"{self.from_} + {self.bk} < {self._depth()}"
        owns = []
        for operand in self.parts.operands:
            whole, own, _, thread = self._side(operand)
            tile, _, now = self.names[operand]
            index = self._owned(self.at, whole, own, thread)
            owns.append(
                f"{operand.kind} {now}[{own}];\n#pragma unroll\n"
                f"for (int {self.at} = 0; {self.at} < {own}; ++{self.at}) "
                f"{now}[{self.at}] = {tile}[{self.half}][{self.deep}][{index}];"
            )
        return f"""\
{self.fetch}(0);
{self.put}(0);
__syncthreads();
for (int {self.from_} = 0, {self.half} = 0; {self.from_} < {depth}; \
{self.from_} += {self.bk}, {self.half} ^= 1) {{
if ({more}) {self.fetch}({self.from_} + {self.bk});
#pragma unroll
for (int {self.deep} = 0; {self.deep} < {self.bk}; ++{self.deep}) {{
{chr(10).join(owns)}
{self._each(self._round())}
}}
if ({more}) {self.put}({self.half} ^ 1);
__syncthreads();
}}"""

    def _owned(self, at: str, whole: str, each: str, thread: str) -> str:
        """Where in a tile the outputs of a thread lie: in runs, which are one load each."""
        run = self.runs[each]
        return f"{at} / {run} * ({whole} / ({each} / {run})) + ({thread}) * {run} + {at} % {run}"

    def _each(self, inside: str) -> str:
        return (
            f"#pragma unroll\nfor (int {self.m} = 0; {self.m} < {self.tm}; ++{self.m}) {{\n"
            f"#pragma unroll\nfor (int {self.n} = 0; {self.n} < {self.tn}; ++{self.n}) {{\n"
            f"{inside}\n}}\n}}"
        )

    def _round(self) -> str:
        """The body of the loop on what a thread has in registers."""
        loop, swaps = self.parts.loop, dict[Node, Node | None]()
        for operand in self.parts.operands:
            *_, now = self.names[operand]
            own = self.m if operand.side == ROW else self.n
            swaps |= {access.own: text(f"{now}[{own}]") for access in operand.accesses}
        variables = self.parts.variables()
        for expr in self.parts.effects.inside(loop.body):
            if (
                isinstance(expr, Name)
                and expr.name in self.sums
                and expr.variable is variables.get(expr.name)
            ):
                swaps[expr] = text(f"{self.sums[expr.name]}[{self.m}][{self.n}]")
        swaps |= dict.fromkeys(_unasked(loop.body, swaps))
        shown = self.old.show(loop.body, swaps)
        body = edited(loop.body, swaps)
        axis = self.parts.axis.variable
        if any(isinstance(e, Name) and e.variable is axis for e in self.parts.effects.inside(body)):
            raise NotLegal("a round asks for its number", loop.line)
        return shown[1:-1].strip() if shown.startswith("{") else shown

    def _outputs(self) -> Statement:
        """The kernel as it was, once for each output, with its sums in the place of the loop."""
        i, j = self.old.fresh("out_row"), self.old.fresh("out_col")
        parts, out = self.parts, self.parts.outputs
        widths = self.old.block
        assert widths[0] is not None
        assert widths[1] is not None
        if out.flat is not None:
            whole = f"{i} * {self._speller({}).factor(out.flat)} + {j}"
            places = {"x": Place(f"({whole})", widths[0])}
        else:
            x, y = (i, j) if out.swapped else (j, i)
            places = {"x": Place(x, widths[0]), "y": Place(y, widths[1])}
        swaps: dict[Node, Node] = placed(self.old, places)
        sums = [lines(f"{name} += {own}[{self.m}][{self.n}];") for name, own in self.sums.items()]
        swaps[parts.loop] = Block(None, 0, tuple(sums)) if len(sums) > 1 else sums[0]
        for statement in walk(self.old.function.body):
            if isinstance(statement, Leave) and statement.kind == "return":
                swaps[statement] = replace(statement, kind="continue", span=None)
        shown = self.old.show(self.old.function.body, swaps)
        places_of = []
        for name, own, side in ((i, self.m, ROW), (j, self.n, COLUMN)):
            operand = next(o for o in parts.operands if o.side == side)
            whole_tile, each, first, thread = self._side(operand)
            index = self._owned(own, whole_tile, each, thread)
            places_of.append(f"const int {name} = {first} + {index};")
        if out.flat is not None:  # beyond a row's end the one index is that of another row
            columns = self._speller({}).factor(out.columns)
            places_of.append(f"if ({j} >= {columns}) continue;")
        return lines(self._each("\n".join([*places_of, shown[1:-1].strip()])))

    def _speller(self, names: dict[str, str]) -> Speller:
        written = self.old.reading.written
        steady = frozenset(a for a in self.old.reading.arrays if a not in written)
        moved = self.parts.effects.moved
        return Speller(self.old.reading.symbols, names, steady=steady, moved=moved)

    # -- the launch

    def _launch(self) -> LaunchDirective:
        out, launch = self.parts.outputs, self.old.launch
        across = self._blocks(out.columns, self.bn)
        down = self._blocks(out.rows, self.bm)
        grid = (across, down, *launch.grid[2:])
        return replace(launch, grid=grid, block=(parse_expression(self.threads),))

    def _blocks(self, form: Polynomial, by: str) -> Expression:
        names = [p.name for p in self.old.function.parameters]
        found = expression(form, self.old.reading.symbols, names)
        if found is None:
            raise NotLegal("how many outputs there are is not said by sizes alone")
        return parse_expression(f"cdiv({found}, {by})")

    def _shared(self) -> str:
        """The bytes of all tiles."""
        parts = []
        for side, whole in ((ROW, self.bm), (COLUMN, self.bn)):
            size = 2 * sum(o.size for o in self.parts.operands if o.side == side)
            parts += [f"{size} * {self.bk} * ({whole} + 4)"] if size else []
        return " + ".join(parts)

    def _tunes(self, least: int) -> list[TuneDirective]:
        """Tiles of at least so many rows, where that leaves the one that comes with it."""
        tile, threads = self.tile, self.threads
        fits = (
            f"{threads} >= 32 && {threads} <= 1024"
            f" && {self.bm} * {self.bk} % ({threads}) == 0"
            f" && {self.bn} * {self.bk} % ({threads}) == 0"
            f" && {self._shared()} <= {_SHARED}"
        )
        return [
            TuneDirective(self.bm, at_least(_TILES, min(least, 32)), tile.rows),
            TuneDirective(self.bn, _TILES, tile.columns),
            TuneDirective(self.bk, _DEEP, tile.deep),
            TuneDirective(self.tm, _OWN, tile.own_rows),
            TuneDirective(self.tn, _OWN, tile.own_columns, parse_expression(fits)),
        ]


def _unasked(body: Statement, swaps: Mapping[Node, Node | None]) -> set[Statement]:
    """The declarations of names that nobody asks for any more: indices of what is in registers."""
    found: set[Statement] = set()
    while True:
        left = edited(body, {**swaps, **dict.fromkeys(found)})
        asked = {e.variable for e in expressions(left) if isinstance(e, Name)}
        idle = {
            s for s in walk(body)
            if isinstance(s, Declare) and s not in found and not asked & {*s.variables}
            and all(v.value is None or _plain(v.value) for v in s.variables)
        }  # fmt: skip
        if not idle:
            return found
        found |= idle


def _plain(value: Expr) -> bool:
    """Whether to compute a value does nothing else."""
    return not any(isinstance(e, Assign | Step | Call | Unread) for e in every(value))
