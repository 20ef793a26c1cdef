"""Rows that take other rows with a weight each, found by a recurrence: attention and its kin.

A thread goes through keys. For each it combines its row with that of the key, follows a few scalars
from key to key, such as the greatest score so far, and adds a row of the key's to an array of its
own, ``acc[d] = acc[d] * c + p * V[k][d]``, where neither ``c`` nor ``p`` asks for ``d``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Expr,
    Lambda,
    Literal,
    Name,
    Step,
    Unread,
    every,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.computing import only_computes
from optiml_magic.kernels.primitives.divided import extent_of
from optiml_magic.kernels.primitives.effects import (
    Effects,
    is_simple,
    loops_in,
    names,
    outermost,
    parted,
)
from optiml_magic.kernels.primitives.mapped import Mapped, mapped
from optiml_magic.kernels.primitives.naming import type_of
from optiml_magic.kernels.primitives.weighted_sides import KEY, ONE, Given, Linear, Operand, Sides
from optiml_magic.kernels.reading import Axis, Reduction
from optiml_magic.kernels.tree import (
    Blank,
    Declare,
    Evaluate,
    Leave,
    Loop,
    Statement,
    Variable,
    walk,
)
from optiml_magic.kernels.types import CType

_WORD, _WORDS = 4, (4, 8)  # bytes of a counter


@dataclass(frozen=True, eq=False)
class Dot:
    """A loop that combines a row with a key, ``length`` elements of each, in one local."""

    axis: Axis
    length: int
    reduction: Reduction
    variable: Variable
    rows: tuple[Operand, ...]
    keys: tuple[Operand, ...]


@dataclass(frozen=True, eq=False)
class Update:
    """``acc[e] = acc[e] * factor + value * weight``, where ``value`` is a key's."""

    axis: Axis
    length: int
    factor: Expr | None
    weight: Expr | None
    value: Operand | None


@dataclass(frozen=True, eq=False)
class Pass:
    """A loop over keys. ``sure`` is whether each of its rounds updates the array once."""

    axis: Axis
    dots: tuple[Dot, ...]
    updates: tuple[Update, ...]
    first: Expr
    ends: tuple[tuple[Expr, bool], ...]  # what its counter stays below, or beyond
    sure: bool

    @property
    def value(self) -> Operand | None:
        return next((u.value for u in self.updates if u.value is not None), None)

    @property
    def scaled(self) -> bool:
        return any(u.factor is not None for u in self.updates)


@dataclass(frozen=True, eq=False)
class Weighted:
    """What the rows of a kernel do: statements of their own, and between these the passes."""

    items: Mapped
    parts: tuple[tuple[Statement, ...] | Pass, ...]
    array: Variable | None
    extent: int
    type: CType | None

    @property
    def passes(self) -> tuple[Pass, ...]:
        return tuple(part for part in self.parts if isinstance(part, Pass))


def nests(kernel: Kernel) -> list[Loop]:
    """The loops of a kernel that have others inside: cheap, and most kernels have none."""
    return [loop for loop in loops_in(kernel.function.body) if loops_in(loop.body)]


def weighted(kernel: Kernel, *, own_keys: bool = False) -> Weighted:
    """The parts of such a kernel, each row of which may have ``own_keys``.

    Raises NotLegal for any other.
    """
    effects = Effects(kernel)
    if kernel.block[1:] != (1, 1):
        raise NotLegal("its blocks have more than one row")
    items = mapped(kernel, effects)
    return _Finder(kernel, effects, items, own_keys=own_keys).weighted()


def _is_nest(kernel: Kernel, loop: Loop) -> bool:
    """Whether short loops inside of a loop of its thread walk along what it loads."""
    axes = kernel.axes()
    inner = [axes[o] for o in loops_in(loop.body) if o in axes]
    return loop in axes and any(axis.trips for axis in inner)


