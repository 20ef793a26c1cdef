"""The text of scalars that the keys of a tile change at once, on the threads that combined them.

Each has ``TM`` rows, and of each every ``LANES``-th key; what these share goes through shuffles.
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.editing import Node, lines, text
from optiml_magic.kernels.expressions import Expr
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import names
from optiml_magic.kernels.primitives.naming import declared_type, type_of
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.primitives.weighted import Pass, Weighted
from optiml_magic.kernels.primitives.weighted_products import WeightedProducts, name_of
from optiml_magic.kernels.primitives.weighted_scalars import BEFORE, FOUND, AtOnce
from optiml_magic.kernels.primitives.weighted_ways import NOW
from optiml_magic.kernels.tree import Declare, Statement, Variable, walk


class WeightedAtOnce(WeightedProducts):
    """The scalars of the passes that are ``at_once``."""

    def __init__(self, kernel: Kernel, found: Weighted) -> None:
        super().__init__(kernel, found)
        self.swaps: dict[Node, Node] = dict(self.items.swaps)

    def _type(self, variable: Variable) -> str:
        return declared_type(self.old, variable)

    def share(self, part: Pass) -> Iterator[str]:
        """What the row's own thread knows, where the others find it."""
        yield f"if ({self.row} < {self.rows}) {{"
        for side, of in zip(self.row_ends, (self.begun, self.ended), strict=True):
            yield f"{side}[{self.row}] = {of};"
        for variable in self.row_locals(part):
            yield (f"{self.shared[variable]}[{self.row}] = {self.live} ? {variable.name} : "
                   f"({self._type(variable)})0;")  # fmt: skip
        yield "}"

    def open(self, part: Pass) -> Iterator[str]:
        """Registers for the scalars of a thread's rows; sums are in parts, one a lane."""
        known = self.at_once[part]
        for variable in known.states:
            there = f"{self.shared[variable]}[{self.first_row} + {self.i}]"
            own = self.carried[variable]
            if variable is not known.extreme:
                there = f"{self.lane} == 0 ? {there} : 0"
            yield f"{self._type(variable)} {own}[{self.own}];"
            yield f"#pragma unroll\nfor (int {self.i} = 0; {self.i} < {self.own}; ++{self.i})"
            yield f"{own}[{self.i}] = {there};"
        if known.factor is not None:
            yield f"{self._scale_type(known)} {self.factors}[{self.own}];"
        if part.updates:
            yield f"unsigned {self.all}[{self.own}];"

    def _scale_type(self, known: AtOnce) -> str:
        assert known.extreme is not None
        return self._type(known.extreme)

    def close(self, part: Pass) -> Iterator[str]:
        """The scalars back to the row's own thread."""
        known = self.at_once[part]
        if not known.states:
            return
        yield f"#pragma unroll\nfor (int {self.i} = 0; {self.i} < {self.own}; ++{self.i}) {{"
        for variable in known.states:
            value = f"{self.carried[variable]}[{self.i}]"
            if variable is not known.extreme:
                yield self._over_lanes(f"{value} += {{}}", value)
            yield (f"if ({self.lane} == 0) {self.shared[variable]}[{self.first_row} + {self.i}] = "
                   f"{value};")  # fmt: skip
        yield "}"
        yield "__syncthreads();"
        yield f"if ({self.live}) {{"
        for variable in known.states:
            yield f"{variable.name} = {self.shared[variable]}[{self.row}];"
        yield "}"

    def _over_lanes(self, taking: str, value: str) -> str:
        apart = self.apart
        other = f"__shfl_xor_sync(~0u, {value}, {apart})"
        return (f"for (int {apart} = {self.lanes} / 2; {apart} > 0; {apart} /= 2) "
                f"{taking.format(other)};")  # fmt: skip

    def follow(self, part: Pass) -> Iterator[str]:
        """What the keys of a tile make of the scalars, and their weights."""
        known, i, j, own = self.at_once[part], self.i, self.j, self.own_row
        key = name_of(part.axis.variable)
        if part.updates and not part.sure:
            words = f"({self.keys} + 31) / 32"
            yield f"if (threadIdx.x < {words}) {self.used}[threadIdx.x] = 0;"
            yield "__syncthreads();"
        yield f"#pragma unroll\nfor (int {i} = 0; {i} < {self.own}; ++{i}) {{"
        yield f"const int {own} = {self.first_row} + {i};"
        yield f"const {self.items.words} {self.items.name} = {self.first_item} + {own};"
        for variable in self.row_locals(part):
            if variable not in known.states:
                kind, there = self._type(variable), self.shared[variable]
                yield f"const {kind} {variable.name} = {there}[{own}];"
        extreme = self.carried[known.extreme] + f"[{i}]" if known.extreme is not None else ""
        if known.extreme is not None:
            yield f"{self._type(known.extreme)} {self.compared}[{self.each}];"
        yield f"unsigned {self.bits} = 0;"
        yield from self._each_key(part)
        if extreme:
            yield f"{self.compared}[{j}] = {extreme};"
        begin, end = self.row_ends
        yield f"if ({key} < {begin}[{own}] || {key} >= {end}[{own}]) continue;"
        yield from self._head(part)
        for test, held in known.tests:
            shown = self._scalar(known, test)
            yield f"if ({f'!({shown})' if held else shown}) continue;"
        if known.found is not None:
            yield f"{self.compared}[{j}] = {self._scalar(known, known.found)};"
        yield f"{self.bits} |= 1u << {j};"
        yield "}"
        if part.updates:
            yield f"{self.all}[{i}] = {self.bits};"
        if known.extreme is not None:
            yield from self._extreme(known, extreme)
        yield from self._weigh(part)
        yield "}"
        if part.updates and not part.sure:
            ran = f"{self.all}[{i}]"
            yield f"unsigned {self.bits} = 0;"
            yield f"for (int {i} = 0; {i} < {self.own}; ++{i}) {self.bits} |= {ran};"
            yield f"for (int {j} = 0; {j} < {self.each}; ++{j}) {{"
            yield f"const int {self.key} = {self.lane} + {j} * {self.lanes};"
            yield (f"if ({self.bits} >> {j} & 1) atomicOr(&{self.used}[{self.key} / 32], "
                   f"1u << {self.key} % 32);")  # fmt: skip
            yield "}"

    def _each_key(self, part: Pass) -> Iterator[str]:
        key, j = name_of(part.axis.variable), self.j
        yield f"#pragma unroll\nfor (int {j} = 0; {j} < {self.each}; ++{j}) {{"
        yield f"const int {self.key} = {self.lane} + {j} * {self.lanes};"
        yield f"const {self.key_type(part)} {key} = {self.tile} + {self.key};"

    def _head(self, part: Pass) -> Iterator[str]:
        """What a key does by itself, with what it was combined to."""
        swaps: dict[Node, Node | tuple[Statement, ...] | None] = {**self.swaps}
        for number, dot in enumerate(part.dots):
            found = f"{self.sums}[{self.i}][{self.j}]"
            if number + 1 < len(part.dots):
                found = f"{self.scores}[{number}][{self.key}][{self.own_row}]"
            swaps[dot.axis.node] = lines(combine.joining(dot.reduction, dot.variable.name, found))
            swaps |= dict.fromkeys(hints_of(self.old, dot.axis.node))
        yield from (self.old.show(statement, swaps) for statement in self.at_once[part].head)

    def _extreme(self, known: AtOnce, extreme: str) -> Iterator[str]:
        """The extreme of a tile, and what the parts before are scaled by."""
        assert known.extreme is not None
        kind, now = self._type(known.extreme), self.now
        of, op = type_of(self.old, known.extreme), known.op
        yield f"{kind} {now} = {extreme};"
        yield f"#pragma unroll\nfor (int {self.j} = 0; {self.j} < {self.each}; ++{self.j})"
        here = f"{self.compared}[{self.j}]"
        yield f"{now} = {combine.extreme(of, op, now, here)};"
        yield "#pragma unroll"
        yield self._over_lanes(f"{now} = {combine.extreme(of, op, now, '{}')}", now)
        if known.factor is not None:
            factor = f"{self.factors}[{self.i}]"
            yield f"{factor} = {now} == {extreme} ? 1 : {self._scalar(known, known.factor)};"
            for grown in known.sums:
                if grown.scaled and grown.variable is not None:
                    yield f"{self.carried[grown.variable]}[{self.i}] *= {factor};"
        yield f"{extreme} = {now};"

    def _weigh(self, part: Pass) -> Iterator[str]:
        known = self.at_once[part]
        if known.weight is None and not known.sums:
            return
        there = f"{self.weights}[{self.key}][{self.own_row}]"
        yield from self._each_key(part)
        zero = f"{there} = 0; " if known.weight is not None else ""
        yield f"if (!({self.bits} >> {self.j} & 1)) {{ {zero}continue; }}"
        made = [e for e in (known.weight, *(s.value for s in known.sums)) if e is not None]
        if self._asks_again(part, made):
            yield from self._head(part)
        if known.weight is not None:
            value = self._share(known, known.weight, scaled=known.scales)
            yield f"{there} = {value};"
        for grown in known.sums:
            assert grown.variable is not None
            value = self._share(known, grown.value, scaled=grown.scaled)
            yield f"{self.carried[grown.variable]}[{self.i}] += {value};"
        yield "}"

    def _share(self, known: AtOnce, value: Expr, *, scaled: bool) -> str:
        """What a key adds: nothing where all keys so far are infinitely far behind later ones."""
        shown = self._scalar(known, value)
        if not scaled or known.extreme is None:
            return shown
        nothing = combine.beyond(type_of(self.old, known.extreme), known.op)
        return f"{self.now} == {nothing} ? 0 : {shown}"

    def _asks_again(self, part: Pass, made: list[Expr]) -> bool:
        """Whether what a key adds takes more than what it was compared by."""
        body = walk(part.axis.node.body)
        own = {v for s in body if isinstance(s, Declare) for v in s.variables}
        return bool(names(made) & own)

    def _scalar(self, known: AtOnce, expr: Expr) -> str:
        """A part of what follows from a key, in the words of the thread that combined it."""
        swaps = self.swaps | {NOW: text(self.now), FOUND: text(f"{self.compared}[{self.j}]")}
        if known.extreme is not None:
            swaps[BEFORE] = text(f"{self.carried[known.extreme]}[{self.i}]")
        return self.old.spelled(expr, swaps)
