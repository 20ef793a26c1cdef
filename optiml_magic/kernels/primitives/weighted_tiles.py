"""P26, weigh by tiles: a block takes several rows that weigh the same keys, a tile at a time.

What a row and a key are combined to is found for all pairs of a tile as a product of matrices, from
shared memory, several pairs a thread. The scalars that go from key to key follow in order, one lane
a row. What they make of the array is linear, so that from behind each key's weight takes the
factors of the keys that come after it, and the tile as a whole is one more product: the array is
multiplied by all factors, and the keys' rows are added by their weights.
Source of the shape: Dao et al., "FlashAttention" (2022); here by the recurrence alone, whatever it
computes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import Node, lines, text
from optiml_magic.kernels.expressions import Expr, Name
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.limits import limits
from optiml_magic.kernels.primitives.naming import LocalSpeller, declared_type
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.primitives.weighted import Pass, Update, Weighted, weighted
from optiml_magic.kernels.primitives.weighted_at_once import WeightedAtOnce
from optiml_magic.kernels.primitives.weighted_products import name_of
from optiml_magic.kernels.tree import Declare, Statement, Variable, expressions
from optiml_magic.source.directives import LaunchDirective
from optiml_magic.source.expressions import parse_expression

_NOBODY = ("0x7fffffff", "-0x7fffffff - 1")  # the keys of a block without any


@primitive
def by_tiles(kernel: Kernel) -> Kernel:
    """The kernel whose blocks take tiles of rows and keys."""
    kernel = kernel.settled()
    return _Weighing(kernel, weighted(kernel)).kernel()


class _Weighing(WeightedAtOnce):
    def __init__(self, kernel: Kernel, found: Weighted) -> None:
        if kernel.function.launch_bounds:
            raise NotLegal("its launch bounds say how many threads a block has")
        super().__init__(kernel, found)
        for expr in expressions(kernel.function.body) if found.array is not None else ():
            if isinstance(expr, Name) and expr.variable is found.array:
                self.swaps[expr] = text(f"{self.held}[{self.row}]")

    def kernel(self) -> Kernel:
        made = [*self.declared(), *self._place(), *self._locals()]
        for part in self.found.parts:
            made += self._pass(part) if isinstance(part, Pass) else self._segment(part)
        if self.items.tests:
            shown = " && ".join(f"({self._expression(test)})" for test in self.items.tests)
            made = [f"if ({shown}) {{", *made, "}"]
        body = replace(
            self.old.function.body, body=(*self.items.outside, lines("\n".join(made)))
        )  # fmt: skip
        launch, tunes = self._launch(), self.tunes()
        asked = [*tunes, *limits(self.old, launch, tunes)]
        return self.old.rewritten(body, launch=launch, directives=asked, bounds=self.block)

    def _launch(self) -> LaunchDirective:
        launch = self.old.launch
        grid = parse_expression(f"cdiv({self.items.count}, {self.rows})")
        block = (parse_expression(self.block),)
        return replace(launch, grid=(grid, *launch.grid[1:]), block=block)

    # -- what a row does by itself

    def _place(self) -> Iterator[str]:
        limit = LocalSpeller(self.old.reading.symbols, {}, moved=self.effects.moved)
        limit.kernel = self.old
        block, name, words = "blockIdx.x", self.items.name, self.items.words
        yield f"const int {self.lane} = threadIdx.x % {self.lanes};"
        yield f"const int {self.first_row} = threadIdx.x / {self.lanes} * {self.own};"
        yield f"const int {self.row} = threadIdx.x;  // which it follows, if it is one of the first"
        if self._grows():
            block = "(gridDim.x - 1 - blockIdx.x)"
            yield "// The blocks with most keys come first."
        yield f"const {words} {self.first_item} = ({words}){block} * {self.rows};"
        yield f"const {words} {name} = {self.first_item} + {self.row};"
        there = f"{self.row} < {self.rows} && {name} < {self.items.limit(limit)}"
        yield f"const bool {self.live} = {there};"

    def _grows(self) -> bool:
        """Whether later rows have more keys."""
        stops = [part.axis.stop for part in self.found.passes]
        by = [stop.coefficient("threadIdx.x") for stop in stops if stop is not None]
        return any(form is not None and (form.value or 0) > 0 for form in by)

    def _locals(self) -> Iterator[str]:
        """The row's locals, which last over all parts."""
        for part in self.found.parts:
            for statement in part if not isinstance(part, Pass) else ():
                if isinstance(statement, Declare):
                    yield from (self._declaration(statement, v) for v in statement.variables
                                if v is not self.found.array)  # fmt: skip

    def _declaration(self, statement: Declare, variable: Variable) -> str:
        if variable.type.reference or variable.type.volatile or variable.initial:
            raise NotLegal(f"`{variable.name}` is not a plain local", variable.line)
        if not variable.array:
            return f"{declared_type(self.old, variable)} {variable.name};"
        if variable.value is not None:
            raise NotLegal(f"`{variable.name}` has initial values", variable.line)
        return self._shown(replace(statement, variables=(variable,), span=None))

    def _segment(self, statements: Sequence[Statement]) -> list[str]:
        """What a row does by itself, in one lane."""
        made: list[str] = []
        for statement in statements:
            if not isinstance(statement, Declare):
                made.append(self._shown(statement))
                continue
            for variable in statement.variables:
                if variable is self.found.array:
                    at = self.j
                    made.append(
                        f"for (int {at} = 0; {at} < {self.found.extent}; ++{at}) "
                        f"{self.held}[{self.row}][{at}] = 0;"
                    )
                elif variable.value is not None:
                    made.append(f"{variable.name} = {self._expression(variable.value)};")
        return [f"if ({self.live}) {{", *made, "}"] if made else []

    # -- a loop over keys

    def _pass(self, part: Pass) -> Iterator[str]:
        coming, tile, at_once = self.coming(part), self.tile, part in self.at_once
        yield "{"
        yield from self._range(part)
        yield from self._row_tiles(part)
        yield from self.take(part)
        if at_once:
            yield from self.open(part)
        yield from self.ahead(part)
        if not coming[0].test:
            yield f"if ({self.begin} < {self.end}) {{"
            yield from self.fetch(part, coming[0], self.begin)
            yield "}"
        yield (f"for (int {tile} = {self.begin}; {tile} < {self.end}; "
               f"{tile} += {self.keys}) {{")  # fmt: skip
        for number, one in enumerate(coming):
            adds = number == len(part.dots)
            if adds and not at_once:
                yield from self._follow(part)
            yield "__syncthreads();"
            if one.test:
                yield from self.fetch(part, one, tile)
            yield from self.put(one)
            yield "__syncthreads();"
            last = number + 1 == len(coming)
            following, first = (coming[0], f"{tile} + {self.keys}") if last else (
                coming[number + 1], tile)  # fmt: skip
            if not following.test:
                yield from self.fetch(part, following, first)
            if adds:
                yield from self.add(part)
                continue
            ends = at_once and number + 1 == len(part.dots)
            yield from self.dot(number, part.dots[number], self.follow(part) if ends else None)
        if len(coming) == len(part.dots) and not at_once:
            yield from self._follow(part)
        yield "}"
        yield from self.leave(part)
        if at_once:
            yield from self.close(part)
        yield "}"

    def _range(self, part: Pass) -> Iterator[str]:
        """The keys of a row, and those of all rows of the block."""
        ends = [
            f"(int)({self._expression(last)})" + (" + 1" if whole else "")
            for last, whole in part.ends
        ]
        last = ends[0]
        for other in ends[1:]:
            last = f"min({last}, {other})"
        yield f"int {self.begun} = 0, {self.ended} = 0;"
        yield f"if ({self.live}) {{"
        yield f"{self.begun} = {self._expression(part.first)};"
        yield f"{self.ended} = {last};"
        yield "}"
        if part in self.at_once:
            yield from self.share(part)
        at = f"{self.range}[{self.found.passes.index(part)}]"
        first, end = (f"{at}[{side}] = {_NOBODY[side]};" for side in (0, 1))
        yield f"if (threadIdx.x == 0) {{ {first} {end} }}"
        yield "__syncthreads();"
        yield f"if ({self.begun} < {self.ended}) {{"
        yield f"atomicMin(&{at}[0], {self.begun});"
        yield f"atomicMax(&{at}[1], {self.ended});"
        yield "}"
        yield "__syncthreads();"
        yield f"const int {self.begin} = {at}[0], {self.end} = {at}[1];"

    def _row_tiles(self, part: Pass) -> Iterator[str]:
        for number, dot in enumerate(part.dots):
            name = name_of(dot.axis.variable)
            for at, operand in enumerate(dot.rows):
                place = f"{self.row_tile}[{number * self.most_rows + at}][{self.row}][{name}]"
                value = f"({self.operand(operand)})"
                yield f"if ({self.row} < {self.rows}) {{"
                yield f"for (int {name} = 0; {name} < {dot.length}; ++{name})"
                yield f"{place} = {self.begun} < {self.ended} ? {value} : ({operand.type.name})0;"
                yield "}"

    def _follow(self, part: Pass) -> Iterator[str]:
        """The recurrence of each row over the keys of a tile, in order."""
        key, turn, loop = name_of(part.axis.variable), self.key, part.axis.node
        begin, end = f"max({self.begun}, {self.tile})", f"min({self.ended}, {self.tile} + "
        end += f"{self.keys})"
        if part.updates and not part.sure:
            words = f"({self.keys} + 31) / 32"
            yield f"if (threadIdx.x < {words}) {self.used}[threadIdx.x] = 0;"
        yield "__syncthreads();"
        yield f"if ({self.row} < {self.rows}) {{"
        if part.sure:
            ones = f"~0ull >> (64 - {self.count}) << ({begin} - {self.tile})"
            yield f"const int {self.count} = {end} - {begin};"
            yield f"const unsigned long long {self.bits} = {self.count} > 0 ? {ones} : 0;"
        elif part.updates:
            yield f"unsigned long long {self.bits} = 0;"
        yield "#pragma unroll 4"
        kind = self.key_type(part)
        yield f"for ({kind} {key} = {begin}; {key} < {end}; ++{key}) {{"
        yield f"const int {turn} = {key} - {self.tile};"
        if part.updates and not part.sure:
            yield self._set(part, turn)
        swaps = self._followed(part)
        yield "{"
        yield self.old.show_inside(loop.body, swaps)
        yield "}"
        yield "}"
        if part.updates:
            yield from self._behind(part)
        yield "}"

    def _followed(self, part: Pass) -> dict[Node, Node | tuple[Statement, ...] | None]:
        """What stands for the loops over elements in a round."""
        swaps: dict[Node, Node | tuple[Statement, ...] | None] = {**self.swaps}
        for number, dot in enumerate(part.dots):
            found = f"{self.scores}[{number}][{self.key}][{self.row}]"
            swaps[dot.axis.node] = lines(combine.joining(dot.reduction, dot.variable.name, found))
            swaps |= dict.fromkeys(hints_of(self.old, dot.axis.node))
        for node in dict.fromkeys(u.axis.node for u in part.updates):
            own = [u for u in part.updates if u.axis.node is node]
            swaps[node] = lines("\n".join(["{", *self._weighed(part, own), "}"]))
            swaps |= dict.fromkeys(hints_of(self.old, node))
        return swaps

    def _set(self, part: Pass, turn: str) -> str:
        made = f"{self.weights}[{turn}][{self.row}] = 0;"
        return made + (f" {self.factors}[{turn}][{self.row}] = 1;" if part.scaled else "")

    def _weighed(self, part: Pass, updates: Sequence[Update]) -> Iterator[str]:
        """What an update leaves: a weight and a factor, of which there may be some before."""
        weight = f"{self.weights}[{self.key}][{self.row}]"
        factor = f"{self.factors}[{self.key}][{self.row}]"
        for update in updates:
            of = self._expression(update.factor) if update.factor is not None else ""
            by = self._expression(update.weight) if update.weight is not None else ""
            if part.sure:
                yield f"{weight} = {by};"
                if part.scaled:
                    yield f"{factor} = {of or '1'};"
                continue
            if of:
                yield f"const {self.kind} {self.run} = {of};"
                yield f"{weight} *= {self.run};\n{factor} *= {self.run};"
            if by:
                yield f"{weight} += {by};"
            yield f"{self.bits} |= 1ull << {self.key};"

    def _behind(self, part: Pass) -> Iterator[str]:
        """Weights with the factors of all keys behind theirs, and the factor of the tile."""
        turn, row = self.key, self.row
        yield f"if ({self.bits} != {self.full}) {{"
        yield f"for (int {turn} = 0; {turn} < {self.keys}; ++{turn})"
        yield f"if (!({self.bits} >> {turn} & 1)) {{ {self._set(part, turn)} }}"
        yield "}"
        if part.scaled:
            yield f"{self.kind} {self.run} = 1;"
            yield "#pragma unroll 8"
            yield f"for (int {turn} = {self.keys} - 1; {turn} >= 0; --{turn}) {{"
            yield f"{self.weights}[{turn}][{row}] *= {self.run};"
            yield f"{self.run} *= {self.factors}[{turn}][{row}];"
            yield "}"
            yield f"{self.factors}[0][{row}] = {self.run};"
        yield f"{self.ran}[{row}] = {self.bits};"
        if not part.sure:
            yield f"if ((unsigned){self.bits}) atomicOr(&{self.used}[0], (unsigned){self.bits});"
            yield (f"if ({self.bits} >> 32) atomicOr(&{self.used}[{self.keys} / 33], "
                   f"(unsigned)({self.bits} >> 32));")  # fmt: skip

    # -- words

    def _shown(self, statement: Statement) -> str:
        return self.old.show(statement, self.swaps)

    def _expression(self, expr: Expr) -> str:
        return self.old.spelled(expr, self.swaps)