class _Finder:
    def __init__(self, kernel: Kernel, effects: Effects, items: Mapped, *, own_keys: bool) -> None:
        self.kernel, self.effects, self.items = kernel, effects, items
        self.own_keys = own_keys
        self.axes = kernel.axes()
        self.own = frozenset(v for s in items.inside if isinstance(s, Declare) for v in s.variables)
        self.array: Variable | None = None

    @cached_property
    def given(self) -> Given:
        accesses = {a.node: a for a in self.kernel.reading.accesses if a.call is None}
        return Given(
            self.kernel, self.effects, self.items, self.own, accesses, self.array, self.own_keys
        )

    def weighted(self) -> Weighted:
        for statement in self.items.inside:
            for inner in walk(statement):
                if isinstance(inner, Leave) and inner.kind == "return":
                    raise NotLegal("a row leaves the kernel by itself", inner.line)
        for access in self.effects.hidden():
            if access.mode != "load":
                raise NotLegal("a function that it calls stores", access.line)
        statements = [s for s in self.items.inside if not isinstance(s, Blank)]
        nests = [s for s in statements if isinstance(s, Loop) and _is_nest(self.kernel, s)]
        self.array = self._array(nests)
        parts, rest = list[tuple[Statement, ...] | Pass](), list[Statement]()
        for statement in statements:
            found = self._pass(statement) if statement in nests else None
            if found is None:
                rest.append(statement)
            else:
                parts += [tuple(rest), found]
                rest = []
        parts.append(tuple(rest))
        passes = [part for part in parts if isinstance(part, Pass)]
        if not any(found.dots for found in passes):
            raise NotLegal("no row is combined with a key")
        extent = extent_of(self.kernel, self.array) if self.array is not None else 0
        for update in (u for found in passes for u in found.updates):
            if extent is None or update.length > extent:
                raise NotLegal("it has more rounds than elements", update.axis.line)
        kind = type_of(self.kernel, self.array) if self.array is not None else None
        return Weighted(self.items, tuple(parts), self.array, extent or 0, kind)

    def _array(self, nests: list[Loop]) -> Variable | None:
        """The only local array that a loop over keys changes."""
        found = set[str]()
        for loop in nests:
            while name := self.effects.kept(loop.body, found):
                found.add(name)
        if len(found) > 1:
            raise NotLegal("more than one array goes from key to key", nests[0].line)
        mine = [v for v in self.own if v.name in found]
        if found and not mine:
            raise NotLegal("an array is not of its row alone", nests[0].line)
        for array in mine:
            plain = len(array.extents) == 1 and array.storage == "local"
            zero = array.value is None or getattr(array.value, "value", None) == 0
            if (
                not plain
                or not zero
                or array.initial
                or array.type.volatile
                or array in self.effects.lent
            ):
                raise NotLegal(f"`{array.name}` is not a plain array", array.line)
            if not type_of(self.kernel, array).floating:
                raise NotLegal(f"`{array.name}` does not hold floats", array.line)
        return mine[0] if mine else None

    # -- a loop over keys

    def _pass(self, loop: Loop) -> Pass | None:
        """A loop over keys; None where it is one of the row's own statements."""
        axis, inner = self.axes[loop], [*outermost(loop.body)]
        kept = self.array is not None and self.effects.kept(loop.body) == self.array.name
        found = [self._dot(axis, self.axes[o]) for o in inner if o in self.axes and not (
            kept and self.effects.kept(o.body))]  # fmt: skip
        dots = [dot for dot in found if isinstance(dot, Dot)]
        if not dots and not kept:
            return None
        updates = [u for o in inner if kept and o in self.axes and self.effects.kept(o.body)
                   for u in self._updates(axis, self.axes[o])]  # fmt: skip
        self._check(axis, [d.axis.node for d in dots], [u.axis.node for u in updates])
        if kept and not any(u.value is not None for u in updates):
            raise NotLegal("nothing of a key is added", loop.line)
        first, ends = self._ends(axis)
        skips = any(isinstance(s, Leave) for s in walk(loop.body))
        sure = len({u.axis for u in updates}) == len(updates) == 1 and not skips
        sure = sure and all(self._always(axis, u.axis) for u in updates)
        return Pass(axis, tuple(dots), tuple(updates), first, ends, sure)

    def _always(self, outer: Axis, inner: Axis) -> bool:
        """Whether an inner loop is made in every round of the outer one."""
        around = {part for c in inner.guard for part in c.conjuncts()}
        return around <= outer.held | self.items.held

    def _check(self, axis: Axis, dots: list[Loop], updates: list[Loop]) -> None:
        """Raise NotLegal where a round leaves more behind than scalars and the array."""
        loop, effects = axis.node, self.effects
        variable = axis.variable
        if not self._counts(axis):
            raise NotLegal("its loop over keys does not count up by one", loop.line)
        kind = type_of(self.kernel, variable) if variable is not None else None
        if kind is None or not kind.integral or kind.size not in _WORDS:
            raise NotLegal("its loop over keys does not count in a plain type", loop.line)
        own = {s for o in loops_in(loop.body) for s in walk(o.body)}
        for statement in walk(loop.body):
            if isinstance(statement, Leave) and (statement.kind != "continue" and
                                                 statement not in own):  # fmt: skip
                raise NotLegal("it leaves its loop over keys", statement.line)
        written = self.kernel.reading.written
        for access in effects.accesses(loop):
            if access.mode != "load":
                raise NotLegal("it stores for each key", access.line)
            if any(effects.same(access.array, name) for name in written):
                raise NotLegal("it reads what it writes", access.line)
        array = self.array
        inside = [e for o in updates for e in effects.inside(o)]
        for expr in effects.inside(loop):
            named = isinstance(expr, Name) and expr.variable is array
            if named and array is not None and expr not in inside:
                raise NotLegal(f"`{array.name}` is asked for as it grows", loop.line)
        for one in (*dots, *updates):
            if any(isinstance(s, Leave) for s in walk(one)):
                raise NotLegal("a loop over elements is left", one.line)
            if loops_in(one.body):
                raise NotLegal("a loop over elements has another one inside", one.line)

    def _counts(self, axis: Axis) -> bool:
        """Whether a loop counts up by one in its head alone, by a local of its own."""
        loop, variable, changed = axis.node, axis.variable, self.effects.changed
        if not isinstance(loop.before, Declare) or loop.before.variables != (variable,):
            return False
        if axis.start is None or axis.step != Polynomial.constant(1) or loop.update is None:
            return False
        head = changed(Evaluate(None, loop.line, loop.update)).keys()
        return loop.kind == "for" and head == {variable} and variable not in changed(loop.body)

    def _ends(self, axis: Axis) -> tuple[Expr, tuple[tuple[Expr, bool], ...]]:
        """Where the counter begins and what it stays below, or does not go beyond."""
        loop, variable = axis.node, axis.variable
        before = loop.before
        first = before.variables[0].value if isinstance(before, Declare) else None
        if first is None or loop.test is None:
            raise NotLegal("where the loop begins is not in its head", loop.line)
        ends, todo = list[tuple[Expr, bool]](), [loop.test]
        while todo:
            match todo.pop(0):
                case Binary(op="&&", left=left, right=right):
                    todo = [left, right, *todo]
                case Binary(op="<" | "<=" as op, left=Name(variable=own), right=last) if (
                    own is variable
                ):
                    ends.append((last, op == "<="))
                case Binary(op=">" | ">=" as op, right=Name(variable=own), left=last) if (
                    own is variable
                ):
                    ends.append((last, op == ">="))
                case _:
                    raise NotLegal("where the loop ends is not followed", loop.line)
        changed = {*self.effects.changed(loop.body), variable}
        asked = names([first, *(last for last, _ in ends)])
        # A counter below zero would be above all numbers without a sign.
        begun = isinstance(first, Literal) and isinstance(first.value, int) and first.value >= 0
        begun |= variable is not None and not type_of(self.kernel, variable).signed
        for last, _ in ends:
            kind = self.kernel.reading.types.get(last)
            if kind is None or not kind.integral or not kind.size:
                raise NotLegal("the end of the loop is not an int", loop.line)
            small = kind.size < _WORD or (kind.size == _WORD and kind.signed)
            if not small and (kind.signed or not begun):
                raise NotLegal("the end of the loop is not an int", loop.line)
        acts = (e for p in (first, loop.test) for e in every(p) if not self._computes(e))
        if asked & changed or any(acts):
            raise NotLegal("where the loop ends changes in it", loop.line)
        return first, tuple(ends)

    def _computes(self, expr: Expr) -> bool:
        """Whether an expression by itself changes nothing."""
        if isinstance(expr, Call):
            return expr in self.given.accesses or only_computes(self.kernel, expr)
        return not isinstance(expr, Assign | Step | Lambda | Unread)

    # -- what a round combines

    def _dot(self, outer: Axis, axis: Axis) -> Dot | None:
        """An inner loop that combines a row with a key; None where it does something else."""
        loop = axis.node
        changed = self.effects.changed(loop)
        known = [r for r in self.kernel.reading.reductions if r.axes[:1] == (axis.name,)]
        if not axis.trips or not is_simple(axis, self.effects) or len(changed) != 1:
            return None
        (variable,) = changed
        found = [r for r in known if r.place == variable.name]
        if len(found) != 1 or found[0].carried:
            return None
        (reduction,) = found
        combine.supported(reduction)
        combine.nothing(reduction)
        if reduction.op in "<>" and combine.test(reduction) != reduction.op:
            raise NotLegal("which of equals it keeps is not certain", loop.line)
        sides = Sides(self.given, outer, axis, variable)
        rows, keys = sides.operands(loop.body)
        if not keys:
            return None
        if not self._always(outer, axis):
            raise NotLegal("some keys are not combined with the row", loop.line)
        return Dot(axis, axis.trips, reduction, variable, tuple(rows), tuple(keys))

    # -- what a round adds

    def _updates(self, outer: Axis, axis: Axis) -> Iterator[Update]:
        loop = axis.node
        if not axis.trips or not is_simple(axis, self.effects):
            raise NotLegal("the number of elements updated is not a constant", loop.line)
        if self.effects.changed(loop):
            raise NotLegal("a loop over elements changes scalars", loop.line)
        sides = Sides(self.given, outer, axis, None)
        for statement in parted(loop.body):
            if not isinstance(statement, Evaluate) or not isinstance(statement.expression, Assign):
                raise NotLegal("a loop over elements does more than add", statement.line)
            if not all(map(self._computes, every(statement.expression.value))):
                raise NotLegal("a loop over elements does more than add", statement.line)
            found = Linear(sides, statement.line).assigned(statement.expression)
            if found.rest is not None:
                raise NotLegal("what is added does not come from a key", statement.line)
            value = sides.operand(found.key, KEY) if found.key is not None else None
            factor = found.of if found.of is not ONE else None
            if found.of is None:
                raise NotLegal("an element is not what it was and more", statement.line)
            yield Update(axis, axis.trips, factor, found.by, value)
