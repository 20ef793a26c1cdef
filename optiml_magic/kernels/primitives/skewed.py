"""P7, skew: several sweeps along a thread's array at once, each some elements behind another.

A sweep of ``for (t) for (j) v[j] = f(v[j], v[j + 1])`` asks for what the one before has stored an
element further on, and so may follow it at that distance. What several sweeps have at hand is a
window of few elements, which registers hold: an element is loaded before the first of them comes to
it and stored behind the last, and the sweeps between ask no memory. Each element goes through the
same operations in the same order. (Wolfe, "Loop skewing: the wavefront method revisited", 1986.)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Expr, Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, primitive
from optiml_magic.kernels.primitives.effects import Effects, parted
from optiml_magic.kernels.primitives.items import element
from optiml_magic.kernels.primitives.naming import LocalSpeller, declared_type, speller_before
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.primitives.sweeps import Sweeps, Swept, sweeps
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.tree import Block, Declare, Statement, Variable
from optiml_magic.source.directives import TuneDirective

COUNTS = (2, 4, 8, 16, 32)
_STEPS = 4  # of a group that are written out, so that registers need not be moved in each: ours


@primitive
def skewed(kernel: Kernel, at: int, count: int) -> Kernel:
    """The kernel with ``count`` of the sweeps of this number under way at once, if tuned so."""
    made = _Skewing(kernel, sweeps(kernel)[at])
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    for axis in (made.found.outer, made.found.inner):
        swaps |= dict.fromkeys(hints_of(kernel, axis.node))
    swaps[made.found.outer.node] = lines("\n".join(made.loops()))
    return kernel.rewritten(
        edited(kernel.function.body, swaps),
        directives=[TuneDirective(made.count, COUNTS, count)],
    )


class _Skewing:
    def __init__(self, kernel: Kernel, found: Sweeps) -> None:
        self.old, self.found = kernel, found
        self.effects = Effects(kernel)
        self.count = kernel.fresh("SWEEPS")
        self.first, self.sweep = kernel.fresh("first_sweep"), kernel.fresh("sweep")
        self.at = kernel.fresh("at")
        self.turn, self.length = kernel.fresh("turn"), kernel.fresh("length")
        self.near = {one: kernel.fresh(f"{one.array.name}_near") for one in found.swept}
        self.each: dict[Variable, str] = {}
        for local in found.own:
            self.each[local] = kernel.fresh(f"{local.name}_each", *self.each.values())
        taken = [*self.near.values(), *self.each.values()]
        self.follow: dict[Access, str] = {}
        self.places: dict[Access, Expr] = {}
        for load in found.alike:
            plain = load.array.replace(".", "_")
            self.follow[load] = kernel.fresh(f"{plain}_near", *taken)
            self.places[load] = element(self.effects, load) or load.node
            taken.append(self.follow[load])
        self.behind = self._times(f"({self.count} - 1)") if found.apart else "0"

    def loops(self) -> Iterator[str]:
        """The sweeps by groups, and one by one those that no group takes."""
        found, count, first, sweep, turn = (
            self.found, self.count, self.first, self.sweep, self.turn
        )  # fmt: skip
        last, behind = f"({first} + {count} - 1)", self.behind
        yield "{"
        yield f"int {first} = 0;"
        test = [f"{self._sweeps()} - {first} >= {count}", *self._room()]
        yield f"for (; {' && '.join(test)}; {first} += {count}) {{"
        for local, name in self.each.items():
            yield f"{declared_type(self.old, local)} {name}[{count}];"
        yield from self._each_sweep()
        yield from self._ahead()
        if found.apart:
            ends = f"{behind} - {self._times(sweep)}"
            yield from self._inner(f"int {turn} = 0", ends, self._body())
        yield "}"
        shorter = found.growth + found.apart < 0
        where = f"{self._of_rounds(last)} + {behind}" if found.apart else self._of_rounds(last)
        where = where if shorter else self._of_rounds(first)
        yield f"const int {self.length} = {where};"
        yield from self._steady()
        yield from self._each_sweep()
        begin = f"int {turn} = {self.length}{f' - {self._times(sweep)}' if found.apart else ''}"
        yield from self._inner(begin, self._of_rounds(f"({first} + {sweep})"), self._body())
        yield from (self._shown(part) for part in found.behind)
        yield "}"
        yield "}"
        yield self._one_by_one()
        yield "}"

    def _steady(self) -> Iterator[str]:
        """The rounds in which all sweeps of a group are under way, and what they have at hand."""
        found, at, turn, behind = self.found, self.at, self.turn, self.behind
        for one, near in self.near.items():
            yield f"{one.array.type.base} {near}[{_plus(behind, one.back + one.forth + 1)}];"
        for load, name in self.follow.items():
            yield f"{load.element.name} {name}[{_plus(behind, 1)}];"
        for one, near in self.near.items() if found.apart else ():
            yield from self._every(_plus(behind, one.back + one.forth))
            yield f"{near}[{turn}] = {self._element(one, _plus(turn, -one.back))};"
        if found.apart and self.follow:
            yield from self._every(behind)
            yield "{"
            yield from self._followed(turn, turn)
            yield "}"
        yield f"#pragma unroll {_STEPS}"
        yield f"for (int {at} = {behind}; {at} < {self.length}; ++{at}) {{"
        for one, near in self.near.items():
            ahead = self._element(one, _plus(at, one.forth))
            yield f"{near}[{_plus(behind, one.back + one.forth)}] = {ahead};"
        if self.follow:
            yield "{"
            yield from self._followed(at, behind)
            yield "}"
        yield from self._each_sweep()
        number = f"({at} - {self._times(self.sweep)})" if found.apart else at
        yield self._counter(found.inner, number)
        yield self._body(near=True)
        yield "}"
        stored = f"{at} - {behind}" if found.apart else at
        for one, near in self.near.items():
            yield f"{self._element(one, stored)} = {near}[{one.back}];"
            if _plus(behind, one.back + one.forth) != "0":
                yield from self._every(_plus(behind, one.back + one.forth))
                yield f"{near}[{turn}] = {near}[{turn} + 1];"
        if found.apart and self.follow:
            yield from self._every(behind)
            yield "{"
            yield from (f"{name}[{turn}] = {name}[{turn} + 1];" for name in self.follow.values())
            yield "}"
        yield "}"
        for one, near in self.near.items():
            left = _plus(behind, max(one.stored))
            if left != "0":
                yield from self._every(left)
                rest = self._element(one, f"{self.length} - {behind} + {turn}")
                yield f"{rest} = {near}[{_plus(turn, one.back)}];"

    def _followed(self, number: str, place: str) -> Iterator[str]:
        """What rounds of this number load from other arrays."""
        yield self._counter(self.found.inner, number)
        for load, name in self.follow.items():
            yield f"{name}[{place}] = {self.old.spelled(self.places[load])};"

    def _every(self, count: str) -> Iterator[str]:
        yield "#pragma unroll"
        yield f"for (int {self.turn} = 0; {self.turn} < {count}; ++{self.turn})"

    def _each_sweep(self) -> Iterator[str]:
        yield "#pragma unroll"
        yield f"for (int {self.sweep} = 0; {self.sweep} < {self.count}; ++{self.sweep}) {{"
        yield self._counter(self.found.outer, f"({self.first} + {self.sweep})")

    def _inner(self, begin: str, end: str, body: str) -> Iterator[str]:
        yield f"for ({begin}; {self.turn} < {end}; ++{self.turn}) {{"
        yield self._counter(self.found.inner, self.turn)
        yield body
        yield "}"

    def _one_by_one(self) -> str:
        """The sweeps behind the last group, as they were."""
        outer = self.found.outer
        assert isinstance(outer.node.before, Declare)
        swaps: dict[Node, Node] = {
            outer.node.before: lines(self._counter(outer, self.first).removeprefix("const "))
        }
        return self.old.show(outer.node, swaps)

    def _counter(self, axis: Axis, number: str) -> str:
        """The declaration of a counter in the round with this number."""
        assert axis.variable is not None
        assert isinstance(axis.node.before, Declare)
        begin = axis.variable.value
        assert begin is not None
        assert axis.step is not None
        step = axis.step.value or 1
        far = number if abs(step) == 1 else f"{abs(step)} * {number}"
        start = self.old.spelled(begin)
        sum_ = far if start == "0" and step > 0 else f"{start} {'+' if step > 0 else '-'} {far}"
        return f"const {declared_type(self.old, axis.variable)} {axis.variable.name} = {sum_};"

    def _body(self, near: bool = False) -> str:
        found, swaps = self.found, self._own_names(self.found.inner.node.body)
        if near:
            behind = self._times(f"({self.count} - 1 - {self.sweep})") if found.apart else "0"
            for one, name in self.near.items():
                for place, far in one.places.items():
                    swaps[place] = text(f"{name}[{_plus(behind, one.back + far)}]")
            swaps |= {self.places[a]: text(f"{name}[{behind}]") for a, name in self.follow.items()}
        return self.old.show_inside(found.inner.node.body, swaps)

    def _ahead(self) -> Iterator[str]:
        """What comes ahead of a sweep, with the locals that outlast it as elements of arrays."""
        for part in parted(Block(None, self.found.outer.line, self.found.ahead)):
            held = part.variables[0] if isinstance(part, Declare) else None
            if held not in self.each:
                yield self._shown(part)
            elif held is not None and held.value is not None:
                value = self.old.spelled(held.value, self._own_names(part))
                yield f"{self.each[held]}[{self.sweep}] = {value};"

    def _shown(self, part: Statement) -> str:
        return self.old.show(part, self._own_names(part))

    def _own_names(self, part: Statement) -> dict[Node, Node]:
        return {
            e: text(f"{self.each[e.variable]}[{self.sweep}]")
            for e in self.effects.inside(part)
            if isinstance(e, Name) and e.variable is not None and e.variable in self.each
        }

    def _room(self) -> Iterator[str]:
        """That the sweeps of a group are long enough to follow each other."""
        known = self.found.rounds.value
        if not self.found.apart and known is not None and known >= 0:
            return
        yield f"{self._of_rounds(self.first)} >= {self.behind}"
        if self.found.growth < 0:
            yield f"{self._of_rounds(f'({self.first} + {self.count} - 1)')} >= 0"

    def _of_rounds(self, number: str) -> str:
        """How many rounds the sweep with this number has."""
        by, name = self.found.growth, self.found.outer.name
        rest = self._form(self.found.rounds.without([name]))
        if not by:
            return rest
        rest = rest if rest.isdigit() else f"(int)({rest})"  # without a sign nothing is below 0
        far = number if abs(by) == 1 else f"{abs(by)} * {number}"
        return f"({rest} {'+' if by > 0 else '-'} {far})"

    def _sweeps(self) -> str:
        """How many sweeps there are, or fewer than one."""
        axis = self.found.outer
        assert axis.start is not None
        assert axis.stop is not None
        assert axis.step is not None
        step = axis.step.value or 1
        span = axis.stop - axis.start if step > 0 else axis.start - axis.stop
        if abs(step) != 1:
            by = Polynomial.constant(abs(step))
            parts = span + by - Polynomial.constant(1), by
            span = self.old.reading_operations().operation("/", parts)
        return self._form(span)

    def _element(self, one: Swept, number: str) -> str:
        """The element of an array that is so many rounds from the first one of a sweep."""
        if one.sign > 0 and one.base.value is not None:
            return f"{one.array.name}[{_plus(number, one.base.value)}]"
        return f"{one.array.name}[{self._form(one.base)} {'+' if one.sign > 0 else '-'} ({number})]"

    def _form(self, form: Polynomial) -> str:
        return self._speller.form(self._speller.local(form))

    @cached_property
    def _speller(self) -> LocalSpeller:
        return speller_before(self.old, self.effects, self.found.outer.node)

    def _times(self, number: str) -> str:
        return number if self.found.apart == 1 else f"{self.found.apart} * {number}"


def _plus(number: str, more: int) -> str:
    """A number and so many more, where ``number`` may end with one that it adds."""
    sign = "+" if more > 0 else "-"
    return f"{number} {sign} {abs(more)}" if more else number
