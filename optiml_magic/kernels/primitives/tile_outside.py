"""What the rounds of a product ask for besides its tiles: values of a row, a column or a round.

What belongs to a row or a column alone is in registers before the first round; an element that all
outputs take alike is loaded in its round.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Name, builtin, every
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.effects import is_simple
from optiml_magic.kernels.primitives.operands import COLUMN, ROW, Contraction, Operand
from optiml_magic.kernels.primitives.places import placed
from optiml_magic.kernels.primitives.tile_guards import guards, is_bound
from optiml_magic.kernels.primitives.tile_layout import Layout, Side
from optiml_magic.kernels.primitives.zeros import nothing
from optiml_magic.kernels.tree import Declare, Statement, Variable, expressions, walk

_PLANE = "blockIdx.z"  # which tiles have as well


@dataclass(frozen=True)
class _Local:
    """A local of outside with the declarations that its value comes from, in order."""

    variable: Variable
    side: str
    lets: tuple[Variable, ...]


class Outside:
    """``swaps`` are what stands for all of it in a round; the loads of tiles are in ``inside``."""

    def __init__(self, layout: Layout, rounds: str, inside: dict[Node, Node | None]) -> None:
        self.layout = layout
        self.rounds = rounds
        self.parts: Contraction = layout.parts
        self.old = layout.old
        fresh = self.old.fresh
        arrays = [o.array for o in self.parts.others]
        self.names = {
            o: fresh(
                f"{o.array.replace('.', '_')}{str(at) if arrays.count(o.array) > 1 else ''}_own"
            )
            for at, o in enumerate(self.parts.others)
        }
        self.swaps: dict[Node, Node] = {
            access.own: text(f"{self.names[o]}{self._index(o.side)}")
            for o in self.parts.others for access in o.accesses
        }  # fmt: skip
        self.declared = {
            v: s for s in walk(self.old.function.body) if isinstance(s, Declare)
            for v in s.variables
        }  # fmt: skip
        asked = self._asked({**inside, **self.swaps})
        self.locals = [self._local(v) for v in asked]
        self.own = {one.variable: fresh(f"{one.variable.name}_own") for one in self.locals}
        for name in self._left({**inside, **self.swaps}):
            if name.variable in self.own:
                at = self._index(next(o.side for o in self.locals if o.variable is name.variable))
                self.swaps[name] = text(f"{self.own[name.variable]}{at}")

    def before(self) -> list[str]:
        """The lines before the first round."""
        made, inside = [], self.parts.effects.inside(self.parts.loop.body)
        for operand in self.parts.others:
            if operand.deep or not any(access.own in inside for access in operand.accesses):
                continue
            name, kind = self.names[operand], operand.kind
            if not operand.side:
                test, there = self._there(operand, "")
                made.append(f"const {kind} {name} = {test + ' ? ' if test else ''}{there}"
                            f"{f' : {nothing(kind)}' if test else ''};")  # fmt: skip
                continue
            side = self.layout.sides[operand.side]
            test, there = self._there(operand, self.layout.at)
            made += [
                f"{kind} {name}[{side.own}];", *self._each(side),
                f"{name}[{side.at}] = {test} ? {there} : {nothing(kind)};", "}",
            ]  # fmt: skip
        for one in self.locals:
            made += self._begun(one)
        return made

    def first(self) -> list[str]:
        """The lines at the beginning of each round."""
        layout, made = self.layout, []
        for operand in self.parts.others:
            if operand.deep:
                test, there = self._there(operand, "")
                made.append(
                    f"const {operand.kind} {self.names[operand]} = {test} ? {there} "
                    f": {nothing(operand.kind)};"
                )
        counter = self.parts.axis.variable
        if counter is not None and self._counts:
            if not is_simple(self.parts.axis, self.parts.effects):
                raise NotLegal("a round asks for its number", self.parts.loop.line)
            made.append(
                f"const {counter.type.base} {counter.name} = {layout.from_} + {layout.round};"
            )
        return made

    # -- parts

    def _index(self, side: str) -> str:
        return f"[{self.layout.sides[side].at}]" if side else ""

    def _each(self, side: Side) -> list[str]:
        """For all rows or columns of a thread; which one it is has the name ``at``."""
        return [
            "#pragma unroll",
            f"for (int {side.at} = 0; {side.at} < {side.own}; ++{side.at}) {{",
            f"const int {self.layout.at} = {side.first} + {self.layout.owned(side, side.at)};",
        ]

    def _there(self, operand: Operand, own: str) -> tuple[str, str]:
        """When an element is there, and what it is."""
        deep = f"({self.layout.from_} + {self.layout.round})"
        names = {self.parts.axis.name: deep, operand.side: own}
        speller = self.layout.speller(names)
        tests = [f"{deep[1:-1]} < {self.rounds}"] * operand.deep
        tests += [speller.condition(c) for c in guards(self.parts, operand)]
        there = f"{operand.array}[{self.layout.index(operand.form, names)}]"
        return " && ".join(dict.fromkeys(tests)), there

    def _left(self, swaps: dict[Node, Node | None]) -> Iterator[Name]:
        """The names that a round still has."""
        body = edited(self.parts.loop.body, swaps)
        if any(builtin(e) not in ("", _PLANE) for e in expressions(body)):
            raise NotLegal("its rounds ask where their thread is", self.parts.loop.line)
        return (e for e in expressions(body) if isinstance(e, Name) and e.variable is not None)

    def _asked(self, swaps: dict[Node, Node | None]) -> list[Variable]:
        inside = {v for s in walk(self.parts.loop) if isinstance(s, Declare) for v in s.variables}
        known = {*self.parts.variables().values(), *inside, self.parts.axis.variable}
        left = [name.variable for name in self._left(swaps)]
        self._counts = self.parts.axis.variable in left
        return [
            v for v in dict.fromkeys(left)
            if v is not None and v not in known and v in self.declared
        ]  # fmt: skip

    def _local(self, variable: Variable) -> _Local:
        """Raises NotLegal where a value cannot be had before the loop, for a row or a column."""
        parts, lets, line = self.parts, [variable], self.parts.loop.line
        unfit = NotLegal(f"its rounds ask for `{variable.name}`", line)
        if variable.type.depth or variable.array or variable.type.base == "auto":
            raise unfit
        for one in lets:
            if one not in parts.effects.lasting or one.value is None:
                raise unfit
            lets += [
                e.variable for e in every(one.value)
                if isinstance(e, Name) and e.variable in self.declared and e.variable not in lets
            ]  # fmt: skip
        inside = {e for one in lets if one.value is not None for e in every(one.value)}
        written = parts.kernel.reading.written
        for access in parts.kernel.reading.accesses:
            if access.own not in inside:
                continue
            bounded = all(is_bound(parts, c) for g in access.guard for c in g.conjuncts())
            hidden = any(parts.effects.same(access.array, name) for name in written)
            if access.mode != "load" or access.call is not None or not bounded or hidden:
                raise unfit
        axes = {builtin(e)[-1] for e in inside if builtin(e)} & {"x", "y"}
        if len(axes) > 1 or (axes and parts.outputs.flat is not None):
            raise unfit
        side = ""
        if axes:
            side = ROW if (axes == {"x"}) == parts.outputs.swapped else COLUMN
        order = [v for s in self.declared.values() for v in s.variables]
        return _Local(variable, side, tuple(sorted(set(lets), key=order.index)))

    def _begun(self, one: _Local) -> list[str]:
        """The lines that give a local of outside its value, or one for each row or column."""
        own, kind = self.own[one.variable], one.variable.type.base
        at = self.layout.at
        swaps: dict[Node, Node] = {}
        if one.side:
            swaps = placed(self.old, self.layout.places(at, at))
        made = [self._shown(v, swaps) for v in one.lets]
        if not one.side:
            return [f"{kind} {own};", "{", *made, f"{own} = {one.variable.name};", "}"]
        side = self.layout.sides[one.side]
        extent = self.layout.speller({}).factor(self.parts.extent(one.side))
        return [
            f"{kind} {own}[{side.own}] = {{}};", *self._each(side),
            f"if ({at} < {extent}) {{", *made, f"{own}[{side.at}] = {one.variable.name};", "}", "}",
        ]  # fmt: skip

    def _shown(self, variable: Variable, swaps: dict[Node, Node]) -> str:
        statement: Statement = self.declared[variable]
        alone = replace(statement, variables=(variable,), span=None)  # type: ignore[call-arg]
        return self.old.show(lines(self.old.show(edited(alone, swaps))))
