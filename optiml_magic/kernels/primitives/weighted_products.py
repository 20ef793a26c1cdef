"""The two products of a tile: rows by keys, and weights by the rows of keys, in registers.

Keys come through registers: while a tile is computed with, the one that is asked for next travels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, text
from optiml_magic.kernels.expressions import Expr, Name, every
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.naming import declared_type
from optiml_magic.kernels.primitives.weighted import Dot, Pass, Update
from optiml_magic.kernels.primitives.weighted_layout import WeightedLayout
from optiml_magic.kernels.primitives.weighted_sides import Operand
from optiml_magic.kernels.tree import Variable


@dataclass(frozen=True, eq=False)
class Coming:
    """A tile of keys on its way: ``columns`` are those of the tile, of which there are ``length``.

    ``test`` says which keys are asked for at all; where it is not empty, nobody knows before.
    """

    operands: tuple[Operand, ...]
    variable: Variable | None
    length: int
    columns: str
    test: str = ""


class WeightedProducts(WeightedLayout):
    """The text of one pass over keys, but for its recurrence."""

    def coming(self, part: Pass) -> list[Coming]:
        """The tiles of keys that a round over tiles asks for, in order."""
        found = [
            Coming(dot.keys, dot.axis.variable, dot.length, str(dot.length)) for dot in part.dots
        ]
        if part.value is not None:
            update = self.update(part)
            key = f"({self.used}[{self.key} / 32] >> {self.key} % 32 & 1)"
            test = "" if part.sure else key
            operands, variable = (part.value,), update.axis.variable
            found.append(Coming(operands, variable, update.length, self.padded, test))
        return found

    def update(self, part: Pass) -> Update:
        """The one that takes a row of each key."""
        return next(u for u in part.updates if u.value is not None)

    def ahead(self, part: Pass) -> Iterator[str]:
        """Registers for keys that travel."""
        count = max(len(c.operands) for c in self.coming(part))
        yield (f"{self.key_word} {self.next}[{count}][({self.keys} * {self._longest(part)} + "
               f"{self.threads} - 1) / {self.threads}];")  # fmt: skip

    def _longest(self, part: Pass) -> str:
        found = list(dict.fromkeys(c.columns for c in self.coming(part)))
        longest = found[0]
        for other in found[1:]:
            longest = f"({longest} > {other} ? {longest} : {other})"
        return longest

    def _slots(self, columns: str, counter: str, words: list[str]) -> Iterator[str]:
        slot, turn = self.slot, self.turn
        yield "#pragma unroll"
        yield (f"for (int {turn} = 0; {turn} < ({self.keys} * {columns} + {self.threads} - 1) / "
               f"{self.threads}; ++{turn}) {{")  # fmt: skip
        yield f"const int {slot} = threadIdx.x + {turn} * {self.threads};"
        yield f"const int {self.key} = {slot} / {columns}, {counter} = {slot} % {columns};"
        yield from words
        yield "}"

    def fetch(self, part: Pass, one: Coming, first: str) -> Iterator[str]:
        """Brings the keys from ``first`` on into registers."""
        counter, key = name_of(one.variable), name_of(part.axis.variable)
        there = [f"{key} < {self.end}", *([one.test] if one.test else [])]
        there.append(f"{self.key} < {self.keys}")
        if one.columns != str(one.length):
            there.append(f"{counter} < {one.length}")
        made = [f"const {self.key_type(part)} {key} = {first} + {self.key};"]
        for at, operand in enumerate(one.operands):
            value = f"({self.operand(operand)})"
            made.append(f"{self.next}[{at}][{self.turn}] = {' && '.join(there)} ? {value} : "
                        f"({self.key_word})0;")  # fmt: skip
        yield from self._slots(one.columns, counter, made)

    def put(self, one: Coming) -> Iterator[str]:
        """Lays them into shared memory."""
        counter = name_of(one.variable)
        made = [
            f"if ({self.key} < {self.keys}) {self.key_tile}[{at}][{self.key}][{counter}] = "
            f"{self.next}[{at}][{self.turn}];"
            for at in range(len(one.operands))
        ]
        yield from self._slots(one.columns, counter, made)

    def dot(self, number: int, dot: Dot, behind: Iterator[str] | None = None) -> Iterator[str]:
        """What all pairs of a tile are combined to, several a thread, and what is made of it.

        Where nothing is made of it by the thread itself, others find it in shared memory.
        """
        counter, u, i, j, first = name_of(dot.axis.variable), self.u, self.i, self.j, self.first
        kind, step = dot.reduction.type.name, next(n for n in (4, 2, 1) if dot.length % n == 0)
        place = f"{self.sums}[{i}][{j}]"
        yield "{"
        yield f"{kind} {self.sums}[{self.own}][{self.each}];"
        yield self.each_of(self.each, f"{place} = {combine.nothing(dot.reduction)};")
        yield "#pragma unroll 4"
        yield f"for (int {first} = 0; {first} < {dot.length}; {first} += {step}) {{"
        swaps: dict[Node, Node] = {}
        for operands, now, many, tile, at, begin, row in (
            (dot.rows, self.row_now, self.own, self.row_tile, i, number * self.most_rows,
             f"{self.first_row} + {i}"),
            (dot.keys, self.key_now, self.each, self.key_tile, j, 0,
             f"{self.lane} + {j} * {self.lanes}"),
        ):  # fmt: skip
            for nth, operand in enumerate(operands):
                name = f"{now}{nth or ''}"
                element = f"{tile}[{begin + nth}][{row}][{first} + {u}]"
                yield f"{operand.type.name} {name}[{many}][{step}];"
                yield f"#pragma unroll\nfor (int {at} = 0; {at} < {many}; ++{at})\n#pragma unroll"
                yield f"for (int {u} = 0; {u} < {step}; ++{u}) {name}[{at}][{u}] = {element};"
                swaps[operand.expr] = text(f"{name}[{at}][{u}]")
        body = dot.axis.node.body
        for expr in self.effects.inside(body):
            if isinstance(expr, Name) and expr.variable is dot.variable:
                swaps[expr] = text(place)
        yield f"#pragma unroll\nfor (int {u} = 0; {u} < {step}; ++{u}) {{"
        if self._asks(dot, swaps):
            yield f"const int {counter} = {first} + {u};"
        yield self.each_of(self.each, f"{{\n{self.old.show_inside(body, swaps)}\n}}")
        yield "}"
        yield "}"
        if behind is None:
            key = f"{self.lane} + {j} * {self.lanes}"
            there = f"{self.scores}[{number}][{key}][{self.first_row} + {i}]"
            yield self.each_of(self.each, f"{there} = {place};")
        else:
            yield from behind
        yield "}"

    def _asks(self, dot: Dot, swaps: dict[Node, Node]) -> bool:
        """Whether a round asks for its number beside what its tiles hold."""
        inside = {e for part in swaps if isinstance(part, Expr) for e in every(part)}
        return any(
            isinstance(e, Name) and e.variable is dot.axis.variable
            for e in self.effects.inside(dot.axis.node.body) - inside
        )

    def take(self, part: Pass) -> Iterator[str]:
        """The array of each row, on the threads that hold its parts in registers."""
        if not part.updates:
            return
        column = self.column(self.j)
        there = f"{self.held}[{self.first_row} + {self.i}][{column}]"
        yield f"{self.kind} {self.mine}[{self.own}][{self.across}];"
        yield self.each_of(
            self.across,
            f"{self.mine}[{self.i}][{self.j}] = {column} < {self.columns} ? {there} : 0;",
        )

    def leave(self, part: Pass) -> Iterator[str]:
        """The array back to where its row asks for it."""
        if not part.updates:
            return
        column = self.column(self.j)
        there = f"{self.held}[{self.first_row} + {self.i}][{column}]"
        if self.together:
            yield "__syncthreads();"
        yield self.each_of(
            self.across,
            f"if ({column} < {self.columns}) {there} = {self.mine}[{self.i}][{self.j}];",
        )
        yield "__syncthreads();"

    def add(self, part: Pass) -> Iterator[str]:
        """The rows of a tile's keys, by their weights; where not all ran, those that did."""
        i, j, known = self.i, self.j, self.at_once.get(part)
        factor = f"{self.factors}[{i}]" if known else f"{self.factors}[0][{self.first_row} + {i}]"
        if part.scaled if known is None else known.scales:
            yield self.each_of(self.across, f"{self.mine}[{i}][{j}] *= {factor};")
        each_row = f"#pragma unroll\nfor (int {i} = 0; {i} < {self.own}; ++{i})"
        if known is None:
            yield f"unsigned long long {self.all}[{self.own}];"
            yield f"{each_row} {self.all}[{i}] = {self.ran}[{self.first_row} + {i}];"
        full = self.full if known is None else f"~0u >> (32 - {self.each})"
        yield f"bool {self.whole} = true;"
        yield f"{each_row} {self.whole} = {self.whole} && {self.all}[{i}] == ({full});"
        whole = self.whole if known is None else f"__all_sync(~0u, {self.whole})"
        yield f"if ({whole}) {{"
        yield from self._products("")
        yield "} else {"
        ran = f"{self.all}[{i}] >> {self.key} & 1"
        if known is not None:
            ran = f"__shfl_sync(~0u, {self.all}[{i}], {self.key} % {self.lanes}, {self.lanes})"
            ran += f" >> {self.key} / {self.lanes} & 1"
        yield from self._products(ran)
        yield "}"

    def _products(self, ran: str) -> Iterator[str]:
        """Each key's row by its weights; for the rows alone of which ``ran`` holds."""
        i, j, key = self.i, self.j, self.key
        yield f"#pragma unroll {1 if ran else 4}"
        yield f"for (int {key} = 0; {key} < {self.keys}; ++{key}) {{"
        yield f"{self.kind} {self.row_now}[{self.own}];"
        yield (f"#pragma unroll\nfor (int {i} = 0; {i} < {self.own}; ++{i}) {self.row_now}[{i}] = "
               f"{self.weights}[{key}][{self.first_row} + {i}];")  # fmt: skip
        yield f"{self.key_word} {self.key_now}[{self.across}];"
        yield (f"#pragma unroll\nfor (int {j} = 0; {j} < {self.across}; ++{j}) {self.key_now}[{j}] "
               f"= {self.key_tile}[0][{key}][{self.column(j)}];")  # fmt: skip
        product = f"{self.mine}[{i}][{j}] += {self.row_now}[{i}] * {self.key_now}[{j}];"
        if not ran:
            yield self.each_of(self.across, product)
        else:
            yield f"#pragma unroll\nfor (int {i} = 0; {i} < {self.own}; ++{i}) {{"
            yield f"const bool {self.live_key} = {ran};"
            yield f"#pragma unroll\nfor (int {j} = 0; {j} < {self.across}; ++{j})"
            yield f"if ({self.live_key}) {product}"
            yield "}"
        yield "}"

    def key_type(self, part: Pass) -> str:
        """The type in which a loop over keys counts."""
        assert part.axis.variable is not None
        return declared_type(self.old, part.axis.variable)

    def operand(self, operand: Operand) -> str:
        """What a tile holds, where its element is found."""
        return self.old.spelled(operand.expr, operand.swaps)


def name_of(variable: Variable | None) -> str:
    """What a counter is called."""
    assert variable is not None
    return variable.name
